"""Finds messages that a start loses although their bytes exist, by topic and queue.

Two kinds: units that stay in the log and are in no queue, because they are before the range that the start dispatches,
and readable units behind the end that it sets for the log. Both follow from a finished plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from engine.callbacks import Cancel, Progress
from engine.codec import properties
from engine.codec.columns import BLANK, UnitColumns
from engine.codec.dtypes import BATCH_CQ_UNIT, CQ_UNIT
from engine.codec.java import i32
from engine.codec.message import COMMIT, INNER_BATCH, TRANSACTION_MASK
from engine.codec.topic_table import TopicTable
from engine.files.layout import is_folder_name
from engine.inspection import undecoded
from engine.inspection.block_scan import scan_log
from engine.inspection.deleted_topics import topics_known
from engine.inspection.older_front import older_front
from engine.inspection.queue_reader import QueueReader
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.tables import fills_light_queues
from engine.releases import rules_of
from engine.rules.dispatch_rules import light_entries, names_light_queues
from engine.store.recovery.plan import DispatchPass, Loss, QueueLoss, QueuePlan, QueueState, RecoveryPlan
from engine.system_names import LMQ_PREFIX, is_system_topic

MAX_QUEUE_ID = 1 << 10
"""Queue ids below this one are looked up by columns."""
_NAMES_LIGHT = properties.INNER_MULTI_DISPATCH.encode()
_MAX_DIGITS = 7
LostRows = Callable[[str, int, NDArray[np.intp]], NDArray[np.intp]]
"""Takes a topic, a queue id and the rows of a block that belong to this queue; returns those that the start loses."""


@dataclass(frozen=True, slots=True)
class WalkOptions:
    """Options of a walk through a log: ``progress`` receives the bytes done and the total, ``cancel`` is checked after
    each block.
    """

    progress: Progress | None = None
    cancel: Cancel | None = None

    @property
    def stopped(self) -> bool:
        return self.cancel is not None and self.cancel.is_set()


def undispatched(
    store: StoreSnapshot, plans: Sequence[RecoveryPlan], options: WalkOptions | None = None, begin: int | None = None
) -> list[Loss]:
    """For each plan, the units that stay in the log and that neither its start nor a later one brings into their
    queues.

    One walk for all plans, over the log from its newest file back. If it is stopped, the loss says from which offset on
    it is complete. ``begin``: there are no such units before this offset (None if unknown).
    """
    tallies = [_PlanLosses(store, plan) for plan in plans]
    log_min = max(min((plan.log_min for plan in plans), default=0), 0)
    older = older_front(store)
    log_min = max(log_min, older.start if older is not None else 0)
    first_offset, stop = max(log_min, begin or 0), max((tally.stop for tally in tallies), default=0)
    reached = _walk_back(store, tallies, first_offset, stop, options or WalkOptions())
    return [tally.tally.loss(log_min if reached <= first_offset else reached) for tally in tallies]


def _walk_back(
    store: StoreSnapshot, tallies: Sequence[_PlanLosses], begin: int, stop: int, options: WalkOptions
) -> int:
    """Feed the tallies with [begin, stop), newest file first; returns the offset from which on everything was read."""
    sequence = store.log.sequence
    files = [file for file in sequence.files if file.start_offset < stop and sequence.end_of(file) > begin]
    done, reached = 0, stop
    topics = TopicTable()
    for file in reversed(files):
        start, end = max(begin, file.start_offset), min(stop, sequence.end_of(file))
        for columns in _blocks(store, start, end, topics):
            for tally in tallies:
                tally.take(columns, topics)
            if options.progress is not None:
                options.progress(done + int(columns.offset[columns.count - 1]) - start, stop - begin)
            if options.stopped:
                return reached
        done += end - start
        reached = start
    return begin


def of_plan(store: StoreSnapshot, plan: RecoveryPlan, options: WalkOptions | None = None) -> RecoveryPlan:
    """Return ``plan`` with both losses, if they can be determined (:func:`can_tell`)."""
    if not can_tell(store, plan):
        return plan
    (loss,) = undispatched(store, [plan], options)
    return replace(plan, undispatched=loss, dropped=dropped(store, plan))


def can_tell(store: StoreSnapshot, plan: RecoveryPlan) -> bool:
    """Return True if losses can be determined: the log and the queues can be read."""
    return plan.start_file is not None and not undecoded.unknown_to_plans(store)


def dropped(store: StoreSnapshot, plan: RecoveryPlan) -> Loss:
    """Readable units behind the end that the start sets for the log; units of deleted topics do not count as a loss."""
    exists = existing_topics(store)
    tally = _Tally()
    topics = TopicTable()
    light = _has_light_queues(store, plan)
    for columns in _blocks(store, plan.end_offset, plan.log_max, topics):
        tally.add(columns, topics, _queued_rows(columns), lambda topic, _, rows: rows if exists(topic) else rows[:0])
        for entry in _light_entries(columns, topics, _queued_rows(columns)) if light else ():
            tally.add_light(columns, entry)
    return tally.loss(plan.end_offset)


def existing_topics(store: StoreSnapshot) -> Callable[[str], bool]:
    """Return a function that is True for topics that were not deleted."""
    topics = topics_known(store)
    names = topics.listed | topics.folders
    return lambda topic: (
        not topics.are_known or topic in names or is_system_topic(topic) or topic.startswith(LMQ_PREFIX)
    )


def _blocks(store: StoreSnapshot, begin: int, stop: int, topics: TopicTable) -> Iterable[UnitColumns]:
    for item in scan_log(store.log, begin, stop, crc=False, topics=topics) if begin < stop else ():
        if isinstance(item, UnitColumns) and item.count:
            yield item


def _queued_rows(columns: UnitColumns) -> NDArray[np.intp]:
    """Units of a block that have an entry of their own in a queue."""
    count = columns.count - int(columns.kind[columns.count - 1] == BLANK)
    kind = columns.sys_flag[:count] & TRANSACTION_MASK
    return np.flatnonzero(((kind == 0) | (kind == COMMIT)) & (columns.topic_id[:count] >= 0))


class _LightEntry(NamedTuple):
    """A further queue that the unit of a block's row names, and its offset there."""

    row: int
    name: str
    queue_id: int
    offset: int


