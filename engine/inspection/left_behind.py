"""Messages that a start loses while their bytes are still there, by topic and queue.

Two kinds: units that stay in the log and are in no queue, because they lie before what the start dispatches, and units
that can be read behind the place where it ends the log. Both from a plan that has been made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.codec import properties
from engine.codec.columns import BLANK, UnitColumns
from engine.codec.dtypes import BATCH_CQ_UNIT, CQ_UNIT
from engine.codec.java import i32
from engine.codec.message import COMMIT, INNER_BATCH, TRANSACTION_MASK
from engine.codec.topic_table import TopicTable
from engine.inspection import foreign
from engine.inspection.block_scan import scan_log
from engine.inspection.deleted_topics import topics_known
from engine.inspection.queue_reader import QueueReader
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.tables import light_offsets
from engine.layout import is_folder_name
from engine.releases import of
from engine.rules.dispatch_rules import light_entries, names_light_queues
from engine.rules.system_names import LMQ, is_system_topic
from engine.store.recovery.plan import DispatchPass, Loss, QueueLoss, QueuePlan, RecoveryPlan

MOST_NUMBERED = 1 << 10
"""Queues of a topic that are looked up by columns."""
_NAMES_LIGHT = properties.INNER_MULTI_DISPATCH.encode()
_MOST_DIGITS = 7
Chosen = Callable[[str, int, NDArray[np.intp]], NDArray[np.intp]]
Progress = Callable[[int, int], None]


class Cancel(Protocol):
    """What can be asked whether to stop; ``threading.Event`` is one."""

    def is_set(self) -> bool:
        """Whether to stop."""


@dataclass(frozen=True, slots=True)
class Look:
    """How a log is looked through: ``progress`` gets bytes done and in all, ``cancel`` is asked on the way."""

    progress: Progress | None = None
    cancel: Cancel | None = None

    @property
    def stopped(self) -> bool:
        return self.cancel is not None and self.cancel.is_set()


def undispatched(
    store: StoreSnapshot, plans: Sequence[RecoveryPlan], look: Look | None = None, since: int | None = None
) -> list[Loss]:
    """For each plan the units that stay in the log and that neither its start nor a later one brings into their queues.

    One walk for all, of the whole log from its newest file back: one that is stopped says from where on it has seen
    everything. ``since`` is an offset before which there are no such units, as somebody knows who has read it.
    """
    tallies = [_OfPlan(store, plan) for plan in plans]
    first = max(min((plan.log_min for plan in plans), default=0), 0)
    begin, stop = max(first, since or 0), max((one.stop for one in tallies), default=0)
    seen = _look_back(store, tallies, begin, stop, look or Look())
    return [one.tally.loss(first if seen <= begin else seen) for one in tallies]


def _look_back(store: StoreSnapshot, tallies: Sequence[_OfPlan], begin: int, stop: int, look: Look) -> int:
    """Feed the tallies with [begin, stop), the newest file first; gives the offset from which on all was seen."""
    sequence = store.log.sequence
    files = [file for file in sequence.files if file.start_offset < stop and sequence.behind(file) > begin]
    done, seen = 0, stop
    topics = TopicTable()
    for file in reversed(files):
        start, end = max(begin, file.start_offset), min(stop, sequence.behind(file))
        for columns in _blocks(store, start, end, topics):
            for one in tallies:
                one.take(columns, topics)
            if look.progress is not None:
                look.progress(done + int(columns.offset[columns.count - 1]) - start, stop - begin)
            if look.stopped:
                return seen
        done += end - start
        seen = start
    return begin


def of_plan(store: StoreSnapshot, plan: RecoveryPlan, look: Look | None = None) -> RecoveryPlan:
    """``plan`` with both, where they can be told (:func:`can_tell`)."""
    if not can_tell(store, plan):
        return plan
    (left,) = undispatched(store, [plan], look)
    return replace(plan, undispatched=left, dropped=dropped(store, plan))


def can_tell(store: StoreSnapshot, plan: RecoveryPlan) -> bool:
    """Whether losses can be told: a DLedger log and RocksDB queues are not read here."""
    return plan.start_file is not None and not foreign.unknown_to_plans(store)


def dropped(store: StoreSnapshot, plan: RecoveryPlan) -> Loss:
    """Units that can be read behind the end that the start gives the log; those of deleted topics are nobody's loss."""
    meant = meant_topics(store)
    tally = _Tally()
    topics = TopicTable()
    light = _has_light_queues(store, plan)
    for columns in _blocks(store, plan.end_offset, plan.log_max, topics):
        tally.add(columns, topics, _rows(columns), lambda topic, _, rows: rows if meant(topic) else rows[:0])
        for entry in _light_entries(columns, topics, _rows(columns)) if light else ():
            tally.add_light(columns, entry)
    return tally.loss(plan.end_offset)


def meant_topics(store: StoreSnapshot) -> Callable[[str], bool]:
    """Says of a topic whether it was not deleted."""
    known = topics_known(store)
    names = known.listed | known.folders
    return lambda topic: not known.told or topic in names or is_system_topic(topic) or topic.startswith(LMQ)


