"""Compares consume queues in files with those in a RocksDB of the same store, as a broker that writes both keeps them
(``rocksdbCQDoubleWriteEnable``; docs/formats/consume-queue.md#both).

One side counts: a broker answers from it and takes the offsets of new messages from it. What a start does with the
other side was seen on starts of 5.4.0 and 5.5.1 (``tests/peer/test_peer_queue_sides.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import CannotRead
from engine.inspection.get_message import store_time
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.store_queues import AnyQueue
from engine.releases import rules_of
from engine.rules.queue_sides import (
    Side,
    loaded_sides,
    numbering_side,
    reading_side,
    reads_light_from_rocksdb,
    refusal,
    writes_both,
)
from engine.sentences import join, sentence

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from engine.inspection.queue_reader import QueueReader
    from engine.inspection.rocksdb_queue import RocksQueueReader

BLOCK_ENTRIES = 65_536


@dataclass(frozen=True, slots=True)
class QueueOnBothSides:
    """A queue on both sides. Bounds are queue offsets [begin, end) as a broker gives them; None if the side has no
    such queue. ``first_difference`` is the first queue offset at which only one side has an entry, or both have
    different ones; None if they are equal. ``first_unequal`` is the same within the bounds that both have.
    """

    topic: str
    queue_id: int
    files: tuple[int, int] | None
    rocksdb: tuple[int, int] | None
    first_difference: int | None
    first_unequal: int | None = None


@dataclass(frozen=True, slots=True)
class BothSides:
    """``counting``: the side that consumers read; ``why`` says how that is known; ``next_start`` says what a start of
    5.4 or 5.5 does with the other one. ``numbering``: the side that numbers new messages. ``are_written``: whether the
    configuration lets a broker write both; None if it is not known.
    """

    folder: str
    counting: Side
    why: str
    next_start: str
    numbering: Side = "files"
    are_written: bool | None = None


def find_both_sides(store: StoreSnapshot) -> BothSides | None:
    """Which side counts, if the store has queues in files and in a RocksDB; else None."""
    beside = store.queues.rocksdb_beside_files
    if beside is None:
        return None
    folder = beside.folder.relative_to(store.path).as_posix()
    config = _config_of_both(store)
    counting: Side = "rocksdb" if store.queues.rocksdb is not None else "files"
    numbering = counting
    if config is not None:
        counting, numbering = reading_side(config, store.release), numbering_side(config, store.release)
    next_start = _next_start(store, counting, numbering)
    return BothSides(folder, counting, _why(store, counting), next_start, numbering, _are_written(store))


def read_side_words(store: StoreSnapshot) -> str:
    """Say which queues are read of a store that has queues in files and in a RocksDB; "" for any other store."""
    try:
        both_sides = find_both_sides(store)
    except CannotRead:
        return ""
    if both_sides is None:
        return ""
    has_light = reads_light_from_rocksdb(store.config, store.release)
    values = {"folder": both_sides.folder, "why": both_sides.why}
    if both_sides.counting == "files" and has_light:
        return sentence("Queues are read from the files, light queues from the RocksDB {folder}: {why}", **values)
    if both_sides.counting == "files":
        return sentence("Queues are read from the files, not from the RocksDB {folder}: {why}", **values)
    return sentence("Queues are read from the RocksDB {folder}, not from the files: {why}", **values)


def _config_of_both(store: StoreSnapshot) -> MessageStoreConfig | None:
    """The configuration if it lets a broker write both kinds of queues."""
    return store.config if writes_both(store.config) else None


def _are_written(store: StoreSnapshot) -> bool | None:
    config = store.config
    if _config_of_both(store) is not None:
        return True
    return False if config is not None and (config.given or config.file is not None) else None


def _why(store: StoreSnapshot, counting: Side) -> str:
    config_of_both = _config_of_both(store)
    if config_of_both is not None and "combineCQPreferCQType" in config_of_both.given:
        if store.release is not None and not rules_of(store.release).chooses_queue_side:
            return sentence("{title} does not know combineCQPreferCQType", title=rules_of(store.release).title)
        value = config_of_both.combine_cq_prefer_cq_type
        return sentence("the configuration says so: combineCQPreferCQType={value}", value=value)
    if store.config is not None and "storeType" in store.config.given:
        return sentence("the configuration says so: storeType={value}", value=store.config.store_type)
    if config_of_both is not None:
        return sentence("the configuration says so: rocksdbCQDoubleWriteEnable=true without combineCQPreferCQType")
    if counting == "files":
        return sentence("no configuration is given (--config), and the file queues reach the end of the log")
    return sentence("no configuration is given (--config), and the file queues do not reach the end of the log")


def _next_start(store: StoreSnapshot, counting: Side, numbering: Side) -> str:
    config_of_both = _config_of_both(store)
    refused = refusal(store.config, store.release)
    if refused:
        return sentence("{reason}.", reason=refused)
    if config_of_both is not None:
        if "rocksdb" not in loaded_sides(config_of_both):
            return sentence("The next start does not touch the RocksDB, because combineCQLoadingCQTypes leaves it out.")
        sentences = [_ADDED] if store.abort else [_ADDED, _SKIPPED]
        if numbering == "rocksdb":
            return join(" ", sentences)
        return join(" ", [*sentences, _REFUSED if counting == "rocksdb" else _BEGUN_ANEW])
    if counting == "rocksdb":
        return sentence(
            "The next start with storeType=defaultRocksDB does not touch the file queues: they stay as they are."
        )
    if _are_written(store) is False:
        return sentence("The next start does not touch the RocksDB, because rocksdbCQDoubleWriteEnable is not true.")
    return sentence(
        "With rocksdbCQDoubleWriteEnable=true the next start adds the entries that the RocksDB lacks; without, it does "
        "not touch the RocksDB."
    )


_ADDED = sentence("The next start adds the entries that the RocksDB lacks.")
_BEGUN_ANEW = sentence(
    "Where the ends of a queue still differ then, the queue in the RocksDB begins anew at the end of the file queue."
)
_REFUSED = sentence(
    "Where the ends of a queue still differ then, the broker does not start (currentReadStore not satisfied readable "
    "conditions). A start after that may find these queues of the RocksDB begun anew at the end of the file queues."
)
_SKIPPED = sentence(
    "The store was closed: the start leaves out the first entry that is lacking, by the order of the log."
)


def compare_sides(store: StoreSnapshot) -> Iterator[QueueOnBothSides]:
    """Every queue of both sides, by topic and queue id. Raises :class:`CannotRead`."""
    beside = store.queues.rocksdb_beside_files
    if beside is None:
        return
    in_files, in_rocksdb = store.queue_folders.by_topic(), beside.by_topic()
    names = {
        (topic, queue_id)
        for topics in (in_files, in_rocksdb)
        for topic, queues in topics.items()
        for queue_id in queues
    }
    for topic, queue_id in sorted(names):
        file_queue = in_files.get(topic, {}).get(queue_id)
        if file_queue is None or file_queue.kind == "simple":
            yield compare_queue(topic, queue_id, file_queue, in_rocksdb.get(topic, {}).get(queue_id))


def compare_queue(
    topic: str, queue_id: int, file_queue: QueueReader | None, row_queue: RocksQueueReader | None
) -> QueueOnBothSides:
    """Compare one queue of both sides."""
    files, rocksdb = _bounds(file_queue), _bounds(row_queue)
    first_unequal = _first_unequal(file_queue, files, row_queue, rocksdb)
    first_difference = _first_difference(files, rocksdb, first_unequal)
    return QueueOnBothSides(topic, queue_id, files, rocksdb, first_difference, first_unequal)


@dataclass(frozen=True, slots=True)
class WriteProgress:
    """A comparison of the queues in a RocksDB with the queues in files. ``differing`` has the topic, queue id and queue
    offset at which each queue that is not equal first differs.
    """

    topic_count: int
    differing: tuple[tuple[str, int, int], ...]

    @property
    def is_complete(self) -> bool:
        return not self.differing

    @property
    def words(self) -> str:
        """The result in RocketMQ's words, as a broker writes it into its log."""
        count = self.topic_count
        equal = count - len({topic for topic, _, _ in self.differing})
        result = f"success/all : {equal}/{count}" if self.differing else f"all topic is ready, checkSize: {count}"
        return f"check all topic finish, {result}, currentQueueNum: {count}"


