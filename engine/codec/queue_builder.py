"""Build queue entries of many units at once: group the rows of a block by queue, and encode them as 20 bytes each
(docs/formats/consume-queue.md#entry).

Pure: takes columns, returns arrays. The dispatcher and all other code that builds queues from a log call it. Two
twins keep one contract, chosen as in :mod:`engine.codec.columns`.

"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from engine.codec import dispatch_twin
from engine.codec.dtypes import CQ_UNIT
from engine.codec.message import COMMIT, TRANSACTION_MASK

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
_COLUMNS = ("sys_flag", "topic_id", "queue_id", "queue_offset", "physical_offset", "size", "tags_code")
_KINDS = ("i4", "i4", "i4", "i8", "i8", "i4", "i8")


class EntryColumns(Protocol):
    """The columns of :class:`engine.codec.columns.UnitColumns` from which queue entries are made."""

    sys_flag: Int32
    topic_id: Int32
    queue_id: Int32
    queue_offset: Int64
    physical_offset: Int64
    size: Int32
    tags_code: Int64


class EntryRows:
    """Entry columns of many blocks, collected so that each queue is written less often. ``count`` rows are
    filled.
    """

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

    def add(self, columns: EntryColumns, start: int, stop: int) -> None:
        """Copy rows ``start`` to ``stop``; there must be room."""
        position, count = self.count, stop - start
        for name in _COLUMNS:
            getattr(self, name)[position : position + count] = getattr(columns, name)[start:stop]
        self.count = position + count

    def add_one(self, *values: int) -> None:
        """Append one row, its values in the order of the columns; there must be room."""
        for name, value in zip(_COLUMNS, values, strict=True):
            getattr(self, name)[self.count] = value
        self.count += 1

    def select(self, rows: Int64) -> EntryRows:
        """Return these rows in new arrays."""
        selection = EntryRows(len(rows))
        for name in _COLUMNS:
            getattr(selection, name)[:] = getattr(self, name)[rows]
        selection.count = len(rows)
        return selection


@dataclass(frozen=True, slots=True)
class QueueRuns:
    """Rows that go into queues, grouped by queue in order of appearance; rows of one queue keep their order.

    Group ``g`` has the rows ``row[start[g]:start[g + 1]]`` and the bytes ``entries[start[g]:start[g + 1]]``.
    ``follows[g]`` is True if its queue offsets grow by one and its ends in the log (``end``, bytes) grow too.

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


def build_runs(columns: EntryColumns, start: int, stop: int) -> QueueRuns:
    """Return the queue entries of rows ``start`` to ``stop`` of ``columns``, which contain no blank.

    Units that are prepared or rolled back have none (docs/formats/transactions.md#queue-entries). The offset in
    an entry is the unit's PHYSICALOFFSET field.

    """
    compiled = dispatch_twin.twin()
    if compiled is None:
        return build_runs_plain(columns, start, stop)
    return _build_compiled(compiled, columns, start, stop)


class RunEnds(NamedTuple):
    """The groups of :class:`QueueRuns` without their entries: ``end`` is the end of a group's last unit in the log."""

    topic_id: Int32
    queue_id: Int32
    follows: npt.NDArray[np.bool_]
    end: Int64


def run_ends(columns: EntryColumns, start: int, stop: int) -> RunEnds:
    """Group like :func:`build_runs` without making entries. Faster, and enough to see that all rows are already
    dispatched.
    """
    compiled = dispatch_twin.twin()
    if compiled is None:
        runs = build_runs_plain(columns, start, stop)
        return RunEnds(runs.topic_id, runs.queue_id, runs.follows, runs.end[runs.start[1:] - 1])
    grouped = _Grouped(stop - start)
    groups, _ = grouped.group(compiled, columns, start, stop)
    return RunEnds(
        grouped.topic_id[:groups], grouped.queue_id[:groups], grouped.follows[:groups], grouped.last_end[:groups]
    )