def _blocks(store: StoreSnapshot, begin: int, stop: int, topics: TopicTable) -> Iterable[UnitColumns]:
    for item in scan_log(store.log, begin, stop, crc=False, topics=topics) if begin < stop else ():
        if isinstance(item, UnitColumns) and item.count:
            yield item


def _rows(columns: UnitColumns) -> NDArray[np.intp]:
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
    """Whether units have entries in further queues: their folders stand there, or groups that read them."""
    return any(queue.topic.startswith(LMQ) for queue in plan.queues) or light_offsets(store) > 0


def _light_entries(columns: UnitColumns, topics: TopicTable, rows: NDArray[np.intp]) -> Iterator[_LightEntry]:
    """What units of these rows ask for in further queues."""
    if not len(rows) or not names_light_queues(columns, rows):
        return
    for row in rows.tolist():
        if _NAMES_LIGHT not in columns.raw_properties(row):
            continue
        found = properties.decode(columns.raw_properties(row))
        topic, number = topics.names[int(columns.topic_id[row])], int(columns.queue_id[row])
        for name, queue_id, offset in light_entries(found, topic, number):
            if is_folder_name(name):
                yield _LightEntry(row, name, queue_id, offset)


class _OfPlan:
    """What one plan leaves out, as the blocks go by."""

    def __init__(self, store: StoreSnapshot, plan: RecoveryPlan) -> None:
        self._spans = [span for span in (plan.first_pass, plan.second_pass) if span is not None]
        ends = (s.start for s in self._spans if s.end >= plan.end_offset and s.after < s.start)
        self.stop = min(ends, default=plan.end_offset)
        """Where the last span begins in which everything is dispatched."""
        self._known = _Known(store, plan)
        self._light = _has_light_queues(store, plan)
        self.tally = _Tally()

    def take(self, columns: UnitColumns, topics: TopicTable) -> None:
        """The units of a block, those before :attr:`stop`."""
        rows = _rows(columns)
        rows = rows[columns.offset[rows] < self.stop]
        doubtful = rows[self._known.doubtful(columns, topics, rows)]
        self.tally.add(columns, topics, doubtful, partial(self._known.lost, columns, self._spans))
        for entry in _light_entries(columns, topics, rows) if self._light else ():
            one = np.array([entry.row], np.intp)
            if len(self._known.lost(columns, self._spans, entry.name, entry.queue_id, one, entry.offset)):
                self.tally.add_light(columns, entry)


