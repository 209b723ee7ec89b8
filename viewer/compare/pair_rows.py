"""Rows of two logs side by side, level where both hold the same message. No Qt.

Where the physical offsets of both logs agree, rows are merged by offset while they are read: nothing has to be counted
first. Behind a fork, or in stores that never share offsets, the messages were put side by side before
(:mod:`engine.inspection.message_alignment`); there a row is found by its number.

Positions are bytes up to the fork, and from there ``fork + number of the row * bytes a row``.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from engine.codec.unit_scan import Stop
from engine.errors import CannotRead
from engine.inspection.lost_units import lost_units
from viewer.log.rows import LogRow, LogSource, NonUnitRow, UnitRow
from viewer.widgets.row_window import Page

if TYPE_CHECKING:
    from engine.inspection.message_alignment import AlignedMessages
    from engine.inspection.snapshot import StoreSnapshot

SIGNS = ("same", "differs", "own", "other", "unrelated")
"""What a row of aligned messages holds, in the order of the engine's numbers."""
NO_END = 1 << 62


@dataclass(frozen=True, slots=True)
class PairRow:
    """The units of both logs at a place.

    ``sign`` is same, differs, own (only this store has it), other, unrelated (two other messages), unread (it cannot be
    compared) or end (behind the last message of a log). ``absence`` says why a side is None: before its beginning,
    behind its end, or "" where the message is missing among others.
    """

    position: int
    end: int
    own: LogRow | None
    other: LogRow | None
    sign: str
    absence: str = ""

    @property
    def physical_offset(self) -> int | None:
        """Offset in this store's log; None for what only the other one has."""
        return self.own.offset if self.own is not None else None


