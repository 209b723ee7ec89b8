"""Load of the hash slots of an index file: a heat map of all slots, and the lengths of their chains as bars; the
panel shows both of a chosen file.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine.errors import StoreError
from engine.inspection.index_reader import SlotLoad, cell_of
from viewer.index.facts import slot_load
from viewer.look.assets import tr, tr_plural
from viewer.look.engine_words import engine_words
from viewer.look.theme import C, follow, mono, px, scale, ui
from viewer.runtime import places
from viewer.runtime.jobs import Cancelled, Control
from viewer.runtime.store_session import StoreSession
from viewer.widgets.basics import Label, PaneHead, ThemedPanel
from viewer.widgets.canvas import Boxes, MarkCanvas
from viewer.widgets.drawn_marks import slot_mark
from viewer.widgets.focus import FocusRing
from viewer.widgets.record_menu import Found, MarkMenu

COLUMNS, ROWS = 64, 14
CELLS = COLUMNS * ROWS
_LEGEND = (0.0, 2.0, 4.0, 8.0, 16.0)


def heat(mean: float) -> QColor:
    """Return the colour of a cell with chains of ``mean`` entries: the accent, stronger as it grows, full at 16."""
    share = 0.0 if mean <= 0 else min(1.0, 0.12 + 0.88 * (min(mean, 16.0) / 16.0) ** 0.6)
    return C("accent", 0.06 + 0.86 * share)


class SlotMap(QWidget):
    """All slots of one file as cells, slot 0 at the top left. ``slot_chosen(slot)`` on a click or Enter."""

    slot_chosen = Signal(object)

    def __init__(self, link_of: Callable[[str, int], object] | None = None) -> None:
        """``link_of`` returns the place of a slot of a file."""
        super().__init__()
        self._link_of = link_of
        self.setObjectName("index.slots")
        self.setAccessibleName(tr("Slot load"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        FocusRing(self)
        self.setMinimumHeight(96)
        self._load: SlotLoad | None = None
        self._slot: int | None = None
        self._length: int | None = None
        self._words = self._file = ""
        self.menu = MarkMenu(self, self.mark_at)
        follow(self, self.update)

    def show_load(self, load: SlotLoad | None, words: str = "", file: str = "") -> None:
        """The load of ``file``; None with ``words`` while there is nothing to show yet."""
        self._load, self._words, self._file = load, words, file
        if load is None:
            self._slot = self._length = None
        self._describe()
        self.update()

    def choose(self, slot: int | None, length: int | None = None) -> None:
        """Ring the cell that holds ``slot``; ``length`` is that slot's own chain length."""
        self._slot, self._length = slot, length
        self._describe()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(520, 150)

    def _describe(self) -> None:
        load = self._load
        if load is None:
            self.setAccessibleDescription(self._words)
            return
        self.setAccessibleDescription(
            tr_plural(
                "{n:,} slot, {used:,} used, longest chain {longest:,} at slot {at:,}",
                "{n:,} slots, {used:,} used, longest chain {longest:,} at slot {at:,}",
                n=load.slots,
                used=load.used,
                longest=load.longest,
                at=load.longest_slot,
            )
        )

    def _grid(self) -> tuple[float, float, int, int]:
        """Width and height of a cell, and how many columns and rows are drawn."""
        cells = len(self._load.cells) if self._load else CELLS
        columns = min(COLUMNS, cells)
        rows = max(1, (cells + columns - 1) // columns)
        columns = (cells + rows - 1) // rows  # rows of equal length: a last one that ends halfway looks cut off
        return (self.width() - 24) / columns, max(4.0, (self.height() - 36 * scale()) / rows), columns, rows

    def _slot_at(self, point: QPointF) -> int | None:
        """The first slot of the cell under the point."""
        if self._load is None:
            return None
        cell_width, cell_height, columns, _ = self._grid()
        column, row = int((point.x() - 12) // cell_width), int((point.y() - 8) // cell_height)
        cell = row * columns + column
        is_inside = 0 <= column < columns and 0 <= cell < len(self._load.cells)
        return cell * self._load.slots // len(self._load.cells) if is_inside else None

    def mark_at(self, point: QPointF | None) -> Found | None:
        """The slot under the point, or the chosen one."""
        slot = (self._slot or 0) if point is None else self._slot_at(point)
        if self._load is None or slot is None:
            return None
        cell_width, cell_height, columns, _ = self._grid()
        cell = cell_of(slot, self._load.slots, len(self._load.cells))
        words = tr("slot {slot:,}", slot=slot)
        if slot == self._slot and self._length is not None:
            words += " · " + tr("{n:,} long", n=self._length)
        link = self._link_of(self._file, slot) if self._link_of is not None and self._file else None
        below = QPointF(12 + (cell % columns + 0.5) * cell_width, 8 + (cell // columns + 1) * cell_height)
        return slot_mark(self._file, slot, link, words), below

    def mousePressEvent(self, event: QMouseEvent) -> None:
        slot = self._slot_at(event.position())
        if slot is not None and event.button() == Qt.MouseButton.LeftButton:
            self.slot_chosen.emit(slot)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Right: 1, Qt.Key.Key_Left: -1, Qt.Key.Key_Down: COLUMNS, Qt.Key.Key_Up: -COLUMNS}
        step = steps.get(Qt.Key(event.key()))
        if self._load is None or step is None:
            super().keyPressEvent(event)
            return
        cells = len(self._load.cells)
        cell = cell_of(self._slot or 0, self._load.slots, cells)
        cell = min(max(cell + step, 0), cells - 1)
        self.slot_chosen.emit(cell * self._load.slots // cells)

    def paintEvent(self, event: QPaintEvent) -> None:
        p = QPainter(self)
        p.fillRect(event.rect(), C("pane"))
        if self._load is None:
            p.setFont(ui(12))
            p.setPen(C("text3"))
            p.drawText(self.rect().adjusted(12, 0, -12, 0), Qt.AlignmentFlag.AlignVCenter, self._words)
            return
        cell_width, cell_height, columns, _ = self._grid()
        for cell, mean in enumerate(self._load.cells):
            x, y = 12 + cell % columns * cell_width, 8 + cell // columns * cell_height
            p.fillRect(QRectF(x, y, max(1.0, cell_width - 1), max(1.0, cell_height - 1)), heat(mean))
        if self._slot is not None:
            self._paint_ring(p, cell_width, cell_height, columns)
        self._paint_legend(p)

    def _paint_ring(self, p: QPainter, cell_width: float, cell_height: float, columns: int) -> None:
        assert self._load is not None
        assert self._slot is not None
        cell = cell_of(self._slot, self._load.slots, len(self._load.cells))
        x, y = 12 + cell % columns * cell_width, 8 + cell // columns * cell_height
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.setPen(QPen(C("live"), 2))
        p.setBrush(Qt.BrushStyle.NoBrush)
        p.drawRect(QRectF(x - 3, y - 3, cell_width + 5, cell_height + 5))
        words = f"{self._slot:,}"
        if self._length is not None:
            words += " · " + tr("{n:,} long", n=self._length)
        p.setFont(mono(11, 600))
        width = QFontMetrics(p.font()).horizontalAdvance(words) + 8
        label_left = x + cell_width + 8 if x + cell_width + 8 + width < self.width() - 8 else x - width - 8
        box = QRectF(label_left, y + cell_height / 2 - 9, width, 18)
        p.fillRect(box, C("pane"))
        p.setPen(C("live"))
        p.drawText(box, Qt.AlignmentFlag.AlignCenter, words)

    def _paint_legend(self, p: QPainter) -> None:
        assert self._load is not None
        z = scale()
        y = self.height() - 22 * z
        p.setFont(ui(11))
        p.setPen(C("text3"))
        p.drawText(QRectF(12, y, 90 * z, 18 * z), Qt.AlignmentFlag.AlignVCenter, tr("slot {slot:,}", slot=0))
        right = QRectF(self.width() - 112 * z, y, 100 * z, 18 * z)
        p.drawText(right, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, f"{self._load.slots - 1:,}")
        x = self.width() / 2 - 110 * z
        if self.width() > 470 * z:
            right_aligned = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
            p.drawText(QRectF(x - 94 * z, y, 90 * z, 18 * z), right_aligned, tr("mean chain"))
        for index, mean in enumerate(_LEGEND):
            swatch_left = x + (4 + index * 52) * z
            p.fillRect(QRectF(swatch_left, y + 3 * z, 22 * z, 12 * z), heat(mean))
            p.drawText(
                QRectF(swatch_left + 26 * z, y, 30 * z, 18 * z),
                Qt.AlignmentFlag.AlignVCenter,
                f"{mean:.0f}" + ("+" if mean >= 16 else ""),
            )


class ChainHistogram(MarkCanvas):
    """Bars of slots by the length of their chain; the last bar is everything longer. The bar of the chosen slot is
    highlighted.
    """

    def __init__(self) -> None:
        super().__init__("index.histogram", tr("Chain length"))
        self.setMinimumHeight(84)
        self._load: SlotLoad | None = None
        self._length: int | None = None
        self._file = ""

    def show_load(self, load: SlotLoad | None, length: int | None = None, file: str = "") -> None:
        """Bars of the load of ``file``; ``length`` is the chain length of the chosen slot."""
        self._load, self._length, self._file = load, length, file
        words = ", ".join(f"{n}: {count:,}" for n, count in enumerate(load.histogram)) if load else ""
        self.setAccessibleDescription(words)
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(520, 110)

    def marks(self) -> Boxes:
        """A bar with its number below."""
        bars = self._load.histogram if self._load is not None else ()
        wide = (self.width() - 24) / max(len(bars), 1)
        boxes = []
        for n, count in enumerate(bars):
            length = f"{n}+" if n == len(bars) - 1 else str(n)
            entries = tr_plural("{length} entry", "{length} entries", n=n, length=length)
            words = tr_plural("{n:,} slot with {entries}", "{n:,} slots with {entries}", n=count, entries=entries)
            box = QRectF(12 + n * wide, 2, wide - 4, self.height() - 4)
            boxes.append((box, slot_mark(self._file, None, None, words, "chainLength")))
        return boxes

    def paintEvent(self, event: QPaintEvent) -> None:
        p = QPainter(self)
        p.fillRect(event.rect(), C("pane"))
        if self._load is None:
            self.paint_framed(p)
            return
        bars = self._load.histogram
        top = max(*bars, 1)
        wide = (self.width() - 24) / len(bars)
        base = self.height() - 22 * scale()
        p.setFont(mono(11))
        for n, count in enumerate(bars):
            height = (base - 22 * scale()) * count / top
            height = max(height, 1.0) if count else 0.0
            is_chosen = self._length is not None and n == min(self._length, len(bars) - 1)
            p.fillRect(QRectF(12 + n * wide, base - height, wide - 4, height), C("accent", 0.85 if is_chosen else 0.35))
            p.setPen(C("text2"))
            name = f"{n}+" if n == len(bars) - 1 else str(n)
            p.drawText(QRectF(12 + n * wide, base + 3, wide - 4, 16 * scale()), Qt.AlignmentFlag.AlignCenter, name)
            p.setPen(C("text3"))
            over = QRectF(12 + n * wide - 6, base - height - 17 * scale(), wide + 8, 16 * scale())
            p.drawText(over, Qt.AlignmentFlag.AlignCenter, short_count(count))
        p.fillRect(QRectF(12, base, self.width() - 24, 1), C("line"))
        self.paint_framed(p)


def short_count(count: int) -> str:
    """Return ``977k`` or ``4.9M``: a count in three figures for the label of a bar."""
    if count < 10_000:
        return f"{count:,}"
    if count < 1_000_000:
        return f"{count / 1000:,.0f}k"
    return f"{count / 1_000_000:,.1f}M"


MAX_CACHED_FILES = 8
"""Number of files whose load is remembered."""
MIN_NEW_ENTRIES = 256
"""Entries (or a fiftieth, if that is more) by which a file may grow before its slots are counted again."""


class SlotPanel(ThemedPanel):
    """``slotChosen(slot)`` when a cell of the map is chosen."""

    slotChosen = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._session: StoreSession | None = None
        self._file = ""
        self._asked = ""
        self._loads: dict[str, SlotLoad] = {}
        self._count = -1
        self._slot: int | None = None
        self._length: int | None = None
        self._used = Label("", 12, "text3")
        self._head = PaneHead(tr("Slots"), "", self._used)
        self._bars_head = PaneHead(tr("Chain length"), tr("slots by the number of their entries"))
        self.map, self.bars = SlotMap(lambda file, slot: places.index(file, "slot", slot)), ChainHistogram()
        self.map.slot_chosen.connect(self.slotChosen)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        for part, stretch in ((self._head, 0), (self.map, 3), (self._bars_head, 0), (self.bars, 2)):
            box.addWidget(part, stretch)
        self.setMinimumWidth(px(320))

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store; forget the counts."""
        self._session = session
        self._loads.clear()
        self._asked = ""
        self.show_file("", -1)

    def show_file(self, name: str, count: int) -> None:
        """Show the slots of another file with ``count`` entries; count them now if that is not known yet."""
        if name != self._file:
            self._slot = self._length = None
        self._file, self._count = name, count
        self._head.set_title(tr("Slots of {file}", file=name) if name else tr("Slots"))
        load = self._loads.get(name)
        self._show(load, "" if not name else tr("counting the entries of every slot …"))
        is_counted = load is not None and abs(count - load.entries) <= max(MIN_NEW_ENTRIES, load.entries // 50)
        if not is_counted and name and self._session is not None and self._asked != name:
            self._asked = name
            self._session.jobs.start(self._count_load(self._session, name))

    def choose(self, slot: int | None, length: int | None) -> None:
        """Ring a slot, with the length of its chain if it is known."""
        self._slot, self._length = slot, length
        self.map.choose(slot, length)
        self.bars.show_load(self._loads.get(self._file), length, self._file)

    def _show(self, load: SlotLoad | None, words: str) -> None:
        self.map.show_load(load, words, self._file)
        self.bars.show_load(load, self._length, self._file)
        if load is None:
            self._used.setText("")
            return
        self.map.choose(self._slot, self._length)
        self._used.setText(
            tr_plural("{n:,} slot · {used:,} used", "{n:,} slots · {used:,} used", n=load.slots, used=load.used)
        )
        note = tr("longest {n:,}, slot {slot:,}", n=load.longest, slot=load.longest_slot)
        if not load.complete:
            note = tr_plural("first {n:,} entry only", "first {n:,} entries only", n=load.entries)
        self._bars_head.set_note(note)

    async def _count_load(self, session: StoreSession, name: str) -> None:
        def work(control: Control) -> SlotLoad | None:
            return slot_load(session.snapshot, name, CELLS, lambda: control.cancelled, control.report)

        words = tr("the numbers of slots and entries of this file are not known")
        load: SlotLoad | None = None
        try:
            load = await session.jobs.run(tr("Counting slots"), work)
        except Cancelled:
            words = tr("stopped")
        except (StoreError, OSError) as error:
            words = engine_words(str(error))
        if session is not self._session:
            return
        self._asked = ""
        if load is not None:
            while len(self._loads) >= MAX_CACHED_FILES:
                del self._loads[next(iter(self._loads))]
            self._loads[name] = load
        if name == self._file:
            self._show(load, words)
        elif self._file:
            self.show_file(self._file, self._count)
