"""Times, hosts and unique keys of all units of a log, in arrays of bounded length: one pass over the log.

Consecutive chunks overlap, so that each row is judged once with its neighbours on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.callbacks import Cancelled, OffsetProgress
from engine.codec.columns import UNIT, UnitColumns
from engine.codec.message import BORN_HOST_V6, STORE_HOST_V6, TRANSACTION_MASK
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage, Stop
from engine.inspection.block_scan import scan_log
from engine.inspection.timeline.traces import TraceCollector
from engine.inspection.timeline.unique_keys import unique_keys
from engine.system_names import DLQ_PREFIX, RETRY_PREFIX, SCHEDULE_TOPIC, TRACE_TOPIC, is_system_topic

if TYPE_CHECKING:
    from engine.inspection.log_reader import LogReader

SENT, DELIVERED, RETRIED, DELAYED, TRACED = 1, 2, 4, 8, 16
"""Flags of a row: stored for a producer's request; delivered by the broker from a delay; in a group's retry topic;
waits in the schedule topic; a client's traces.
"""
CHUNK_ROWS = 1 << 19
OVERLAP_ROWS = 1 << 16
SLOW_MS = 500
"""Rows with a larger difference between born and store time are checked for the marks of delayed messages."""
WRONG_TIME_MS = 5000
"""A store time that is this far from those of both neighbours, which are near each other, is wrong."""
_DELAY_MARKS = (b"REAL_TOPIC\x01", b"TIMER_")
_BORN_HOST = 48
_STORE_HOST_BEFORE_BODY = 24  # bytes from an IPv4 store host to the body
_WIDE = np.uint64(0xFFFFFFFF)
_MIX_1, _MIX_3 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0x165667B19E3779F9)

Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class UnitRows:
    """Rows of units, in the order of the log. Times are ms.

    ``key``: hash of topic, unique key and body's CRC, 0 without a unique key; messages of a batch share their key.
    ``client``: hash of the process that made the unique key, 0 if the key has another form; ``key_time``: ms since that
    client's month began; ``key_number``: number of the key among those of its process, modulo 65,536.
    ``due``: when a delayed message is to be delivered, else −1. ``host``: address of the producer; ``store_host``:
    address and port of the broker.
    """

    offset: Ints
    stored: Ints
    born: Ints
    topic: npt.NDArray[np.int32]
    queue_offset: Ints
    flags: npt.NDArray[np.uint8]
    host: npt.NDArray[np.uint64]
    store_host: npt.NDArray[np.uint64]
    key: npt.NDArray[np.uint64]
    client: npt.NDArray[np.uint64]
    key_time: Ints
    key_number: Ints
    due: Ints

    def __len__(self) -> int:
        return len(self.offset)

    @property
    def delay(self) -> Ints:
        """Time from born to stored (ms)."""
        return self.stored - self.born

    def select(self, rows: slice | npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> UnitRows:
        return UnitRows(*(getattr(self, column.name)[rows] for column in fields(self)))


def concatenated(parts: list[UnitRows]) -> UnitRows:
    """Return the rows of all ``parts``, which must not be empty."""
    return UnitRows(*(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(UnitRows)))


@dataclass(slots=True)
class Chunk:
    """Rows ``begin`` to ``stop`` (exclusive) are to be judged; the others are their neighbours."""

    rows: UnitRows
    begin: int
    stop: int


def without_wrong_times(chunk: Chunk) -> Chunk:
    """Return the chunk without single units whose store time is far from both neighbours: those were overwritten."""
    stored = chunk.rows.stored
    if len(stored) < 3:
        return chunk
    to_row, from_row = stored[1:-1] - stored[:-2], stored[2:] - stored[1:-1]
    is_far = (np.abs(to_row) >= WRONG_TIME_MS) & (np.abs(from_row) >= WRONG_TIME_MS)
    is_wrong = np.zeros(len(stored), np.bool_)
    is_wrong[1:-1] = is_far & ((to_row < 0) != (from_row < 0)) & (np.abs(stored[2:] - stored[:-2]) < WRONG_TIME_MS)
    if not is_wrong.any():
        return chunk
    new_numbers = np.concatenate(([0], np.cumsum(~is_wrong)))
    return Chunk(chunk.rows.select(~is_wrong), int(new_numbers[chunk.begin]), int(new_numbers[chunk.stop]))


@dataclass(slots=True)
class UnitRowScan:
    """The result of one pass over a log. ``names``: topics by number; ``damage`` and ``unread``: bytes that are no
    unit, or could not be read; ``end``: offset behind the last unit.
    """

    log: LogReader
    names: list[str] = field(default_factory=list)
    units: int = 0
    damage: int = 0
    unread: int = 0
    end: int = 0
    is_complete: bool = False
    damaged_offsets: list[int] = field(default_factory=list)
    """Places where bytes are damaged or unread, in order."""
    traces: TraceCollector = field(default_factory=lambda: TraceCollector(is_wanted=False))

    def chunks(self, progress: OffsetProgress | None = None, cancelled: Cancelled | None = None) -> Iterator[Chunk]:
        """Yield the rows of the log; the last chunk may be empty."""
        overlap: UnitRows | None = None
        parts: list[UnitRows] = []
        begin = waiting = 0
        for part in self._parts(progress, cancelled):
            parts.append(part)
            waiting += len(part)
            if waiting >= CHUNK_ROWS:
                rows = concatenated(parts if overlap is None else [overlap, *parts])
                stop = len(rows) - OVERLAP_ROWS // 2
                yield Chunk(rows, begin, stop)
                overlap = rows.select(slice(len(rows) - OVERLAP_ROWS, None))
                begin, parts, waiting = OVERLAP_ROWS // 2, [], 0
        if parts or overlap is not None:
            rows = concatenated(parts if overlap is None else [overlap, *parts])
            yield Chunk(rows, begin, len(rows))

    def _parts(self, progress: OffsetProgress | None, cancelled: Cancelled | None) -> Iterator[UnitRows]:
        topics = TopicTable()
        kinds = _TopicKinds(topics)
        for block in scan_log(self.log, crc=False, topics=topics):
            if isinstance(block, Stop):
                self.end = block.offset
                self.is_complete = block.kind != "unread" and not self.unread
                break
            if isinstance(block, Damage):
                self.damaged_offsets.append(block.offset)
                if block.unread:
                    self.unread += block.size
                else:
                    self.damage += block.size
                continue
            if block.count:
                self.traces.add(block, topics)
                rows = _rows_of(block, kinds)
                self.names = topics.names
                self.units += len(rows)
                if len(rows):
                    yield rows
                if progress is not None:
                    progress(int(block.offset[block.count - 1]) - self.log.min_offset)
            if cancelled is not None and cancelled():
                return
        self.names = topics.names


class _TopicKinds:
    """Flags by the topic's number."""

    def __init__(self, topics: TopicTable) -> None:
        self._topics = topics
        self._flags = np.zeros(0, np.uint8)

    def of(self, topic_ids: npt.NDArray[np.int32]) -> npt.NDArray[np.uint8]:
        names = self._topics.names
        if len(names) > len(self._flags):
            self._flags = np.array([topic_flags(name) for name in names], np.uint8)
        flags = self._flags[topic_ids] if len(self._flags) else np.zeros(len(topic_ids), np.uint8)
        return np.where(topic_ids < 0, np.uint8(0), flags)


