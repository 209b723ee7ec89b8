"""The command palette: a field over a veil. It lists commands, places and filters that match the typed text.

``>`` only commands · ``@`` an offset or time · ``#`` a message id or key · ``:`` a filter. The palette does not
know the store: its entries come from :attr:`PaletteBox.source`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, QRect, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from viewer.look.assets import icon_pixmap, tr
from viewer.look.theme import C, follow, px, theme, ui
from viewer.widgets.basics import Field, Hairline, Key, Label, ThemedPanel
from viewer.widgets.boxes import row

WIDTH, ROW, HEAD, MAX_LINES = 720, 34, 26, 12


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the palette: name, note, keys, and the action to run.

    One that is not ``enabled`` is grey; its note and its action say what it needs.
    """

    section: str
    icon: str
    text: str
    note: str
    keys: str
    work: Callable[[], object]
    enabled: bool = True


Source = Callable[[str], Sequence[Entry]]


def rank(text: str, query: str) -> int | None:
    """Return how well ``text`` matches ``query``: 0 is best, None is no match.

    0: it begins with the query. 1: one of its words does. 2: it contains the query. 3: it has its letters in
    order.
    """
    lower_text, wanted_text = text.casefold(), query.casefold().strip()
    if not wanted_text or lower_text.startswith(wanted_text):
        return 0
    if any(word.startswith(wanted_text) for word in lower_text.replace(":", " ").split()):
        return 1
    if wanted_text in lower_text:
        return 2
    letters = iter(lower_text)
    return 3 if len(wanted_text) > 1 and all(letter in letters for letter in wanted_text if letter != " ") else None


