"""Build queues and index from a long range of a log, faster than live dispatch can
(docs/formats/writing.md#dispatch, docs/formats/recovery.md#crash).

Nobody reads meanwhile, so queue entries of many blocks are written together. The caller's thread reads the log
and decodes columns; a second thread chains index entries and writes queues. The idle one of them computes key
hashes. Units that live dispatch handles one by one are handled so here too, in the same order.

"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from engine.codec.columns import UnitColumns
from engine.codec.index_builder import IndexKeys, build_keys
from engine.codec.queue_builder import EntryRows, build_runs
from engine.codec.topic_table import TopicTable
from engine.config import MessageStoreConfig
from engine.rules.dispatch_rules import units_of
from engine.rules.unit_check import Request
from engine.services.service_thread import ServiceThread
from engine.store.consume_queue_store import ConsumeQueueStore
from engine.store.dispatcher import Dispatcher
from engine.store.index_service import IndexService

MIN_ROWS, MAX_ROWS = 1 << 16, 1 << 19
"""Rows whose queue entries are written together: they still lie in the processor's cache, but for tens of thousands of
queues.
"""
ROWS_PER_QUEUE = 12
MAX_WAITING = 8
_NEVER_MS = 60_000.0
_KEY_COLUMNS = (
    "kind",
    "version",
    "topic_id",
    "sys_flag",
    "physical_offset",
    "store_timestamp",
    "body_position",
    "body_length",
    "properties_position",
    "properties_length",
)
Int64 = npt.NDArray[np.int64]
UInt32 = npt.NDArray[np.uint32]


class _Entries(NamedTuple):
    rows: EntryRows
    names: Sequence[str]


class _Units(NamedTuple):
    """Rows whose keys are still to be hashed; the bytes behind them do not change."""

    columns: UnitColumns
    prefixes: UInt32
    rows: Int64


class _Writer:
    """The work of the second thread, in the order in which it was given.

    ``rows_wanted`` is the number of rows that make a turn worthwhile; ``spare`` holds arrays for reuse.

    """

    name = "RebuildWriter"

    def __init__(self, queues: ConsumeQueueStore, index: IndexService | None) -> None:
        self._queues = queues
        self._index = index
        self.rows_wanted = MIN_ROWS
        self.spare: list[EntryRows] = []
        self.spare_units: list[UnitColumns] = []
        self._waiting: deque[_Entries | _Units | IndexKeys] = deque()
        self._moved = threading.Condition()
        self._busy = False
        self._error: Exception | None = None

    @property
    def idle(self) -> bool:
        """True if no work waits."""
        return not self._waiting

    def forget(self) -> None:
        """Drop the work that will not be done any more."""
        self._waiting.clear()

    def give(self, work: _Entries | _Units | IndexKeys) -> None:
        """Queue work; waits while too much is queued. Raises an exception of the other thread."""
        with self._moved:
            while len(self._waiting) >= MAX_WAITING and self._error is None:
                self._moved.wait()
            self._raise()
            self._waiting.append(work)

    def drain(self) -> None:
        """Wait until everything is written. Raises an exception of the other thread."""
        with self._moved:
            while (self._waiting or self._busy) and self._error is None:
                self._moved.wait()
            self._raise()

    def failed(self, _name: str, error: Exception) -> None:
        """Record the exception that ended the thread, and wake the waiting caller."""
        with self._moved:
            self._error = error
            self._moved.notify_all()

    def step(self) -> float:
        """Do all queued work."""
        while True:
            with self._moved:
                if not self._waiting:
                    self._busy = False
                    self._moved.notify_all()
                    return _NEVER_MS
                work, self._busy = self._waiting.popleft(), True
                self._moved.notify_all()
            if isinstance(work, _Entries):
                self._write(work)
            elif self._index is not None:
                self._index.put_keys(self._keys(work, self._index) if isinstance(work, _Units) else work)

    def _keys(self, work: _Units, index: IndexService) -> IndexKeys:
        index_keys = build_keys(work.columns, work.prefixes, work.rows, tags=index.tag_entries)
        work.columns.forget_buffer()
        self.spare_units.append(work.columns)
        return index_keys

    def _write(self, work: _Entries) -> None:
        runs = build_runs(work.rows, 0, work.rows.count)
        self._queues.put_runs(runs, work.names)
        self.rows_wanted = min(max(MIN_ROWS, ROWS_PER_QUEUE * len(runs)), MAX_ROWS)
        work.rows.count = 0
        self.spare.append(work.rows)

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error


class Rebuild:
    """Takes the blocks of a log in their order. As a context manager it only ends the thread; call :meth:`finish`
    first.

    Nobody else puts into ``queues`` and ``index`` (None: no index is built). Units that they already have are
    skipped as in live dispatch. ``bit_map`` is the dispatcher's.

    """

    def __init__(
        self,
        queues: ConsumeQueueStore,
        index: IndexService | None,
        config: MessageStoreConfig,
        *,
        bit_map: Callable[[Request], bytes] | None = None,
    ) -> None:
        self._queues = queues
        self._dispatcher = Dispatcher(queues, index, config, bit_map=bit_map)
        self._index = index if config.message_index_enable else None
        self._writer = _Writer(queues, self._index)
        self._thread = ServiceThread(self._writer, self._writer.failed)
        self._rows = EntryRows(MIN_ROWS)
        self._names: Sequence[str] = ()
        self._plain_names = 0  # number of leading topics whose units make plain entries
        self._plain = True
        self._newest = self._newest_offset = 0
        self.units = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.stop()
        self._thread.join()
        self._writer.forget()

    def take(
        self, columns: UnitColumns, topics: TopicTable, chosen: Int64 | None = None, *, queued: bool = False
    ) -> None:
        """Add the units of one block, or of its rows ``chosen``; its arrays may be reused afterwards.

        ``queued`` means that the queues already have all of them. Raises ``OSError``.

        """
        rows = units_of(columns, chosen)
        if not len(rows):
            return
        self.units += len(rows)
        start, stop = int(rows[0]), int(rows[-1]) + 1
        is_plain_range = stop - start == len(rows) and self._all_plain(topics.names)
        if not (is_plain_range and self._dispatcher.takes_in_bulk(columns, rows)):
            self.finish()
            self._dispatcher.dispatch_block(columns, topics, chosen)
            return
        if not queued:
            self._keep(columns, start, stop, topics.names)
        if self._index is not None:
            self._give_keys(columns, topics.prefixes(), rows, self._index)
            self._thread.wakeup()
        self._newest = max(self._newest, int(columns.store_timestamp[stop - 1]))
        self._newest_offset = max(self._newest_offset, int(columns.physical_offset[stop - 1]))

    def _give_keys(self, columns: UnitColumns, prefixes: UInt32, rows: Int64, index: IndexService) -> None:
        if not self._writer.idle or columns.buffer.flags.writeable:  # the buffer may be filled with the next block
            self._writer.give(build_keys(columns, prefixes, rows, tags=index.tag_entries))
            return
        spare = self._writer.spare_units
        unit_copy = spare.pop() if spare else None
        if unit_copy is None or unit_copy.capacity < columns.count:
            unit_copy = UnitColumns(columns.capacity)
        columns.copy_into(unit_copy, _KEY_COLUMNS)
        self._writer.give(_Units(unit_copy, prefixes, rows))

    def _keep(self, columns: UnitColumns, start: int, stop: int, names: Sequence[str]) -> None:
        """Collect rows for the queues, and hand them over when there are enough."""
        if self._rows.count + stop - start > self._rows.capacity or names is not self._names:
            self._hand_over(stop - start)
        self._names = names
        self._rows.add(columns, start, stop)

    def take_one(self, request: Request) -> None:
        """Add a single unit. Raises ``OSError``."""
        self.finish()
        self.units += 1
        self._dispatcher.dispatch(request)

    @property
    def last_store_timestamp(self) -> int:
        """Store time (ms) of the newest unit."""
        return max(self._newest, self._dispatcher.last_store_timestamp)

    @property
    def last_physical_offset(self) -> int:
        """Log offset of the newest unit."""
        return max(self._newest_offset, self._dispatcher.last_physical_offset)

    def finish(self) -> None:
        """Wait until every block is in the files. Raises ``OSError``."""
        self._hand_over()
        self._writer.drain()

    def _hand_over(self, further_rows: int = 0) -> None:
        """Queue the rows for writing; afterwards there is room for ``further_rows``."""
        if self._rows.count:
            self._writer.give(_Entries(self._rows, self._names))
            self._thread.wakeup()
            capacity, spare = max(self._writer.rows_wanted, further_rows), self._writer.spare
            spare_rows = spare.pop() if spare else None
            self._rows = (
                spare_rows if spare_rows is not None and spare_rows.capacity >= capacity else EntryRows(capacity)
            )
        elif further_rows > self._rows.capacity:
            self._rows = EntryRows(further_rows)

    def _all_plain(self, names: Sequence[str]) -> bool:
        while self._plain and self._plain_names < len(names):
            self._plain = self._queues.has_plain_entries(names[self._plain_names])
            self._plain_names += 1
        return self._plain