def build_runs_plain(columns: EntryColumns, start_row: int, stop: int) -> QueueRuns:
    """The plain twin of :func:`build_runs`, with numpy."""
    kind = columns.sys_flag[start_row:stop] & TRANSACTION_MASK
    rows = start_row + np.flatnonzero((kind == 0) | (kind == COMMIT))
    keys = (columns.topic_id[rows].astype(np.int64) << 32) | (columns.queue_id[rows].astype(np.int64) & 0xFFFFFFFF)
    _, first_index, number = np.unique(keys, return_index=True, return_inverse=True)
    appearance = np.argsort(first_index, kind="stable")
    rank = np.empty_like(appearance)
    rank[appearance] = np.arange(len(appearance))
    group = rank[number.reshape(-1)]
    row = rows[np.argsort(group, kind="stable")].astype(np.int32)
    start = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=len(first_index)))]).astype(np.int64)
    entries = np.empty(len(row), CQ_UNIT)
    entries["physical_offset"], entries["size"] = columns.physical_offset[row], columns.size[row]
    entries["tags_code"] = columns.tags_code[row]
    end = columns.physical_offset[row] + columns.size[row]
    offset = columns.queue_offset[row]
    first_rows = row[start[:-1]]
    return QueueRuns(
        columns.topic_id[first_rows],
        columns.queue_id[first_rows],
        start,
        _follow(start, offset, end),
        row,
        end,
        offset,
        entries,
    )


def _follow(start: Int64, offset: Int64, end: Int64) -> npt.NDArray[np.bool_]:
    broken = np.zeros(len(offset), np.int64)
    if len(offset) > 1:
        broken[1:] = (np.diff(offset) != 1) | (np.diff(end) <= 0)
    broken[start[:-1]] = 0
    return np.add.reduceat(broken, start[:-1]) == 0 if len(offset) else np.zeros(0, np.bool_)


class _Grouped:
    """Arrays for the result of the compiled grouping of ``max_rows`` rows."""

    def __init__(self, max_rows: int) -> None:
        slots = 16
        while slots < 2 * max_rows:
            slots *= 2
        self.table, self.rows = np.zeros(slots, np.int32), np.empty(max_rows, np.int32)
        self.topic_id, self.queue_id = np.empty(max_rows, np.int32), np.empty(max_rows, np.int32)
        self.start, self.follows = np.zeros(max_rows + 1, np.int64), np.empty(max_rows, np.bool_)
        self.last_offset, self.last_end = np.empty(max_rows, np.int64), np.empty(max_rows, np.int64)

    def group(self, compiled: dispatch_twin.Compiled, columns: EntryColumns, start: int, stop: int) -> tuple[int, int]:
        """Group the rows; returns the number of groups and of rows."""
        return compiled.group_rows(
            columns.sys_flag,
            columns.topic_id,
            columns.queue_id,
            columns.queue_offset,
            columns.physical_offset,
            columns.size,
            start,
            stop,
            self.table,
            self.rows,
            self.topic_id,
            self.queue_id,
            self.start,
            self.follows,
            self.last_offset,
            self.last_end,
        )


def _build_compiled(compiled: dispatch_twin.Compiled, columns: EntryColumns, start_row: int, stop: int) -> QueueRuns:
    grouped = _Grouped(stop - start_row)
    groups, row_count = grouped.group(compiled, columns, start_row, stop)
    start = grouped.start
    row, entries = np.empty(row_count, np.int32), np.empty(row_count, CQ_UNIT)
    end, offset = np.empty(row_count, np.int64), np.empty(row_count, np.int64)
    compiled.scatter_rows(
        columns.queue_offset,
        columns.physical_offset,
        columns.size,
        columns.tags_code,
        start_row,
        stop,
        grouped.rows,
        start,
        groups,
        row,
        end,
        offset,
        entries.ctypes.data,
    )
    return QueueRuns(
        grouped.topic_id[:groups],
        grouped.queue_id[:groups],
        start[: groups + 1],
        grouped.follows[:groups],
        row,
        end,
        offset,
        entries,
    )
