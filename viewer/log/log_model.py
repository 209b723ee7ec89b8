"""The state of the Log view, shared by its parts: rows, filter, search, marks, columns. No Qt.

The parts of the view get this object and do not know each other. The table knows which row is selected; parts that
depend on the selection get the row as an argument.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from viewer.log.colour_rules import Rule, row_style_function
from viewer.log.columns import readers
from viewer.log.row_markings import RowMarkings, RowMarks
from viewer.log.rows import LogRow, LogSource, MatchSource, UnitRow
from viewer.look.assets import tr, tr_plural
from viewer.look.broken import UnreadableRange, bytes_within
from viewer.look.formats import size

if TYPE_CHECKING:
    from engine.inspection.side_index import SideIndex
    from viewer.log.find_work import Hits
    from viewer.widgets.log_line import LogLine
    from viewer.widgets.search_term import SearchTerm

Span = tuple[int, int]


@dataclass
class FilterState:
    """The current filter: its ``text``, its matching rows (None without a filter), and how far it has searched."""

    text: str = ""
    source: MatchSource | None = None
    running: bool = False
    complete: bool = False
    start: int = 0
    end: int = 0
    looked: int = 0
    spent: float = 0.0
    """Seconds that it took so far."""
    note: str = ""
    """Why the search has not begun although it takes long, for example that code is being compiled."""
    broken: Callable[[], Iterable[UnreadableRange]] = tuple
    """Stretches of the log that are missing or cannot be read: nobody looks at them."""

    def begin(self, text: str, log: LogSource) -> MatchSource:
        """Begin to search for ``text`` at the start of the log. Return its matching rows, empty at first."""
        self.text, self.source, self.complete, self.spent = text, MatchSource(log), False, 0.0
        self.start = self.looked = log.start
        self.end = max(log.end, log.start)
        return self.source

    def forget(self) -> None:
        """Drop the filter."""
        self.text, self.source, self.running, self.complete = "", None, False, False

    @property
    def match_count(self) -> int:
        return len(self.source.offsets) if self.source is not None else 0

    @property
    def whole(self) -> int:
        """Bytes to search: those that files hold."""
        end = max(self.end, self.looked)
        return end - self.start - bytes_within(self.broken(), self.start, end, {"missing"})

    @property
    def done(self) -> int:
        """Bytes searched so far, without unreadable ones."""
        absent = bytes_within(self.broken(), self.start, self.looked, {"missing", "unread"})
        return self.looked - self.start - absent

    @property
    def scanned(self) -> str:
        """Bytes searched; without the unit if the total has the same unit."""
        done_text, total_text = size(self.done), size(self.whole)
        return done_text.split(" ")[0] if done_text.split(" ")[1] == total_text.split(" ")[1] else done_text

    def sentence(self, edge: str) -> str:
        """``1,204 units match · scanned 38.0 of 38.0 GiB in 4.1 s · complete``; ``edge`` is the last word of it."""
        if self.source is None:
            return ""
        count = self.match_count
        words = [
            tr_plural("{n:,} unit matches", "{n:,} units match", n=count),
            tr("scanned {done} of {all}", done=self.scanned, all=size(self.whole)),
        ]
        if self.complete:
            words[-1] += " " + tr("in {seconds:.1f} s", seconds=self.spent)
            words.append(edge)
        return " · ".join(words)


@dataclass
class FindState:
    """The search text, the last hit and its text; all hits of the chosen rows once they were counted."""

    sought: SearchTerm | None = None
    running: bool = False
    hit: int | None = None
    last_term: SearchTerm | None = None
    _counted_term: tuple[SearchTerm, str, int, int] | None = None
    _hits: Hits | None = None

    def forget(self) -> None:
        """Another store."""
        self.sought = self.hit = self._counted_term = self._hits = None

    def at(self, row: LogRow | None, start: int, sought: SearchTerm, *, forward: bool) -> int:
        """Return where to begin: at the selected row, or behind it if it is the last hit."""
        if row is None:
            return start
        is_last_hit = self.hit == row.offset and self.last_term == sought
        return row.end if forward and is_last_hit else row.offset

    def counted(self, question: tuple[SearchTerm, str, int, int]) -> Hits | None:
        """Return all hits if the same search was made before."""
        return self._hits if self._counted_term == question else None

    def keep(self, question: tuple[SearchTerm, str, int, int], hits: Hits) -> None:
        """Keep the hits for the next step if they are complete."""
        self._counted_term, self._hits = (question, hits) if hits.complete else (None, None)

    def take(self, offset: int, sought: SearchTerm) -> None:
        """A hit is chosen."""
        self.hit, self.last_term = offset, sought

    def step(self, offsets: Sequence[int], offset: int, sought: SearchTerm, *, forward: bool) -> tuple[int, bool]:
        """Make the next hit the last one. Return its number, and True if the search wrapped around to find it."""
        is_last_hit = self.hit == offset and self.last_term == sought
        raw_number = (
            (bisect_right if is_last_hit else bisect_left)(offsets, offset)
            if forward
            else bisect_left(offsets, offset) - 1
        )
        number = raw_number % len(offsets)
        self.take(offsets[number], sought)
        return number, number != raw_number


@dataclass
class LogModel:
    """State that the parts of one log view share."""

    log: LogSource | None = None
    filter: FilterState = field(default_factory=FilterState)
    find: FindState = field(default_factory=FindState)
    markings: RowMarkings = field(default_factory=RowMarkings)
    """Marks, ignored rows and the time that counts as zero."""
    rules: list[Rule] = field(default_factory=list)
    custom_columns: Sequence[str] = ()
    """Fields that the user added as columns."""
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Field → texts that were shown in its column."""
    extent: LogLine | None = None
    rows: int = 0
    """Number of rows up to the offset :attr:`upto`, which is -1 if nothing was counted yet."""
    upto: int = -1
    offset_before_filter: int = -1
    """Offset of the row that was chosen when the filter began."""

    def open(self, log: LogSource, broken: Callable[[], Iterable[UnreadableRange]]) -> None:
        """Take the log of a store. ``broken`` returns the parts of it that are missing or cannot be read."""
        self.log, self.filter.broken = log, broken

    def close(self) -> None:
        """Forget the store. Colouring rules and added columns stay: they belong to the user."""
        self.log, self.extent, self.values, self.upto = None, None, {}, -1
        self.filter.forget()
        self.find.forget()
        self.markings.clear()

    @property
    def span(self) -> Span:
        """Return the first byte and the end of the log as far as they are known. Reads nothing."""
        if self.log is None:
            return 0, 0
        return self.log.start, max(self.log.end, self.log.start)

    def status(self, edge: str) -> str:
        """Return the matches of the filter, or the length of the log; ``edge`` ends the sentence of a complete
        filter.
        """
        if self.filter.source is not None:
            return self.filter.sentence(edge)
        line = self.extent
        if self.log is None or line is None:
            return ""
        missing = bytes_within(self.filter.broken(), line.low, line.written, {"missing"})
        written = size(line.written - line.low - missing)
        text = tr("{size} of log, offsets {low:,} to {high:,}", size=written, low=line.low, high=line.written)
        if self.upto < 0:
            return text
        rows = tr_plural("{n:,} row", "{n:,} rows", n=self.rows)
        if self.upto < line.written:
            rows = tr("{rows} up to {offset:,}", rows=rows, offset=self.upto)
        return f"{text} · {rows}"

    def counted(self, index: SideIndex) -> None:
        """Set the row numbers up to the end of the side index. More rows may be known already; a shorter log replaces
        them.
        """
        if self.upto < index.end and self.log is not None and index.end <= self.log.end:
            self.rows, self.upto = index.total, index.end

    # ---- places among the rows that are shown ------------------------------------------------------------------------

    def place_of(self, offset: int) -> int | None:
        """Return the position of the unit at ``offset`` in the shown rows; None if the filter hides it."""
        source = self.filter.source
        if source is None:
            return offset
        index = bisect_left(source.offsets, offset)
        return index if index < len(source.offsets) and source.offsets[index] == offset else None

    def place_near(self, offset: int) -> int:
        """The position of the first row that is shown at ``offset`` or behind it."""
        source = self.filter.source
        return offset if source is None else bisect_left(source.offsets, offset)

    def frame(self, start: int, stop: int) -> Span:
        """The offsets of the visible rows: positions [first, last)."""
        source = self.filter.source
        if source is None or not source.offsets:
            return start, stop
        return (
            source.offsets[min(start, len(source.offsets) - 1)],
            source.offsets[min(max(stop - 1, 0), len(source.offsets) - 1)],
        )

    def chosen_span(self, span: Span | None) -> Span | None:
        """Offsets of the first and the last row of a span of positions."""
        source = self.filter.source
        if span is None or source is None:
            return span
        return source.offsets[span[0]], source.offsets[span[1]]

    # ---- what a person put on rows -----------------------------------------------------------------------------------

    @property
    def marks(self) -> RowMarks:
        """Return marks, ignored rows and time reference in their saved form."""
        return RowMarks(frozenset(self.markings.marked), frozenset(self.markings.ignored), self.markings.reference)

    def put_marks(self, marks: RowMarks) -> bool:
        """Use these marks from now on. Return True if that changes how times are shown."""
        timed = marks.reference != self.markings.reference
        self.markings.marked, self.markings.ignored = set(marks.marked), set(marks.ignored)
        self.markings.reference = marks.reference
        return timed

    def add_marks(self, saved: RowMarks) -> None:
        """Add saved marks to those made meanwhile."""
        self.markings.marked |= saved.marked
        self.markings.ignored |= saved.ignored
        self.markings.reference = self.markings.reference or saved.reference

    def mark_turned(self, row: LogRow) -> RowMarks:
        """Return the marks with that of ``row`` added or removed."""
        return replace(self.marks, marked=self.marks.marked ^ {row.offset})

    def ignore_turned(self, row: LogRow) -> RowMarks:
        """With ``row`` ignored, or heeded again."""
        return replace(self.marks, ignored=self.marks.ignored ^ {row.offset})

    def reference_turned(self, row: UnitRow) -> RowMarks:
        """Show times relative to ``row``; show the time of day again if they were relative to it already."""
        same = self.markings.reference is not None and self.markings.reference[0] == row.offset
        return replace(self.marks, reference=None if same else (row.offset, row.store_timestamp))

    def next_mark(self, row: LogRow | None, step: int) -> int | None:
        """Return the offset of the next marked row, after the last one the first. None if no row is marked."""
        marked = sorted(self.markings.marked)
        if not marked:
            return None
        offset = row.offset if row is not None else -1
        ahead = [o for o in marked if o > offset] if step > 0 else [o for o in reversed(marked) if o < offset]
        return ahead[0] if ahead else marked[0 if step > 0 else -1]

    def marked_filter(self) -> str:
        """Return the filter that shows the marked rows; "" if there are none."""
        return _one_of(self.markings.marked) if self.markings.marked else ""

    def without_ignored_rows(self, text: str) -> str:
        """The filter ``text`` without the ignored rows: what find, sheets and exports look at."""
        if not self.markings.ignored:
            return text
        from engine.query import and_

        return and_(text, f"not {_one_of(self.markings.ignored)}")

    def to_export(self, scope: str, row: LogRow | None, span: Span | None) -> tuple[tuple[int, ...] | None, str]:
        """The rows of an export: offsets, or None and the filter that finds them. ``scope`` is row, marked, span,
        filter or all.
        """
        if scope == "row":
            return (row.offset,) if row is not None else (), ""
        if scope == "marked":
            return tuple(sorted(self.markings.marked - self.markings.ignored)), ""
        where = self.without_ignored_rows(self.filter.text if scope in {"filter", "span"} else "")
        if scope == "span" and span is not None:
            from engine.query import and_

            where = and_(where, f"physicalOffset between {span[0]} and {span[1]}")
        return None, where

    # ---- how rows are read -------------------------------------------------------------------------------------------

    @property
    def coloured(self) -> bool:
        """True if a rule is in force."""
        return any(rule.on and not rule.fault for rule in self.rules)

    def apply_row_styles(self, file_of: Callable[[int], str | None]) -> None:
        """Have rows read with the current colouring rules and the fields of added columns."""
        if self.log is not None:
            self.log.style_of = row_style_function(self.rules, file_of)
            self.log.fields = readers(self.custom_columns)


def next_of(offsets: Iterable[int], current: int, step: int) -> int | None:
    """Return the nearest of ``offsets`` after ``current`` (step 1) or before it (−1); None if there is none."""
    if step > 0:
        return min((offset for offset in offsets if offset > current), default=None)
    return max((offset for offset in offsets if offset < current), default=None)


def _one_of(offsets: Iterable[int]) -> str:
    return f"physicalOffset in ({', '.join(map(str, sorted(offsets)))})"