def topic_flags(name: str) -> int:
    """Return the flags of all units of a topic."""
    if name == SCHEDULE_TOPIC:
        return DELAYED
    if name.startswith(RETRY_PREFIX):
        return RETRIED
    if name == TRACE_TOPIC:
        return TRACED
    return 0 if name.startswith(DLQ_PREFIX) or is_system_topic(name) else SENT


def _rows_of(block: UnitColumns, kinds: _TopicKinds) -> UnitRows:
    is_unit = (block["kind"] == UNIT) & (block["physical_offset"] == block["offset"])
    rows = np.flatnonzero(is_unit)
    flags = kinds.of(block.topic_id[rows])
    is_first_try = (
        (block.reconsume_times[rows] == 0)
        & (block.prepared_transaction_offset[rows] == 0)
        & ((block.sys_flag[rows] & TRANSACTION_MASK) == 0)
    )
    flags = np.where(is_first_try, flags, flags & ~np.uint8(SENT))
    flags = np.where(block.reconsume_times[rows] > 0, flags, flags & ~np.uint8(RETRIED))
    stored, born = block.store_timestamp[rows], block.born_timestamp[rows]
    for i in np.flatnonzero((flags & SENT != 0) & (stored - born >= SLOW_MS)).tolist():
        raw = block.raw_properties(int(rows[i]))
        if any(mark in raw for mark in _DELAY_MARKS):
            flags[i] = DELIVERED
    key_columns = unique_keys(block, rows)
    topic_ids = block.topic_id[rows]
    identities = topic_ids.astype(np.uint64) << np.uint64(32) ^ block.body_crc[rows].astype(np.uint64)
    hosts = _hosts(block, rows, block.offset[rows] - block.base + _BORN_HOST, BORN_HOST_V6, 8)
    return UnitRows(
        block.offset[rows],
        stored,
        born,
        topic_ids,
        block.queue_offset[rows],
        flags,
        np.where(hosts & _WIDE == _WIDE, hosts | _WIDE, hosts >> np.uint64(32)),
        _hosts(block, rows, block.body_position[rows] - _STORE_HOST_BEFORE_BODY, STORE_HOST_V6, -4),
        np.where(key_columns.keys == 0, key_columns.keys, key_columns.keys ^ identities * _MIX_3 | np.uint64(1)),
        key_columns.clients,
        key_columns.times,
        key_columns.counters,
        np.where(flags & DELAYED != 0, block.tags_code[rows], -1),
    )


def _hosts(
    block: UnitColumns, rows: npt.NDArray[np.intp], places: Ints, wide_flag: int, wide_place: int
) -> npt.NDArray[np.uint64]:
    """Return IPv4 address and port in one number; of an IPv6 host a hash, with ``_WIDE`` in place of the port.

    ``wide_place``: distance from the place of an IPv4 host to the second half of an IPv6 address.
    """
    wide = (block.sys_flag[rows] & wide_flag) != 0
    places = np.where(wide, places + wide_place, places)
    raw = np.ascontiguousarray(block.buffer[places[:, None] + np.arange(8)])
    numbers: npt.NDArray[np.uint64] = raw.view(">u8")[:, 0].astype(np.uint64)
    return np.where(wide, numbers * _MIX_1 | _WIDE, numbers)


def host_text(host: int) -> str:
    """Return the address of a row's ``host``; of an IPv6 host only that it is one."""
    return "IPv6" if host >> 32 else ".".join(str(host >> shift & 255) for shift in (24, 16, 8, 0))


def broker_text(store_host: int) -> str:
    """Return address and port of a row's ``store_host``; of an IPv6 host only that it is one."""
    port = store_host & 0xFFFFFFFF
    return "IPv6" if port == 0xFFFFFFFF else f"{host_text(store_host >> 32)}:{port}"
