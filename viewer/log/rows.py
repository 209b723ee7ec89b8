"""Rows of the Log view: units, and as rows of their own blanks, damage and the zero tail. No Qt.

A row keeps what the table shows, without the body: hundreds of rows of 4 MiB bodies would fill the memory.
:class:`LogSource` reads rows at a byte position, so that a log of any size opens at once; rows have numbers only after
the units were counted. :class:`MatchSource` shows the matches of a filter.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.codec.batch import MIN_MEMBER_BYTES, Member, walk
from engine.codec.message import COMPRESSED, INNER_BATCH, TRANSACTION_MASK, Unit
from engine.codec.unit_scan import Blank, Damage, Stop
from engine.errors import CannotRead
from engine.inspection.lost_units import LostUnit, was
from engine.system_names import RETRY_PREFIX, SCHEDULE_TOPIC, TIMER_TOPIC
from viewer.log.colour_rules import PLAIN, RowStyle
from viewer.widgets.row_window import Page

if TYPE_CHECKING:
    from engine.inspection.log_reader import LogReader
    from engine.inspection.side_index import SideIndex

PREVIEW = 160
"""Bytes of a body that a table row shows."""
FRAME = MIN_MEMBER_BYTES - 2
"""Bytes of a batch's message in front of its body."""
READ_AT_ONCE = 32 << 20
"""Bytes after which one read of rows ends early, large bodies being large."""
MIN_ROWS = 24
MAX_DAMAGE_SPANS = 256
"""Maximum number of ranges of damage whose lost messages are remembered."""


@dataclass(frozen=True, slots=True)
class UnitRow:
    """A unit as a row of the table; attributes are RocketMQ's fields in snake_case."""

    offset: int
    size: int
    topic: str
    queue_id: int
    queue_offset: int
    store_timestamp: int
    tags: str | None
    keys: list[str]
    crc: str
    marks: str
    stale: bool
    prepared_transaction_offset: int
    preview: bytes
    rule: str = ""
    tint: str = ""
    """Name and tint of the colouring rule that the unit matches."""
    extra: tuple[tuple[str, object], ...] = ()
    """Fields that the user added as columns, each with its value."""

    @property
    def physical_offset(self) -> int:
        """Offset of the unit; the PHYSICALOFFSET field is in the decoded view."""
        return self.offset

    @property
    def end(self) -> int:
        return self.offset + self.size


@dataclass(frozen=True, slots=True)
class NonUnitRow:
    """A row that is no unit: ``kind`` is blank, damage, zero (nothing written), hole (no file) or error (unreadable).

    ``end`` is where the next row can begin, ``next_file`` the name of the file in which the log continues after a
    blank. ``was`` names the message that was in damage, ``more`` counts further ones.
    """

    kind: str
    offset: int
    size: int
    end: int
    reason: str = ""
    next_file: str = ""
    was: str = ""
    more: int = 0

    @property
    def physical_offset(self) -> int:
        return self.offset


LogRow = UnitRow | NonUnitRow
Item = Unit | Blank | Damage


def letters(unit: Unit) -> str:
    """The Marks of a unit: T transaction, Z compressed, B batch, D delayed, R retry, M multi-dispatch."""
    properties = unit.properties
    marks = []
    if unit.sys_flag & TRANSACTION_MASK or "TRAN_MSG" in properties or unit.topic.startswith("RMQ_SYS_TRANS_"):
        marks.append("T")
    if unit.sys_flag & COMPRESSED:
        marks.append("Z")
    if unit.sys_flag & INNER_BATCH:
        marks.append("B")
    if unit.topic in {SCHEDULE_TOPIC, TIMER_TOPIC} or "DELAY" in properties:
        marks.append("D")
    if unit.reconsume_times > 0 or unit.topic.startswith(RETRY_PREFIX):
        marks.append("R")
    if "INNER_MULTI_DISPATCH" in properties:
        marks.append("M")
    return "".join(marks)


Fields = tuple[tuple[str, Callable[[Unit], object]], ...]


def unit_row(unit: Unit, style_of: Callable[[Unit], RowStyle] | None = None, fields: Fields = ()) -> UnitRow:
    """Return the table's row of ``unit``. ``style_of`` returns the matching colouring rule; ``fields`` are stored with
    it.
    """
    style = style_of(unit) if style_of is not None else PLAIN
    preview = _unpacked_head(unit) if unit.sys_flag & COMPRESSED else unit.body[:PREVIEW]
    if unit.sys_flag & INNER_BATCH:
        preview = _first_member(unit)
    return UnitRow(
        unit.offset,
        unit.size,
        unit.topic,
        unit.queue_id,
        unit.queue_offset,
        unit.store_timestamp,
        unit.tags,
        unit.keys,
        unit.crc,
        letters(unit),
        unit.stale,
        unit.prepared_transaction_offset,
        preview,
        style.rule,
        style.tint,
        tuple([(name, read(unit)) for name, read in fields]) if fields else (),
    )


