"""Checks the queues: every unit has its entry, every entry its unit (docs/formats/consume-queue.md).

The log is walked in blocks of units. Mismatches are judged at the end, when the broken places of the log are known.
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
from engine.codec.message import COMMIT, TRANSACTION_MASK
from engine.codec.topic_table import TopicTable
from engine.errors import CannotRead
from engine.inspection.check.queue_walk import NOWHERE, QueueWalk, Run, walk_of
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.tables import fills_light_queues
from engine.rules import queue_rules
from engine.rules.proofs import Proof
from engine.rules.queue_rules import ComparedEntry, Entries
from engine.store.recovery.plan import RecoveryPlan
from engine.system_names import LMQ_PREFIX, SCHEDULE_TOPIC

_INNER = re.compile(rb"INNER_")
MAX_UNDISPATCHED = 4096
MAX_NUMBER_GAP = 1 << 20
LOOKAHEAD_ENTRIES = 256


@dataclass(slots=True)
class QueueWithoutFolder:
    """Units of a queue that has no folder."""

    units: int
    first_offset: int
    last_offset: int


class QueueCheck:
    """Receives blocks of units; after :meth:`finish`, :attr:`walks` and :attr:`queues_without_folder` are complete."""

    def __init__(self, store: StoreSnapshot, topics: TopicTable) -> None:
        self._topics = topics
        self.walks: dict[tuple[str, int], QueueWalk] = {}
        self._unread: set[tuple[str, int]] = set()
        """Queues that could not be read: neither they nor their units are judged."""
        for topic, queues in store.queues.by_topic().items():
            for number, reader in queues.items():
                try:
                    self.walks[topic, number] = walk_of(reader)
                except CannotRead:
                    self._unread.add((topic, number))
        self.queues_without_folder: dict[tuple[str, int], QueueWithoutFolder] = {}
        self.last_matched = -1
        self._first_lacking_offset = NOWHERE
        self.light_queues = any(topic.startswith(LMQ_PREFIX) for topic, _ in self.walks)
        with contextlib.suppress(CannotRead):
            self.light_queues |= fills_light_queues(store)
        # If entries are searched for, the result depends on the length of the log range that is searched together.
        self._are_entries_numbered = not self.light_queues and all(
            walk.reader.kind == "simple" for walk in self.walks.values()
        )
        self._gathered = GatheredRows()

    def block(self, columns: UnitColumns, is_at_own_offset: NDArray[np.bool_]) -> None:
        """Check a block of units; ``is_at_own_offset`` marks those whose PHYSICALOFFSET is their own offset."""
        rows = len(is_at_own_offset)
        kind = columns.sys_flag[:rows] & TRANSACTION_MASK
        is_queued = ((kind == 0) | (kind == COMMIT)) & (columns.topic_id[:rows] >= 0)
        moved_rows = np.flatnonzero(is_queued & ~is_at_own_offset)
        if len(moved_rows):
            self._first_lacking_offset = min(self._first_lacking_offset, int(columns.offset[moved_rows[0]]))
        queued_rows = np.flatnonzero(is_at_own_offset & is_queued)
        if not len(queued_rows):
            return
        if not self._gathered.has_room(len(queued_rows)):
            self.drain()
        if not self._gathered.has_room(len(queued_rows)):
            self._gathered = GatheredRows(len(queued_rows))
        self._gathered.add(columns, queued_rows)
        if self.light_queues:
            self.drain()
            self._check_light_rows(columns, rows, is_at_own_offset)

    def accepts(self, proof: Proof) -> bool:
        """Return True if a proven range can be skipped here: each queue continues at its position, and only one file
        holds each of its entries.
        """
        if not self._are_entries_numbered:
            return False
        self.drain()
        return all(
            (walk := self.walks.get((run.topic, run.queue_id))) is not None
            and walk.is_orderly
            and walk.held_back is None
            and walk.next_number in (None, run.first_offset)
            and walk.first_number <= run.first_offset
            and run.first_offset + run.units <= walk.end_number
            for run in proof.runs
        )

    def skip(self, proof: Proof) -> None:
        """Account for a proven range as if its blocks had been walked."""
        for run in proof.runs:
            walk = self.walks[run.topic, run.queue_id]
            if walk.next_number is None:
                walk.skip(walk.first_number, run.first_offset)
            walk.units += run.units
            walk.next_number = run.first_offset + run.units
            walk.last_compared_offset = max(walk.last_compared_offset, run.last_physical)
            self.last_matched = max(self.last_matched, run.last_physical)

    def drain(self) -> None:
        """Check the gathered rows: queue by queue, each in the order of the log."""
        gathered = self._gathered
        rows, gathered.rows = gathered.rows, 0
        if not rows:
            return
        keys = _keys(gathered.topic_id[:rows], gathered.queue_id[:rows])
        order = np.argsort(keys, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)
        for group in sorted(groups, key=lambda rows: int(rows[0])):
            self._check_group(gathered, group)

    def finish(self) -> None:
        """Check what is left after the last block."""
        self.drain()
        for key, walk in list(self.walks.items()):
            if walk.held_back is not None:
                with self._unless_unread(key):
                    self._check_run(walk, None)

    @contextlib.contextmanager
    def _unless_unread(self, key: tuple[str, int]) -> Iterator[None]:
        """Leave out a queue that cannot be read any further; the others continue."""
        try:
            yield
        except CannotRead:
            self._unread.add(key)
            self.walks.pop(key, None)

    def _check_group(self, rows: GatheredRows, group: NDArray[np.intp]) -> None:
        first_row = int(group[0])
        topic = self._topics.names[int(rows.topic_id[first_row])]
        key = (topic, i32(int(rows.queue_id[first_row])))
        walk = self.walks.get(key)
        if key in self._unread:
            return
        if walk is None:
            self._note_missing_queue(key, len(group), int(rows.offset[first_row]), int(rows.offset[group[-1]]))
            return
        run = Run(
            rows.queue_offset[group],
            rows.offset[group],
            rows.size[group].astype(np.int64),
            rows.tags_code[group],
            rows.store_timestamp[group],
        )
        with self._unless_unread(key):
            if walk.reader.kind == "batch":
                self._check_ordered_run(walk, run)
            else:
                self._check_run(walk, run)

    def _note_missing_queue(self, key: tuple[str, int], units: int, first_offset: int, last_offset: int) -> None:
        missing_queue = self.queues_without_folder.get(key)
        if missing_queue is None:
            if len(self.queues_without_folder) < MAX_UNDISPATCHED:
                self.queues_without_folder[key] = QueueWithoutFolder(units, first_offset, last_offset)
            else:
                self._first_lacking_offset = min(self._first_lacking_offset, first_offset)
        else:
            missing_queue.units += units
            missing_queue.last_offset = last_offset

    def lacking(self, is_topic: Callable[[str], bool], plan: RecoveryPlan) -> int:
        """Return an offset before which every unit is in its queue, as ``plan`` reads the queue; :data:`NOWHERE` if all
        units are.

        Units of a missing queue count only if ``is_topic`` returns True for their topic.
        """
        offsets = [self._first_lacking_offset]
        offsets += [walk.first_lacking_offset for walk in self.walks.values()]
        offsets += [queue.first_offset for (topic, _), queue in self.queues_without_folder.items() if is_topic(topic)]
        for queue in plan.queues:
            walk = self.walks.get((queue.topic, queue.queue_id))
            known_end = queue.current_state.max_physic if queue.current_state is not None else -1
            if walk is not None and known_end <= walk.last_compared_offset >= 0:
                offsets.append(known_end)
            if walk is not None and walk.in_rocksdb and queue.cut is not None:
                offsets.append(max(queue.cut.max_physic, 0))  # a start may cut more than what is behind the log
        return min(offsets)

    # -- simple queues

    def _check_run(self, walk: QueueWalk, next_run: Run | None) -> None:
        """Check the next units of a queue. None means the end: a unit that was held back is checked now."""
        held_back, walk.held_back = walk.held_back, None
        walk.units += len(next_run) if next_run is not None else 0
        run = _join_runs(held_back, next_run)
        if walk.next_number is None:
            start = int(run.number[0])
            walk.next_number = start if start <= walk.end_number else walk.first_number
            if start > walk.first_number:
                walk.skip(walk.first_number, min(walk.next_number, walk.end_number))
        row = 0
        while row < len(run):
            steps = run.number[row:] - walk.next_number - np.arange(len(run) - row)
            jumps = np.flatnonzero(steps)
            consecutive = int(jumps[0]) if len(jumps) else len(run) - row
            if consecutive:
                self._check_consecutive(walk, run.part(row, row + consecutive))
                row += consecutive
            if row < len(run):
                if (
                    row + 1 == len(run)
                    and next_run is not None
                    and self._needs_next_unit(walk, run.unit(row), int(run.number[row]))
                ):
                    walk.held_back = run.part(row, None)
                    return
                self._check_jump(walk, run, row)
                row += 1

    def _needs_next_unit(self, walk: QueueWalk, unit: ComparedEntry, number: int) -> bool:
        """Return True if this unit can only be judged with the number of the next unit, see :meth:`_check_jump`."""
        assert walk.next_number is not None
        if not walk.next_number < number < walk.next_number + MAX_NUMBER_GAP or number == walk.end_number:
            return False
        return all(
            not walk.has_number(place) or walk.entry(place)[:2] != unit[:2] for place in (number, walk.next_number)
        )

    def _check_consecutive(self, walk: QueueWalk, run: Run) -> None:
        """Check units with consecutive numbers that continue at the queue's position."""
        first_number = int(run.number[0])
        walk.next_number = first_number + len(run)
        inside_start, inside_end = (
            max(walk.first_number - first_number, 0),
            min(walk.end_number - first_number, len(run)),
        )
        if inside_start > 0:
            walk.first_offset_before = walk.first_offset_before if walk.units_before else int(run.physical[0])
            walk.units_before += min(inside_start, len(run))
            walk.first_lacking_offset = min(walk.first_lacking_offset, int(run.physical[0]))
        if inside_end < len(run):
            start = max(inside_end, 0)
            walk.first_offset_behind = walk.first_offset_behind if walk.units_behind else int(run.physical[start])
            walk.units_behind += len(run) - start
            walk.first_lacking_offset = min(walk.first_lacking_offset, int(run.physical[start]))
        if inside_start < inside_end:
            inside = run.part(inside_start, inside_end)
            self._compare(walk, inside, walk.entries(first_number + inside_start, inside_end - inside_start))

    def _compare(self, walk: QueueWalk, run: Run, entries: Entries) -> None:
        wrong = queue_rules.differing(entries, run.physical, run.size, run.tags)
        walk.last_compared_offset = max(walk.last_compared_offset, int(run.physical[-1]))
        right = np.flatnonzero(~wrong)
        if len(right):
            self.last_matched = max(self.last_matched, int(run.physical[right[-1]]))
        for row in np.flatnonzero(wrong):
            entry = ComparedEntry(int(entries.physical[row]), int(entries.size[row]), int(entries.tags[row]))
            unit = run.unit(int(row))
            delayed = walk.reader.topic == SCHEDULE_TOPIC and entry[:2] == unit[:2]
            if delayed and queue_rules.plausible_delay(entry.tags, int(run.stored[row])):
                continue
            number = int(run.number[row])
            previous_entry = walk.entry(number - 1) if len(walk.suspects) < 4 and number > walk.first_number else None
            walk.suspect(number, unit, entry, queue_rules.verdict(entry, unit, previous_entry))

    def _check_jump(self, walk: QueueWalk, run: Run, row: int) -> None:
        """Check a unit whose number is not the next one: the log has a gap, or the number in the unit is wrong."""
        number, unit = int(run.number[row]), run.unit(row)
        assert walk.next_number is not None
        entry_of_number = walk.entry(number) if walk.has_number(number) else None
        if entry_of_number is not None and entry_of_number[:2] == unit[:2]:
            if number >= walk.next_number:
                walk.skip(walk.next_number, number)
            else:
                walk.begin_again(number, unit.physical)
            walk.next_number = number + 1
            walk.last_compared_offset = max(walk.last_compared_offset, unit.physical)
            self.last_matched = max(self.last_matched, unit.physical)
            return
        if walk.has_number(walk.next_number) and walk.entry(walk.next_number)[:2] == unit[:2]:
            walk.suspect(walk.next_number, unit, ComparedEntry(unit.physical, unit.size, number), "unit")
            walk.next_number += 1
            return
        follows = row + 1 < len(run) and int(run.number[row + 1]) == number + 1
        if number > walk.next_number and (
            (number - walk.next_number < MAX_NUMBER_GAP and follows) or number == walk.end_number
        ):
            walk.skip(walk.next_number, min(number, walk.end_number))
            walk.next_number = number
            self._check_consecutive(walk, run.part(row, row + 1))
            return
        entry = entry_of_number if entry_of_number is not None else ComparedEntry(-1, 0, 0)
        walk.suspect(number, unit, entry, queue_rules.verdict(entry, unit, None))

    # -- queues whose entries are not at their units' numbers: batch queues, light queues

    def _check_ordered_run(self, walk: QueueWalk, run: Run) -> None:
        """Find entries by the offset that they point to; entries between two of them have no unit."""
        walk.units += len(run)
        if walk.next_number is None:
            walk.next_number = self._first_batch(walk, int(run.physical[0]))
            walk.skip(walk.first_number, walk.next_number)
        rows = walk.raw(walk.next_number, max(min(walk.end_number - walk.next_number, len(run) + LOOKAHEAD_ENTRIES), 0))
        physical, sizes = rows["physical_offset"].astype(np.int64), rows["size"].astype(np.int64)
        tags = rows["tags_code"].astype(np.int64)
        batches = _Batches(rows) if walk.reader.kind == "batch" else None
        order = np.argsort(physical, kind="stable")
        place = np.searchsorted(physical[order], run.physical)
        has_entry = place < len(order)
        has_entry[has_entry] = physical[order[place[has_entry]]] == run.physical[has_entry]
        used_entries = 0
        for number in range(len(run)):
            unit = run.unit(number)
            if has_entry[number]:
                entry_row = int(order[place[number]])
                entry = ComparedEntry(unit.physical, int(sizes[entry_row]), int(tags[entry_row]))
                if entry != unit:
                    walk.suspect(walk.next_number + entry_row, unit, entry, queue_rules.verdict(entry, unit, None))
                elif batches is not None and batches.base(entry_row) != int(run.number[number]):
                    verdict: queue_rules.Verdict = "unit" if batches.continues(entry_row) else "offset"
                    own_entry = ComparedEntry(unit.physical, unit.size, int(run.number[number]))
                    walk.suspect(walk.next_number + entry_row, unit, own_entry, verdict)
                walk.skip(walk.next_number + used_entries, walk.next_number + entry_row)
                used_entries = max(used_entries, entry_row + 1)
                walk.last_compared_offset = max(walk.last_compared_offset, unit.physical)
                self.last_matched = max(self.last_matched, unit.physical)
            elif used_entries < len(rows):
                entry = ComparedEntry(int(physical[used_entries]), int(sizes[used_entries]), unit.tags)
                previous_entry = (
                    walk.entry(walk.next_number + used_entries - 1)
                    if walk.next_number + used_entries > walk.first_number
                    else None
                )
                walk.suspect(
                    walk.next_number + used_entries, unit, entry, queue_rules.verdict(entry, unit, previous_entry)
                )
                used_entries += 1
            else:
                walk.first_offset_behind = walk.first_offset_behind if walk.units_behind else unit.physical
                walk.units_behind += 1
                walk.first_lacking_offset = min(walk.first_lacking_offset, unit.physical)
        walk.next_number += used_entries

    def _first_batch(self, walk: QueueWalk, physical: int) -> int:
        """Return the number of the entry of the queue's first unit in the log: the units of earlier entries expired."""
        lower, upper = walk.first_number, walk.end_number
        while lower < upper:
            middle = (lower + upper) // 2
            if 0 <= int(walk.raw(middle, 1)["physical_offset"][0]) < physical:
                lower = middle + 1
            else:
                upper = middle
        return lower

    # -- light queues: further entries of a unit (docs/formats/consume-queue.md#light-queues)

    def _check_light_rows(self, columns: UnitColumns, rows: int, is_at_own_offset: NDArray[np.bool_]) -> None:
        if not self.light_queues or not rows:
            return
        start = int(columns.offset[0]) - columns.base
        stop = int(columns.offset[rows - 1]) + int(columns.size[rows - 1]) - columns.base
        last_row = -1
        for hit in _INNER.finditer(columns.buffer.data[start:stop]):
            row = int(np.searchsorted(columns.offset[:rows], columns.base + start + hit.start(), "right")) - 1
            if row == last_row or not is_at_own_offset[row]:
                continue
            last_row = row
            self._check_light_row(columns, row)

    def _check_light_row(self, columns: UnitColumns, row: int) -> None:
        properties = props.decode(columns.raw_properties(row))
        names = split(properties.get(props.INNER_MULTI_DISPATCH, ""), ",")
        numbers = split(properties.get(props.INNER_MULTI_QUEUE_OFFSET, ""), ",")
        if len(names) != len(numbers):
            return
        for name, number in zip(names, numbers, strict=True):
            key = (name, 0 if name.startswith(LMQ_PREFIX) else int(columns.queue_id[row]))
            walk = self.walks.get(key)
            if not number.strip().isdigit() or key in self._unread:
                continue
            if walk is None:
                if name.startswith(LMQ_PREFIX):
                    offset = int(columns.offset[row])
                    self._note_missing_queue(key, 1, offset, offset)
                continue
            single = slice(row, row + 1)
            run = Run(
                np.array([int(number)], np.int64),
                columns.offset[single],
                columns.size[single].astype(np.int64),
                columns.tags_code[single],
                columns.store_timestamp[single],
            )
            with self._unless_unread(key):
                if walk.in_rocksdb:
                    self._check_run(walk, run)
                else:
                    self._check_ordered_run(walk, run)


