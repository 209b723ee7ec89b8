"""The columns of one table on the screen: widths from what is in sight, folds, drags, order, and what is remembered.

A source is measured as it comes (at least 200 rows around the first in sight), later rows as they come on the screen:
until another source comes widths only grow, so that nothing jumps while somebody scrolls.

Where room is short bodies give way first, then sentences, then names that are long, then heads that are longer than
what stands below them, then all names down to where two of them could not be told apart; numbers, offsets, times and
states never do: then the table scrolls sideways.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, Signal
from PySide6.QtWidgets import QMenu, QTableView

from viewer.look.assets import tr
from viewer.look.theme import scale
from viewer.widgets.columns import Column, RecordKind
from viewer.widgets.record_table import RecordTable
from viewer.widgets.row_painter import RowPainter

NARROW = 1100
"""Width in px at 100 % below which slim columns leave."""
HALF = 620
"""The same of columns that leave where a window has half a screen."""
SHORT_NAME = 160
"""Px at 100 % that a name keeps beside heads and a sentence that runs over the rest of a row, where it can be told from
others at that.
"""
MOST_LINES = 6
"""Of a row; what is longer is in the tool tip."""
NAMES = 400
"""Different names a column that are kept to tell whether shortened ones would look alike."""


class _Seen:
    """What is known of one column: the widest value in sight, whether there is any, and its names."""

    __slots__ = ("any", "names", "width")

    def __init__(self) -> None:
        self.width, self.any = 0, False
        self.names: set[str] = set()


class SizedTable(QTableView):
    """A table whose columns are sized by what it shows."""

    table: RecordTable
    painter: RowPainter

    @property
    def kind(self) -> RecordKind:
        """The columns that are shown, and what is said of their rows."""
        return self.table.kind

    @abstractmethod
    def visible_rows(self) -> int:
        """Rows that fit on the screen."""

    @abstractmethod
    def bar_width(self) -> int:
        """Px of the right edge that the long bar covers."""

    @abstractmethod
    def columns_moved(self) -> None:
        """Columns have other places or widths."""

    @abstractmethod
    def set_lines(self, lines: int) -> None:
        """Rows of this many lines."""


class TableColumns(QObject):
    """Sizes the columns of a :class:`SizedTable`; ``changed()`` as a person did something that is to be remembered."""

    changed = Signal()
    made = Signal()
    """Other columns are wanted: the names are ``kept.added``."""

    def __init__(self, view: SizedTable) -> None:
        super().__init__(view)
        self._view = view
        self.kept = KeptColumns()
        self.remembered = False
        """Whether somebody keeps what a person does here."""
        self._seen: list[_Seen] = []
        self._rows_seen = False
        self._known: set[int] = set()
        self._words: dict[int, int] = {}
        self._fitting = False
        self._dragging = False
        head = view.horizontalHeader()
        head.sectionResized.connect(self._resized)
        head.sectionMoved.connect(self._moved)
        head.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        head.customContextMenuRequested.connect(self._open_menu)
        head.viewport().installEventFilter(self)

    # ---- measuring ---------------------------------------------------------------------------------------------------

    def forget(self) -> None:
        """Other rows or columns come, or other fonts: nothing is known of them."""
        self._seen = [_Seen() for _ in self._view.kind.columns]
        self._rows_seen = False
        self._known = set()
        self._words = {}

    def rows_came(self, top: int) -> None:
        """Measure the rows around number ``top``: of a new source at least 200, later those on the screen."""
        count, visible = len(self._view.table.rows), self._view.visible_rows() + 1
        if not count:
            return
        span = visible if self._rows_seen else max(visible, IN_SIGHT)
        first = max(0, min(top, count - span))
        self.look(first, min(count, first + span))

    def look(self, first: int, last: int) -> None:
        """Measure rows ``first`` to ``last`` (excluded); columns open or widen where they must."""
        fresh, self._rows_seen = not self._rows_seen, True
        rows = self._view.table.rows[first:last]
        known, self._known = self._known, {id(row) for row in rows}
        if self._measure([n for n, row in enumerate(rows, first) if id(row) not in known]) or fresh:
            self.fit()

    def row_changed(self, number: int) -> None:
        """Measure a row that says something else than before."""
        if self._rows_seen and self._measure([number]):
            self.fit()

    def _measure(self, numbers: Iterable[int]) -> bool:
        if len(self._seen) != len(self._view.kind.columns):
            self.forget()
        table, painter, grew = self._view.table, self._view.painter, False
        columns = list(enumerate(zip(self._view.kind.columns, self._seen, strict=True)))
        names = {n for n, (column, _) in columns if rank_of(column) == NAME}
        for number in numbers:
            look = table.look(number)
            until = look.words_from if look is not None and look.words else len(columns)
            row, texts = table.rows[number], table.texts(number)
            if look is not None and look.words:
                width = painter.words_width(look)
                if width > self._words.get(until, 0):
                    self._words[until], grew = width, True
            for n, (column, seen) in columns[:until]:
                text = texts[n]
                if not text or text in seen.names:
                    continue
                width = painter.cell_width(column, row, text)
                if width > seen.width or not seen.any:
                    seen.width, seen.any, grew = max(width, seen.width), True, True
                if n in names and len(seen.names) < NAMES:
                    seen.names.add(text)
        return grew

    def _head_width(self, section: int) -> int:
        """As the style draws it, with the arrow where the column is sorted by."""
        table, folded = self._view.table, self._view.table.folded
        table.folded = frozenset()
        try:
            return self._view.horizontalHeader().sectionSizeHint(section) if table.head(section) else 0
        finally:
            table.folded = folded

    def _full(self, section: int) -> int:
        """Px for the head and all values in sight; before rows have come, what the column says itself."""
        column = self._view.kind.columns[section]
        told = round(column.width * scale())
        if not self._rows_seen:
            return max(told, self._head_width(section))
        if not column.title:
            return told
        seen = self._seen[section]
        return max(self._head_width(section), seen.width) if seen.any else round(FOLDED * scale())

    # ---- fitting -----------------------------------------------------------------------------------------------------

    def fit(self) -> None:
        """Give every column its width; what is left goes to the last one that holds words."""
        view, z = self._view, scale()
        if len(self._seen) != len(view.kind.columns):
            self.forget()
        room, columns = view.viewport().width() - view.bar_width(), view.kind.columns
        narrow, half = (view.viewport().width() < wide * z for wide in (NARROW, HALF))
        shown = [n for n, one in enumerate(columns) if not ((one.slim and narrow) or (one.leaves and half))]
        shown = [n for n in shown if not (columns[n].hides and self._is_folded(n))]
        widths = self._widths(shown, room)
        spare = room - sum(widths.values())
        last = self._last_of_words(shown)
        if spare > 0 and last is not None:
            widths[last] += spare
        if shown:
            widths[self._rightmost(shown)] += view.bar_width()
        self._apply(widths)
        view.set_lines(self._lines(widths))

    def _lines(self, widths: dict[int, int]) -> int:
        """Lines that a row needs so that no wrapped text is cut, of those that are held."""
        view, lines = self._view, 1
        wrapped = [(n, column) for n, column in enumerate(view.kind.columns) if column.wrap and n in widths]
        for n, column in wrapped:
            width = widths[n] - (view.bar_width() if n == self._rightmost(list(widths)) else 0)
            if self._seen[n].width > width:
                texts = {view.table.texts(number)[n] for number in range(min(IN_SIGHT, len(view.table.rows)))}
                lines = max([lines, *(view.painter.lines_of(column, text, width) for text in texts)])
        return min(lines, MOST_LINES)

    def _widths(self, shown: list[int], room: int) -> dict[int, int]:
        """Heads and names give way last: only then is it looked up how far names can and still be told apart."""
        needs = [self._need(n) for n in shown]
        widths = fitted([self._before_names_are_compared(need) for need in needs], room)
        if sum(widths) > room:
            needs = [self._kept_apart(n, need) for n, need in zip(shown, needs, strict=True)]
            widths = fitted(needs, room)
        found = dict(zip(shown, widths, strict=True))
        self._give_to_words(found, room)
        return found

    def _before_names_are_compared(self, need: Need) -> Need:
        if need.rank == WHOLE:
            return replace(need, least=need.full)
        return replace(need, least=max(need.least, min(need.full, need.easy))) if need.rank == NAME else need

    def _give_to_words(self, widths: dict[int, int], room: int) -> None:
        """Sentences of whole rows get what long names in front of them can spare; else they are cut at their end."""
        for first, wanted in self._words.items():
            behind = [n for n in self._visual(list(widths)) if n >= first]
            missing = wanted - sum(widths[n] for n in behind) - max(0, room - sum(widths.values()))
            for n in widths if behind and missing > 0 else ():
                if n < first and rank_of(self._view.kind.columns[n]) == NAME:
                    given = max(0, min(missing, widths[n] - round(SHORT_NAME * scale())))
                    widths[n] -= given
                    widths[behind[-1]] += given
                    missing -= given

    def _need(self, section: int) -> Need:
        z, column = scale(), self._view.kind.columns[section]
        own = self.kept.widths.get(column_id(column))
        if own is not None:
            return Need(round(own * z), round(own * z), WHOLE)
        full, rank, seen = self._full(section), rank_of(column), self._seen[section]
        least = round(LEAST[rank] * z)
        if not seen.any:
            return Need(full, min(full, least), rank, round(LONG_NAME * z) if rank == NAME else 0)
        least = max(seen.width, least) if rank == WHOLE else min(seen.width, least)
        return Need(full, min(full, least), rank, round(LONG_NAME * z) if rank == NAME else 0)

    def _kept_apart(self, section: int, need: Need) -> Need:
        if need.rank != NAME or need.full <= need.least:
            return need
        column, painter = self._view.kind.columns[section], self._view.painter
        names = self._seen[section].names
        least = apart(names, need.full, need.least, lambda name, width: painter.shortened(column, name, width))
        return replace(need, least=least, easy=round(SHORT_NAME * scale()))

    def _visual(self, shown: list[int]) -> list[int]:
        head = self._view.horizontalHeader()
        return sorted(shown, key=head.visualIndex)

    def _rightmost(self, shown: list[int]) -> int:
        return self._visual(shown)[-1]

    def _last_of_words(self, shown: list[int]) -> int | None:
        """The last column that words can run on in; None where behind it stand only figures and states."""
        for n in reversed(self._visual(shown)):
            column = self._view.kind.columns[n]
            if self._is_folded(n) or column_id(column) in self.kept.widths:
                continue
            return None if column.right or column.paint in {"chip", "letters"} else n
        return None

    def _is_folded(self, section: int) -> bool:
        column = self._view.kind.columns[section]
        own = column_id(column) in self.kept.widths
        return self._rows_seen and bool(column.title) and not self._seen[section].any and not own

    def _apply(self, widths: dict[int, int]) -> None:
        head, table = self._view.horizontalHeader(), self._view.table
        folded = frozenset(n for n in widths if self._is_folded(n))
        moved = folded != table.folded
        table.folded = folded
        self._fitting = True
        try:
            for n in range(min(head.count(), len(table.columns))):
                if head.isSectionHidden(n) == (n in widths):
                    head.setSectionHidden(n, n not in widths)
                    moved = True
                if n in widths and head.sectionSize(n) != widths[n]:
                    head.resizeSection(n, widths[n])
                    moved = True
        finally:
            self._fitting = False
        if moved:
            head.viewport().update()
            self._view.columns_moved()

    # ---- what a person does ------------------------------------------------------------------------------------------

    def ask_keeper(self) -> None:
        """Be kept by the nearest window around the table that keeps columns: tables of dialogs are, too."""
        one = self._view.parentWidget()
        while one is not None and not self.remembered:
            keep = getattr(one, "keep_columns", None)
            if keep is not None:
                keep(self._view)
            one = one.parentWidget()

    def take(self, value: object) -> None:
        """Columns as they were left."""
        before, self.kept = self.kept.added, kept_columns(value)
        if before != self.kept.added:
            self.made.emit()
        self.reorder()
        self.fit()

    def add(self, name: str) -> None:
        """A column of the field ``name``, from now on."""
        if name not in self.kept.added:
            self.kept.added.append(name)
            self.made.emit()
            self.changed.emit()

    def remove(self, name: str) -> None:
        """Without the column of ``name`` that somebody added."""
        self.kept.added = [one for one in self.kept.added if one != name]
        self.kept.widths.pop(name, None)
        self.kept.order = [one for one in self.kept.order if one != name]
        self.made.emit()
        self.changed.emit()

    def has(self, name: str) -> bool:
        """Whether there is a column of the field."""
        return self._section(name) is not None

    def reorder(self) -> None:
        """Put the columns in the order that was kept; those it does not know stay where they are."""
        head = self._view.horizontalHeader()
        known = [n for name in self.kept.order if (n := self._section(name)) is not None]
        if not known:
            return
        places = sorted(head.visualIndex(n) for n in known)
        self._fitting = True
        try:
            for n, place in zip(known, places, strict=True):
                head.moveSection(head.visualIndex(n), place)
        finally:
            self._fitting = False
        self._view.columns_moved()

    def _section(self, name: str) -> int | None:
        return next((n for n, one in enumerate(self._view.kind.columns) if name and column_id(one) == name), None)

    def reset(self) -> None:
        """Back to the columns, widths and order of the first day."""
        head = self._view.horizontalHeader()
        added, self.kept = self.kept.added, KeptColumns()
        if added:
            self.made.emit()
        self._fitting = True
        try:
            for n in range(len(self._view.kind.columns)):
                head.moveSection(head.visualIndex(n), n)
        finally:
            self._fitting = False
        self._view.columns_moved()
        self.fit()
        self.changed.emit()

    def whole_width(self, section: int) -> int:
        """Px at which the head and all values on the screen and measured before are shown whole."""
        top = self._view.verticalScrollBar().value()
        self._measure(range(top, min(top + self._view.visible_rows() + 1, len(self._view.table.rows))))
        return max(self._head_width(section), self._seen[section].width, round(FOLDED * scale()))

    def fit_one(self, section: int) -> None:
        """As wide as its head and all values in sight, and from now on that wide: what a double click does too."""
        self._view.resizeColumnToContents(section)
        self.fit()

    def _keep_width(self, column: Column, width: int) -> None:
        name = column_id(column)
        if name:
            self.kept.widths[name] = max(16, round(width / scale()))
            self.changed.emit()

    def _resized(self, section: int, _old: int, new: int) -> None:
        """A drag of an edge; the others stay where they are until the button is let go."""
        if self._fitting or not 0 <= section < len(self._view.kind.columns):
            return
        self._dragging = True
        self._keep_width(self._view.kind.columns[section], new)
        self._view.columns_moved()

    def _moved(self, *_: int) -> None:
        if self._fitting:
            return
        head, columns = self._view.horizontalHeader(), self._view.kind.columns
        order = sorted(range(len(columns)), key=head.visualIndex)
        self.kept.order = [column_id(columns[n]) for n in order if column_id(columns[n])]
        self.changed.emit()
        self.fit()
        self._view.columns_moved()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The end of a drag: now the others take what is left."""
        if event.type() == QEvent.Type.MouseButtonRelease and self._dragging:
            self._dragging = False
            self.fit()
        return super().eventFilter(watched, event)

    # ---- the head's menu ---------------------------------------------------------------------------------------------

    def _open_menu(self, at: QPoint) -> None:
        head = self._view.horizontalHeader()
        menu = self.menu(head.logicalIndexAt(at))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(head.viewport().mapToGlobal(at))

    def menu(self, section: int) -> QMenu:
        """What can be done with the column under the pointer and with all of them."""
        menu = QMenu(self._view)
        menu.setObjectName("columns.menu")
        columns = self._view.kind.columns
        if 0 <= section < len(columns) and column_id(columns[section]):
            name = column_id(columns[section])
            menu.addAction(tr("Fit this column"), lambda: self.fit_one(section)).setObjectName("columns.fit")
            if name in self.kept.added:
                menu.addAction(tr("Remove this column"), lambda: self.remove(name)).setObjectName("columns.remove")
        menu.addAction(tr("Reset columns"), self.reset).setObjectName("columns.reset")
        return menu