def _first_member(unit: Unit) -> bytes:
    """The beginning of the body of a batch's first message; the frames around it are no text."""
    data = _unpacked_head(unit, 4096) if unit.sys_flag & COMPRESSED else unit.body
    first_member = next(walk(data), None)
    if isinstance(first_member, Member):
        return first_member.body[:PREVIEW]
    return data[FRAME : FRAME + PREVIEW]


def _unpacked_head(unit: Unit, max_bytes: int = PREVIEW) -> bytes:
    """Return the first bytes of a zlib body, decompressed; nothing for other compressions, which only the detail
    decodes.
    """
    import zlib

    if (unit.sys_flag >> 8) & 7 not in (0, 3):
        return b""
    try:
        return zlib.decompressobj().decompress(unit.body[:4096], max_bytes)
    except zlib.error:
        return b""


class LogSource:
    """The whole log, by position in bytes. ``counted`` gives row numbers once the units have been counted."""

    def __init__(self, reader: LogReader) -> None:
        self.reader = reader
        self._counted: SideIndex | None = None
        self.style_of: Callable[[Unit], RowStyle] | None = None
        """The colouring rules in force."""
        self.fields: Fields = ()
        """Fields that rows carry beside what the table always shows."""
        self.lost: Callable[[int, int], Sequence[LostUnit]] | None = None
        """Return the messages that were in unreadable bytes."""
        self._end: int | None = None
        self._starts: set[int] = set()
        self._lost_by_damage: dict[tuple[int, int], Sequence[LostUnit]] = {}

    @property
    def start(self) -> int:
        return max(self.reader.min_offset, 0)

    @property
    def end(self) -> int:
        """End of the last valid unit once it is known, until then the end of the files."""
        known_end = self.reader.known_end
        if known_end is not None:
            self._end = known_end
        return self.reader.end_offset if self._end is None else self._end

    @property
    def counted(self) -> SideIndex | None:
        """The row numbers; None if the units were not counted yet, or if the log is shorter now than counted."""
        return self._counted if self._counted is not None and self._counted.end <= self.end else None

    @counted.setter
    def counted(self, counted: SideIndex | None) -> None:
        self._counted = counted

    @property
    def total(self) -> int | None:
        counted = self.counted
        return counted.total if counted is not None else None

    def position(self, row: LogRow) -> int:
        return row.offset

    def behind(self, row: LogRow) -> int:
        return row.end

    def number(self, row: LogRow) -> int | None:
        counted = self.counted
        return counted.number_at(row.offset) if counted is not None else None

    def position_of(self, number: int) -> int | None:
        counted = self.counted
        return counted.offset_of(number) if counted is not None else None

    def read(self, position: int, rows_before: int, rows_after: int) -> Page[LogRow]:
        """Read rows around the item that contains the byte at ``position``.

        Rows that were still being written are read again once, so that they do not count as damage.
        """
        if self.reader.min_offset < 0:
            return Page([], 0, True, True)
        page = self._page(position, rows_before, rows_after)
        return self._page(position, rows_before, rows_after) if any(map(self._whole_now, page.rows)) else page

    def _whole_now(self, row: LogRow) -> bool:
        """Return whether a unit is complete now that was not before."""
        hurt = row.kind == "damage" if isinstance(row, NonUnitRow) else row.crc == "bad"
        if not hurt:
            return False
        now = self.reader.unit_at(row.offset, crc=isinstance(row, UnitRow))
        return isinstance(now, Unit) and now.crc != "bad"

    def _page(self, position: int, rows_before: int, rows_after: int) -> Page[LogRow]:
        start = self._item_at(position)
        ahead, at_end = self._rows_from(start, rows_after) if rows_after else ([], False)
        back = self._rows_before(start, rows_before) if rows_before else []
        rows = back + ahead
        if rows:
            self._starts = {rows[0].offset, rows[-1].end} | (self._starts if len(self._starts) < 64 else set())
        return Page(rows, len(back), len(back) < rows_before or start <= self.start, at_end)

    def _item_at(self, position: int) -> int:
        """Return the start of the item that contains ``position``; after the log's end the start of its zero tail."""
        if position in self._starts or position <= self.start or position == self.reader.known_end:
            return position
        aligned = self.reader.align(position)
        if self.reader.known_end is None and not isinstance(self.reader.unit_at(aligned, crc=False), Unit):
            try:
                return self.reader.align(min(position, self.reader.max_offset))
            except CannotRead:  # the file of the end cannot be read: it is a row of its own
                return aligned
        return aligned

    def _rows_from(self, start: int, count: int) -> tuple[list[LogRow], bool]:
        rows: list[LogRow] = []
        read = 0
        for item in self.reader.walk(start):
            if isinstance(item, Stop):
                edge = self._last_edge(item, rows[-1].end if rows else start)
                return [*rows, edge] if edge is not None else rows, True
            rows.append(self.row(item))
            read += item.size
            if len(rows) >= count or (read > READ_AT_ONCE and len(rows) >= MIN_ROWS):
                return rows, False
        return rows, True

    def _rows_before(self, offset: int, count: int) -> list[LogRow]:
        near = self.reader.items_before(offset, min(count, MIN_ROWS))
        rows = [self.row(item) for item in near]
        if len(near) < MIN_ROWS or count <= MIN_ROWS or sum(item.size for item in near) > READ_AT_ONCE // 8:
            return rows
        return [self.row(item) for item in self.reader.items_before(near[0].offset, count - len(near))] + rows

    def row(self, item: Item) -> LogRow:
        """The row of an item of the walk."""
        if isinstance(item, Unit):
            return unit_row(item, self.style_of, self.fields)
        if isinstance(item, Blank):
            file = self.reader.sequence.find(item.offset)
            end = file.end_offset if file is not None else item.offset + max(item.size, 8)
            following = self.reader.sequence.find(end)
            name = f"{following.start_offset:020d}" if following is not None else ""
            return NonUnitRow("blank", item.offset, end - item.offset, end, next_file=name)
        kind = "hole" if self.reader.sequence.find(item.offset) is None else "error" if item.unread else "damage"
        lost = self._lost(item) if kind == "damage" else ()
        was_text = was(lost[0]) if lost else ""
        more_count = max(len(lost) - 1, 0)
        return NonUnitRow(
            kind, item.offset, item.size, item.offset + item.size, item.reason, was=was_text, more=more_count
        )

    def _lost(self, item: Damage) -> Sequence[LostUnit]:
        if self.lost is None:
            return ()
        place = (item.offset, item.size)
        if place not in self._lost_by_damage:
            if len(self._lost_by_damage) == MAX_DAMAGE_SPANS:
                self._lost_by_damage.clear()
            self._lost_by_damage[place] = self.lost(*place)
        return self._lost_by_damage[place]

    def _last_edge(self, stop: Stop, end: int) -> NonUnitRow | None:
        size = self.reader.end_offset - end
        if size <= 0 or stop.kind == "limit":
            return None
        if stop.kind == "damage" and stop.offset >= end:
            return NonUnitRow("error", end, size, end + size, stop.reason)
        return NonUnitRow("zero", end, size, end + size, stop.reason)


