"""Queue entries of many units at once: the rows of a block grouped by queue, as the 20 bytes they become (spec 3.1).

Pure: columns in, arrays out; the dispatcher, and whatever else builds queues from a log, call the same. Two twins keep
one contract, chosen as in :mod:`engine.codec.columns`.

Where the next entry of a queue goes: dropped, behind the last one, or behind units that fill a new file up to it
(spec 3.3, 3.6, 3.7).

Pure decisions over whatever takes the bytes: the queues of a live store and those that are built from a log in pieces
put alike. All of it may raise the ``OSError`` of the files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from engine.codec import batch_consume_queue, dispatch_twin
from engine.codec.batch_consume_queue import BatchCqUnit
from engine.codec.consume_queue import CQ_UNIT_SIZE, PREFILLED_SIZE, CqUnit, encode
from engine.codec.cq_ext import END_MARK, KEPT_FREE, SMALLEST, CqExtUnit
from engine.codec.cq_ext import encode as encode_ext
from engine.codec.dtypes import CQ_UNIT
from engine.codec.message import COMMIT, TRANSACTION_MASK

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
_COLUMNS = ("sys_flag", "topic_id", "queue_id", "queue_offset", "physical_offset", "size", "tags_code")
_KINDS = ("i4", "i4", "i4", "i8", "i8", "i4", "i8")


class EntryColumns(Protocol):
    """The columns of :class:`engine.codec.columns.UnitColumns` that queue entries are made of."""

    sys_flag: Int32
    topic_id: Int32
    queue_id: Int32
    queue_offset: Int64
    physical_offset: Int64
    size: Int32
    tags_code: Int64


class EntryRows:
    """Such rows of many blocks one behind the other, so that each queue is written less often. ``count`` are filled."""

    __slots__ = ("capacity", "count", *_COLUMNS)

    sys_flag: Int32
    topic_id: Int32
    queue_id: Int32
    queue_offset: Int64
    physical_offset: Int64
    size: Int32
    tags_code: Int64

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.count = 0
        for name, kind in zip(_COLUMNS, _KINDS, strict=True):
            setattr(self, name, np.empty(capacity, kind))

    def add(self, columns: EntryColumns, first: int, stop: int) -> None:
        """Take over rows ``first`` to ``stop``; there must be room."""
        at, count = self.count, stop - first
        for name in _COLUMNS:
            getattr(self, name)[at : at + count] = getattr(columns, name)[first:stop]
        self.count = at + count

    def add_one(self, *values: int) -> None:
        """One row more, its values in the order of the columns; there must be room."""
        for name, value in zip(_COLUMNS, values, strict=True):
            getattr(self, name)[self.count] = value
        self.count += 1

    def chosen(self, rows: Int64) -> EntryRows:
        """These rows in arrays of their own."""
        other = EntryRows(len(rows))
        for name in _COLUMNS:
            getattr(other, name)[:] = getattr(self, name)[rows]
        other.count = len(rows)
        return other


@dataclass(frozen=True, slots=True)
class QueueRuns:
    """Rows that go into queues, grouped by queue in the order in which the queues appear; rows of one queue keep
    theirs.

    Group ``g`` has the rows ``row[start[g]:start[g + 1]]`` and the bytes ``entries[start[g]:start[g + 1]]``.
    ``follows[g]`` says that its queue offsets grow by one and its ends in the log (``end``, bytes) grow too.
    """

    topic_id: Int32
    queue_id: Int32
    start: Int64
    follows: npt.NDArray[np.bool_]
    row: Int32
    end: Int64
    queue_offset: Int64
    entries: npt.NDArray[np.void]

    def __len__(self) -> int:
        return len(self.topic_id)


def build_runs(columns: EntryColumns, first: int, stop: int) -> QueueRuns:
    """The queue entries of rows ``first`` to ``stop`` of ``columns``; no blank may be among them.

    Units that are prepared or rolled back have none (spec 13.2). What stands in an entry as offset is the unit's
    PHYSICALOFFSET field.
    """
    compiled = dispatch_twin.twin()
    if compiled is None:
        return build_runs_plain(columns, first, stop)
    return _build_compiled(compiled, columns, first, stop)


class RunEnds(NamedTuple):
    """The groups of :class:`QueueRuns` without their entries: ``end`` is where a group's last unit ends in the log."""

    topic_id: Int32
    queue_id: Int32
    follows: npt.NDArray[np.bool_]
    end: Int64


def run_ends(columns: EntryColumns, first: int, stop: int) -> RunEnds:
    """What :func:`build_runs` would group, in less time: enough to see that everything is known already."""
    compiled = dispatch_twin.twin()
    if compiled is None:
        runs = build_runs_plain(columns, first, stop)
        return RunEnds(runs.topic_id, runs.queue_id, runs.follows, runs.end[runs.start[1:] - 1])
    grouped = _Grouped(stop - first)
    groups, _ = grouped.group(compiled, columns, first, stop)
    return RunEnds(
        grouped.topic_id[:groups], grouped.queue_id[:groups], grouped.follows[:groups], grouped.last_end[:groups]
    )


