"""Queues in a RocksDB in recovery (docs/formats/recovery.md#rocksdb).

A start reads the end of dispatch from the database, walks the log from the file that holds it, and writes the rows of
what it dispatches over those that are there. Rows are never deleted: what is cut is the row ``max`` of a queue. It is
cut only if the end of dispatch is behind the end of the log, and after a crash only if nothing was dispatched by then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.codec.columns import UnitColumns
from engine.codec.queue_builder import QueueRuns
from engine.codec.rocksdb_queue_rows import BoundRow, QueueRow
from engine.codec.topic_table import TopicTable
from engine.releases import Release
from engine.rules.unit_check import Rules
from engine.store import rocksdb_bounds
from engine.store.recovery.dispatch import QueueTable
from engine.store.recovery.plan import QueueState
from engine.store.recovery.queue_bytes import QueueBytes
from engine.store.recovery.queues import RecoveredQueue
from engine.store.recovery.source import QueueRows, RocksdbQueues

Int64 = NDArray[np.int64]
_ENTRY_BYTES = 20
"""A row counts as many bytes as an entry of a queue file, so that states of both kinds have the same unit."""
_NEIGHBOURS = 16


@dataclass(slots=True)
class _Dispatched:
    """Rows that the start writes, in the order of the log."""

    runs: list[tuple[Int64, Int64, Int64]]
    """Queue offsets, log offsets and sizes (bytes)."""

    def find(self, number: int) -> QueueRow | None:
        """The newest row of ``number``; None if the start writes none. It has no tags code and no time."""
        for numbers, physical, sizes in reversed(self.runs):
            hits = np.flatnonzero(numbers == number)
            if len(hits):
                return QueueRow(int(physical[hits[-1]]), int(sizes[hits[-1]]), 0, 0)
        return None


class RocksdbQueue(RecoveredQueue):
    """The state of one queue during recovery; offsets in entries. ``log_min`` is the start of the log (bytes)."""

    def __init__(self, topic: str, queue_id: int, rows: QueueRows | None, log_min: int) -> None:
        self._rows = rows
        self._log_min = log_min
        self._oldest = rows.bound("min") if rows is not None else None
        self._newest = rows.bound("max") if rows is not None else None
        self._minimum = 0
        self._dispatched = _Dispatched([])
        data = QueueBytes("simple", _ENTRY_BYTES, [])
        super().__init__(topic, queue_id, "simple", data, existed=self._newest is not None)
        self.recovered_state = self.state if self.existed else None

    @property
    def min_offset(self) -> int:
        return self._minimum

    @property
    def max_offset(self) -> int:
        return self._newest.queue_offset + 1 if self._newest is not None else 0

    @property
    def state(self) -> QueueState:
        """The queue's present state."""
        physical = -1
        if self._newest is not None:
            row = self.row(self._newest.queue_offset)
            physical = self._newest.physical_offset + (row.size if row is not None else 0)
        return QueueState(None, self.max_offset * _ENTRY_BYTES, physical, self.min_offset * _ENTRY_BYTES)

    def row(self, queue_offset: int) -> QueueRow | None:
        """The row of one entry as the start leaves it."""
        written = self._dispatched.find(queue_offset)
        if written is not None:
            return written
        return self._rows.row(queue_offset) if self._rows is not None else None

    def truncate(self, log_end: int) -> None:
        """Set the row ``max`` in front of the end of the log, where the queue reaches it (truncateDirtyOffset)."""
        newest = self._newest
        if newest is None or newest.physical_offset < log_end:
            return
        end = rocksdb_bounds.cut(self.row, self._oldest, newest, self._log_min, log_end)
        if end == newest.queue_offset + 1:
            return
        row = self.row(end - 1)
        physical = row.physical_offset if row is not None else 0
        self.dropped += newest.queue_offset + 1 - end
        self.cut_to = end * _ENTRY_BYTES
        self._newest = BoundRow(self.topic, self.queue_id, "max", physical, end - 1)
        self.cut = self.state

    def put(self, physical: int, place: int, size: int, queue_offset: int) -> None:
        """Write the row of one dispatched unit."""
        del place
        self.put_rows(*(np.array([value], np.int64) for value in (queue_offset, physical, size)))

    def put_rows(self, numbers: Int64, physical: Int64, sizes: Int64) -> None:
        """Write the rows of dispatched units, in the order of the log; the row ``max`` is that of the last one."""
        self.added += len(numbers) - self._held(numbers, physical)
        self._dispatched.runs.append((numbers, physical, sizes))
        self._newest = BoundRow(self.topic, self.queue_id, "max", int(physical[-1]), int(numbers[-1]))

    def _held(self, numbers: Int64, physical: Int64) -> int:
        """Return the number of these rows that the database has already."""
        if self._rows is None:
            return 0
        start, stop = int(numbers.min()), int(numbers.max()) + 1
        if stop - start > 2 * len(numbers) + _NEIGHBOURS:  # units of a topic that was made again
            rows = [self._rows.row(number) for number in numbers.tolist()]
            pairs = zip(rows, physical.tolist(), strict=True)
            return sum(row is not None and row.physical_offset == place for row, place in pairs)
        known_numbers, known_rows = self._rows.numbered_rows(start, stop)
        known_offsets = np.full(stop - start, -1, np.int64)
        known_offsets[known_numbers - start] = known_rows["physical_offset"]
        return int((known_offsets[numbers - start] == physical).sum())

    def correct_min(self, log_min: int, release: Release) -> None:
        """Set the smallest offset that a broker answers (getMinCqOffset)."""
        del release
        self._minimum = rocksdb_bounds.minimum(self.row, self._oldest, self._newest, log_min)

    def as_destroyed(self) -> None:
        """Without a log a broker deletes the whole RocksDB."""
        self.dropped = max(self.max_offset - self.min_offset, 0)
        self._oldest = self._newest = self._rows = None
        self._minimum, self.cut_to = 0, 0


