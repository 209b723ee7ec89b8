"""Recovery asked of a store that is only looked at: its files handed to :mod:`engine.store.recovery`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.codec import json_dialect
from engine.codec.checkpoint import Checkpoint
from engine.config import MessageStoreConfig
from engine.errors import StoreError, UsageError
from engine.inspection import foreign
from engine.inspection.snapshot import StoreSnapshot
from engine.layout import BATCH_CONSUME_QUEUE_FILE_SIZE, COMMIT_LOG_FILE_SIZE, CONSUME_QUEUE_FILE_SIZE, StorePaths
from engine.rules.log_rules import LogFile, likely_length
from engine.store import recovery
from engine.store.recovery_plan import RecoveryPlan
from engine.store.recovery_source import GroupOffset, IndexHead, QueueFiles, RecoverySource, Table, TableState
from engine.store.unit_check import Release

_TABLES = (
    "topics.json",
    "topicQueueMapping.json",
    "consumerOffset.json",
    "subscriptionGroup.json",
    "consumerFilter.json",
    "consumerOrderInfo.json",
    "delayOffset.json",
)
_GROUP_SEPARATOR = "@"


def plan(store: StoreSnapshot, like: Release = "5.3") -> RecoveryPlan:
    """What starting a broker of release ``like`` would do; raises :class:`UsageError` for a part of a store."""
    return recovery.plan(source_of(store), like)


def source_of(store: StoreSnapshot) -> RecoverySource:
    """The store's files as recovery reads them."""
    if store.paths is None:
        raise UsageError("recovery needs a whole store; this is a commit log by itself", file=str(store.path))
    checkpoint, note = _checkpoint(store)
    readers = [queue for queues in store.topics().values() for queue in queues.values()]
    batch_sizes = [q.sequence.file_size for q in readers if q.kind == "batch" and q.files]
    batch_topics = _batch_topics(store.paths, store)
    return RecoverySource(
        root=store.path,
        log=store.log.sequence,
        log_file_size=_log_file_size(store),
        queues=tuple(QueueFiles(q.topic, q.queue_id, q.kind, q.sequence, q.ext) for q in readers),
        queue_file_size=store.geometry.consume_queue_file_size or CONSUME_QUEUE_FILE_SIZE,
        batch_queue_file_size=max(batch_sizes, key=batch_sizes.count) if batch_sizes else BATCH_CONSUME_QUEUE_FILE_SIZE,
        index=tuple(_index_heads(store)),
        checkpoint=checkpoint,
        checkpoint_note=note,
        abort=store.abort,
        lock_held=store.lock_state == "held",
        config=store.config or MessageStoreConfig(),
        batch_topics=batch_topics,
        group_offsets=tuple(_group_offsets(store)),
        tables=tuple(_table(store, name) for name in _TABLES),
        notes=tuple(f"{note}: not part of this plan" for note in foreign.notes(store)),
    )


def _log_file_size(store: StoreSnapshot) -> int:
    if store.config is not None and "mappedFileSizeCommitLog" in store.config.given:
        return store.config.mapped_file_size_commit_log
    files = [LogFile(f.path, f.start_offset, f.size) for f in store.log.files]
    return likely_length(files) or COMMIT_LOG_FILE_SIZE


def _checkpoint(store: StoreSnapshot) -> tuple[Checkpoint, str]:
    """The checkpoint as a broker maps it: what is missing reads as zero."""
    try:
        found = store.checkpoint()
    except StoreError as error:
        return Checkpoint(0, 0, 0), f"the checkpoint is no checkpoint: {error.what}"
    if found is None:
        return Checkpoint(0, 0, 0), "there is no checkpoint"
    return found, "the checkpoint's time less 3 s"


def _index_heads(store: StoreSnapshot) -> Iterator[IndexHead]:
    for file in store.index_files():
        try:
            yield IndexHead(file.name, file.path, file.header)
        except StoreError:
            yield IndexHead(file.name, file.path, None)


def _json(store: StoreSnapshot, name: str) -> tuple[TableState, Any]:
    assert store.paths is not None
    try:
        data = store.small_file(store.paths.config / name)
    except StoreError:
        return "bad", None
    if data is None:
        return "missing", None
    if not data:
        return "empty", None
    parsed = json_dialect.parse(data)
    return ("ok" if parsed.accepted else "bad"), parsed.value if parsed.accepted else None


def _table(store: StoreSnapshot, name: str) -> Table:
    assert store.paths is not None
    return Table(str(store.paths.config / name), _json(store, name)[0], _json(store, name + ".bak")[0])


def _loaded(store: StoreSnapshot, name: str) -> Any:
    """A table as a broker loads it: the file, else its ``.bak``, else None."""
    state, value = _json(store, name)
    return value if state == "ok" else _json(store, name + ".bak")[1]


def _batch_topics(paths: StorePaths, store: StoreSnapshot) -> frozenset[str] | None:
    """Topics with queue.type=BatchCQ, None where there is no topics table."""
    table = _loaded(store, "topics.json")
    if not isinstance(table, dict) or not (paths.config / "topics.json").exists():
        return None
    topics = table.get("topicConfigTable")
    if not isinstance(topics, dict):
        return None
    found = set()
    for name, topic in topics.items():
        attributes = topic.get("attributes") if isinstance(topic, dict) else None
        if isinstance(attributes, dict) and attributes.get("queue.type") == "BatchCQ":
            found.add(str(name))
    return frozenset(found)


def _group_offsets(store: StoreSnapshot) -> Iterator[GroupOffset]:
    for name in ("consumerOffset.json", "lmqConsumerOffset.json"):
        table = _loaded(store, name)
        offsets = table.get("offsetTable") if isinstance(table, dict) else None
        for key, queues in offsets.items() if isinstance(offsets, dict) else ():
            topic, separator, group = str(key).rpartition(_GROUP_SEPARATOR)
            if not separator or not isinstance(queues, dict):
                continue
            for queue_id, offset in queues.items():
                if str(queue_id).lstrip("-").isdigit() and isinstance(offset, int):
                    yield GroupOffset(group, topic, int(queue_id), offset)