class _Known:
    """What each queue knows before the start dispatches anything, and which topics are meant to have queues."""

    def __init__(self, store: StoreSnapshot, plan: RecoveryPlan) -> None:
        self._plans: dict[tuple[str, int], QueuePlan] = {(q.topic, q.queue_id): q for q in plan.queues}
        self._means = meant_topics(store)
        self._firsts = {
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
        self._like = plan.like
        self._queues: dict[str, list[int]] = {}
        for topic, number in self._plans:
            if 0 <= number < MOST_NUMBERED:
                self._queues.setdefault(topic, []).append(number)
        self._width = 1 + max((max(numbers) for numbers in self._queues.values()), default=0)
        self._listed = np.zeros(0, bool)
        self._ends, self._begins = np.zeros((2, 0, self._width), np.int64)

    def doubtful(self, columns: UnitColumns, topics: TopicTable, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Those of the rows that :meth:`lost` has to be asked about, by columns: the others lie before the end that
        their queue knows, and behind its beginning, or are of a topic that was deleted. ``topics`` is always the same.
        """
        self._list(topics.names[len(self._listed) :])
        topic, number = columns.topic_id[rows], columns.queue_id[rows]
        inside = (number >= 0) & (number < self._width)
        number = np.where(inside, number, 0)
        ends = columns.physical_offset[rows] + columns.size[rows]
        before = columns.queue_offset[rows] < self._begins[topic, number]
        known = inside & (ends <= self._ends[topic, number]) & ~before
        return self._listed[topic] & ~known

    def _list(self, names: Sequence[str]) -> None:
        """Rows of the tables for further topics; what is not known ends at −1."""
        ends, begins = np.full((len(names), self._width), -1, np.int64), np.zeros((len(names), self._width), np.int64)
        for row, topic in enumerate(names):
            for number in self._queues.get(topic, ()):
                end = _end_known(self._plans[topic, number])
                gaps = (topic, number) in self._gaps
                ends[row, number] = end if end is not None and not gaps else -1
                begins[row, number] = self._firsts.get((topic, number), 0)
        listed = [is_folder_name(topic) and self._means(topic) for topic in names]
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
        """Those of the rows, all of one queue, that no queue will know. In a light queue the unit has the ``offset``
        there.
        """
        found = self._plans.get((topic, queue_id))
        if not of(self._like).batch_queues and topic in self._batch:
            return rows[:0]  # 4.9 does not know such queues
        physical = columns.physical_offset[rows]
        batch = found is not None and found.kind == "batch"
        ends = physical if batch else physical + columns.size[rows]
        taken = np.zeros(len(rows), bool)
        for number, span in enumerate(spans):
            inside = (columns.offset[rows] >= span.start) & (columns.offset[rows] < span.end)
            inside &= physical > span.after
            if number == 0 and found is not None and _is_cut_by_the_log(found) and found.found is not None:
                inside &= ends > found.found.max_physic  # the queue takes none before what its wrong entry points at
            taken |= inside
        end = None if found is None else _end_known(found)
        if end is None:
            return rows[~taken]
        missing = ends > end
        if not batch:
            numbers = columns.queue_offset[rows] if offset is None else np.array([offset], np.int64)
            missing |= numbers < self._firsts.get((topic, queue_id), 0)
        for before, behind in self._gaps.get((topic, queue_id), ()):
            missing |= (physical > before) & (physical < behind)
        return rows[missing & ~taken]


def _is_cut_by_the_log(queue: QueuePlan) -> bool:
    """Whether the cut by the end of the log takes entries of a simple queue: one of them points behind that end."""
    found, cut = queue.found, queue.cut
    if found is None or cut is None or queue.kind != "simple" or cut.last_file is None:
        return False
    return cut.end_bytes < found.end_bytes


def _end_known(queue: QueuePlan) -> int | None:
    """Offset in the log behind the last unit that the queue knows and keeps; None where it is made by dispatch."""
    state = queue.cut if _is_cut_by_the_log(queue) else queue.found
    return state.max_physic if state is not None else None


def _gaps(reader: QueueReader) -> list[tuple[int, int]]:
    """Where files of a queue are missing between others: the offsets in the log of the entries around each gap."""
    kind = CQ_UNIT if reader.kind == "simple" else BATCH_CQ_UNIT
    found = []
    for one, after in pairwise(reader.files):
        if one.end_offset < after.start_offset:
            ends = one.read(one.size - kind.itemsize, kind.itemsize), after.read(0, kind.itemsize)
            if all(len(data) == kind.itemsize for data in ends):
                before, behind = (int(np.frombuffer(data, kind)["physical_offset"][0]) for data in ends)
                found.append((before, behind))
    return found


class _Tally:
    """Messages by queue as the blocks go by."""

    def __init__(self) -> None:
        self._queues: dict[tuple[str, int], QueueLoss] = {}
        self._newest: dict[tuple[str, int], int] = {}
        self._first = self._last = -1

    def add(self, columns: UnitColumns, topics: TopicTable, rows: NDArray[np.intp], chosen: Chosen) -> None:
        """Those of the rows of a block that ``chosen`` picks from those of each queue."""
        keys = columns.topic_id[rows].astype(np.int64) << 32 | (columns.queue_id[rows].astype(np.int64) & 0xFFFFFFFF)
        for key in np.unique(keys).tolist():
            topic, queue_id = topics.names[key >> 32], i32(key & 0xFFFFFFFF)
            if is_folder_name(topic):
                found = chosen(topic, queue_id, rows[keys == key])
                if len(found):
                    self._count(topic, queue_id, columns, found)

    def add_light(self, columns: UnitColumns, entry: _LightEntry) -> None:
        """A unit that a light queue lacks."""
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
        sizes = _batch_sizes(columns, rows)
        offsets = columns.queue_offset[rows] if offsets is None else offsets
        times = columns.store_timestamp[rows]
        first, last = int(columns.offset[rows[0]]), int(columns.offset[rows[-1]])
        low, high = int(offsets.min()), int((offsets + sizes - 1).max())
        begin, end = int(times[0]), int(times[-1])
        seen = self._queues.get((topic, queue_id))
        if seen is None:
            seen = self._queues[topic, queue_id] = QueueLoss(topic, queue_id, 0, low, high, first, begin, end)
            self._newest[topic, queue_id] = last
        seen.messages += int(sizes.sum())
        seen.units += len(rows)
        seen.first, seen.last = min(seen.first, low), max(seen.last, high)
        if first < seen.unit:
            seen.unit, seen.first_time = first, begin
        if last > self._newest[topic, queue_id]:
            self._newest[topic, queue_id], seen.last_time = last, end
        self._first = first if self._first < 0 else min(self._first, first)
        self._last = max(self._last, last)

    def loss(self, looked_from: int) -> Loss:
        queues = tuple(found for _, found in sorted(self._queues.items()))
        return Loss(queues, looked_from, self._first, self._last)


def _batch_sizes(columns: UnitColumns, rows: NDArray[np.intp]) -> NDArray[np.int64]:
    """How many messages each unit holds: one, or as many as a batch unit says."""
    sizes = np.ones(len(rows), np.int64)
    for at in np.flatnonzero(columns.sys_flag[rows] & INNER_BATCH).tolist():
        found = properties.decode(columns.raw_properties(int(rows[at])))
        told = found.get(properties.INNER_NUM, "")
        if properties.INNER_BASE in found and told.isascii() and told.isdigit() and len(told) < _MOST_DIGITS:
            sizes[at] = max(int(told), 1)
    return sizes