def build_runs_plain(columns: EntryColumns, first: int, stop: int) -> QueueRuns:
    """:func:`build_runs` by numpy."""
    kind = columns.sys_flag[first:stop] & TRANSACTION_MASK
    wanted = first + np.flatnonzero((kind == 0) | (kind == COMMIT))
    keys = (columns.topic_id[wanted].astype(np.int64) << 32) | (columns.queue_id[wanted].astype(np.int64) & 0xFFFFFFFF)
    _, where, number = np.unique(keys, return_index=True, return_inverse=True)
    appearance = np.argsort(where, kind="stable")
    rank = np.empty_like(appearance)
    rank[appearance] = np.arange(len(appearance))
    group = rank[number.reshape(-1)]
    row = wanted[np.argsort(group, kind="stable")].astype(np.int32)
    start = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=len(where)))]).astype(np.int64)
    entries = np.empty(len(row), CQ_UNIT)
    entries["physical_offset"], entries["size"] = columns.physical_offset[row], columns.size[row]
    entries["tags_code"] = columns.tags_code[row]
    end = columns.physical_offset[row] + columns.size[row]
    offset = columns.queue_offset[row]
    heads = row[start[:-1]]
    return QueueRuns(
        columns.topic_id[heads], columns.queue_id[heads], start, _follow(start, offset, end), row, end, offset, entries
    )


def _follow(start: Int64, offset: Int64, end: Int64) -> npt.NDArray[np.bool_]:
    broken = np.zeros(len(offset), np.int64)
    if len(offset) > 1:
        broken[1:] = (np.diff(offset) != 1) | (np.diff(end) <= 0)
    broken[start[:-1]] = 0
    return np.add.reduceat(broken, start[:-1]) == 0 if len(offset) else np.zeros(0, np.bool_)


class _Grouped:
    """Room for what the compiled grouping of ``most`` rows gives."""

    def __init__(self, most: int) -> None:
        slots = 16
        while slots < 2 * most:
            slots *= 2
        self.table, self.rows = np.zeros(slots, np.int32), np.empty(most, np.int32)
        self.topic_id, self.queue_id = np.empty(most, np.int32), np.empty(most, np.int32)
        self.start, self.follows = np.zeros(most + 1, np.int64), np.empty(most, np.bool_)
        self.last_offset, self.last_end = np.empty(most, np.int64), np.empty(most, np.int64)

    def group(self, compiled: dispatch_twin.Compiled, columns: EntryColumns, first: int, stop: int) -> tuple[int, int]:
        """How many groups and rows there are."""
        return compiled.group_rows(
            columns.sys_flag, columns.topic_id, columns.queue_id, columns.queue_offset, columns.physical_offset,
            columns.size, first, stop, self.table, self.rows, self.topic_id, self.queue_id, self.start, self.follows,
            self.last_offset, self.last_end,
        )  # fmt: skip


def _build_compiled(compiled: dispatch_twin.Compiled, columns: EntryColumns, first: int, stop: int) -> QueueRuns:
    grouped = _Grouped(stop - first)
    groups, kept = grouped.group(compiled, columns, first, stop)
    start = grouped.start
    row, entries = np.empty(kept, np.int32), np.empty(kept, CQ_UNIT)
    end, offset = np.empty(kept, np.int64), np.empty(kept, np.int64)
    compiled.scatter_rows(
        columns.queue_offset, columns.physical_offset, columns.size, columns.tags_code, first, stop, grouped.rows,
        start, groups, row, end, offset, entries.ctypes.data,
    )  # fmt: skip
    return QueueRuns(
        grouped.topic_id[:groups], grouped.queue_id[:groups], start[: groups + 1], grouped.follows[:groups], row, end,
        offset, entries,
    )  # fmt: skip


LARGEST_EXT = 32_767
NO_ADDRESS = 1
"""What an ext put answers where the unit could not be stored: the entry keeps the plain tags code then."""
_PREFILLED = encode(CqUnit(0, PREFILLED_SIZE, 0))
_MOST_OFFSET = 9_223_372_034_707_292_159
_MARK = END_MARK.to_bytes(2, "big", signed=True)


class Files(Protocol):
    """The files of one queue, ``file_size`` bytes each; ``end`` is the byte of the queue where the next entry goes.

    ``first_created`` is the start of the file that was made while there was none; bytes below ``flushed`` need no
    flush. All may raise ``OSError``.
    """

    file_size: int
    starts: tuple[int, ...]
    end: int
    flushed: int
    first_created: int

    @property
    def last_is_full(self) -> bool:
        """Whether the next entry needs a new file."""

    def create(self, start: int) -> None:
        """Make the file that begins at byte ``start``; the next entry goes there."""

    def append(self, data: bytes | memoryview) -> None:
        """Write whole entries at ``end``, into further files where the last one is full."""

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Write inside the last file without moving ``end``."""


class PlainQueue(Protocol):
    """A queue of 20-byte entries. ``max_physic_offset`` is the end in the log of the last unit that has an entry,
    ``min_logic_offset`` the byte of the first entry that points into the log.
    """

    max_physic_offset: int
    min_logic_offset: int

    @property
    def files(self) -> Files:
        """What takes the bytes."""

    def note_gap(self, queue_offset: int) -> None:
        """The entry for ``queue_offset`` does not follow the last one."""


def put(queue: PlainQueue, physical_offset: int, size: int, tags_code: int, queue_offset: int) -> None:
    """One entry (spec 3.3): dropped where it is known, at the queue's end otherwise. Raises ``OSError``."""
    if physical_offset + size <= queue.max_physic_offset:
        return
    files, expect = queue.files, queue_offset * CQ_UNIT_SIZE
    if not _ready(queue, queue_offset, expect):
        return
    before = queue.max_physic_offset
    queue.max_physic_offset = physical_offset + size
    try:
        files.append(encode(CqUnit(physical_offset, size, tags_code)))
    except OSError:
        queue.max_physic_offset = before
        raise


