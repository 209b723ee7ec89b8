"""The answers that a broker's getMessage would give from these files (docs/formats/reading.md#get-message), and offsets
by time (docs/formats/consume-queue.md#by-time).

The broker is one that has opened the store and dispatched nothing: entries beyond the end of the log do not count,
minimum offsets are corrected, a queue without a folder is empty. The answers themselves are the engine's
(:mod:`engine.store.get_message`, :mod:`engine.store.offset_by_time`), run over files opened read-only.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine.codec.message import Unit, decode
from engine.errors import CorruptUnit
from engine.inspection.rocksdb_queue import RocksQueueReader
from engine.inspection.tables import topics
from engine.inspection.written_release import require_release
from engine.releases import rules_of
from engine.store import get_message as live
from engine.store import offset_by_time as by_time
from engine.store.get_message import GetMessageStatus, Limits, physical_memory
from engine.store.message_filter import MessageFilter
from engine.store.queue_entry import CqEntry

if TYPE_CHECKING:
    from engine.inspection.compaction import CompactedQueue
    from engine.inspection.snapshot import StoreSnapshot
    from engine.store.tiered import TieredQueue


_IN_MEMORY_RATIO = 40


@dataclass(frozen=True, slots=True)
class GetResult:
    """GetMessageResult: a status of GetMessageStatus, offsets in messages, and the units that would be sent."""

    status: str
    next_begin_offset: int
    min_offset: int
    max_offset: int
    units: list[Unit] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(unit.batch_size for unit in self.units)


def get_message(
    store: StoreSnapshot,
    topic: str,
    queue_id: int,
    offset: int,
    max_count: int = 32,
    message_filter: MessageFilter | None = None,
) -> GetResult:
    """Run getMessage for one queue from queue offset ``offset`` on.

    A compacted topic is read from its compacted queue, without a filter, as a broker does. What the log has deleted is
    read from tiered storage.
    """
    if is_compacted(store, topic):
        return _get_compacted(store.compacted_queue(topic, queue_id), offset, max_count)
    tiered = _tiered_queue(store, topic, queue_id, offset)
    if tiered is not None:
        return _get_tiered(store, tiered, offset, max_count, message_filter)
    queue = store.queues.find(topic, queue_id)
    if queue is None:
        return GetResult(GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0, 0, 0)
    log, limits = _UnitLog(store), _limits(store)
    if isinstance(queue, RocksQueueReader) and rules_of(require_release(store)).scans_rocksdb_by_count:
        limits = replace(limits, scans_by_count=True)
    with live.get_message(queue, log, offset, max_count, message_filter, limits) as result:
        units = [unit for unit_offset in result.offsets if (unit := log.unit(unit_offset)) is not None]
        return GetResult(result.status, result.next_begin_offset, result.min_offset, result.max_offset, units)


def is_compacted(store: StoreSnapshot, topic: str) -> bool:
    """Return True if a broker reads the topic from its compacted queues. Raises :class:`CannotRead`."""
    if store.paths is None or not (store.config is None or store.config.enable_compaction):
        return False
    if store.undecoded_part("topics") is not None and store.why_unknown("topics") is not None:
        return False
    return topic in compacted_topics(store)


def compacted_topics(store: StoreSnapshot) -> set[str]:
    """Topics with ``cleanup.policy=COMPACTION``. Raises :class:`CannotRead`."""
    rows = topics(store) or {}
    return {name for name, row in rows.items() if row.attributes.get("cleanup.policy") == "COMPACTION"}


def _get_compacted(queue: CompactedQueue | None, offset: int, max_count: int) -> GetResult:
    """``CompactionLog.getMessage``: messages of one queue file; an offset in front of the first one is no error."""
    if queue is None:
        return GetResult(GetMessageStatus.NO_MATCHED_LOGIC_QUEUE, 0, 0, 0)
    files = queue.files_of_entries()
    minimum, maximum = queue.min_offset, queue.max_offset
    if maximum == 0:
        return GetResult(GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0, minimum, maximum)
    if offset == maximum:
        return GetResult(GetMessageStatus.OFFSET_OVERFLOW_ONE, offset, minimum, maximum)
    if offset > maximum:
        next_offset = maximum if minimum else minimum
        return GetResult(GetMessageStatus.OFFSET_OVERFLOW_BADLY, next_offset, minimum, maximum)
    for rows in files:
        entries = [entry for entry in rows if entry.next_offset > offset][:max_count]
        items = (queue.log.seen_at(entry.physical_offset, crc=False) for entry in entries)
        units = [item for item in items if isinstance(item, Unit)]
        if units:
            next_offset = entries[-1].next_offset
            return GetResult(GetMessageStatus.FOUND, next_offset, minimum, maximum, units)
    return GetResult(GetMessageStatus.OFFSET_FOUND_NULL, offset, minimum, maximum)


def _tiered_queue(store: StoreSnapshot, topic: str, queue_id: int, offset: int) -> TieredQueue | None:
    """The queue in tiered storage, if a broker reads ``offset`` from there: the store's own log does not have it
    (``TieredMessageStore.fetchFromCurrentStore`` with the level NOT_IN_DISK).
    """
    tiered = store.tiered.queue(topic, queue_id) if store.tiered is not None else None
    if tiered is None or offset >= tiered.max_offset or is_in_log(store, topic, queue_id, offset):
        return None
    return tiered


def is_in_log(store: StoreSnapshot, topic: str, queue_id: int, offset: int) -> bool:
    """Return True if the store's own queue and log have the message at ``offset``. Raises :class:`CannotRead`."""
    queue = store.queues.find(topic, queue_id)
    entry = queue.entry(offset) if queue is not None and queue.min_offset <= offset < queue.max_offset else None
    return entry is not None and entry.physical_offset >= store.log.min_offset


