"""Units of the log on their way into queues and index, singly or a block at a time
(docs/formats/consume-queue.md#light-queues, docs/formats/writing.md#dispatch,
docs/formats/transactions.md#queue-entries).

Both ways give the same bytes. A block that the bulk way cannot take (units whose PHYSICALOFFSETs fall, topics beyond
the table, light queues) goes unit by unit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt

from engine.codec.columns import UnitColumns
from engine.codec.index_builder import build_keys
from engine.codec.message import COMMIT, TRANSACTION_MASK
from engine.codec.queue_builder import QueueRuns, build_runs
from engine.codec.topic_table import TopicTable
from engine.config import MessageStoreConfig
from engine.rules import unit_check
from engine.rules.dispatch_rules import light_entries, names_light_queues, units_of
from engine.rules.unit_check import Request, Rules
from engine.store.consume_queue_store import ConsumeQueueStore
from engine.store.index_service import IndexService

Int64 = npt.NDArray[np.int64]


class Dispatcher:
    """Called by one thread, in the order of the log. ``index`` None: no index is built.

    ``bit_map(request)`` gives the filter bit map of a unit for its ext unit (docs/formats/reading.md#filters); it may
    be set later, too. ``failed`` says which part an ``OSError`` came from.
    """

    def __init__(
        self,
        queues: ConsumeQueueStore,
        index: IndexService | None,
        config: MessageStoreConfig,
        *,
        bit_map: Callable[[Request], bytes] | None = None,
        rules: Rules | None = None,
    ) -> None:
        self._queues = queues
        self._index = index if config.message_index_enable else None
        self.bit_map = bit_map
        self._multi_dispatch = config.enable_multi_dispatch
        self._rules = Rules(delay_levels=config.delay_levels()) if rules is None else rules
        self.failed: Literal["queue", "index"] | None = None
        self._newest_timestamp = self._newest_offset = 0

    @property
    def last_store_timestamp(self) -> int:
        """Store time (ms) up to which units are in their queues."""
        return self._queues.pending.oldest_timestamp or self._newest_timestamp

    @property
    def last_physical_offset(self) -> int:
        """Offset of the newest unit in the log that is in its queue."""
        pending = self._queues.pending
        return pending.oldest_offset if pending.oldest_timestamp else self._newest_offset

    # -- one unit

    def dispatch(self, request: Request) -> None:
        """Dispatch one good unit to its queue, to light queues and to the index. Raises ``OSError``."""
        self.failed = "queue"
        if request.sys_flag & TRANSACTION_MASK in (0, COMMIT):
            self._into_queue(request)
        if self._index is not None:
            self.failed = "index"
            self._index.put(request)
        self.failed = None

    def _into_queue(self, request: Request) -> None:
        bits = self.bit_map(request) if self.bit_map is not None else b""
        self._queues.put(request, bits)
        self._newest_timestamp, self._newest_offset = request.store_timestamp, request.physical_offset
        if self._multi_dispatch:
            for name, queue_id, queue_offset in light_entries(request.properties, request.topic, request.queue_id):
                self._queues.put_light(request, name, queue_id, queue_offset)

    # -- many units

    def dispatch_block(
        self, columns: UnitColumns, topics: TopicTable, rows: Int64 | None = None, runs: QueueRuns | None = None
    ) -> None:
        """Dispatch the units of a block, or of its ``rows`` (row numbers, ascending); blanks are skipped. Raises
        ``OSError``.

        ``runs`` are the rows' queue entries, where the caller has built them already.
        """
        unit_rows = units_of(columns, rows)
        if not len(unit_rows):
            return
        if not self.takes_in_bulk(columns, unit_rows):
            for row in unit_rows.tolist():
                request = self._request(columns, row)
                if request is not None:
                    self.dispatch(request)
            return
        self.failed = "queue"
        self._runs_into_queues(columns, topics, unit_rows, runs)
        if self._index is not None:
            self.failed = "index"
            self._index.put_keys(build_keys(columns, topics.prefixes(), unit_rows, tags=self._index.tag_entries))
        self.failed = None

    def takes_in_bulk(self, columns: UnitColumns, rows: Int64) -> bool:
        """Return True if no unit of these rows needs a look of its own."""
        first_row, last_row = int(rows[0]), int(rows[-1])
        chosen = slice(first_row, last_row + 1) if last_row - first_row + 1 == len(rows) else rows
        physical = columns.physical_offset[chosen]
        if (physical[1:] < physical[:-1]).any() or int(columns.topic_id[chosen].min()) < 0:
            return False
        return not self._multi_dispatch or not names_light_queues(columns, rows)

    def _runs_into_queues(self, columns: UnitColumns, topics: TopicTable, rows: Int64, built: QueueRuns | None) -> None:
        first_row, last_row = int(rows[0]), int(rows[-1])
        if built is not None or last_row - first_row + 1 == len(rows):
            pieces = [(first_row, last_row + 1)]
        else:
            edges = np.flatnonzero(np.diff(rows) != 1) + 1
            pieces = [(int(piece[0]), int(piece[-1]) + 1) for piece in np.split(rows, edges)]
        for begin, stop in pieces:
            runs = built if built is not None else build_runs(columns, begin, stop)
            if not len(runs.row):
                continue
            stored = columns.store_timestamp
            if not self._queues.put_late(columns, range(begin, stop), runs, topics.names, int(stored[begin])):
                for group in self._queues.put_runs(runs, topics.names):
                    self._singly(columns, runs, group)
            newest = int(runs.row.max())
            self._newest_timestamp, self._newest_offset = int(stored[newest]), int(columns.physical_offset[newest])

    def _singly(self, columns: UnitColumns, runs: QueueRuns, group: int) -> None:
        for row in runs.row[runs.start[group] : runs.start[group + 1]].tolist():
            request = self._request(columns, row)
            if request is not None:
                bits = self.bit_map(request) if self.bit_map is not None else b""
                self._queues.put(request, bits)

    def _request(self, columns: UnitColumns, row: int) -> Request | None:
        position = int(columns.offset[row]) - columns.base
        size = int(columns.size[row])
        answer = unit_check.check(columns.buffer.data[position : position + size], 0, size, self._rules, body=False)
        return answer if isinstance(answer, Request) else None