def _has_light_queues(store: StoreSnapshot, plan: RecoveryPlan) -> bool:
    """Return True if units have entries in further queues: such folders exist, or the broker makes them."""
    return any(queue.topic.startswith(LMQ_PREFIX) for queue in plan.queues) or fills_light_queues(store)


def _light_entries(columns: UnitColumns, topics: TopicTable, rows: NDArray[np.intp]) -> Iterator[_LightEntry]:
    """Entries in further queues that the units of these rows request."""
    if not len(rows) or not names_light_queues(columns, rows):
        return
    for row in rows.tolist():
        if _NAMES_LIGHT not in columns.raw_properties(row):
            continue
        unit_properties = properties.decode(columns.raw_properties(row))
        topic, number = topics.names[int(columns.topic_id[row])], int(columns.queue_id[row])
        for name, queue_id, offset in light_entries(unit_properties, topic, number):
            if is_folder_name(name):
                yield _LightEntry(row, name, queue_id, offset)


_NO_PASS = DispatchPass(0, 0, -1)


class _PlanLosses:
    """Losses of one plan, counted block by block."""

    def __init__(self, store: StoreSnapshot, plan: RecoveryPlan) -> None:
        first_pass = plan.first_pass or (None if plan.dledger is None else _NO_PASS)
        self._spans = [span for span in (first_pass, plan.second_pass) if span is not None]
        ends = (s.start for s in self._spans if s.end >= plan.end_offset and s.after_offset < s.start)
        self.stop = min(ends, default=plan.end_offset)
        """Start of the last span in which everything is dispatched."""
        self._states: _QueueStates | _RowStates = (
            _RowStates(store, plan)
            if store.queues.rocksdb is not None or store.queues.begins_rocksdb
            else _QueueStates(store, plan)
        )
        self._light = _has_light_queues(store, plan)
        self.tally = _Tally()

    def take(self, columns: UnitColumns, topics: TopicTable) -> None:
        """Count the units of a block that are before :attr:`stop`."""
        rows = _queued_rows(columns)
        rows = rows[columns.offset[rows] < self.stop]
        to_check = rows[self._states.needs_check(columns, topics, rows)]
        self.tally.add(columns, topics, to_check, partial(self._states.lost, columns, self._spans))
        for entry in _light_entries(columns, topics, rows) if self._light else ():
            single_row = np.array([entry.row], np.intp)
            if len(self._states.lost(columns, self._spans, entry.name, entry.queue_id, single_row, entry.offset)):
                self.tally.add_light(columns, entry)