FOLDED = 24
"""Px at 100 % of a column that has no value in sight."""
IN_SIGHT = 200
"""Rows that are measured as a source comes; later ones as they come on the screen."""
BODY, SENTENCE, NAME, WHOLE = range(4)
"""What a column is; of WHOLE ones only the heads give way."""
LONG_NAME = 220
"""Px at 100 % down to which a name gives way before it is looked up how far it can and still be told apart."""
LEAST = {BODY: 72, SENTENCE: 88, NAME: 64, WHOLE: 68}
"""Px at 100 % below which no column of a rank goes, unless its values are shorter; short heads stay whole."""


def rank_of(column: Column) -> int:
    """When the column gives way."""
    if not column.key or column.right or column.elide == "never" or column.paint in {"chip", "letters"}:
        return WHOLE
    if column.slim:
        return BODY
    return NAME if column.elide == "middle" else SENTENCE


def column_id(column: Column) -> str:
    """What names a column of a table between starts; "" for the gutter."""
    return column.key or column.title


@dataclass(frozen=True, slots=True)
class Need:
    """What a column wants: ``full`` px for its head and all values in sight; it gives way down to ``least`` px, a name
    down to ``easy`` px before heads do.
    """

    full: int
    least: int
    rank: int
    easy: int = 0


def fitted(needs: Sequence[Need], room: int) -> list[int]:
    """The widths in the order of ``needs``; they are more than ``room`` together where nobody can give way any more."""
    widths = [need.full for need in needs]
    long_names = [replace(need, least=max(need.least, need.easy)) for need in needs]
    for rank, floors in ((BODY, needs), (SENTENCE, needs), (NAME, long_names), (WHOLE, needs), (NAME, needs)):
        missing = sum(widths) - room
        if missing <= 0:
            break
        _lower(widths, [n for n, need in enumerate(needs) if need.rank == rank], floors, missing)
    return widths


