"""ReputMessage: give every new unit of the log to the dispatcher, in order (docs/formats/writing.md#dispatch; Java:
ReputMessageService).

Never past the confirm offset, which under SYNC_FLUSH is the flushed offset (5.3.2 and later): readers see nothing
that a power loss could remove. Large amounts go through the columns. Small amounts, and units that the columns
refuse, are checked one by one by :mod:`engine.rules.unit_check`, whose decision is final. The dispatcher gets the same
requests from both.

"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from engine.codec.message import COMMIT, TRANSACTION_MASK
from engine.codec.unit_flavours import unread_versions
from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.rules import unit_check
from engine.rules.unit_check import Refusal, Request, Rules
from engine.sentences import sentence
from engine.services.service_thread import short_turns
from engine.store.running_flags import INDEX_WRITE_ERROR, QUEUE_WRITE_ERROR, RunningFlags
from engine.store.store_checkpoint import StoreCheckpoint

if TYPE_CHECKING:
    from engine.codec.columns import UnitColumns
    from engine.codec.topic_table import TopicTable
    from engine.store.dispatcher import Dispatcher


BLOCK_BYTES: Final = 16 << 20
"""Bytes of the log in one block. Larger blocks write more entries of a queue at once."""
BLOCK_ROWS: Final = 1 << 16
MIN_BULK_BYTES: Final = 1024
"""Size from which the columns are faster than single units, once they are loaded."""
MAX_SINGLE_BYTES: Final = 16 << 10
LOAD_COLUMNS_BYTES: Final = 64 << 10
"""Bytes, dispatched singly or waiting, after which loading the compiled columns pays off; it takes a second."""
MIN_REMAINING_BYTES: Final = 512 << 10
"""Bytes that may wait for the next round."""
MIN_PAUSE_MS: Final = 1.0
MAX_PAUSE_MS: Final = 20.0
PAUSE_PER_WORK: Final = 32.0
"""Length of the pause after a round, as a multiple of its duration: puts have priority, and rounds grow with load."""
PAUSE_PER_BUSY_WORK: Final = 3.0
MAX_BUSY_PAUSE_MS: Final = 1000.0
"""The same for processor time if more is already waiting: dispatch to tens of thousands of queues costs more than the
puts themselves, and both share one interpreter. There is no pause if no puts come, or if a caller waits.
"""
RETRY_MS: Final = 1000.0
QUEUE_TRIES: Final = 30
INDEX_TRIES: Final = 3
_log = logging.getLogger(__name__)


class ReputMessage:
    """The dispatch service. ``reput_from`` is the absolute offset of the first undispatched unit."""

    name = "ReputMessageService"

    def __init__(
        self,
        files: MappedFileQueue,
        dispatcher: Dispatcher,
        checkpoint: StoreCheckpoint,
        flags: RunningFlags,
        confirm: Callable[[], int],
        rules: Rules,
    ) -> None:
        self.reput_from = 0
        self.queue_end = -1  # end of the last unit in a queue
        self.units = self.bytes = 0
        self.skipped_bytes = 0
        self.failure: str | None = None
        self.delayed: str | None = None
        """Reason why the last round failed; the next one retries it."""
        self.wake_service: Callable[[], None] | None = None
        self.on_dispatched: Callable[[], None] | None = None
        self._files = files
        self._dispatcher = dispatcher
        self._checkpoint = checkpoint
        self._flags = flags
        self._confirm = confirm
        self._rules = rules
        self._bulk = not rules.dup_info
        self._columns: UnitColumns | None = None
        self._topics: TopicTable | None = None
        self._tries = 0
        self._singly_bytes = 0
        self._pause = MIN_PAUSE_MS
        self._waiters = 0
        self._closed = False
        self._moved = threading.Condition()

    @property
    def behind(self) -> int:
        """Bytes of the log that may be dispatched and are not yet."""
        return max(self._confirm() - self.reput_from, 0)

    def step(self) -> float:
        """Dispatch new units, at most one block of them through the columns."""
        if self.failure is not None:
            return MAX_PAUSE_MS * 10
        old_offset, start_s, cpu_start_s = self.reput_from, time.perf_counter(), time.thread_time()
        wrote = self._files.wrote_offset
        try:
            has_more = self._round(self._confirm())
        except OSError as error:
            return self._failed(error)
        finally:
            if self.reput_from != old_offset:
                stamp = self._dispatcher.last_store_timestamp
                if stamp > 0:
                    self._checkpoint.logics = stamp
                    self._checkpoint.logics_offset = self._dispatcher.last_physical_offset
                if self.on_dispatched is not None:
                    self.on_dispatched()
            if self._waiters:
                with self._moved:
                    self._moved.notify_all()
        self._tries, self.delayed = 0, None
        if has_more:
            if self._waiters or self._files.wrote_offset == wrote:
                return 0.0
            return min((time.thread_time() - cpu_start_s) * 1000.0 * PAUSE_PER_BUSY_WORK, MAX_BUSY_PAUSE_MS)
        if self.reput_from != old_offset:
            self._pause = max(MIN_PAUSE_MS, (time.perf_counter() - start_s) * 1000.0 * PAUSE_PER_WORK)
        else:
            self._pause *= 2.0
        self._pause = min(self._pause, MAX_PAUSE_MS)
        return self._pause

    def wait_for(self, offset: int, timeout_ms: float) -> bool:
        """Wait until everything before ``offset`` is dispatched and return True; False if that takes longer.

        Another thread must call :meth:`step` meanwhile; ``ring`` wakes it.

        """
        deadline = time.monotonic() + timeout_ms / 1000.0
        with self._moved:
            self._waiters += 1
            try:
                while self.reput_from < offset and self.failure is None and not self._closed:
                    if self.wake_service is not None:
                        self.wake_service()
                    remaining_s = deadline - time.monotonic()
                    if remaining_s <= 0:
                        break
                    self._moved.wait(min(remaining_s, 1.0))
            finally:
                self._waiters -= 1
        return self.reput_from >= offset

    def close(self) -> None:
        """Release all waiting callers: no further step follows."""
        self._closed = True
        with self._moved:
            self._moved.notify_all()

    def _round(self, end: int) -> bool:
        """Dispatch one block, or single units; returns True if there is more."""
        files = self._files
        start = self.reput_from
        if start >= end:
            return False
        if start < files.min_offset:
            _log.warning("offset %d is no longer in the log, dispatch continues at %d", start, files.min_offset)
            start = self.reput_from = files.min_offset
        lent = files.lend(start)
        if lent is None:  # not committed yet, although a later file may be
            return False
        with lent as view:
            n = min(len(view), end - start)
            if n <= 0:
                return False
            if self._bulk and (
                n >= MIN_BULK_BYTES if self._columns is not None else n + self._singly_bytes >= LOAD_COLUMNS_BYTES
            ):
                with short_turns():
                    self._block(view, start, min(n, BLOCK_BYTES))
            if self.reput_from == start:
                self._singly(view, start, n)
        return start < self.reput_from < end - MIN_REMAINING_BYTES

    def _block(self, view: memoryview, start: int, n: int) -> None:
        from engine.codec import columns as bulk
        from engine.codec.topic_table import TopicTable

        if self._columns is None or self._topics is None:
            self._columns, self._topics = bulk.UnitColumns(BLOCK_ROWS), TopicTable()
        columns, topics = self._columns, self._topics
        bulk.scan_block(view, n, start, 0, columns, topics, False, True, self._rules.delay_levels)
        try:
            rows = columns.count - int(columns.count > 0 and columns.kind[columns.count - 1] == bulk.BLANK)
            valid_rows = self._valid_rows(columns, rows)
            if valid_rows:
                if valid_rows < rows:
                    import numpy as np

                    self._dispatcher.dispatch_block(columns, topics, np.arange(valid_rows))
                else:
                    self._dispatcher.dispatch_block(columns, topics)
                self.units += valid_rows
                self.bytes += int(columns.size[:valid_rows].sum())
                self._note_queue_end(columns, valid_rows)
                self.reput_from = int(columns.offset[valid_rows - 1]) + int(columns.size[valid_rows - 1])
            if valid_rows == rows < columns.count:
                self.reput_from = int(columns.offset[rows]) + int(columns.size[rows])
        finally:
            columns.forget_buffer()

    def _note_queue_end(self, columns: UnitColumns, rows: int) -> None:
        for row in range(rows - 1, -1, -1):
            if columns.sys_flag[row] & TRANSACTION_MASK in (0, COMMIT):
                self.queue_end = int(columns.offset[row]) + int(columns.size[row])
                return

    def _valid_rows(self, columns: UnitColumns, rows: int) -> int:
        """Return the number of leading rows that a broker certainly accepts too."""
        import numpy as np

        is_invalid = columns.topic_id[:rows] < 0
        for version in unread_versions(self._rules.release):
            is_invalid |= columns.version[:rows] == version
        invalid_rows = np.flatnonzero(is_invalid)
        return int(invalid_rows[0]) if len(invalid_rows) else rows

    def _singly(self, view: memoryview, start: int, n: int) -> None:
        position = 0
        limit = min(n, MAX_SINGLE_BYTES)
        while position < limit:
            result = unit_check.check(view, position, len(view) - position, self._rules, False)
            if isinstance(result, Request):
                if position + result.size > n:
                    return
                self._dispatcher.dispatch(result)
                self.units += 1
                self.bytes += result.size
                position += result.size
                if result.sys_flag & TRANSACTION_MASK in (0, COMMIT):
                    self.queue_end = start + position
            elif result == unit_check.BLANK:
                size = self._files.file_size
                self.reput_from = start - start % size + size
                return
            elif isinstance(result, Refusal) and result.size > 0:
                self._skip(start + position, result.size, result.reason)
                position += result.size
            else:
                reason = result.reason if isinstance(result, Refusal) else sentence("the unit is incomplete")
                self._skip(start + position, n - position, reason)
                position = n
            self.reput_from = start + position
        self._singly_bytes += position

    def _skip(self, offset: int, size: int, reason: str) -> None:
        self.skipped_bytes += size
        _log.error("dispatch skips %d bytes at offset %d: %s", size, offset, reason)

    def _failed(self, error: OSError) -> float:
        """Handle a failed write of queue or index: retry in a second, until the tries are used up and the store
        stops.
        """
        queue = self._dispatcher.failed != "index"
        self._tries += 1
        self.delayed = sentence(
            "dispatch at offset {reput_from} failed and is retried: {error}",
            reput_from=self.reput_from,
            error=error,
        )
        if self._tries == 1:
            _log.warning("%s", self.delayed)
        if self._tries >= (QUEUE_TRIES if queue else INDEX_TRIES):
            self.failure = sentence(
                "dispatch at offset {reput_from} failed {tries} times: {error}",
                reput_from=self.reput_from,
                tries=self._tries,
                error=error,
            )
            self._flags.raise_flag(QUEUE_WRITE_ERROR if queue else INDEX_WRITE_ERROR, self.failure)
            _log.error("%s; the store refuses messages from now on", self.failure)
        return RETRY_MS
