"""Sizes of a store's files and tables. RocketMQ does not store them: they are configured, or derived from the files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.codec import index as index_codec
from engine.config import MessageStoreConfig
from engine.sentences import plural, sentence

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot

_ATTRIBUTES = {
    "mappedFileSizeCommitLog": "mapped_file_size_commit_log",
    "mappedFileSizeConsumeQueue": "consume_queue_file_size",  # as the broker rounds it
    "mapperFileSizeBatchConsumeQueue": "mapper_file_size_batch_consume_queue",
    "maxHashSlotNum": "max_hash_slot_num",
    "maxIndexNum": "max_index_num",
}


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes in bytes and counts, and the source of each."""

    commit_log_file_size: int
    consume_queue_file_size: int
    index: index_codec.Geometry | None
    sources: dict[str, str]


def configured_size(config: MessageStoreConfig | None, key: str) -> int | None:
    """Return the configured value of a size; None if it is not configured."""
    if config is None or key not in config.given:
        return None
    value = getattr(config, _ATTRIBUTES[key])
    return int(value) if value else None


def find_geometry(store: StoreSnapshot) -> Geometry:
    """Return the sizes of a store's files and index tables."""
    log_size = store.log.sequence.file_size
    counts_by_size: dict[int, int] = {}
    for queue in store.queue_folders.readers():
        if queue.kind == "simple" and queue.files:
            size = queue.sequence.file_size
            counts_by_size[size] = counts_by_size.get(size, 0) + 1
    configured = store.configured_size("mappedFileSizeConsumeQueue") or 0
    queue_size = max(counts_by_size, key=lambda size: counts_by_size[size]) if counts_by_size else configured
    index = store.index.files()
    sources = {
        "mappedFileSizeCommitLog": _source(store, "mappedFileSizeCommitLog", log_size, len(store.log.files)),
        "mappedFileSizeConsumeQueue": _source(
            store, "mappedFileSizeConsumeQueue", queue_size, sum(counts_by_size.values())
        ),
        "maxHashSlotNum": index[0].geometry_source if index else "there are no index files",
    }
    return Geometry(log_size, queue_size, index[0].geometry if index else None, sources)


def _source(store: StoreSnapshot, key: str, size: int, file_count: int) -> str:
    if store.configured_size(key):
        return "the configuration says so"
    if not size:
        return sentence("there are no files")
    return plural("the commonest length of {n:,} file", "the commonest length of {n:,} files", n=file_count)