def _lower(widths: list[int], those: list[int], needs: Sequence[Need], missing: int) -> None:
    """Take ``missing`` px from ``those``, from the widest first: a short column stays whole beside a long one."""
    target = sum(widths[n] for n in those) - missing

    def at(level: int) -> list[int]:
        return [max(min(needs[n].least, widths[n]), min(widths[n], level)) for n in those]

    low, high = 0, max((widths[n] for n in those), default=0)
    while low < high:
        level = (low + high + 1) // 2
        low, high = (level, high) if sum(at(level)) <= target else (low, level - 1)
    for n, width in zip(those, at(low), strict=True):
        widths[n] = width


def apart(names: Iterable[str], full: int, least: int, shorten: Callable[[str, int], str], step: int = 8) -> int:
    """The smallest width from ``least`` on at which no two different ``names`` look alike once ``shorten`` (text, px)
    has cut them; ``full`` where every smaller one makes some equal.
    """
    different = set(names)
    for width in range(least, full, step):
        if len({shorten(name, width) for name in different}) == len(different):
            return width
    return full


@dataclass
class KeptColumns:
    """What a person did to the columns of one table: dragged widths in px at 100 %, the order, fields added."""

    widths: dict[str, int] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)

    def record(self) -> dict[str, Any]:
        """For the settings; empty where nothing was done."""
        parts = {"widths": self.widths, "order": self.order, "added": self.added}
        return {name: part for name, part in parts.items() if part}


def kept_columns(value: object) -> KeptColumns:
    """The reverse of :meth:`KeptColumns.record`; what is no such thing counts as nothing done."""
    found = value if isinstance(value, dict) else {}
    widths, order, added = (found.get(name) for name in ("widths", "order", "added"))
    return KeptColumns(
        {k: v for k, v in widths.items() if isinstance(v, int) and 16 <= v <= 4000} if isinstance(widths, dict) else {},
        [one for one in order if isinstance(one, str)] if isinstance(order, list) else [],
        [one for one in added if isinstance(one, str)] if isinstance(added, list) else [],
    )
