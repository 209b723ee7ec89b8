"""Queue entries that wait in memory, to be written together (docs/formats/consume-queue.md#append).

With forty thousand queues, each entry goes into another file, and opening files costs more than everything else.
So entries wait as rows, and each queue is written once for many entries. Readers do not notice it: a queue is written
before it is read. Entries that a crash loses are dispatched again, because
:attr:`PendingEntries.oldest_timestamp` keeps the checkpoint from going beyond them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from engine.codec.java import i32
from engine.codec.message import PREPARED, TRANSACTION_MASK
from engine.codec.queue_builder import EntryColumns, EntryRows, QueueRuns, build_runs
from engine.rules.unit_check import Request

MIN_QUEUES = 256
SPARSE_ROWS_PER_QUEUE = 8
"""A block with fewer rows per queue than this waits."""
MIN_CAPACITY_ROWS, MAX_CAPACITY_ROWS = 1 << 16, 1 << 19
TARGET_ROWS_PER_QUEUE = 12
"""Rows per queue to wait for, as long as memory (20 MB at most) allows."""
_QUEUES_PER_PIECE = 64
PutGroup = Callable[[str, int, QueueRuns, int], None]


class PendingEntries:
    """Rows not yet in their queues. ``put_group(topic, queue_id, runs, group)`` writes those of one queue.

    The dispatching thread adds rows; any thread may have queues written. All methods may raise ``OSError``; rows
    that could not be written stay pending.
    """

    def __init__(self, put_group: PutGroup) -> None:
        self._put_group = put_group
        self._lock = threading.RLock()
        self._rows: EntryRows | None = None
        self._runs: QueueRuns | None = None  # rows on their way into the queues, before those in _rows
        self._written = np.zeros(0, np.bool_)
        self._next = 0
        self._names: Sequence[str] = ()
        self._ids: dict[str, tuple[int, ...]] = {}  # several numbers only for names that differ in malformed bytes
        self._known_names = 0
        self._capacity = MIN_CAPACITY_ROWS
        self._timestamps = [0, 0]  # of the oldest row in _runs, in _rows
        self._offsets = [0, 0]  # of the same rows, into the log
        self._added = self._added_before = 0
        self.count = 0
        """Number of pending rows; usually 0."""

    @property
    def oldest_timestamp(self) -> int:
        """Store time (ms) of the oldest pending unit, 0 without one."""
        return self._timestamps[0] or self._timestamps[1]

    @property
    def oldest_offset(self) -> int:
        """Offset into the log of the oldest pending unit; meaningless without one."""
        return self._offsets[0] if self._timestamps[0] else self._offsets[1]

    def should_wait(self, runs: QueueRuns) -> bool:
        """Return True if the rows of a block should wait: others already do, or many queues have few rows each."""
        return self.count > 0 or (len(runs) >= MIN_QUEUES and len(runs.row) < SPARSE_ROWS_PER_QUEUE * len(runs))

    def add(self, columns: EntryColumns, start: int, stop: int, names: Sequence[str], timestamp: int) -> None:
        """Add rows ``start`` to ``stop``, stored at ``timestamp`` (ms) and later; ``names`` are the topics' by
        number.
        """
        if (
            self._rows is not None and self._rows.count + stop - start > self._rows.capacity
        ) or names is not self._names:
            self.settle()
        with self._lock:
            if self._rows is None:
                self._rows = EntryRows(max(self._capacity, stop - start))
            if names is not self._names:
                self._names, self._ids, self._known_names = names, {}, 0
            for number in range(self._known_names, len(names)):
                self._ids[names[number]] = (*self._ids.get(names[number], ()), number)
            self._known_names = len(names)
            self._rows.add(columns, start, stop)
            self._note(stop - start, timestamp, int(columns.physical_offset[start]))

    def add_one(self, request: Request) -> bool:
        """Add one unit after the others. Return False if its topic is unknown here or the rows are full."""
        with self._lock:
            numbers, rows = self._ids.get(request.topic), self._rows
            if numbers is None or rows is None or rows.count == rows.capacity:
                return False
            rows.add_one(
                request.sys_flag,
                numbers[0],
                request.queue_id,
                request.queue_offset,
                request.physical_offset,
                request.size,
                request.tags_code,
            )
            self._note(1, request.store_timestamp, request.physical_offset)
            return True

    def _note(self, rows: int, timestamp: int, offset: int) -> None:
        if not self._timestamps[1]:
            self._offsets[1] = offset
        self._timestamps[1] = self._timestamps[1] or timestamp
        self.count += rows
        self._added += rows

    def settle_queue(self, topic: str, queue_id: int | None) -> None:
        """Write the pending entries of one queue, or of all queues of a topic."""
        with self._lock:
            numbers, runs, rows = self._ids.get(topic), self._runs, self._rows
            if numbers is None:
                return
            if runs is not None:
                is_chosen_run = _is_one_of(runs.topic_id, numbers)
                if queue_id is not None:
                    is_chosen_run &= runs.queue_id == queue_id
                for group in np.flatnonzero(is_chosen_run).tolist():
                    self._write(runs, group)
            if rows is None or not rows.count:
                return
            is_chosen_row = _is_one_of(rows.topic_id[: rows.count], numbers)
            if queue_id is not None:
                is_chosen_row &= rows.queue_id[: rows.count] == queue_id
            chosen_rows = np.flatnonzero(is_chosen_row)
            if len(chosen_rows):
                queue_runs = build_runs(rows.select(chosen_rows), 0, len(chosen_rows))
                for group in range(len(queue_runs)):
                    self._put_group(
                        self._names[int(queue_runs.topic_id[group])],
                        i32(int(queue_runs.queue_id[group])),
                        queue_runs,
                        group,
                    )
                # These rows are written now: mark them as units that go into no queue.
                rows.sys_flag[chosen_rows] = PREPARED & TRANSACTION_MASK

    def settle(self) -> None:
        """Write all pending entries."""
        for _ in self.pieces():
            pass

    def pieces(self) -> Iterator[None]:
        """Write all pending entries in small pieces, so that other threads can read a queue in between."""
        while self.count:
            with self._lock:
                if self._runs is None and not self._begin():
                    return
                self._write_piece()
            yield

    def settle_idle(self) -> None:
        """Write all pending entries if none was added since the last call."""
        idle, self._added_before = self._added_before == self._added, self._added
        if idle and self.count:
            self.settle()

    def _begin(self) -> bool:
        """Turn the rows into runs. Return False if there are none."""
        rows, self._rows = self._rows, None
        if rows is None or not rows.count:
            self.count = 0
            return False
        runs = build_runs(rows, 0, rows.count)
        self._capacity = min(max(MIN_CAPACITY_ROWS, TARGET_ROWS_PER_QUEUE * len(runs)), MAX_CAPACITY_ROWS)
        self._runs, self._written, self._next = runs, np.zeros(len(runs), np.bool_), 0
        self._timestamps, self._offsets = [self._timestamps[1], 0], [self._offsets[1], 0]
        self.count = max(rows.count, 1)
        return True

    def _write_piece(self) -> None:
        runs = self._runs
        if runs is None:
            return
        stop = min(self._next + _QUEUES_PER_PIECE, len(runs))
        while self._next < stop:
            self._write(runs, self._next)
            self._next += 1
        if self._next >= len(runs):
            self._runs, self._timestamps[0] = None, 0
            self.count = self._rows.count if self._rows is not None else 0

    def _write(self, runs: QueueRuns, group: int) -> None:
        if not self._written[group]:
            self._put_group(self._names[int(runs.topic_id[group])], i32(int(runs.queue_id[group])), runs, group)
            self._written[group] = True


def _is_one_of(topic_id: npt.NDArray[np.int32], numbers: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    is_member: npt.NDArray[np.bool_] = topic_id == numbers[0] if len(numbers) == 1 else np.isin(topic_id, numbers)
    return is_member
