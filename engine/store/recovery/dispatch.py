"""Dispatch in recovery: units go into their queues, light queues and batch queues
(docs/formats/consume-queue.md#light-queues, docs/formats/writing.md#dispatch).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.codec import properties as props
from engine.codec.columns import UnitColumns
from engine.codec.java import i32, split
from engine.codec.message import COMMIT, TRANSACTION_MASK
from engine.codec.queue_builder import QueueRuns, build_runs, run_ends
from engine.codec.topic_table import TopicTable
from engine.files.layout import is_folder_name
from engine.rules import unit_check
from engine.rules.unit_check import Request, Rules
from engine.store.recovery.plan import FailedDispatch
from engine.store.recovery.queue_bytes import QueueBytes
from engine.store.recovery.queues import RecoveredQueue
from engine.store.recovery.source import QueueFiles
from engine.system_names import LMQ_PREFIX, RETRY_PREFIX, SCHEDULE_TOPIC, SYSTEM_PREFIX

_INNER = re.compile(rb"INNER_")
_JAVA_LONG = re.compile(r"[+-]?[0-9]+")
_NO_MULTI_DISPATCH = (RETRY_PREFIX, SYSTEM_PREFIX)
Int64 = NDArray[np.int64]


class UnitReceiver(Protocol):
    """Gets the dispatched units, in the order of the log."""

    def take_rows(self, columns: UnitColumns, topics: TopicTable, rows: Int64, *, queued: bool = False) -> None:
        """Take these rows of ``columns``; ``queued`` is True if the queues have all of them already."""

    def take(self, place: int, request: Request) -> None:
        """Take one unit, which begins at ``place``."""


class QueueTable:
    """All queues of a store during recovery, and the units that are dispatched to them.

    Only units with a PHYSICALOFFSET above ``dispatch_after`` are dispatched (−1: all units). ``receiver`` gets them,
    too, if the plan is applied while it is made.
    """

    def __init__(
        self,
        queues: Iterable[QueueFiles],
        file_size: int,
        batch_file_size: int,
        batch_topics: frozenset[str],
        rules: Rules,
        *,
        light: bool = True,
    ) -> None:
        self._file_size = file_size
        self._batch_file_size = batch_file_size
        self._batch_topics = batch_topics
        self._rules = rules
        self._light = light
        self.dispatch_after = -1
        self.receiver: UnitReceiver | None = None
        self.dispatched = 0
        self.first_dispatched = -1
        self.failed: FailedDispatch | None = None
        """The first unit at which a broker's dispatch fails."""
        self.queues: dict[tuple[str, int], RecoveredQueue] = {}
        for files in queues:
            size = batch_file_size if files.kind == "batch" else file_size
            self.queues[files.topic, files.queue_id] = RecoveredQueue.of(files, size)

    def __iter__(self) -> Iterator[RecoveredQueue]:
        return iter(self.queues.values())

    @property
    def max_physic(self) -> int:
        """The largest offset in any queue: C of docs/formats/recovery.md#order; −1 without queues."""
        return max((queue.max_physic for queue in self.queues.values()), default=-1)

    def queue(self, topic: str, queue_id: int) -> RecoveredQueue:
        """Return the queue; create it if it is missing, as Java's findOrCreateConsumeQueue does."""
        queue = self.queues.get((topic, queue_id))
        if queue is None:
            kind, size = (
                ("batch", self._batch_file_size) if topic in self._batch_topics else ("simple", self._file_size)
            )
            data = QueueBytes("batch" if kind == "batch" else "simple", size, [])
            queue = RecoveredQueue(topic, queue_id, data.kind, data, existed=False)
            self.queues[topic, queue_id] = queue
        return queue

    def is_cut(self, reached: int, log_end: int) -> bool:
        """Return True if a start whose queues reach ``reached`` cuts them at the end of the log."""
        return reached >= log_end

    # -- units, singly

    def take(self, place: int, request: Request) -> None:
        """Dispatch one unit, which begins at ``place``."""
        if request.physical_offset <= self.dispatch_after:
            return
        self._count(place, 1)
        if self.receiver is not None:
            self.receiver.take(place, request)
        if request.sys_flag & TRANSACTION_MASK not in (0, COMMIT):
            return
        if not is_folder_name(request.topic):
            return
        queue = self.queue(request.topic, request.queue_id)
        if queue.kind == "batch":
            queue.put_batch(request, place)
            return
        queue.put(request.physical_offset, place, request.size, request.queue_offset)
        self._put_light(place, request)

    def _put_light(self, place: int, request: Request) -> None:
        """Add the unit's entries in the further queues that its properties name."""
        if not self._light:
            return
        names = request.properties.get(props.INNER_MULTI_DISPATCH)
        offsets = request.properties.get(props.INNER_MULTI_QUEUE_OFFSET)
        if not names or not offsets or request.topic == SCHEDULE_TOPIC or request.topic.startswith(_NO_MULTI_DISPATCH):
            return
        queue_names, queue_offsets = split(names, ","), split(offsets, ",")
        if len(queue_names) != len(queue_offsets):
            return
        for name, text in zip(queue_names, queue_offsets, strict=True):
            if "/" in name:
                continue
            if _JAVA_LONG.fullmatch(text) is None:
                self.failed = self.failed or FailedDispatch(
                    request.topic, request.queue_id, request.queue_offset, place, name, text
                )
                continue
            if not is_folder_name(name):
                continue
            queue = self.queue(name, 0 if name.startswith(LMQ_PREFIX) else request.queue_id)
            queue.put(request.physical_offset, place, request.size, int(text))

    def _count(self, place: int, units: int) -> None:
        if self.first_dispatched < 0:
            self.first_dispatched = place
        self.dispatched += units

    # -- units, in rows

    def take_rows(self, columns: UnitColumns, topics: TopicTable, rows: int) -> None:
        """Dispatch the first ``rows`` rows of ``columns``; rows of one queue stay in order."""
        physical = columns.physical_offset[:rows]
        new_rows = (
            np.arange(rows)
            if int(physical.min()) > self.dispatch_after
            else np.flatnonzero(physical > self.dispatch_after)
        )
        if not len(new_rows):
            return
        self._count(int(columns.offset[new_rows[0]]), len(new_rows))
        has_own_offsets, spans = bool((physical == columns.offset[:rows]).all()), _spans(new_rows)
        queued = has_own_offsets and all(self._knows_all(columns, topics, start, stop) for start, stop in spans)
        if self.receiver is not None:
            self.receiver.take_rows(columns, topics, new_rows, queued=queued)
        names = topics.names
        for start, stop in () if queued else spans:
            runs = build_runs(columns, start, stop)
            starts = runs.start.tolist()
            for group, topic in enumerate(runs.topic_id.tolist()):
                if not is_folder_name(names[topic]):
                    continue
                queue = self.queue(names[topic], i32(int(runs.queue_id[group])))
                self._put_group(
                    queue, columns, runs, (starts[group], starts[group + 1]), has_own_offsets and runs.follows[group]
                )
        self._light_rows(columns, rows)

    def _knows_all(self, columns: UnitColumns, topics: TopicTable, start: int, stop: int) -> bool:
        """Return True if every unit of these rows has its queue entry already."""
        ends = run_ends(columns, start, stop)
        if not ends.follows.all():
            return False
        names = topics.names
        for topic, queue_id, end in zip(ends.topic_id.tolist(), ends.queue_id.tolist(), ends.end.tolist(), strict=True):
            queue = self.queues.get((names[topic], i32(queue_id)))
            if queue is None or queue.kind == "batch" or end > queue.max_physic:
                return False
        return True

    def _put_group(
        self, queue: RecoveredQueue, columns: UnitColumns, runs: QueueRuns, span: tuple[int, int], in_order: bool
    ) -> None:
        """Add units to one queue: all at once if their numbers follow each other, else one by one."""
        start, stop = span
        if queue.kind == "batch":
            for row in runs.row[start:stop].tolist():
                self._take_batch_row(queue, columns, row)
            return
        if in_order:
            last_row = int(runs.row[stop - 1])
            if int(runs.end[stop - 1]) <= queue.max_physic:
                return
            if int(runs.end[start]) <= queue.max_physic:
                start += int(np.searchsorted(runs.end[start:stop], queue.max_physic, "right"))
            if queue.data.files and int(runs.queue_offset[start]) * 20 == queue.data.end:
                queue.put_run(int(columns.physical_offset[last_row]), int(columns.size[last_row]), stop - start)
                return
        for index in range(start, stop):
            row = int(runs.row[index])
            size = int(columns.size[row])
            queue.put(int(runs.end[index]) - size, int(columns.offset[row]), size, int(runs.queue_offset[index]))

    def _light_rows(self, columns: UnitColumns, rows: int) -> None:
        """Dispatch the units that name further queues. They are searched by the name of the property, then decoded."""
        if not self._light:
            return
        start_position, stop_position = (
            int(columns.offset[0]) - columns.base,
            int(columns.offset[rows - 1] + columns.size[rows - 1]) - columns.base,
        )
        buffer = columns.buffer.data[start_position:stop_position]
        last_row = -1
        for hit in _INNER.finditer(buffer):
            row = int(np.searchsorted(columns.offset[:rows], columns.base + start_position + hit.start(), "right")) - 1
            if row == last_row or columns.physical_offset[row] <= self.dispatch_after:
                continue
            last_row = row
            request = self._request(columns, row)
            if request is None or request.sys_flag & TRANSACTION_MASK not in (0, COMMIT):
                continue
            if not is_folder_name(request.topic):
                continue
            if self.queue(request.topic, request.queue_id).kind != "batch":
                self._put_light(int(columns.offset[row]), request)

    def _take_batch_row(self, queue: RecoveredQueue, columns: UnitColumns, row: int) -> None:
        request = self._request(columns, row)
        if request is not None:
            queue.put_batch(request, int(columns.offset[row]))

    def _request(self, columns: UnitColumns, row: int) -> Request | None:
        position = int(columns.offset[row]) - columns.base
        size = int(columns.size[row])
        answer = unit_check.check(columns.buffer.data[position : position + size], 0, size, self._rules, body=False)
        return answer if isinstance(answer, Request) else None


def _spans(rows: Int64) -> list[tuple[int, int]]:
    """Return (first, behind last) of each run of consecutive rows."""
    if int(rows[-1]) - int(rows[0]) + 1 == len(rows):
        return [(int(rows[0]), int(rows[-1]) + 1)]
    pieces = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1)
    return [(int(piece[0]), int(piece[-1]) + 1) for piece in pieces]