def check_write_progress(store: StoreSnapshot, topic: str = "", since_ms: int = 0) -> WriteProgress | None:
    """Compare entries since ``since_ms`` of the file queues of ``topic``, or of all topics, with the RocksDB; None if
    the store has no queues in a RocksDB beside files. Raises :class:`CannotRead`.

    Java: ``CombineConsumeQueueStore.doCheckCqWriteProgress``. Queues whose newest message is older are left out, and so
    is what lies before the first entry in the RocksDB.
    """
    beside = store.queues.rocksdb_beside_files
    if beside is None:
        return None
    in_rocksdb = beside.by_topic()
    topics = {name: queues for name, queues in sorted(store.queue_folders.by_topic().items()) if topic in {"", name}}
    differing = []
    for name, queues in topics.items():
        for queue_id, queue in sorted(queues.items()):
            if queue.kind == "simple":
                row_queue = in_rocksdb.get(name, {}).get(queue_id)
                offset = _first_missing(store, queue, row_queue, since_ms)
                if offset is not None:
                    differing.append((name, queue_id, offset))
    return WriteProgress(len(topics), tuple(differing))


def _first_missing(
    store: StoreSnapshot, file_queue: QueueReader, row_queue: RocksQueueReader | None, since_ms: int
) -> int | None:
    import numpy as np

    start, end = max(file_queue.min_offset, 0), file_queue.max_offset
    newest = file_queue.entry(end - 1) if end > start else None
    if newest is None or 0 <= store_time(store, newest) < since_ms:
        return None
    if row_queue is None:
        return start
    start = max(start, row_queue.min_offset, row_queue.offset_by_time(since_ms, lower=False))
    for begin in range(start, end, BLOCK_ENTRIES):
        stop = min(begin + BLOCK_ENTRIES, end)
        entries, rows = file_queue.array(begin, stop), row_queue.raw_entries(begin, stop - begin)
        unequal = np.flatnonzero(entries != rows[: len(entries)])
        if len(unequal):
            return begin + int(unequal[0])
        if len(entries) < stop - begin:
            return begin + len(entries)
    return None