def put_run(queue: PlainQueue, end: Int64, queue_offset: Int64, entries: npt.NDArray[np.void]) -> None:
    """Entries whose queue offsets grow by one and whose ends in the log grow: as :func:`put` for each of them.

    ``entries`` are rows of ``dtypes.CQ_UNIT``. Raises ``OSError``; what was written until then counts.
    """
    first, count = 0, len(entries)
    if int(end[0]) <= queue.max_physic_offset:
        first = int(np.searchsorted(end, queue.max_physic_offset, "right"))
    while first < count:
        offset = int(queue_offset[first])
        ready = _ready(queue, offset, offset * CQ_UNIT_SIZE)
        if ready and queue.files.end <= offset * CQ_UNIT_SIZE:
            _append_run(queue, entries[first:], end[first:])
            return
        if ready:  # offset 0 goes wherever the queue ends
            _append_run(queue, entries[first : first + 1], end[first : first + 1])
        first += 1


def _ready(queue: PlainQueue, queue_offset: int, expect: int) -> bool:
    """Make the file that the next entry goes into; False where the queue holds the entry already."""
    files = queue.files
    if not files.starts:
        files.create(expect - expect % files.file_size)
    elif files.last_is_full:
        files.create(files.starts[-1] + files.file_size)
    start = files.starts[-1]
    if start == files.first_created and queue_offset and files.end == start:
        _prefill(queue, start, expect)
    if queue_offset:
        if expect < files.end:
            return False
        if expect != files.end:
            queue.note_gap(queue_offset)
    return True


def _prefill(queue: PlainQueue, start: int, expect: int) -> None:
    """The queue begins above 0: units that point nowhere up to there (spec 3.3-3)."""
    queue.min_logic_offset = expect
    left = (expect - start) // CQ_UNIT_SIZE
    while left > 0:
        count = min(left, 4096)
        queue.files.append(_PREFILLED * count)
        left -= count
    queue.files.flushed = expect


def _append_run(queue: PlainQueue, entries: npt.NDArray[np.void], end: Int64) -> None:
    before = queue.files.end
    try:
        queue.files.append(entries.view(np.uint8).data)
    finally:
        done = (queue.files.end - before) // CQ_UNIT_SIZE
        if done:
            queue.max_physic_offset = int(end[done - 1])


class BatchQueue(Protocol):
    """A queue of 46-byte entries, back to back from byte 0. ``max_physic_offset`` is the start of the last unit that
    has an entry.
    """

    max_physic_offset: int

    @property
    def files(self) -> Files:
        """What takes the bytes."""


def put_batch(queue: BatchQueue, unit: BatchCqUnit) -> bool:
    """One entry; False where the queue knows its unit already, or none can be made of it. Raises ``OSError``."""
    if unit.msg_base_offset < 0 or unit.batch_size < 0 or unit.physical_offset <= queue.max_physic_offset:
        return False
    files = queue.files
    if files.last_is_full:
        files.create(files.starts[-1] + files.file_size if files.starts else 0)
    files.append(batch_consume_queue.encode(unit))
    queue.max_physic_offset = unit.physical_offset
    return True


class ExtQueue(Protocol):
    """The ext units beside a queue. An address is the unit's byte offset in ``files`` minus 2⁶³."""

    @property
    def files(self) -> Files:
        """What takes the bytes."""


def put_ext(queue: ExtQueue, tags_code: int, store_timestamp: int, bit_map: bytes = b"") -> int:
    """Append a unit and give its address, or :data:`NO_ADDRESS`. Raises ``OSError``."""
    size, files = SMALLEST + len(bit_map), queue.files
    if size > LARGEST_EXT or size > files.file_size - KEPT_FREE or files.end + size > _MOST_OFFSET:
        return NO_ADDRESS
    if files.starts and not files.last_is_full and size > files.starts[-1] + files.file_size - files.end - KEPT_FREE:
        files.write(files.end, _MARK)
        files.end = files.starts[-1] + files.file_size
    if files.last_is_full:
        files.create(files.starts[-1] + files.file_size if files.starts else 0)
    unit = CqExtUnit(files.end, size, tags_code, store_timestamp, bit_map)
    files.append(encode_ext(unit))
    return unit.address
