"""The queues' part of a check: every unit has its entry, every entry its unit (docs/formats/consume-queue.md).

The log goes by in blocks; each queue keeps the number of the entry that comes next, so nothing grows with the number of
units. What does not fit is kept as a few suspects per queue and judged at the end, when the broken places are known.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.codec import properties as props
from engine.codec.columns import UnitColumns
from engine.codec.java import i32, split
from engine.codec.message import COMMIT, SCHEDULE_TOPIC, TRANSACTION_MASK
from engine.codec.topic_table import TopicTable
from engine.errors import CannotRead
from engine.inspection.check.entries import NOWHERE, QueueWalk, Run
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.tables import light_offsets
from engine.rules import queue_rules
from engine.rules.proofs import Proof
from engine.rules.queue_rules import Entries, Side
from engine.store.recovery.plan import RecoveryPlan

_INNER = re.compile(rb"INNER_")
_LMQ = "%LMQ%"
MOST_HOMELESS = 4096
FAR = 1 << 20
AHEAD = 256


@dataclass(slots=True)
class Homeless:
    """Units of a queue that has no folder."""

    units: int
    first: int
    last: int


class QueueCheck:
    """Fed with blocks of units; after :meth:`drain` :attr:`walks` and :attr:`homeless` tell what did not fit."""

    def __init__(self, store: StoreSnapshot, topics: TopicTable) -> None:
        self._topics = topics
        self.walks: dict[tuple[str, int], QueueWalk] = {}
        self._unread: set[tuple[str, int]] = set()
        """Queues that could not be read: nothing is said of them and of the units that belong there."""
        for topic, queues in store.topics().items():
            for number, reader in queues.items():
                try:
                    self.walks[topic, number] = QueueWalk(reader)
                except CannotRead:
                    self._unread.add((topic, number))
        self.homeless: dict[tuple[str, int], Homeless] = {}
        self.last_matched = -1
        self._lacks = NOWHERE
        self.light_queues = any(topic.startswith(_LMQ) for topic, _ in self.walks)
        with contextlib.suppress(CannotRead):
            self.light_queues |= light_offsets(store) > 0
        # Where entries are searched for, what is found depends on how much of the log is looked at together.
        self._numbered = not self.light_queues and all(walk.reader.kind == "simple" for walk in self.walks.values())
        self._gathered = GatheredRows()

    def block(self, columns: UnitColumns, good: NDArray[np.bool_]) -> None:
        """One block of units; ``good`` says which stand where they say they stand."""
        rows = len(good)
        kind = columns.sys_flag[:rows] & TRANSACTION_MASK
        listed = ((kind == 0) | (kind == COMMIT)) & (columns.topic_id[:rows] >= 0)
        odd = np.flatnonzero(listed & ~good)
        if len(odd):
            self._lacks = min(self._lacks, int(columns.offset[odd[0]]))
        wanted = np.flatnonzero(good & listed)
        if not len(wanted):
            return
        if not self._gathered.has_room(len(wanted)):
            self.drain()
        if not self._gathered.has_room(len(wanted)):
            self._gathered = GatheredRows(len(wanted))
        self._gathered.add(columns, wanted)
        if self.light_queues:
            self.drain()
            self._light_rows(columns, rows, good)

    def accepts(self, proof: Proof) -> bool:
        """Whether a stretch that was proven can be passed over here: each queue goes on where it stands, and only one
        file holds each of its entries.
        """
        if not self._numbered:
            return False
        self.drain()
        return all(
            (walk := self.walks.get((run.topic, run.queue_id))) is not None
            and walk.orderly
            and walk.held is None
            and walk.next in (None, run.first)
            and walk.first <= run.first
            and run.first + run.units <= walk.end
            for run in proof.runs
        )

    def pass_over(self, proof: Proof) -> None:
        """As if the blocks of the stretch had gone by."""
        for run in proof.runs:
            walk = self.walks[run.topic, run.queue_id]
            if walk.next is None:
                walk.skip(walk.first, run.first)
            walk.units += run.units
            walk.next = run.first + run.units
            walk.matched = max(walk.matched, run.last_physical)
            self.last_matched = max(self.last_matched, run.last_physical)

    def drain(self) -> None:
        """Look at the rows that are gathered: queue by queue, each in the order of the log."""
        gathered = self._gathered
        rows, gathered.rows = gathered.rows, 0
        if not rows:
            return
        keys = _keys(gathered.topic_id[:rows], gathered.queue_id[:rows])
        order = np.argsort(keys, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)
        for group in sorted(groups, key=lambda rows: int(rows[0])):
            self._group(gathered, group)

    def finish(self) -> None:
        """The log is over."""
        self.drain()
        for key, walk in list(self.walks.items()):
            if walk.held is not None:
                with self._going_on(key):
                    self._run(walk, None)

    @contextlib.contextmanager
    def _going_on(self, key: tuple[str, int]) -> Iterator[None]:
        """A queue that cannot be read any further is left out, the others go on."""
        try:
            yield
        except CannotRead:
            self._unread.add(key)
            self.walks.pop(key, None)

    def _group(self, rows: GatheredRows, group: NDArray[np.intp]) -> None:
        first = int(group[0])
        topic = self._topics.names[int(rows.topic_id[first])]
        key = (topic, i32(int(rows.queue_id[first])))
        walk = self.walks.get(key)
        if key in self._unread:
            return
        if walk is None:
            self._without_queue(key, len(group), int(rows.offset[first]), int(rows.offset[group[-1]]))
            return
        run = Run(
            rows.queue_offset[group],
            rows.offset[group],
            rows.size[group].astype(np.int64),
            rows.tags_code[group],
            rows.store_timestamp[group],
        )
        with self._going_on(key):
            if walk.reader.kind == "batch":
                self._ordered_run(walk, run)
            else:
                self._run(walk, run)

    def _without_queue(self, key: tuple[str, int], units: int, first: int, last: int) -> None:
        home = self.homeless.get(key)
        if home is None:
            if len(self.homeless) < MOST_HOMELESS:
                self.homeless[key] = Homeless(units, first, last)
            else:
                self._lacks = min(self._lacks, first)
        else:
            home.units += units
            home.last = last

    def lacking(self, means: Callable[[str], bool], plan: RecoveryPlan) -> int:
        """An offset before which every unit is in its queue as ``plan`` finds that, but for units without a queue of
        topics that ``means`` does not know; :data:`NOWHERE` where all are.
        """
        least = [self._lacks]
        least += [walk.lacks for walk in self.walks.values()]
        least += [home.first for (topic, _), home in self.homeless.items() if means(topic)]
        for queue in plan.queues:
            walk = self.walks.get((queue.topic, queue.queue_id))
            known = queue.found.max_physic if queue.found is not None else -1
            if walk is not None and known <= walk.matched >= 0:
                least.append(known)
        return min(least)

    # -- simple queues

    def _run(self, walk: QueueWalk, more: Run | None) -> None:
        """The next units of a queue; None where there are no more, and one that was held back waits no longer."""
        held, walk.held = walk.held, None
        walk.units += len(more) if more is not None else 0
        run = _joined(held, more)
        if walk.next is None:
            start = int(run.number[0])
            near = walk.first <= start <= walk.end
            walk.next = start if near or start < walk.first else walk.first
            if start > walk.first:
                walk.skip(walk.first, min(walk.next, walk.end))
        at = 0
        while at < len(run):
            steps = run.number[at:] - walk.next - np.arange(len(run) - at)
            off = np.flatnonzero(steps)
            straight = int(off[0]) if len(off) else len(run) - at
            if straight:
                self._straight(walk, run.part(at, at + straight))
                at += straight
            if at < len(run):
                if at + 1 == len(run) and more is not None and self._is_open(walk, run.unit(at), int(run.number[at])):
                    walk.held = run.part(at, None)
                    return
                self._jump(walk, run, at)
                at += 1

    def _is_open(self, walk: QueueWalk, unit: Side, number: int) -> bool:
        """Whether the number of the unit behind it is needed to judge this one, see :meth:`_jump`."""
        assert walk.next is not None
        if not walk.next < number < walk.next + FAR or number == walk.end:
            return False
        return all(
            not walk.first <= place < walk.end or walk.entry(place)[:2] != unit[:2] for place in (number, walk.next)
        )

    def _straight(self, walk: QueueWalk, run: Run) -> None:
        """Units whose numbers follow each other and go on where the queue stands."""
        first = int(run.number[0])
        walk.next = first + len(run)
        low, high = max(walk.first - first, 0), min(walk.end - first, len(run))
        if low > 0:
            walk.first_before = walk.first_before if walk.before else int(run.physical[0])
            walk.before += min(low, len(run))
            walk.lacks = min(walk.lacks, int(run.physical[0]))
        if high < len(run):
            start = max(high, 0)
            walk.first_behind = walk.first_behind if walk.behind else int(run.physical[start])
            walk.behind += len(run) - start
            walk.lacks = min(walk.lacks, int(run.physical[start]))
        if low < high:
            inside = run.part(low, high)
            self._compare(walk, inside, walk.entries(first + low, high - low))

    def _compare(self, walk: QueueWalk, run: Run, entries: Entries) -> None:
        wrong = queue_rules.differing(entries, run.physical, run.size, run.tags)
        walk.matched = max(walk.matched, int(run.physical[-1]))
        right = np.flatnonzero(~wrong)
        if len(right):
            self.last_matched = max(self.last_matched, int(run.physical[right[-1]]))
        for at in np.flatnonzero(wrong):
            entry = Side(int(entries.physical[at]), int(entries.size[at]), int(entries.tags[at]))
            unit = run.unit(int(at))
            delayed = walk.reader.topic == SCHEDULE_TOPIC and entry[:2] == unit[:2]
            if delayed and queue_rules.plausible_delay(entry.tags, int(run.stored[at])):
                continue
            number = int(run.number[at])
            before = walk.entry(number - 1) if len(walk.suspects) < 4 and number > walk.first else None
            walk.suspect(number, unit, entry, queue_rules.verdict(entry, unit, before))

    def _jump(self, walk: QueueWalk, run: Run, at: int) -> None:
        """A unit whose number is not the next: a gap in the log, or a number that is wrong in the unit."""
        number, unit = int(run.number[at]), run.unit(at)
        assert walk.next is not None
        here = walk.entry(number) if walk.first <= number < walk.end else None
        if here is not None and here[:2] == unit[:2]:
            if number >= walk.next:
                walk.skip(walk.next, number)
            else:
                walk.begin_anew(number, unit.physical)
            walk.next = number + 1
            walk.matched = max(walk.matched, unit.physical)
            self.last_matched = max(self.last_matched, unit.physical)
            return
        if walk.first <= walk.next < walk.end and walk.entry(walk.next)[:2] == unit[:2]:
            walk.suspect(walk.next, unit, Side(unit.physical, unit.size, number), "unit")
            walk.next += 1
            return
        follows = at + 1 < len(run) and int(run.number[at + 1]) == number + 1
        if number > walk.next and ((number - walk.next < FAR and follows) or number == walk.end):
            walk.skip(walk.next, min(number, walk.end))
            walk.next = number
            self._straight(walk, run.part(at, at + 1))
            return
        entry = here if here is not None else Side(-1, 0, 0)
        walk.suspect(number, unit, entry, queue_rules.verdict(entry, unit, None))

    # -- queues whose entries do not stand at their units' numbers: batch queues, light queues

    def _ordered_run(self, walk: QueueWalk, run: Run) -> None:
        """Entries are found by where they point; what lies between two of them had no unit."""
        walk.units += len(run)
        if walk.next is None:
            walk.next = self._first_batch(walk, int(run.physical[0]))
            walk.skip(walk.first, walk.next)
        rows = walk.raw(walk.next, max(min(walk.end - walk.next, len(run) + AHEAD), 0))
        physical, sizes = rows["physical_offset"].astype(np.int64), rows["size"].astype(np.int64)
        tags = rows["tags_code"].astype(np.int64)
        batches = _Batches(rows) if walk.reader.kind == "batch" else None
        order = np.argsort(physical, kind="stable")
        at = np.searchsorted(physical[order], run.physical)
        there = at < len(order)
        there[there] = physical[order[at[there]]] == run.physical[there]
        used = 0
        for number in range(len(run)):
            unit = run.unit(number)
            if there[number]:
                found = int(order[at[number]])
                entry = Side(unit.physical, int(sizes[found]), int(tags[found]))
                if entry != unit:
                    walk.suspect(walk.next + found, unit, entry, queue_rules.verdict(entry, unit, None))
                elif batches is not None and batches.base(found) != int(run.number[number]):
                    verdict: queue_rules.Verdict = "unit" if batches.continues(found) else "offset"
                    told = Side(unit.physical, unit.size, int(run.number[number]))
                    walk.suspect(walk.next + found, unit, told, verdict)
                walk.skip(walk.next + used, walk.next + found)
                used = max(used, found + 1)
                walk.matched = max(walk.matched, unit.physical)
                self.last_matched = max(self.last_matched, unit.physical)
            elif used < len(rows):
                entry = Side(int(physical[used]), int(sizes[used]), unit.tags)
                before = walk.entry(walk.next + used - 1) if walk.next + used > walk.first else None
                walk.suspect(walk.next + used, unit, entry, queue_rules.verdict(entry, unit, before))
                used += 1
            else:
                walk.first_behind = walk.first_behind if walk.behind else unit.physical
                walk.behind += 1
                walk.lacks = min(walk.lacks, unit.physical)
        walk.next += used

    def _first_batch(self, walk: QueueWalk, physical: int) -> int:
        """Number of the entry of the queue's first unit in the log: those in front of it have expired."""
        low, high = walk.first, walk.end
        while low < high:
            middle = (low + high) // 2
            if 0 <= int(walk.raw(middle, 1)["physical_offset"][0]) < physical:
                low = middle + 1
            else:
                high = middle
        return low

    # -- light queues: further entries of a unit (docs/formats/consume-queue.md#light-queues)

    def _light_rows(self, columns: UnitColumns, rows: int, good: NDArray[np.bool_]) -> None:
        if not self.light_queues or not rows:
            return
        first = int(columns.offset[0]) - columns.base
        last = int(columns.offset[rows - 1]) + int(columns.size[rows - 1]) - columns.base
        seen = -1
        for hit in _INNER.finditer(columns.buffer.data[first:last]):
            row = int(np.searchsorted(columns.offset[:rows], columns.base + first + hit.start(), "right")) - 1
            if row == seen or not good[row]:
                continue
            seen = row
            self._light_row(columns, row)

    def _light_row(self, columns: UnitColumns, row: int) -> None:
        found = props.decode(columns.raw_properties(row))
        names = split(found.get(props.INNER_MULTI_DISPATCH, ""), ",")
        numbers = split(found.get(props.INNER_MULTI_QUEUE_OFFSET, ""), ",")
        if len(names) != len(numbers):
            return
        for name, number in zip(names, numbers, strict=True):
            key = (name, 0 if name.startswith(_LMQ) else int(columns.queue_id[row]))
            walk = self.walks.get(key)
            if not number.strip().isdigit() or key in self._unread:
                continue
            if walk is None:
                if name.startswith(_LMQ):
                    offset = int(columns.offset[row])
                    self._without_queue(key, 1, offset, offset)
                continue
            one = slice(row, row + 1)
            run = Run(
                np.array([int(number)], np.int64),
                columns.offset[one],
                columns.size[one].astype(np.int64),
                columns.tags_code[one],
                columns.store_timestamp[one],
            )
            with self._going_on(key):
                self._ordered_run(walk, run)