def _bounds(queue: AnyQueue | None) -> tuple[int, int] | None:
    return None if queue is None else (max(queue.min_offset, 0), queue.max_offset)


def _first_difference(
    files: tuple[int, int] | None, rocksdb: tuple[int, int] | None, first_unequal: int | None
) -> int | None:
    has_entries = [bounds for bounds in (files, rocksdb) if bounds is not None and bounds[1] > bounds[0]]
    if files is None or rocksdb is None or len(has_entries) < 2:
        return has_entries[0][0] if has_entries else None
    if files[0] != rocksdb[0]:
        return min(files[0], rocksdb[0])
    if first_unequal is None and files[1] != rocksdb[1]:
        return min(files[1], rocksdb[1])
    return first_unequal


def _first_unequal(
    file_queue: QueueReader | None,
    files: tuple[int, int] | None,
    row_queue: RocksQueueReader | None,
    rocksdb: tuple[int, int] | None,
) -> int | None:
    """The first queue offset within both bounds at which an entry is lacking or not the same."""
    import numpy as np  # takes long, and the window loads this module beside its first rows

    if file_queue is None or row_queue is None or files is None or rocksdb is None:
        return None
    end = min(files[1], rocksdb[1])
    for start in range(max(files[0], rocksdb[0]), end, BLOCK_ENTRIES):
        stop = min(start + BLOCK_ENTRIES, end)
        entries, rows = file_queue.array(start, stop), row_queue.raw_entries(start, stop - start)
        differing = np.flatnonzero(entries != rows[: len(entries)])
        if len(differing):
            return start + int(differing[0])
        if len(entries) < stop - start:
            return start + len(entries)
    return None