class EntryList(QWidget):
    """The painted lines with small section heads."""

    chosen = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("palette.list")
        self.entries: list[Entry] = []
        self.query = ""
        self.current = 0
        self.top = 0
        """Index of the first shown line. :data:`MAX_LINES` lines are shown; moving the selection scrolls."""
        self.setMouseTracking(True)

    def show_entries(self, entries: Sequence[Entry], query: str) -> None:
        """Show these lines and select the first."""
        self.entries, self.query, self.current, self.top = list(entries), query, 0, 0
        self._fit()
        self._speak()
        self.update()

    def step(self, by: int) -> None:
        """Select another line."""
        if self.entries:
            self.current = (self.current + by) % len(self.entries)
            self.top = min(max(self.top, self.current - MAX_LINES + 1), self.current)
            self._fit()
            self._speak()
            self.update()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll the lines."""
        last_top = max(0, len(self.entries) - MAX_LINES)
        self.top = max(0, min(last_top, self.top - round(event.angleDelta().y() / 60)))
        self.current = max(self.top, min(self.top + MAX_LINES - 1, self.current))
        self._fit()
        self.update()

    def _fit(self) -> None:
        self.setFixedHeight(sum(box.height() for _, box in self._boxes()) + px(6))
        if (box := self.parentWidget()) is not None:
            box.adjustSize()

    def _speak(self) -> None:
        entry = self.entries[self.current] if self.entries else None
        self.setAccessibleName(f"{entry.text}, {entry.note}" if entry else tr("No match"))

    def _boxes(self) -> list[tuple[Entry | str, QRect]]:
        boxes: list[tuple[Entry | str, QRect]] = []
        y, section = 0, ""
        for entry in self.entries[self.top : self.top + MAX_LINES]:
            if entry.section != section:
                section = entry.section
                boxes.append((section, QRect(0, y, self.width(), px(HEAD))))
                y += px(HEAD)
            boxes.append((entry, QRect(0, y, self.width(), px(ROW))))
            y += px(ROW)
        return boxes

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint sections and lines."""
        p = QPainter(self)
        for item, box in self._boxes():
            if isinstance(item, str):
                p.setFont(ui(11, 600))
                p.setPen(C("text3"))
                p.drawText(box.adjusted(px(17), px(6), 0, 0), int(Qt.AlignmentFlag.AlignVCenter), item)
            else:
                self._paint_entry(p, item, box, item is self.entries[self.current])

    def _paint_entry(self, p: QPainter, entry: Entry, box: QRect, current: bool) -> None:
        if current:
            p.fillRect(box, C("select"))
            p.fillRect(QRect(0, box.top(), 3, box.height()), C("accent"))
        side = px(18)
        if entry.icon:
            tone = C("accent" if current else "text2" if entry.enabled else "disabled")
            picture = icon_pixmap(entry.icon, tone, side, self.devicePixelRatioF())
            p.drawPixmap(px(15), box.top() + (box.height() - side) // 2, picture)
        right = self._paint_keys(p, entry.keys, box)
        x = px(43)
        start = entry.text.casefold().find(self.query.casefold()) if self.query else -1
        pieces = (
            [(entry.text, False)]
            if start < 0
            else [
                (entry.text[:start], False),
                (entry.text[start : start + len(self.query)], True),
                (entry.text[start + len(self.query) :], False),
            ]
        )
        for text, hit in pieces:
            p.setFont(ui(13, 600 if hit else 400))
            p.setPen(C("accent" if hit else "text" if entry.enabled else "disabled"))
            shown = QFontMetrics(p.font()).elidedText(text, Qt.TextElideMode.ElideRight, max(0, right - x))
            p.drawText(QRect(x, box.top(), max(0, right - x), box.height()), int(Qt.AlignmentFlag.AlignVCenter), shown)
            x += QFontMetrics(p.font()).horizontalAdvance(shown)
        p.setFont(ui(12))
        p.setPen(C("text2" if current else "text3"))
        room = QRect(x + px(10), box.top(), max(0, right - x - px(18)), box.height())
        note = QFontMetrics(p.font()).elidedText(entry.note, Qt.TextElideMode.ElideRight, room.width())
        p.drawText(room, int(Qt.AlignmentFlag.AlignVCenter), note)

    def _paint_keys(self, p: QPainter, keys: str, box: QRect) -> int:
        x = box.right() - px(14)
        p.setFont(ui(11, 500))
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        for cap in reversed(keys.split()):
            width = QFontMetrics(p.font()).horizontalAdvance(cap) + px(16)
            x -= width
            frame = QRectF(x + 0.5, box.center().y() - px(9) + 0.5, width - 1, px(18))
            p.setPen(C("hair"))
            p.setBrush(C("raised"))
            p.drawRoundedRect(frame, 4, 4)
            p.setPen(C("text3"))
            p.drawText(frame, int(Qt.AlignmentFlag.AlignCenter), cap)
            x -= px(4)
        p.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        return x

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Select the line under the pointer."""
        for item, box in self._boxes():
            if isinstance(item, Entry) and box.contains(event.position().toPoint()):
                self.current = self.entries.index(item)
                self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Choose the clicked line."""
        for item, box in self._boxes():
            if isinstance(item, Entry) and box.contains(event.position().toPoint()):
                self.chosen.emit(item)


class PaletteBox(QWidget):
    """A veil over the window with the box in it. Hidden until :meth:`open`."""

    def __init__(self, window: QWidget, source: Source) -> None:
        super().__init__(window)
        self.setObjectName("palette")
        self.setAccessibleName(tr("All commands"))
        self.source = source
        self._before: QWidget | None = None
        self.field = Field(tr("Type a command, a place or a filter"), icon_name="search")
        self.field.setObjectName("palette.field")
        self.field.setProperty("bare", True)
        self.list = EntryList()
        self.count = Label("", 12, "text3")
        self.box = self._make_box()
        self.field.textChanged.connect(self._ask)
        self.field.installEventFilter(self)
        self.list.chosen.connect(self._do)
        window.installEventFilter(self)
        follow(self, self._fit)
        self.hide()

    def _make_box(self) -> QWidget:
        box = ThemedPanel("pane")
        box.setParent(self)
        layout = QVBoxLayout(box)
        layout.setContentsMargins(1, 1, 1, px(8))
        layout.setSpacing(0)
        top = QHBoxLayout()
        top.setContentsMargins(px(8), px(6), px(8), px(6))
        top.addWidget(self.field)
        layout.addLayout(top)
        layout.addWidget(Hairline())
        layout.addWidget(self.list)
        layout.addWidget(Hairline())
        layout.addSpacing(px(7))
        hints = (
            (">", tr("command")),
            ("@", tr("offset or time")),
            ("#", tr("message id or key")),
            (":", tr("filter")),
            ("?", tr("all keys")),
        )
        parts = [row(Key(cap), Label(text, 12, "text3"), gap=5) for cap, text in hints]
        layout.addWidget(row(*parts, None, self.count, gap=14, margins=(16, 0, 16, 0)))
        return box

    def open(self, text: str = "") -> None:
        """Show the palette with ``text`` in the field."""
        self._before = self.window().focusWidget()
        self.field.setFont(ui(18))
        self.field.setText(text)
        self._ask(text)
        self._fit()
        self.show()
        self.raise_()
        self.field.setFocus()

    def dismiss(self) -> None:
        """Hide the palette and give the focus back."""
        self.hide()
        if self._before is not None:
            self._before.setFocus()

    def _ask(self, text: str) -> None:
        matches = list(self.source(text))
        self.list.show_entries(matches, text.lstrip(">@#:?").strip())
        self.count.setText(tr("{shown} of {all}", shown=min(len(matches), MAX_LINES), all=len(matches)))
        self._fit()

    def _do(self, entry: Entry) -> None:
        self.dismiss()
        entry.work()

    def _fit(self) -> None:
        window = self.parentWidget()
        if window is None:
            return
        self.setGeometry(window.rect())
        width = min(px(WIDTH), window.width() - px(40))
        self.field.setFont(ui(18))
        self.field.setMinimumHeight(px(40))
        self.box.setFixedWidth(width)
        self.list.setFixedWidth(width - 2)
        self.box.adjustSize()
        self.box.move((window.width() - width) // 2, px(96) if window.height() > px(600) else px(40))
        self.update()  # the shadow is outside the box, so the old one must be painted over

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle arrows, Enter and Escape in the field, and the window's size."""
        if watched is self.parentWidget() and isinstance(event, QResizeEvent) and self.isVisible():
            self._fit()
        if watched is self.field and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            key = event.key()
            if key in {Qt.Key.Key_Down, Qt.Key.Key_Up}:
                self.list.step(1 if key == Qt.Key.Key_Down else -1)
                return True
            if key in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
                if self.list.entries:
                    self._do(self.list.entries[self.list.current])
                return True
            if key == Qt.Key.Key_Escape:
                self.dismiss()
                return True
        return super().eventFilter(watched, event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint veil, shadow and frame."""
        p = QPainter(self)
        p.fillRect(self.rect(), C("veil", 0.18 if not theme.dark else 0.5))
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.setPen(Qt.PenStyle.NoPen)
        box = QRectF(self.box.geometry())
        shade = QColor(C("shadow", 0.035))
        for k in range(16, 0, -2):
            p.setBrush(shade)
            p.drawRoundedRect(box.adjusted(-k, -k + 6, k, k + 6), 8 + k, 8 + k)
        p.setPen(C("line"))
        p.setBrush(C("pane"))
        p.drawRoundedRect(box.adjusted(-1, -1, 1, 1), 4, 4)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Close the palette on a click outside the box."""
        if not self.box.geometry().contains(event.position().toPoint()):
            self.dismiss()