def _get_tiered(
    store: StoreSnapshot, tiered: TieredQueue, offset: int, max_count: int, message_filter: MessageFilter | None
) -> GetResult:
    own_queue = store.queues.find(tiered.topic, tiered.queue_id)
    lowest = min(tiered.min_offset, own_queue.min_offset) if own_queue is not None else tiered.min_offset
    result = tiered.get_messages(offset, max_count, message_filter)
    units = []
    for entry, data in result.messages:
        with contextlib.suppress(CorruptUnit):
            units.append(decode(data, 0, entry.offset))
    return GetResult(result.status, result.next_begin_offset, lowest, tiered.max_offset, units)


def _limits(store: StoreSnapshot) -> Limits:
    if store.config is not None:
        return Limits.of(store.config)
    return Limits(memory=physical_memory() * _IN_MEMORY_RATIO // 100)


class _LentUnit:
    """The bytes of one unit; nothing has to be given back."""

    __slots__ = ("start_offset", "view")

    def __init__(self, start_offset: int, data: bytes) -> None:
        self.start_offset = start_offset
        self.view = memoryview(data)

    def release(self) -> None:
        """Do nothing: no memory is held."""


class _UnitLog:
    """The log as getMessage reads it; only bytes of units are lent (a pre-filled slot names too many)."""

    def __init__(self, store: StoreSnapshot) -> None:
        self._log = store.log
        self.units: dict[int, Unit] = {}

    @property
    def file_size(self) -> int:
        return self._log.sequence.file_size

    @property
    def min_offset(self) -> int:
        return self._log.min_offset

    @property
    def max_offset(self) -> int:
        return self._log.max_offset

    def read(self, offset: int, size: int) -> bytes:
        return self._log.sequence.read(offset, size)

    def unit(self, offset: int) -> Unit | None:
        """The unit at ``offset``; None for an entry that points into the bytes of another unit, which were returned
        with it.
        """
        if offset not in self.units:
            item = self._log.seen_at(offset, crc=False)
            if isinstance(item, Unit):
                self.units[offset] = item
        return self.units.get(offset)

    def lend(self, offset: int, size: int) -> _LentUnit | None:
        file = self._log.sequence.find(offset)
        if file is None or offset + size > min(file.end_offset, self._log.max_offset):
            return None
        unit = self._log.seen_at(offset, crc=False)
        if not isinstance(unit, Unit):
            return None
        self.units[offset] = unit
        return _LentUnit(offset, file.read(offset - file.start_offset, size))


def offset_by_time(store: StoreSnapshot, topic: str, queue_id: int, timestamp: int, boundary: str = "lower") -> int:
    """getOffsetInQueueByTime of 5.x: first entry at or after ``timestamp`` (lower) or last at or before it
    (upper), ms. A time before the log's first message is searched in tiered storage.
    """
    tiered = store.tiered.queue(topic, queue_id) if store.tiered is not None else None
    if tiered is not None and timestamp < by_time.earliest_time(store.log):
        return tiered.offset_by_time(timestamp, boundary)
    queue = store.queues.find(topic, queue_id)
    if isinstance(queue, RocksQueueReader):
        return queue.offset_by_time(timestamp, lower=boundary == "lower")
    return by_time.offset_by_time(queue, store.log, timestamp, boundary)


def store_time(store: StoreSnapshot, entry: CqEntry) -> int:
    """Store time (ms) of the unit that an entry points to, −1 if the log does not hold it (pickupStoreTimestamp)."""
    return by_time.store_time(store.log, entry.physical_offset, entry.size)