def _joined(held: Run | None, more: Run | None) -> Run:
    runs = [run for run in (held, more) if run is not None]
    if len(runs) == 1:
        return runs[0]
    columns = zip(*((run.number, run.physical, run.size, run.tags, run.stored) for run in runs), strict=True)
    return Run(*(np.concatenate(column) for column in columns))


class _Batches:
    """The queue offsets that a run of batch entries holds."""

    def __init__(self, rows: np.ndarray) -> None:
        self._base = rows["msg_base_offset"]
        self._size = rows["batch_size"]

    def base(self, at: int) -> int:
        return int(self._base[at])

    def continues(self, at: int) -> bool:
        """The entry begins where the one before it ends, or ends where the next begins: its own offset is right."""
        before = at > 0 and self._base[at - 1] + self._size[at - 1] == self._base[at]
        after = at + 1 < len(self._base) and self._base[at] + self._size[at] == self._base[at + 1]
        return bool(before or after)


def _keys(topics: NDArray[np.int32], queues: NDArray[np.int32]) -> NDArray[np.integer[Any]]:
    """One number for topic and queue; of 16 bits where they fit, which sort in a fraction of the time."""
    if int(topics.max()) < 256 and int(queues.max()) < 256 and int(queues.min()) >= 0:
        return (topics.astype(np.uint16) << 8) | queues.astype(np.uint16)
    return (topics.astype(np.int64) << 32) | (queues.astype(np.int64) & 0xFFFFFFFF)


