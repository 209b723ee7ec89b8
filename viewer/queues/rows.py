"""Rows of consume queues: entries with the verdict on the unit they point at; no Qt.

A row's place on the ruler is its number among all entries of the chosen queues, one queue after the other, so that
queues of any length and several at once open without being counted. Only rows that are read are resolved: each read
follows its entries into the commit log and is to run where the window does not wait for it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from engine.codec.message import Unit
from engine.codec.priority import counting_priority
from engine.codec.properties import PRIORITY
from engine.errors import CannotRead
from engine.inspection.entry_verdict import Resolved, resolve
from engine.inspection.log_reader import LogReader
from engine.inspection.moved_entries import MovedEntry, MovedMessages
from engine.inspection.static_topics import LogicalOffsets
from engine.inspection.store_queues import AnyQueue
from engine.sentences import sentence
from engine.store.queue_entry import CqEntry
from engine.system_names import SCHEDULE_TOPIC
from viewer.widgets.row_window import Page

PROBLEMS = frozenset(
    {"missing", "wrongTopic", "wrongQueue", "wrongQueueOffset", "wrongSize", "wrongTag", "gap", "noRow"}
)
"""Verdicts of entries that disagree with the log; expired and pre-filled entries do not."""
NO_FILE = sentence("no file of the queue holds this entry")
NO_ROW = sentence("the RocksDB has no row for this entry: no message is read from here")
NO_ENTRY = sentence("zero bytes between entries: no message is read from here")


@dataclass(frozen=True, slots=True)
class EntryRow:
    """An entry as a row of the table.

    ``number`` is its place among the rows. ``tags`` and ``keys`` come from the unit.
    """

    number: int
    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int | None
    size: int | None
    tags_code: int | None
    state: str
    verdict: str | None
    what: str
    tags: str | None = None
    keys: str = ""
    store_timestamp: int | None = None
    delivery_time: int | None = None
    ext_address: int | None = None
    ext_tags_code: int | None = None
    ext_bit_map: str | None = None
    batch_size: int | None = None
    groups: tuple[str, ...] = ()
    other_queue: bool = False
    """It points at a unit of another queue of its topic."""
    tiered_file: str | None = None
    tiered_position: int | None = None
    tiered_offset: int | None = None
    """Where the message is in tiered storage, if it is only there."""
    logical_queue_id: int | None = None
    logical_offset: int | None = None
    """Logical queue and offset, in a static topic."""
    priority: int | None = None
    """Priority of the message, if it counts."""

    @property
    def next_offset(self) -> int:
        return self.queue_offset + (self.batch_size or 1)


@dataclass(frozen=True, slots=True)
class QueueEdgeRow:
    """The edge of a queue. ``room``: empty slots behind it in the files, None in a RocksDB. ``stale``: entries after
    the end of the log, which do not count.
    """

    number: int
    topic: str
    queue_id: int
    queue_offset: int
    room: int | None
    stale: int


QueueRow = EntryRow | QueueEdgeRow


class _Part:
    """A queue on the ruler:

    ``count`` entries from ``first`` on, then its end row. Batches are counted, not offsets.
    """

    def __init__(self, queue: AnyQueue, moved: MovedMessages | None = None) -> None:
        self.queue = queue
        self.moved = moved if queue.kind == "simple" else None
        self.first, end = entry_range(queue, self.moved)
        self.count = end - self.first

    @property
    def rows(self) -> int:
        return self.count + 1


def entry_range(queue: AnyQueue, moved: MovedMessages | None) -> tuple[int, int]:
    """First number and end of the entries of a queue, those that only tiered storage has included."""
    first_number = queue.first_number
    end = max(first_number, queue.raw_end // queue.unit_size)
    if moved is None:
        return first_number, end
    min_offset, max_offset = moved.tiered.min_offset, moved.tiered.max_offset
    return (min_offset, max_offset) if end == first_number else (min(first_number, min_offset), max(end, max_offset))


class QueueSource:
    """Rows of one or several queues, one queue after the other; positions are row numbers.

    ``groups``: (topic, queue id) → queue offset → names of the groups that read there next. ``moved``: (topic, queue
    id) → what tiered storage has of the queue. ``logical``: (topic, queue id) → logical offsets of a static topic.
    """

    start = 0

    def __init__(
        self,
        log: LogReader,
        queues: Sequence[AnyQueue],
        groups: dict[tuple[str, int], dict[int, tuple[str, ...]]] | None = None,
        levels: tuple[int, ...] | None = None,
        moved: Mapping[tuple[str, int], MovedMessages] | None = None,
        logical: Mapping[tuple[str, int], LogicalOffsets] | None = None,
    ) -> None:
        self._logical = logical or {}
        self._log = log
        self._levels = levels
        self._groups = groups or {}
        moved = moved or {}
        self._parts = [_Part(queue, moved.get((queue.topic, queue.queue_id))) for queue in queues]
        self._starts = [0]
        for part in self._parts:
            self._starts.append(self._starts[-1] + part.rows)

    def adopt(self, newer: QueueSource) -> None:
        """Take the bounds and groups of a newer look at the same queues; row numbers of a single queue stay."""
        self._parts, self._starts, self._groups = newer._parts, newer._starts, newer._groups

    @property
    def end(self) -> int:
        return self._starts[-1]

    @property
    def total(self) -> int:
        return self._starts[-1]

    @property
    def entries(self) -> int:
        """Number of entries in the queues, without the rows for their ends."""
        return sum(part.count for part in self._parts)

    def read(self, position: int, rows_before: int, rows_after: int) -> Page[QueueRow]:
        """Rows around row ``position``; see :class:`viewer.widgets.row_window.RowSource`."""
        first_number, end_number = max(0, position - rows_before), min(self.end, position + rows_after)
        rows: list[QueueRow] = []
        number = first_number
        while number < end_number:
            part_index = bisect_right(self._starts, number) - 1
            stop = min(end_number, self._starts[part_index + 1])
            rows += self._rows_of(part_index, number, stop)
            number = stop
        return Page(rows, max(0, position - first_number), first_number == 0, end_number == self.end)

    def position(self, row: QueueRow) -> int:
        return row.number

    def behind(self, row: QueueRow) -> int:
        return row.number + 1

    def number(self, row: QueueRow) -> int:
        return row.number

    def position_of(self, number: int) -> int:
        return number

    def part_of(self, topic: str, queue_id: int) -> tuple[int, int] | None:
        """(first row, number of entries) of one of the queues, known without a look at the disk."""
        for start, part in zip(self._starts, self._parts, strict=False):
            if (part.queue.topic, part.queue.queue_id) == (topic, queue_id):
                return start, part.count
        return None

    def place_of(self, topic: str, queue_id: int, queue_offset: int) -> int | None:
        """Return the row number of an entry; None if no chosen queue contains it."""
        for start, part in zip(self._starts, self._parts, strict=False):
            if (part.queue.topic, part.queue.queue_id) == (topic, queue_id):
                number = self._unit_number(part, queue_offset)
                return None if number is None else start + min(max(number - part.first, 0), part.count)
        return None

    def row(self, number: int) -> QueueRow | None:
        """Read one row from the disk."""
        return next(iter(self.read(number, 0, 1).rows), None)

    def raw(self, number: int) -> tuple[bytes, str, int]:
        """Return (bytes, file name, number in that file) of the entry in row ``number``; empty if it is in no file."""
        part_index = bisect_right(self._starts, number) - 1
        part = self._parts[min(max(part_index, 0), len(self._parts) - 1)]
        entry_number = part.first + number - self._starts[part_index]
        stored = part.queue.stored_bytes(entry_number)
        if stored[0] or part.moved is None:
            return stored
        try:
            return part.moved.tiered.entry_bytes(entry_number)
        except CannotRead:
            return stored

    def _unit_number(self, part: _Part, queue_offset: int) -> int | None:
        """Return the number of the entry that contains ``queue_offset``, in a batch queue by bisection."""
        if part.queue.kind != "batch":
            return queue_offset
        first_number, end_number = part.first, part.first + part.count
        while first_number < end_number:
            middle = (first_number + end_number) // 2
            raw = part.queue.array(middle, middle + 1)
            if len(raw) and int(raw[0]["msg_base_offset"]) <= queue_offset:
                first_number = middle + 1
            else:
                end_number = middle
        return first_number - 1 if first_number > part.first else None

    def _rows_of(self, part_index: int, number: int, stop: int) -> list[QueueRow]:
        part, start = self._parts[part_index], self._starts[part_index]
        queue = part.queue
        first_unit = part.first + number - start
        end_unit = min(part.first + stop - start, part.first + part.count)
        if queue.kind == "batch":
            entries = dict(enumerate(batches(queue, first_unit, end_unit), number))
        else:
            entries = {
                start + entry.queue_offset - part.first: entry for entry in queue.stored_entries(first_unit, end_unit)
            }
        rows: list[QueueRow] = [
            self._with_logical_offset(self._row(part, n, part.first + n - start, entries.get(n)))
            for n in range(number, min(stop, start + part.count))
        ]
        if stop == self._starts[part_index + 1]:
            rows.append(_end_row(part, stop - 1))
        return rows

    def _with_logical_offset(self, row: EntryRow) -> EntryRow:
        logical = self._logical.get((row.topic, row.queue_id)) if self._logical else None
        place = logical.find(row.queue_offset) if logical is not None else None
        return row if place is None else replace(row, logical_queue_id=place[0], logical_offset=place[1])

    def _row(self, part: _Part, number: int, entry_number: int, entry: CqEntry | None) -> EntryRow:
        queue, moved = part.queue, part.moved
        if moved is not None and (moved.has(entry) if entry is not None else moved.tiered.holds(entry_number)):
            groups = self._groups.get((queue.topic, queue.queue_id), {}).get(entry_number, ())
            moved_entry = moved.entry(entry_number, entry)
            return moved_row(queue.topic, queue.queue_id, number, moved_entry, moved.resolve(moved_entry), groups)
        if entry is None:
            return _gap(queue, number, entry_number)
        resolved = resolve(self._log, queue.topic, queue.queue_id, entry, self._levels)
        groups = self._groups.get((queue.topic, queue.queue_id), {}).get(entry.queue_offset, ())
        return entry_row(queue.topic, queue.queue_id, number, resolved, groups)


def shown_verdict(verdict: str | None, state: str, *, other_queue: bool) -> str:
    """Return the verdict as it is shown and counted.

    Zero bytes between entries are ``missing``. An entry that agrees with its message in tiered storage is ``moved``.
    An entry of another queue of the same topic is ``wrongQueue``. An entry whose unit is in a file that cannot be read
    is ``unread``.
    """
    if state == "moved":
        return "moved" if verdict in {None, "ok"} else str(verdict)
    if state == "empty":
        return "missing"
    if state == "entry" and verdict is None:
        return "unread"
    return "wrongQueue" if other_queue else verdict or state


def in_other_queue(topic: str, resolved: Resolved) -> bool:
    """Return whether the entry points at a unit of another queue of its own topic."""
    return resolved.verdict == "wrongTopic" and resolved.unit is not None and resolved.unit.topic == topic


def entry_row(topic: str, queue_id: int, number: int, resolved: Resolved, groups: tuple[str, ...] = ()) -> EntryRow:
    """The row of a resolved entry."""
    entry, unit = resolved.entry, resolved.unit
    code = entry.real_tags_code
    delayed = topic == SCHEDULE_TOPIC and entry.state == "entry" and code is not None and code > 1 << 32
    return EntryRow(
        number,
        topic,
        queue_id,
        entry.queue_offset,
        entry.physical_offset,
        entry.size,
        entry.tags_code,
        entry.state,
        resolved.verdict,
        resolved.what or (NO_ENTRY if entry.state == "empty" else ""),
        tags=unit.tags if unit else None,
        keys=_keys_of(unit),
        store_timestamp=unit.store_timestamp if unit else entry.store_timestamp,
        delivery_time=code if delayed else None,
        ext_address=entry.ext.address if entry.ext else None,
        ext_tags_code=entry.ext.tags_code if entry.ext else None,
        ext_bit_map=entry.ext.bit_map.hex() if entry.ext else None,
        batch_size=entry.batch_size,
        groups=groups,
        other_queue=in_other_queue(topic, resolved),
        priority=_priority_of(unit),
    )


def moved_row(
    topic: str, queue_id: int, number: int, moved: MovedEntry, resolved: Resolved, groups: tuple[str, ...] = ()
) -> EntryRow:
    """Return the row of an entry whose message is only in tiered storage."""
    local_entry, tiered, unit = moved.entry, moved.tiered, resolved.unit
    entry = tiered or local_entry
    return EntryRow(
        number,
        topic,
        queue_id,
        moved.queue_offset,
        local_entry.physical_offset if local_entry is not None and local_entry.state == "entry" else None,
        entry.size if entry is not None else None,
        entry.tags_code if entry is not None else None,
        "moved",
        resolved.verdict,
        resolved.what,
        tags=unit.tags if unit else None,
        keys=_keys_of(unit),
        store_timestamp=unit.store_timestamp if unit else None,
        groups=groups,
        tiered_file=tiered.file if tiered is not None else None,
        tiered_position=tiered.position if tiered is not None else None,
        tiered_offset=tiered.offset if tiered is not None else None,
    )


def _end_row(part: _Part, number: int) -> QueueEdgeRow:
    queue = part.queue
    end = part.first + part.count
    own_end = queue.raw_end // queue.unit_size
    stale = max(0, own_end - queue.valid_end // queue.unit_size) if part.count else 0
    offset = end if queue.kind == "simple" else queue.max_offset
    return QueueEdgeRow(
        number, queue.topic, queue.queue_id, offset, None if queue.in_rocksdb else queue.free_slots, stale
    )


def _priority_of(unit: Unit | None) -> int | None:
    return counting_priority(unit.properties) if unit is not None and PRIORITY in unit.properties else None


def _keys_of(unit: Unit | None) -> str:
    if unit is None:
        return ""
    return " ".join(unit.keys) or (unit.unique_key or "")


def batches(queue: AnyQueue, first_number: int, end_number: int) -> list[CqEntry]:
    """The entries of a batch queue by number, [first, last)."""
    entries = []
    for raw in queue.array(first_number, end_number):
        physical, size, base, count = (
            int(raw["physical_offset"]),
            int(raw["size"]),
            int(raw["msg_base_offset"]),
            int(raw["batch_size"]),
        )
        valid = physical >= 0 and size > 0 and base >= 0 and count > 0
        state = "entry" if valid else "empty"
        stored = int(raw["store_timestamp"])
        entries.append(CqEntry(base, physical, size, int(raw["tags_code"]), state, None, count, stored))  # type: ignore[arg-type]
    return entries


def _gap(queue: AnyQueue, number: int, offset: int) -> EntryRow:
    state, what = ("noRow", NO_ROW) if queue.in_rocksdb else ("gap", NO_FILE)
    return EntryRow(number, queue.topic, queue.queue_id, offset, 0, 0, 0, state, None, what)