class _QueueStates:
    """The state of each queue before the start dispatches anything, and the topics that should have queues."""

    def __init__(self, store: StoreSnapshot, plan: RecoveryPlan) -> None:
        self._plans: dict[tuple[str, int], QueuePlan] = {(q.topic, q.queue_id): q for q in plan.queues}
        self._exists = existing_topics(store)
        self._min_offsets = {
            (topic, number): max(reader.sequence.min_offset, 0) // reader.unit_size
            for topic, queues in store.topics().items()
            for number, reader in queues.items()
            if reader.kind == "simple"
        }
        self._batch = {
            topic for topic, queues in store.topics().items() if any(q.kind == "batch" for q in queues.values())
        }
        self._gaps = {
            (topic, number): gaps
            for topic, queues in store.topics().items()
            for number, reader in queues.items()
            if (gaps := _gaps(reader))
        }
        self._release = plan.release
        self._queues: dict[str, list[int]] = {}
        for topic, number in self._plans:
            if 0 <= number < MAX_QUEUE_ID:
                self._queues.setdefault(topic, []).append(number)
        # One row per topic number, one column per queue id, for a comparison of whole blocks.
        self._width = 1 + max((max(numbers) for numbers in self._queues.values()), default=0)
        self._listed = np.zeros(0, bool)
        self._ends, self._begins = np.zeros((2, 0, self._width), np.int64)

    def needs_check(self, columns: UnitColumns, topics: TopicTable, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Mark the rows that :meth:`lost` must check.

        All others are inside the range that their queue knows, or belong to a deleted topic. ``topics`` must be the
        same table in every call.
        """
        self._add_topics(topics.names[len(self._listed) :])
        topic, number = columns.topic_id[rows], columns.queue_id[rows]
        inside = (number >= 0) & (number < self._width)
        number = np.where(inside, number, 0)
        ends = columns.physical_offset[rows] + columns.size[rows]
        precedes_queue = columns.queue_offset[rows] < self._begins[topic, number]
        is_known = inside & (ends <= self._ends[topic, number]) & ~precedes_queue
        return self._listed[topic] & ~is_known

    def _add_topics(self, names: Sequence[str]) -> None:
        """Add rows for further topics to the tables; unknown queues end at −1."""
        ends, begins = np.full((len(names), self._width), -1, np.int64), np.zeros((len(names), self._width), np.int64)
        for row, topic in enumerate(names):
            for number in self._queues.get(topic, ()):
                end = _end_known(self._plans[topic, number])
                gaps = (topic, number) in self._gaps
                ends[row, number] = end if end is not None and not gaps else -1
                begins[row, number] = self._min_offsets.get((topic, number), 0)
        listed = [is_folder_name(topic) and self._exists(topic) for topic in names]
        self._ends, self._begins = np.concatenate((self._ends, ends)), np.concatenate((self._begins, begins))
        self._listed = np.concatenate((self._listed, np.array(listed, bool)))

    def lost(
        self,
        columns: UnitColumns,
        spans: list[DispatchPass],
        topic: str,
        queue_id: int,
        rows: NDArray[np.intp],
        offset: int | None = None,
    ) -> NDArray[np.intp]:
        """The rows, all of one queue, that the queue will not know.

        In a light queue the unit has the queue offset ``offset``.
        """
        queue_plan = self._plans.get((topic, queue_id))
        if not rules_of(self._release).batch_queues and topic in self._batch:
            return rows[:0]  # 4.9 does not know such queues
        physical = columns.physical_offset[rows]
        batch = queue_plan is not None and queue_plan.kind == "batch"
        ends = physical if batch else physical + columns.size[rows]
        is_dispatched = np.zeros(len(rows), bool)
        for number, span in enumerate(spans):
            in_span = _is_dispatched_by(span, columns, rows)
            if number == 0 and queue_plan is not None and _is_cut_by_the_log(queue_plan):
                # In the first pass the queue accepts no unit in front of the one that its wrong entry points to.
                in_span &= ends > cast("QueueState", queue_plan.current_state).max_physic
            is_dispatched |= in_span
        end = None if queue_plan is None else _end_known(queue_plan)
        if end is None:
            return rows[~is_dispatched]
        missing = ends > end
        if not batch:
            numbers = columns.queue_offset[rows] if offset is None else np.array([offset], np.int64)
            missing |= numbers < self._min_offsets.get((topic, queue_id), 0)
        for gap_start, gap_end in self._gaps.get((topic, queue_id), ()):
            missing |= (physical > gap_start) & (physical < gap_end)
        return rows[missing & ~is_dispatched]


class _RowStates:
    """The rows of a RocksDB before the start dispatches anything; the interface of :class:`_QueueStates`."""

    def __init__(self, store: StoreSnapshot, plan: RecoveryPlan) -> None:
        queues = store.queues.rocksdb
        self._readers = queues.by_topic() if queues is not None else {}
        states = {(queue.topic, queue.queue_id): queue.cut or queue.current_state for queue in plan.queues}
        self._ends = {key: state.end_bytes // CQ_UNIT.itemsize for key, state in states.items() if state is not None}
        self._exists = existing_topics(store)

    def needs_check(self, columns: UnitColumns, topics: TopicTable, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Mark the rows of topics that were not deleted."""
        existing = np.array([self._exists(topic) for topic in topics.names], bool)
        return existing[columns.topic_id[rows]]

    def lost(
        self,
        columns: UnitColumns,
        spans: list[DispatchPass],
        topic: str,
        queue_id: int,
        rows: NDArray[np.intp],
        offset: int | None = None,
    ) -> NDArray[np.intp]:
        """The units, all of one queue, without a row of their own that no span dispatches. A later unit may have taken
        the row.
        """
        is_dispatched = np.zeros(len(rows), bool)
        for span in spans:
            is_dispatched |= _is_dispatched_by(span, columns, rows)
        rows = rows[~is_dispatched]
        physical = columns.physical_offset[rows]
        reader = self._readers.get(topic, {}).get(queue_id)
        if reader is None or not len(rows):
            return rows
        numbers = columns.queue_offset[rows] if offset is None else np.array([offset], np.int64)
        start, end = int(numbers.min()), self._ends.get((topic, queue_id), 0)
        known_numbers, known_rows = reader.numbered_rows(start, int(numbers.max()) + 1)
        known_offsets = dict(zip(known_numbers.tolist(), known_rows["physical_offset"].tolist(), strict=True))
        known_offsets = {
            number: offset for number, offset in known_offsets.items() if number < end
        }  # later rows are overwritten
        has_row = [
            known_offsets.get(number, -1) >= offset
            for number, offset in zip(numbers.tolist(), physical.tolist(), strict=True)
        ]
        lost_rows: NDArray[np.intp] = np.compress(~np.array(has_row, bool), rows)
        return lost_rows


def _is_dispatched_by(span: DispatchPass, columns: UnitColumns, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Mark the rows that this pass of the start dispatches."""
    offset = columns.offset[rows]
    return (offset >= span.start) & (offset < span.end) & (columns.physical_offset[rows] > span.after_offset)


def _is_cut_by_the_log(queue: QueuePlan) -> bool:
    """Return True if the end of the log cuts entries off a simple queue: one of them points behind that end."""
    bounds, cut = queue.current_state, queue.cut
    if bounds is None or cut is None or queue.kind != "simple" or cut.last_file is None:
        return False
    return cut.end_bytes < bounds.end_bytes


def _end_known(queue: QueuePlan) -> int | None:
    """Offset in the log behind the last unit that the queue knows and keeps; None if dispatch creates the queue."""
    state = queue.cut if _is_cut_by_the_log(queue) else queue.current_state
    return state.max_physic if state is not None else None


def _gaps(reader: QueueReader) -> list[tuple[int, int]]:
    """Gaps between the files of a queue, as the log offsets of the entries around each gap."""
    kind = CQ_UNIT if reader.kind == "simple" else BATCH_CQ_UNIT
    gaps = []
    for current, following in pairwise(reader.files):
        if current.end_offset < following.start_offset:
            ends = current.read(current.size - kind.itemsize, kind.itemsize), following.read(0, kind.itemsize)
            if all(len(data) == kind.itemsize for data in ends):
                last_physical, next_physical = (int(np.frombuffer(data, kind)["physical_offset"][0]) for data in ends)
                gaps.append((last_physical, next_physical))
    return gaps


class _Tally:
    """Counts messages by queue, block by block."""

    def __init__(self) -> None:
        self._queues: dict[tuple[str, int], QueueLoss] = {}
        self._newest: dict[tuple[str, int], int] = {}
        self._first = self._last = -1

    def add(self, columns: UnitColumns, topics: TopicTable, rows: NDArray[np.intp], find_lost: LostRows) -> None:
        """Count the rows of a block that ``find_lost`` picks for each queue."""
        keys = columns.topic_id[rows].astype(np.int64) << 32 | (columns.queue_id[rows].astype(np.int64) & 0xFFFFFFFF)
        for key in np.unique(keys).tolist():
            topic, queue_id = topics.names[key >> 32], i32(key & 0xFFFFFFFF)
            if is_folder_name(topic):
                lost_rows = find_lost(topic, queue_id, rows[keys == key])
                if len(lost_rows):
                    self._count(topic, queue_id, columns, lost_rows)

    def add_light(self, columns: UnitColumns, entry: _LightEntry) -> None:
        """Count a unit that a light queue lacks."""
        offset = np.array([entry.offset], np.int64)
        self._count(entry.name, entry.queue_id, columns, np.array([entry.row], np.intp), offset)

    def _count(
        self,
        topic: str,
        queue_id: int,
        columns: UnitColumns,
        rows: NDArray[np.intp],
        offsets: NDArray[np.int64] | None = None,
    ) -> None:
        sizes = batch_sizes(columns, rows)
        offsets = columns.queue_offset[rows] if offsets is None else offsets
        times = columns.store_timestamp[rows]
        first_unit, last_unit = int(columns.offset[rows[0]]), int(columns.offset[rows[-1]])
        min_number, max_number = int(offsets.min()), int((offsets + sizes - 1).max())
        begin, end = int(times[0]), int(times[-1])
        loss = self._queues.get((topic, queue_id))
        if loss is None:
            loss = self._queues[topic, queue_id] = QueueLoss(
                topic, queue_id, 0, min_number, max_number, first_unit, begin, end
            )
            self._newest[topic, queue_id] = last_unit
        loss.messages += int(sizes.sum())
        loss.units += len(rows)
        loss.first_offset, loss.last_offset = min(loss.first_offset, min_number), max(loss.last_offset, max_number)
        if first_unit < loss.unit:
            loss.unit, loss.first_time = first_unit, begin
        if last_unit > self._newest[topic, queue_id]:
            self._newest[topic, queue_id], loss.last_time = last_unit, end
        self._first = first_unit if self._first < 0 else min(self._first, first_unit)
        self._last = max(self._last, last_unit)

    def loss(self, examined_from: int) -> Loss:
        queues = tuple(queue_loss for _, queue_loss in sorted(self._queues.items()))
        return Loss(queues, examined_from, self._first, self._last)


def batch_sizes(columns: UnitColumns, rows: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return the number of messages in each unit: 1, or the number that a batch unit states."""
    sizes = np.ones(len(rows), np.int64)
    for index in np.flatnonzero(columns.sys_flag[rows] & INNER_BATCH).tolist():
        unit_properties = properties.decode(columns.raw_properties(int(rows[index])))
        count_text = unit_properties.get(properties.INNER_NUM, "")
        if (
            properties.INNER_BASE in unit_properties
            and count_text.isascii()
            and count_text.isdigit()
            and len(count_text) < _MAX_DIGITS
        ):
            sizes[index] = max(int(count_text), 1)
    return sizes