ROWS = 1 << 16


class GatheredRows:
    """Copies of those columns that queues are compared with; :attr:`rows` of them are filled, in the log's order."""

    def __init__(self, room: int = ROWS) -> None:
        self.rows = 0
        self.topic_id = np.empty(room, np.int32)
        self.queue_id = np.empty(room, np.int32)
        self.queue_offset = np.empty(room, np.int64)
        self.offset = np.empty(room, np.int64)
        self.size = np.empty(room, np.int32)
        self.tags_code = np.empty(room, np.int64)
        self.store_timestamp = np.empty(room, np.int64)

    def has_room(self, rows: int) -> bool:
        """Whether so many rows more can be added."""
        return self.rows + rows <= len(self.offset)

    def add(self, columns: UnitColumns, wanted: NDArray[np.intp]) -> None:
        """Copy the ``wanted`` rows of a block."""
        place = slice(self.rows, self.rows + len(wanted))
        self.topic_id[place] = columns.topic_id[wanted]
        self.queue_id[place] = columns.queue_id[wanted]
        self.queue_offset[place] = columns.queue_offset[wanted]
        self.offset[place] = columns.offset[wanted]
        self.size[place] = columns.size[wanted]
        self.tags_code[place] = columns.tags_code[wanted]
        self.store_timestamp[place] = columns.store_timestamp[wanted]
        self.rows += len(wanted)
