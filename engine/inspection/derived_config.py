"""Derives the configuration for writing to an existing store: configured values, and sizes from its files.

A store does not record the intended sizes of its files. Opening it with other sizes misreads the index and keeps a
broker from starting (docs/formats/files.md#folders, docs/formats/index-file.md#layout, docs/formats/configuration.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from engine.config import MessageStoreConfig
from engine.errors import StoreError
from engine.files.layout import COMMIT_LOG_FILE_SIZE
from engine.inspection.queue_reader import QueueReader
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.tables import light_offsets
from engine.rules.log_rules import LogFile, likely_length
from engine.sentences import sentence
from engine.system_names import LMQ_PREFIX

LONG_RESERVED_HOURS = 876_000
"""Hours."""
Setting = tuple[str, str, Any]  # key as RocketMQ spells it, attribute, value


def derived_config(store: StoreSnapshot) -> MessageStoreConfig:
    """Return the store's configuration: configured keys unchanged, sizes and kinds of queues as the files show them,
    defaults if no file shows them.

    What was worked out counts as given. Raises :class:`StoreError` where index files are there and their slots cannot
    be told: they would be misread; :class:`CannotRead` where not everything could be read: nothing is written then.
    """
    config = store.config or MessageStoreConfig()
    settings = [setting for setting in _settings(store) if setting[0] not in config.given]
    store.refuse_unread("a store of sizes that are not known is not written")
    keys = frozenset(key for key, _, _ in settings)
    return replace(config, given=config.given | keys, **{name: value for _, name, value in settings})


def _settings(store: StoreSnapshot) -> Iterator[Setting]:
    files = [LogFile(file.path, file.start_offset, file.size) for file in store.log.files]
    if files:
        yield "mappedFileSizeCommitLog", "mapped_file_size_commit_log", likely_length(files) or COMMIT_LOG_FILE_SIZE
    readers = [queue for queues in store.queues.used_files().values() for queue in queues.values()]
    light = store.undecoded_part("offsets") is None and bool(light_offsets(store))
    yield from _queue_settings(readers, light=light)
    geometry = store.geometry
    if geometry.index is not None:
        yield "maxHashSlotNum", "max_hash_slot_num", geometry.index.slots
        yield "maxIndexNum", "max_index_num", geometry.index.entries
    elif store.index_files() and not _given_index(store):
        path = store.index_files()[0].path
        raise StoreError(
            sentence("its bytes do not show the number of its slots: give the broker's configuration with --config"),
            file=path,
        )


def _queue_settings(readers: list[QueueReader], *, light: bool) -> Iterator[Setting]:
    simple = [queue.sequence.file_size for queue in readers if queue.kind == "simple" and queue.files]
    if simple:
        yield "mappedFileSizeConsumeQueue", "mapped_file_size_consume_queue", _commonest(simple)
    batch = [queue.sequence.file_size for queue in readers if queue.kind == "batch" and queue.files]
    if batch:
        yield "mapperFileSizeBatchConsumeQueue", "mapper_file_size_batch_consume_queue", _commonest(batch)
    ext = [queue.ext.file_size for queue in readers if queue.ext is not None and queue.ext.files]
    if ext:
        yield "enableConsumeQueueExt", "enable_consume_queue_ext", True
        yield "mappedFileSizeConsumeQueueExt", "mapped_file_size_consume_queue_ext", _commonest(ext)
    if light or any(queue.topic.startswith(LMQ_PREFIX) for queue in readers):
        yield "enableLmq", "enable_lmq", True
        yield "enableMultiDispatch", "enable_multi_dispatch", True


def _commonest(sizes: list[int]) -> int:
    return max(Counter(sizes).items(), key=lambda item: (item[1], item[0]))[0]


def _given_index(store: StoreSnapshot) -> bool:
    given_keys = store.config.given if store.config is not None else frozenset()
    return {"maxHashSlotNum", "maxIndexNum"} <= given_keys


def quiet(config: MessageStoreConfig) -> MessageStoreConfig:
    """A configuration under which nothing expires while a command writes."""
    return replace(config, file_reserved_time=LONG_RESERVED_HOURS, clean_file_forcibly_enable=False)