class MatchSource:
    """The matches of a filter so far, by number. Rows are read when they are shown."""

    def __init__(self, log: LogSource, offsets: Iterable[int] = ()) -> None:
        self.log = log
        self.offsets: list[int] = list(offsets)

    start = 0

    @property
    def end(self) -> int:
        return len(self.offsets)

    @property
    def total(self) -> int:
        return len(self.offsets)

    def position(self, row: LogRow) -> int:
        return bisect_left(self.offsets, row.offset)

    def behind(self, row: LogRow) -> int:
        return self.position(row) + 1

    def number(self, row: LogRow) -> int:
        return self.position(row)

    def position_of(self, number: int) -> int:
        return number

    def read(self, position: int, rows_before: int, rows_after: int) -> Page[LogRow]:
        """Rows of a slice of the matches; reads the disk."""
        count = len(self.offsets)
        start, stop = max(0, position - rows_before), min(count, position + rows_after)
        rows: list[LogRow] = []
        read = 0
        for offset in self.offsets[start:stop]:
            item = self.log.reader.unit_at(offset)
            if isinstance(item, Stop):
                rows.append(NonUnitRow("error", offset, 0, offset, item.reason))
                continue
            rows.append(self.log.row(item))
            read += item.size
            if read > READ_AT_ONCE and len(rows) > position - start + MIN_ROWS:
                break
        return Page(rows, max(0, position - start), start == 0, start + len(rows) == count)