def _join_runs(held_back: Run | None, next_run: Run | None) -> Run:
    runs = [run for run in (held_back, next_run) if run is not None]
    if len(runs) == 1:
        return runs[0]
    columns = zip(*((run.number, run.physical, run.size, run.tags, run.stored) for run in runs), strict=True)
    return Run(*(np.concatenate(column) for column in columns))


class _Batches:
    """Queue offsets of consecutive batch entries."""

    def __init__(self, rows: np.ndarray) -> None:
        self._base = rows["msg_base_offset"]
        self._size = rows["batch_size"]

    def base(self, row: int) -> int:
        return int(self._base[row])

    def continues(self, row: int) -> bool:
        """Return True if the entry begins at the end of the previous one, or ends at the start of the next: its own
        offset is right.
        """
        meets_previous = row > 0 and self._base[row - 1] + self._size[row - 1] == self._base[row]
        meets_next = row + 1 < len(self._base) and self._base[row] + self._size[row] == self._base[row + 1]
        return bool(meets_previous or meets_next)


def _keys(topics: NDArray[np.int32], queues: NDArray[np.int32]) -> NDArray[np.integer[Any]]:
    """Return a number for each topic and queue; of 16 bits if they fit, which sort in a fraction of the time."""
    if int(topics.max()) < 256 and int(queues.max()) < 256 and int(queues.min()) >= 0:
        return (topics.astype(np.uint16) << 8) | queues.astype(np.uint16)
    return (topics.astype(np.int64) << 32) | (queues.astype(np.int64) & 0xFFFFFFFF)


