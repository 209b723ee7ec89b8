"""Queue entries of many units at once: the rows of a block grouped by queue, as the 20 bytes they become
(docs/formats/consume-queue.md#entry).

Pure: columns in, arrays out; the dispatcher, and whatever else builds queues from a log, call the same. Two twins keep
one contract, chosen as in :mod:`engine.codec.columns`.
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

    Units that are prepared or rolled back have none (docs/formats/transactions.md#queue-entries). What stands in an
    entry as offset is the unit's PHYSICALOFFSET field.
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
            columns.sys_flag,
            columns.topic_id,
            columns.queue_id,
            columns.queue_offset,
            columns.physical_offset,
            columns.size,
            first,
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


def _build_compiled(compiled: dispatch_twin.Compiled, columns: EntryColumns, first: int, stop: int) -> QueueRuns:
    grouped = _Grouped(stop - first)
    groups, kept = grouped.group(compiled, columns, first, stop)
    start = grouped.start
    row, entries = np.empty(kept, np.int32), np.empty(kept, CQ_UNIT)
    end, offset = np.empty(kept, np.int64), np.empty(kept, np.int64)
    compiled.scatter_rows(
        columns.queue_offset,
        columns.physical_offset,
        columns.size,
        columns.tags_code,
        first,
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
