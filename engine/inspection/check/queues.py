"""Checks the queues: every unit has its entry, every entry its unit (docs/formats/consume-queue.md).

The log is walked in blocks; each queue keeps only the number of its next entry, so memory does not grow with the number
of units. Mismatches are kept as a few suspects per queue and judged at the end, when the broken places are known.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from engine.codec import consume_queue as cq
from engine.codec import properties as props
from engine.codec.columns import UnitColumns
from engine.codec.dtypes import BATCH_CQ_UNIT, CQ_UNIT
from engine.codec.java import i32, split
from engine.codec.message import COMMIT, TRANSACTION_MASK
from engine.codec.topic_table import TopicTable
from engine.errors import CannotRead
from engine.inspection.queue_reader import QueueReader
from engine.inspection.rocksdb_queue import RocksQueueReader
from engine.inspection.snapshot import AnyQueue, StoreSnapshot
from engine.inspection.tables import light_offsets
from engine.mapped.sparse import last_byte
from engine.rules import queue_rules
from engine.rules.proofs import Proof
from engine.rules.queue_rules import ComparedEntry, Entries, Verdict
from engine.store.recovery.plan import RecoveryPlan
from engine.system_names import LMQ_PREFIX, SCHEDULE_TOPIC

MAX_SUSPECTS = 32
MAX_RANGES = 512
NOWHERE = 1 << 62
"""An offset behind all logs."""
_EXT_WINDOW = 1 << 16
Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Run:
    """Units of one queue in one block, in the order of the log."""

    number: Int64
    physical: Int64
    size: Int64
    tags: Int64
    stored: Int64

    def __len__(self) -> int:
        return len(self.number)

    def part(self, start: int, stop: int | None) -> Run:
        piece = slice(start, stop)
        return Run(self.number[piece], self.physical[piece], self.size[piece], self.tags[piece], self.stored[piece])

    def unit(self, row: int) -> ComparedEntry:
        return ComparedEntry(int(self.physical[row]), int(self.size[row]), int(self.tags[row]))


@dataclass(frozen=True, slots=True)
class Suspect:
    """A unit whose entry is wrong; batch queues count entries by number."""

    number: int
    unit: ComparedEntry
    entry: ComparedEntry
    verdict: Verdict


class QueueWalk:
    """State of one queue while the log is walked. Numbers are queue offsets; in a batch queue, entry numbers."""

    def __init__(self, reader: QueueReader) -> None:
        self.reader = reader
        self.unit_size = reader.unit_size
        self.first, self.end = self._span()
        self.next: int | None = None
        self.suspects: list[Suspect] = []
        self.wrong = 0
        self.last_wrong = -1
        self.skipped: list[tuple[int, int]] = []
        self.behind = 0  # units that came after the last entry
        self.first_behind = -1
        self.before = 0  # units whose entries would be before the first file
        self.first_before = -1
        self.lacks = NOWHERE  # the first unit without its own entry, however it is judged later
        self.matched = -1  # the last unit that was compared with its entry
        self.units = 0
        self.held: Run | None = None  # a unit that can only be judged with the next one
        self._ext: tuple[int, bytes] = (0, b"")
        self._orderly: bool | None = None

    @property
    def name(self) -> str:
        return f"{self.reader.topic}/{self.reader.queue_id}"

    @property
    def orderly(self) -> bool:
        """True if each entry stands at its number in the only file that holds it."""
        is_orderly = self._orderly
        if is_orderly is None:
            sequence = self.reader.sequence
            apart = all(a.end_offset <= b.start_offset for a, b in pairwise(sequence.files))
            is_orderly = self._orderly = self.reader.kind == "simple" and apart and not sequence.oddities
        return is_orderly

    def _span(self) -> tuple[int, int]:
        """Number of the first entry, and the number behind the last one that is not all zero, whatever holes are in
        front of it.
        """
        first = max(self.reader.sequence.min_offset, 0) // self.unit_size
        for file in reversed(self.reader.files):
            last_position = last_byte(file)
            if last_position:
                return first, file.start_offset // self.unit_size + -(-last_position // self.unit_size)
        return first, first

    @property
    def in_rocksdb(self) -> bool:
        """True if the entries are rows of a RocksDB."""
        return False

    def place_of(self, number: int) -> tuple[str | None, int | None]:
        """The file that holds the entry ``number`` or should hold it, and the entry's position there (bytes)."""
        offset = number * self.unit_size
        files = self.reader.files
        file = self.reader.sequence.find(offset)
        path = file.path if file else (files[-1].path if files else None)
        return path, offset - file.start_offset if file else None

    def skip(self, start: int, stop: int) -> None:
        """Entries [start, stop) had no unit in the log."""
        if start >= stop:
            return
        if (self.skipped and self.skipped[-1][1] == start) or len(self.skipped) >= MAX_RANGES:
            self.skipped[-1] = (self.skipped[-1][0], stop)
        else:
            self.skipped.append((start, stop))

    def suspect(self, number: int, unit: ComparedEntry, entry: ComparedEntry, verdict: Verdict) -> None:
        """Note a unit that did not find its entry."""
        self.wrong += 1
        self.lacks = min(self.lacks, unit.physical)
        self.last_wrong = number
        if len(self.suspects) < MAX_SUSPECTS:
            self.suspects.append(Suspect(number, unit, entry, verdict))

    def begin_anew(self, number: int, physical: int) -> None:
        """Start over: the topic was deleted and recreated, and earlier mismatches belong to its former life."""
        self.suspects = [s for s in self.suspects if 0 <= s.entry.physical < physical and s.number >= number]
        self.wrong = len(self.suspects)
        self.skipped = [(start, stop) for start, stop in self.skipped if stop <= number]
        self.behind, self.first_behind = 0, -1
        self.before, self.first_before = 0, -1

    def raw(self, start: int, count: int) -> np.ndarray:
        """Entries by number; the offset is −1 if no file holds the entry."""
        kind = CQ_UNIT if self.unit_size == cq.CQ_UNIT_SIZE else BATCH_CQ_UNIT
        offset, stop = start * self.unit_size, (start + count) * self.unit_size
        sequence = self.reader.sequence
        data = sequence.read(offset, stop - offset)
        if len(data) == stop - offset:
            return np.frombuffer(data, kind)
        rows = np.zeros(count, kind)
        rows["physical_offset"] = -1
        while offset < stop:
            data = sequence.read(offset, stop - offset)
            entry_count = len(data) // self.unit_size
            if entry_count:
                row = offset // self.unit_size - start
                rows[row : row + entry_count] = np.frombuffer(data[: entry_count * self.unit_size], kind)
                offset += entry_count * self.unit_size
                continue
            number = sequence.position_of(offset)
            if number + 1 >= len(sequence.files):
                break
            offset = max(sequence.files[number + 1].start_offset, offset + self.unit_size)
            offset = -(-offset // self.unit_size) * self.unit_size
        return rows

    def messages(self, first_entry: int, rows: np.ndarray) -> int:
        """Number of messages that these entries hold; ``rows`` count from entry ``first_entry``."""
        if self.reader.kind == "simple":
            return len(rows)
        return int(self.raw(first_entry, int(rows.max()) + 1)["batch_size"][rows].sum())

    def entries(self, start: int, count: int) -> Entries:
        """Entries as columns; the tags of ext addresses are looked up."""
        rows = self.raw(start, count)
        tags = rows["tags_code"].astype(np.int64)
        physical = rows["physical_offset"].astype(np.int64)
        for row in np.flatnonzero((tags <= cq.MAX_EXT_ADDRESS) & (physical >= 0)):
            tags[row] = self._ext_tags(int(tags[row]))
        return Entries(physical, rows["size"].astype(np.int64), tags)

    def entry(self, number: int) -> ComparedEntry:
        """The entry with this number."""
        entries = self.entries(number, 1)
        return ComparedEntry(int(entries.physical[0]), int(entries.size[0]), int(entries.tags[0]))

    def chunks(self, start: int, stop: int, step: int = 1 << 16) -> Iterator[tuple[int, Entries]]:
        """Entries [start, stop) piece by piece, each with the number of its first; holes between files are left out."""
        sequence = self.reader.sequence
        while start < stop:
            if sequence.find(start * self.unit_size) is None:
                number = sequence.position_of(start * self.unit_size) + 1
                if number >= len(sequence.files):
                    return
                start = max(-(-sequence.files[number].start_offset // self.unit_size), start + 1)
                continue
            count = min(step, stop - start)
            yield start, self.entries(start, count)
            start += count

    def _ext_tags(self, address: int) -> int:
        """Tag code of an ext unit; the address itself if there is no such unit."""
        if self.reader.ext is None:
            return address
        offset = cq.ext_offset(address)
        base, data = self._ext
        if not base <= offset <= base + len(data) - 20:
            data = self.reader.ext.read(offset, _EXT_WINDOW)
            base = offset
            self._ext = (base, data)
        position = offset - base
        if len(data) - position < 20:
            return address
        size, length = (
            int.from_bytes(data[position : position + 2], "big"),
            int.from_bytes(data[position + 18 : position + 20], "big"),
        )
        if size != length + 20:
            return address
        return int.from_bytes(data[position + 2 : position + 10], "big", signed=True)


class RocksdbWalk(QueueWalk):
    """A queue whose entries are rows of a RocksDB: each has its number in its key, and any of them may be missing."""

    def __init__(self, rows: RocksQueueReader) -> None:
        self.rows = rows
        super().__init__(cast("QueueReader", rows))

    @property
    def in_rocksdb(self) -> bool:
        return True

    @property
    def orderly(self) -> bool:
        return False

    def _span(self) -> tuple[int, int]:
        """From the first row to the one that the row ``max`` names; rows behind it are overwritten in time."""
        newest = self.rows.bound("max")
        end = newest.queue_offset + 1 if newest is not None else 0
        first_row = self.rows.first_row
        return min(first_row if first_row is not None else end, end), end

    def place_of(self, number: int) -> tuple[str | None, int | None]:
        del number
        return str(self.rows.folder), None

    def raw(self, start: int, count: int) -> np.ndarray:
        return self.rows.raw_entries(start, count)

    def chunks(self, start: int, stop: int, step: int = 1 << 16) -> Iterator[tuple[int, Entries]]:
        for first_number in range(start, stop, step):
            yield first_number, self.entries(first_number, min(step, stop - first_number))

    def _ext_tags(self, address: int) -> int:
        return address


def _walk_of(reader: AnyQueue) -> QueueWalk:
    return RocksdbWalk(reader) if isinstance(reader, RocksQueueReader) else QueueWalk(reader)


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
    """Receives blocks of units; after :meth:`drain`, :attr:`walks` and :attr:`queues_without_folder` are complete."""

    def __init__(self, store: StoreSnapshot, topics: TopicTable) -> None:
        self._topics = topics
        self.walks: dict[tuple[str, int], QueueWalk] = {}
        self._unread: set[tuple[str, int]] = set()
        """Queues that could not be read: neither they nor their units are judged."""
        for topic, queues in store.queues_by_topic().items():
            for number, reader in queues.items():
                try:
                    self.walks[topic, number] = _walk_of(reader)
                except CannotRead:
                    self._unread.add((topic, number))
        self.queues_without_folder: dict[tuple[str, int], QueueWithoutFolder] = {}
        self.last_matched = -1
        self._lacks = NOWHERE
        self.light_queues = any(topic.startswith(LMQ_PREFIX) for topic, _ in self.walks)
        with contextlib.suppress(CannotRead):
            self.light_queues |= light_offsets(store) > 0
        # If entries are searched for, the result depends on the length of the log range that is searched together.
        self._numbered = not self.light_queues and all(walk.reader.kind == "simple" for walk in self.walks.values())
        self._gathered = GatheredRows()

    def block(self, columns: UnitColumns, good: NDArray[np.bool_]) -> None:
        """Check a block of units; ``good`` marks the units that are at their own offset."""
        rows = len(good)
        kind = columns.sys_flag[:rows] & TRANSACTION_MASK
        listed = ((kind == 0) | (kind == COMMIT)) & (columns.topic_id[:rows] >= 0)
        odd = np.flatnonzero(listed & ~good)
        if len(odd):
            self._lacks = min(self._lacks, int(columns.offset[odd[0]]))
        listed_rows = np.flatnonzero(good & listed)
        if not len(listed_rows):
            return
        if not self._gathered.has_room(len(listed_rows)):
            self.drain()
        if not self._gathered.has_room(len(listed_rows)):
            self._gathered = GatheredRows(len(listed_rows))
        self._gathered.add(columns, listed_rows)
        if self.light_queues:
            self.drain()
            self._light_rows(columns, rows, good)

    def accepts(self, proof: Proof) -> bool:
        """Return True if a proven stretch can be skipped here: each queue continues at its position, and only one file
        holds each of its entries.
        """
        if not self._numbered:
            return False
        self.drain()
        return all(
            (walk := self.walks.get((run.topic, run.queue_id))) is not None
            and walk.orderly
            and walk.held is None
            and walk.next in (None, run.first_offset)
            and walk.first <= run.first_offset
            and run.first_offset + run.units <= walk.end
            for run in proof.runs
        )

    def skip(self, proof: Proof) -> None:
        """Account for a proven stretch as if its blocks had been walked."""
        for run in proof.runs:
            walk = self.walks[run.topic, run.queue_id]
            if walk.next is None:
                walk.skip(walk.first, run.first_offset)
            walk.units += run.units
            walk.next = run.first_offset + run.units
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
                with self._unless_unread(key):
                    self._run(walk, None)

    @contextlib.contextmanager
    def _unless_unread(self, key: tuple[str, int]) -> Iterator[None]:
        """Leave out a queue that cannot be read any further; the others continue."""
        try:
            yield
        except CannotRead:
            self._unread.add(key)
            self.walks.pop(key, None)

    def _group(self, rows: GatheredRows, group: NDArray[np.intp]) -> None:
        first_row = int(group[0])
        topic = self._topics.names[int(rows.topic_id[first_row])]
        key = (topic, i32(int(rows.queue_id[first_row])))
        walk = self.walks.get(key)
        if key in self._unread:
            return
        if walk is None:
            self._without_queue(key, len(group), int(rows.offset[first_row]), int(rows.offset[group[-1]]))
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
                self._ordered_run(walk, run)
            else:
                self._run(walk, run)

    def _without_queue(self, key: tuple[str, int], units: int, first_offset: int, last_offset: int) -> None:
        home = self.queues_without_folder.get(key)
        if home is None:
            if len(self.queues_without_folder) < MAX_UNDISPATCHED:
                self.queues_without_folder[key] = QueueWithoutFolder(units, first_offset, last_offset)
            else:
                self._lacks = min(self._lacks, first_offset)
        else:
            home.units += units
            home.last_offset = last_offset

    def lacking(self, means: Callable[[str], bool], plan: RecoveryPlan) -> int:
        """An offset before which every unit is in its queue, as ``plan`` finds the queue; :data:`NOWHERE` if all units
        are.

        Units without a queue do not count if ``means`` does not know their topic.
        """
        least = [self._lacks]
        least += [walk.lacks for walk in self.walks.values()]
        least += [home.first_offset for (topic, _), home in self.queues_without_folder.items() if means(topic)]
        for queue in plan.queues:
            walk = self.walks.get((queue.topic, queue.queue_id))
            known_end = queue.current_state.max_physic if queue.current_state is not None else -1
            if walk is not None and known_end <= walk.matched >= 0:
                least.append(known_end)
            if walk is not None and walk.in_rocksdb and queue.cut is not None:
                least.append(max(queue.cut.max_physic, 0))  # a start may cut more than what is behind the log
        return min(least)

    # -- simple queues

    def _run(self, walk: QueueWalk, next_run: Run | None) -> None:
        """Check the next units of a queue. None means the end: a unit that was held back is checked now."""
        held_back, walk.held = walk.held, None
        walk.units += len(next_run) if next_run is not None else 0
        run = _concatenate(held_back, next_run)
        if walk.next is None:
            start = int(run.number[0])
            near = walk.first <= start <= walk.end
            walk.next = start if near or start < walk.first else walk.first
            if start > walk.first:
                walk.skip(walk.first, min(walk.next, walk.end))
        row = 0
        while row < len(run):
            steps = run.number[row:] - walk.next - np.arange(len(run) - row)
            off = np.flatnonzero(steps)
            straight = int(off[0]) if len(off) else len(run) - row
            if straight:
                self._straight(walk, run.part(row, row + straight))
                row += straight
            if row < len(run):
                if (
                    row + 1 == len(run)
                    and next_run is not None
                    and self._is_open(walk, run.unit(row), int(run.number[row]))
                ):
                    walk.held = run.part(row, None)
                    return
                self._jump(walk, run, row)
                row += 1

    def _is_open(self, walk: QueueWalk, unit: ComparedEntry, number: int) -> bool:
        """Return True if this unit can only be judged with the number of the unit behind it, see :meth:`_jump`."""
        assert walk.next is not None
        if not walk.next < number < walk.next + MAX_NUMBER_GAP or number == walk.end:
            return False
        return all(
            not walk.first <= place < walk.end or walk.entry(place)[:2] != unit[:2] for place in (number, walk.next)
        )

    def _straight(self, walk: QueueWalk, run: Run) -> None:
        """Units with consecutive numbers that continue at the queue's position."""
        first_number = int(run.number[0])
        walk.next = first_number + len(run)
        inside_start, inside_end = max(walk.first - first_number, 0), min(walk.end - first_number, len(run))
        if inside_start > 0:
            walk.first_before = walk.first_before if walk.before else int(run.physical[0])
            walk.before += min(inside_start, len(run))
            walk.lacks = min(walk.lacks, int(run.physical[0]))
        if inside_end < len(run):
            start = max(inside_end, 0)
            walk.first_behind = walk.first_behind if walk.behind else int(run.physical[start])
            walk.behind += len(run) - start
            walk.lacks = min(walk.lacks, int(run.physical[start]))
        if inside_start < inside_end:
            inside = run.part(inside_start, inside_end)
            self._compare(walk, inside, walk.entries(first_number + inside_start, inside_end - inside_start))

    def _compare(self, walk: QueueWalk, run: Run, entries: Entries) -> None:
        wrong = queue_rules.differing(entries, run.physical, run.size, run.tags)
        walk.matched = max(walk.matched, int(run.physical[-1]))
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
            previous_entry = walk.entry(number - 1) if len(walk.suspects) < 4 and number > walk.first else None
            walk.suspect(number, unit, entry, queue_rules.verdict(entry, unit, previous_entry))

    def _jump(self, walk: QueueWalk, run: Run, row: int) -> None:
        """A unit whose number is not the next one: either the log has a gap, or the number in the unit is wrong."""
        number, unit = int(run.number[row]), run.unit(row)
        assert walk.next is not None
        entry_of_number = walk.entry(number) if walk.first <= number < walk.end else None
        if entry_of_number is not None and entry_of_number[:2] == unit[:2]:
            if number >= walk.next:
                walk.skip(walk.next, number)
            else:
                walk.begin_anew(number, unit.physical)
            walk.next = number + 1
            walk.matched = max(walk.matched, unit.physical)
            self.last_matched = max(self.last_matched, unit.physical)
            return
        if walk.first <= walk.next < walk.end and walk.entry(walk.next)[:2] == unit[:2]:
            walk.suspect(walk.next, unit, ComparedEntry(unit.physical, unit.size, number), "unit")
            walk.next += 1
            return
        follows = row + 1 < len(run) and int(run.number[row + 1]) == number + 1
        if number > walk.next and ((number - walk.next < MAX_NUMBER_GAP and follows) or number == walk.end):
            walk.skip(walk.next, min(number, walk.end))
            walk.next = number
            self._straight(walk, run.part(row, row + 1))
            return
        entry = entry_of_number if entry_of_number is not None else ComparedEntry(-1, 0, 0)
        walk.suspect(number, unit, entry, queue_rules.verdict(entry, unit, None))

    # -- queues whose entries are not at their units' numbers: batch queues, light queues

    def _ordered_run(self, walk: QueueWalk, run: Run) -> None:
        """Find entries by the offset they point to; entries between two of them have no unit."""
        walk.units += len(run)
        if walk.next is None:
            walk.next = self._first_batch(walk, int(run.physical[0]))
            walk.skip(walk.first, walk.next)
        rows = walk.raw(walk.next, max(min(walk.end - walk.next, len(run) + LOOKAHEAD_ENTRIES), 0))
        physical, sizes = rows["physical_offset"].astype(np.int64), rows["size"].astype(np.int64)
        tags = rows["tags_code"].astype(np.int64)
        batches = _Batches(rows) if walk.reader.kind == "batch" else None
        order = np.argsort(physical, kind="stable")
        place = np.searchsorted(physical[order], run.physical)
        has_entry = place < len(order)
        has_entry[has_entry] = physical[order[place[has_entry]]] == run.physical[has_entry]
        used = 0
        for number in range(len(run)):
            unit = run.unit(number)
            if has_entry[number]:
                entry_row = int(order[place[number]])
                entry = ComparedEntry(unit.physical, int(sizes[entry_row]), int(tags[entry_row]))
                if entry != unit:
                    walk.suspect(walk.next + entry_row, unit, entry, queue_rules.verdict(entry, unit, None))
                elif batches is not None and batches.base(entry_row) != int(run.number[number]):
                    verdict: queue_rules.Verdict = "unit" if batches.continues(entry_row) else "offset"
                    own_entry = ComparedEntry(unit.physical, unit.size, int(run.number[number]))
                    walk.suspect(walk.next + entry_row, unit, own_entry, verdict)
                walk.skip(walk.next + used, walk.next + entry_row)
                used = max(used, entry_row + 1)
                walk.matched = max(walk.matched, unit.physical)
                self.last_matched = max(self.last_matched, unit.physical)
            elif used < len(rows):
                entry = ComparedEntry(int(physical[used]), int(sizes[used]), unit.tags)
                previous_entry = walk.entry(walk.next + used - 1) if walk.next + used > walk.first else None
                walk.suspect(walk.next + used, unit, entry, queue_rules.verdict(entry, unit, previous_entry))
                used += 1
            else:
                walk.first_behind = walk.first_behind if walk.behind else unit.physical
                walk.behind += 1
                walk.lacks = min(walk.lacks, unit.physical)
        walk.next += used

    def _first_batch(self, walk: QueueWalk, physical: int) -> int:
        """Number of the entry of the queue's first unit in the log: earlier entries have expired."""
        lower, upper = walk.first, walk.end
        while lower < upper:
            middle = (lower + upper) // 2
            if 0 <= int(walk.raw(middle, 1)["physical_offset"][0]) < physical:
                lower = middle + 1
            else:
                upper = middle
        return lower

    # -- light queues: further entries of a unit (docs/formats/consume-queue.md#light-queues)

    def _light_rows(self, columns: UnitColumns, rows: int, good: NDArray[np.bool_]) -> None:
        if not self.light_queues or not rows:
            return
        start = int(columns.offset[0]) - columns.base
        stop = int(columns.offset[rows - 1]) + int(columns.size[rows - 1]) - columns.base
        last_row = -1
        for hit in _INNER.finditer(columns.buffer.data[start:stop]):
            row = int(np.searchsorted(columns.offset[:rows], columns.base + start + hit.start(), "right")) - 1
            if row == last_row or not good[row]:
                continue
            last_row = row
            self._light_row(columns, row)

    def _light_row(self, columns: UnitColumns, row: int) -> None:
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
                    self._without_queue(key, 1, offset, offset)
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
                    self._run(walk, run)
                else:
                    self._ordered_run(walk, run)


def _concatenate(held_back: Run | None, next_run: Run | None) -> Run:
    runs = [run for run in (held_back, next_run) if run is not None]
    if len(runs) == 1:
        return runs[0]
    columns = zip(*((run.number, run.physical, run.size, run.tags, run.stored) for run in runs), strict=True)
    return Run(*(np.concatenate(column) for column in columns))


class _Batches:
    """Queue offsets of a run of batch entries."""

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
    """A number that combines topic and queue; 16 bits if they fit, because those sort in a fraction of the time."""
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