GATHERED_ROWS = 1 << 16


class GatheredRows:
    """Copies of those columns that queues are compared with; :attr:`rows` of them are filled, in the log's order."""

    def __init__(self, room: int = GATHERED_ROWS) -> None:
        self.rows = 0
        self.topic_id = np.empty(room, np.int32)
        self.queue_id = np.empty(room, np.int32)
        self.queue_offset = np.empty(room, np.int64)
        self.offset = np.empty(room, np.int64)
        self.size = np.empty(room, np.int32)
        self.tags_code = np.empty(room, np.int64)
        self.store_timestamp = np.empty(room, np.int64)

    def has_room(self, rows: int) -> bool:
        """Return True if ``rows`` more rows fit."""
        return self.rows + rows <= len(self.offset)

    def add(self, columns: UnitColumns, chosen: NDArray[np.intp]) -> None:
        """Copy the ``chosen`` rows of a block."""
        place = slice(self.rows, self.rows + len(chosen))
        self.topic_id[place] = columns.topic_id[chosen]
        self.queue_id[place] = columns.queue_id[chosen]
        self.queue_offset[place] = columns.queue_offset[chosen]
        self.offset[place] = columns.offset[chosen]
        self.size[place] = columns.size[chosen]
        self.tags_code[place] = columns.tags_code[chosen]
        self.store_timestamp[place] = columns.store_timestamp[chosen]
        self.rows += len(chosen)