@dataclass(frozen=True, slots=True)
class AlignedTail:
    """Messages that are put side by side from the position ``start`` on; each takes ``step`` positions."""

    start: int
    messages: AlignedMessages
    step: int = 1

    @property
    def end(self) -> int:
        return self.start + len(self.messages) * self.step

    def number(self, position: int) -> int:
        """Number of the row at a position, at most the number of rows."""
        return min(len(self.messages), max(0, (position - self.start) // self.step))

    def position_of_offset(self, offset: int, is_other: bool) -> int | None:
        """Return the position of the row with the message at ``offset`` of one of the logs; None without one."""
        column = self.messages.other_offsets if is_other else self.messages.offsets
        numbers = (column == offset).nonzero()[0]
        return self.start + int(numbers[0]) * self.step if len(numbers) else None


class PairSource:
    """The rows of two logs."""

    def __init__(self, store: StoreSnapshot, other_store: StoreSnapshot, tail: AlignedTail | None = None) -> None:
        self.own, self.other = LogSource(store.log), LogSource(other_store.log)
        self.own.lost, self.other.lost = partial(lost_units, store), partial(lost_units, other_store)
        self.tail = tail

    @property
    def _fork(self) -> int:
        return self.tail.start if self.tail is not None else NO_END

    @property
    def start(self) -> int:
        starts = [side.start for side in (self.own, self.other) if side.reader.min_offset >= 0]
        return min([*starts, self._fork]) if starts else 0

    @property
    def end(self) -> int:
        return self.tail.end if self.tail is not None else max(self.own.end, self.other.end)

    @property
    def total(self) -> int | None:
        tail = self.tail
        return len(tail.messages) if tail is not None and tail.start <= self.start else None

    def position(self, row: PairRow) -> int:
        return row.position

    def behind(self, row: PairRow) -> int:
        return row.end

    def number(self, row: PairRow) -> int | None:
        return self.tail.number(row.position) if self.tail is not None and self.total is not None else None

    def position_of(self, number: int) -> int | None:
        tail = self.tail
        return tail.start + number * tail.step if tail is not None and self.total is not None else None

    def position_of_offset(self, offset: int, *, is_other: bool = False) -> int | None:
        """Return the position of the row with the item at ``offset`` of one of the logs."""
        if self.tail is None or offset < self.tail.start:
            return offset
        return self.tail.position_of_offset(offset, is_other)

    def read(self, position: int, rows_before: int, rows_after: int) -> Page[PairRow]:
        """Read rows around the one that contains ``position``; reads the disk."""
        position = max(self.start, position)
        if rows_before and rows_after:
            position = self._row_start(position)
        before, is_first = self._rows_before(position, rows_before) if rows_before else ([], position <= self.start)
        after, is_last = self._rows_from(position, rows_after) if rows_after else ([], False)
        return Page(before + after, len(before), is_first, is_last)

    def _row_start(self, position: int) -> int:
        """Return where the last row begins that begins at or before ``position``."""
        if self.tail is not None and position >= self.tail.start:
            return self.tail.start + self.tail.number(position) * self.tail.step
        starts = []
        for side in (self.own, self.other):
            if side.start <= position < side.end:
                rows = side.read(position, 0, 1).rows
                starts += [rows[0].offset] if rows else []
        return max((start for start in starts if start <= position), default=position)

    def _rows_from(self, position: int, count: int) -> tuple[list[PairRow], bool]:
        rows: list[PairRow] = []
        is_last = self.tail is None
        if position < self._fork:
            rows, is_at_end = self._merged_from(position, count)
            if not is_at_end:
                return rows, False
            position = self._fork
        if self.tail is not None:
            number = self.tail.number(position)
            stop = min(len(self.tail.messages), number + max(0, count - len(rows)))
            rows += [self._aligned_row(self.tail, row_number) for row_number in range(number, stop)]
            is_last = stop == len(self.tail.messages)
        return rows, is_last

    def _rows_before(self, position: int, count: int) -> tuple[list[PairRow], bool]:
        rows: list[PairRow] = []
        if self.tail is not None and position > self.tail.start:
            number = self.tail.number(position)
            first = max(0, number - count)
            rows = [self._aligned_row(self.tail, row_number) for row_number in range(first, number)]
            if first > 0 or self.tail.start <= self.start:
                return rows, first == 0
        if len(rows) >= count:
            return rows, False
        merged_rows, is_first = self._merged_before(min(position, self._fork), count - len(rows))
        return merged_rows + rows, is_first

    def _merged_from(self, position: int, count: int) -> tuple[list[PairRow], bool]:
        """Return merged rows from ``position`` on, and whether nothing of them follows before the fork."""
        sides: list[list[LogRow]] = []
        covered_end, is_last = self._fork, True
        for side in (self.own, self.other):
            page = side.read(max(position, side.start), 0, count)
            sides.append([row for row in page.rows if position <= row.offset < self._fork])
            if not page.is_last and page.rows and page.rows[-1].end < self._fork:
                is_last = False
                covered_end = min(covered_end, page.rows[-1].end)
        return self._merge(*([row for row in rows if row.offset < covered_end] for rows in sides)), is_last

    def _merged_before(self, position: int, count: int) -> tuple[list[PairRow], bool]:
        sides: list[list[LogRow]] = []
        covered_start, is_first = -1, True
        for side in (self.own, self.other):
            page = side.read(max(position, side.start), count, 1)
            rows = [row for row in page.rows if row.offset < position]
            sides.append(rows)
            if not page.is_first and rows:
                is_first = False
                covered_start = max(covered_start, rows[0].offset)
        return self._merge(*([row for row in rows if row.offset >= covered_start] for rows in sides)), is_first

    def _merge(self, own_rows: list[LogRow], other_rows: list[LogRow]) -> list[PairRow]:
        own_by_offset = {row.offset: row for row in own_rows}
        other_by_offset = {row.offset: row for row in other_rows}
        offsets = sorted(own_by_offset.keys() | other_by_offset.keys())
        return [self._merged_row(offset, own_by_offset.get(offset), other_by_offset.get(offset)) for offset in offsets]

    def _merged_row(self, offset: int, own: LogRow | None, other: LogRow | None) -> PairRow:
        end = min(row.end for row in (own, other) if row is not None)
        absence = ""
        if own is None or other is None:
            side = self.own if own is None else self.other
            absence = "beginning" if offset < side.start else "end" if offset >= _end_of(side) else ""
        return PairRow(offset, max(end, offset + 1), own, other, self._sign(own, other), absence)

    def _sign(self, own: LogRow | None, other: LogRow | None) -> str:
        own_kind, other_kind = _kind(own), _kind(other)
        if {own_kind, other_kind} <= {"zero", "hole", ""} and own_kind != other_kind:
            return "end"
        if own_kind == other_kind == "zero":
            return "end"
        if "error" in {own_kind, other_kind}:
            return "unread"
        if other_kind in {"", "zero", "hole"} and own_kind != other_kind:
            return "own"
        if own_kind in {"", "zero", "hole"} and own_kind != other_kind:
            return "other"
        assert own is not None
        assert other is not None
        if isinstance(own, UnitRow) and isinstance(other, UnitRow):
            place, other_place = ((row.topic, row.queue_id, row.queue_offset) for row in (own, other))
            if place != other_place:
                return "unrelated"
        elif own_kind == other_kind and own_kind in {"blank", "hole"}:
            return "same" if own.size == other.size else "differs"
        if own.size != other.size:
            return "differs"
        try:
            data, other_data = (
                side.reader.read(row.offset, row.size) for side, row in ((self.own, own), (self.other, other))
            )
        except CannotRead:
            return "unread"
        return "same" if data == other_data else "differs"

    def _aligned_row(self, tail: AlignedTail, number: int) -> PairRow:
        position = tail.start + number * tail.step
        own, other = (
            _row_at(source, int(column[number]))
            for source, column in (
                (self.own, tail.messages.offsets),
                (self.other, tail.messages.other_offsets),
            )
        )
        return PairRow(position, position + tail.step, own, other, SIGNS[int(tail.messages.kinds[number])])


def _end_of(source: LogSource) -> int:
    """Return the end of the last unit; the end of the files if it cannot be read. Reads the disk once."""
    try:
        return source.reader.max_offset
    except CannotRead:
        return source.end


def _row_at(source: LogSource, offset: int) -> LogRow | None:
    if offset < 0:
        return None
    item = source.reader.unit_at(offset)
    return NonUnitRow("error", offset, 0, offset, item.reason) if isinstance(item, Stop) else source.row(item)


def _kind(row: LogRow | None) -> str:
    """Kind of a row: unit, that of a row that is no unit, or "" without a row."""
    if row is None:
        return ""
    return "unit" if isinstance(row, UnitRow) else row.kind


@dataclass(frozen=True, slots=True)
class DifferenceSpan:
    """A difference as positions [start, end) of the rows; ``sign`` as in :class:`PairRow`."""

    start: int
    end: int
    sign: str


class DifferenceSpans:
    """The differences of the logs, in the order of the rows."""

    def __init__(self, spans: list[DifferenceSpan] | None = None, *, is_cut: bool = False) -> None:
        self.spans = sorted(spans or [], key=lambda span: span.start)
        self.is_cut = is_cut
        """True if there are more differences than spans."""
        self._starts = [span.start for span in self.spans]

    def __len__(self) -> int:
        return len(self.spans)

    def number_at(self, position: int) -> int | None:
        """Number of the span that holds a position; None between spans."""
        number = bisect_left(self._starts, position + 1) - 1
        return number if number >= 0 and position < self.spans[number].end else None

    def step(self, direction: int, position: int | None) -> int | None:
        """Return the number of the next (1) or previous (-1) span from the row at ``position``; None without one."""
        if position is None:
            number = 0 if direction > 0 else len(self.spans) - 1
        elif direction > 0:
            number = bisect_left(self._starts, position + 1)
        else:
            number = bisect_left(self._starts, position) - 1
        return number if 0 <= number < len(self.spans) else None


DRAWN_SHARE = 2048
"""Differences of one kind that are nearer than this part of the log are drawn as one."""


def joined_spans(spans: list[DifferenceSpan], low: int, high: int) -> list[DifferenceSpan]:
    """Join neighbours of one sign that could not be told apart on the strip, so that few are drawn."""
    least = (high - low) // DRAWN_SHARE
    last_by_sign: dict[str, int] = {}
    joined: list[DifferenceSpan] = []
    for span in spans:
        number = last_by_sign.get(span.sign)
        if number is not None and span.start - joined[number].end <= least:
            joined[number] = DifferenceSpan(joined[number].start, max(joined[number].end, span.end), span.sign)
        else:
            last_by_sign[span.sign] = len(joined)
            joined.append(span)
    return joined