class RocksdbTable(QueueTable):
    """The states of the queues of a RocksDB during recovery; :attr:`max_physic` is the end of dispatch."""

    def __init__(self, source: RocksdbQueues, log_min: int, rules: Rules, *, light: bool = True) -> None:
        super().__init__((), 0, 0, frozenset(), rules, light=light)
        self._dispatched_offset = source.dispatched
        self._log_min = log_min
        for rows in source.queues:
            self.queues[rows.topic, rows.queue_id] = RocksdbQueue(rows.topic, rows.queue_id, rows, log_min)

    @property
    def max_physic(self) -> int:
        return self._dispatched_offset

    def queue(self, topic: str, queue_id: int) -> RecoveredQueue:
        queue = self.queues.get((topic, queue_id))
        if queue is None:
            queue = self.queues[topic, queue_id] = RocksdbQueue(topic, queue_id, None, self._log_min)
        return queue

    def _knows_all(self, columns: UnitColumns, topics: TopicTable, start: int, stop: int) -> bool:
        del columns, topics, start, stop
        return False  # a row is written again

    def _put_group(
        self, queue: RecoveredQueue, columns: UnitColumns, runs: QueueRuns, span: tuple[int, int], in_order: bool
    ) -> None:
        del columns, in_order
        assert isinstance(queue, RocksdbQueue)
        rows = slice(*span)
        physical, sizes = (runs.entries[name][rows].astype(np.int64) for name in ("physical_offset", "size"))
        queue.put_rows(runs.queue_offset[rows].copy(), physical, sizes)

    def is_cut(self, reached: int, log_end: int) -> bool:
        """``truncateDirty``: nothing is cut unless the end of dispatch is behind the end of the log. What was
        dispatched has set it to the end of its last unit.
        """
        return reached > log_end and not self.dispatched
