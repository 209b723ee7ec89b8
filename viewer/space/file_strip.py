"""One file of the log as a strip: topics by bytes, wrong CRCs and damage as marks, blanks, zeros, holes; a click goes.

Upper lane: what the bytes are. Lower lane: what the file system holds; a hole is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QVBoxLayout

from engine.errors import StoreError
from viewer.look.assets import tr
from viewer.look.formats import number, plain, size
from viewer.look.theme import C, dark, px, scale, ui
from viewer.look.topic_colours import colours_of
from viewer.look.topic_kinds import kind_words
from viewer.runtime.jobs import Cancelled
from viewer.runtime.worker import WorkerDied
from viewer.widgets.basics import PaneHead, Paper, Tool
from viewer.widgets.canvas import Canvas
from viewer.widgets.drawn_marks import place_mark
from viewer.widgets.paint import hatch, mark
from viewer.widgets.record_menu import Found, MarkMenu

if TYPE_CHECKING:
    from engine.inspection.file_map import FileMap, MapCell
    from viewer.runtime.store_session import StoreSession


HEIGHT, TOP, BAND, HELD, SIDE = 52, 14, 22, 5, 12


class FileStrip(Canvas):
    """``placed(offset)`` on a click and on Enter: the first trouble of the stretch, else its first byte."""

    placed = Signal(object)

    def __init__(self, name: str = "space.file") -> None:
        super().__init__(name, tr("The file as a strip"), HEIGHT)
        self._map: FileMap | None = None
        self._words = ""
        self._at = 0
        self.menu = MarkMenu(self, self.mark_at)

    def show_map(self, found: FileMap | None, words: str = "") -> None:
        """Draw another file's map, or say why there is none."""
        self._map, self._words, self._at = found, words, 0
        self._tell()
        self.update()

    @property
    def map(self) -> FileMap | None:
        return self._map

    def _left(self, cell: int) -> float:
        count = len(self._map.cells) if self._map is not None else 1
        return px(SIDE) + (self.width() - 2 * px(SIDE)) * cell / max(count, 1)

    def _cell_at(self, x: float) -> int:
        count = len(self._map.cells) if self._map is not None else 1
        cell = int((x - px(SIDE)) * count / max(1, self.width() - 2 * px(SIDE)))
        return min(max(cell, 0), count - 1)

    # ---- painting ----------------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        p = QPainter(self)
        p.fillRect(event.rect(), C("pane"))
        p.fillRect(QRect(0, self.height() - 1, self.width(), 1), C("hair"))
        if self._map is None:
            p.setFont(ui(12))
            p.setPen(C("text3"))
            p.drawText(self.rect().adjusted(px(SIDE), 0, -px(SIDE), 0), Qt.AlignmentFlag.AlignVCenter, self._words)
            return
        for at, cell in enumerate(self._map.cells):
            left = round(self._left(at))
            width = round(self._left(at + 1)) - left
            if width:
                self._paint_cell(p, cell, QRectF(left, px(TOP), width, px(BAND)))
        self._paint_marks(p)
        if self.hasFocus():
            edge = self._left(self._at)
            p.setPen(QPen(C("accent"), 2))
            p.setBrush(Qt.BrushStyle.NoBrush)
            p.drawRect(QRectF(edge - 1, px(TOP) - 3, max(self._left(self._at + 1) - edge, 4) + 2, px(BAND + HELD) + 9))

    def _paint_cell(self, p: QPainter, cell: MapCell, box: QRectF) -> None:
        whole = max(cell.end - cell.start, 1)
        p.fillRect(box, C("sunken"))
        y = box.top()
        for topic, count in cell.topics:
            tall = box.height() * count / whole
            color = colours_of(self).color(topic)
            if color is None:
                color = C("text3", 0.4)
            else:
                color.setAlphaF(0.7 if dark() else 0.78)
            p.fillRect(QRectF(box.left(), y, box.width(), tall), color)
            y += tall
        if cell.damaged:
            part = QRectF(box.left(), y, box.width(), max(box.height() * cell.damaged / whole, 2))
            p.fillRect(part, C("errorFill"))
            hatch(p, part, "error")
        below = QRectF(box.left(), box.bottom() + px(3), box.width(), px(HELD))
        if cell.held:
            p.fillRect(below, C("posMin", 0.25 + 0.55 * min(cell.held / whole, 1.0)))

    def _paint_marks(self, p: QPainter) -> None:
        assert self._map is not None
        last = -10.0
        for at, cell in enumerate(self._map.cells):
            x = (self._left(at) + self._left(at + 1)) / 2
            if (cell.bad or cell.damaged) and x - last > 7 * scale():
                mark(p, "error", QPointF(x, px(TOP) - px(7)), 3.6 * scale())
                last = x

    # ---- pointer and keys --------------------------------------------------------------------------------------------

    def _target(self, at: int) -> int:
        """The first trouble of a stretch, else its first byte."""
        assert self._map is not None
        cell = self._map.cells[at]
        troubles = [*self._map.bad, *(offset for offset, _ in self._map.damage)]
        inside = [offset for offset in troubles if cell.start <= offset < cell.end]
        return min(inside, default=cell.start)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self._map is not None:
            self._at = self._cell_at(event.position().x())
            self._tell()
            self.placed.emit(self._target(self._at))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_PageUp: -20, Qt.Key.Key_PageDown: 20}
        if self._map is None:
            super().keyPressEvent(event)
        elif key in steps:
            self._at = min(max(self._at + steps[key], 0), len(self._map.cells) - 1)
            self._tell()
            self.update()
        elif key in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self.placed.emit(self._target(self._at))
        else:
            super().keyPressEvent(event)

    def _tell(self) -> None:
        self.setAccessibleDescription(self.words_of(self._at) if self._map is not None else self._words)

    def mark_at(self, point: QPointF | None) -> Found | None:
        """The stretch under the point, or the chosen one: its first trouble, else its first byte."""
        if self._map is None:
            return None
        at = self._at if point is None else self._cell_at(point.x())
        cell = self._map.cells[at]
        field = "damaged" if cell.damaged else "bodyCRC" if cell.bad else "commitLogFile"
        found = place_mark("lineMark", "", self._target(at), self.words_of(at), field)
        return found, QPointF(self._left(at), px(TOP + BAND))

    def words_under(self, point: QPointF) -> str:
        """The stretch in full, or why there is none."""
        return self.words_of(self._cell_at(point.x())) if self._map is not None else self._words

    def words_of(self, at: int) -> str:
        """What a stretch holds."""
        assert self._map is not None
        cell = self._map.cells[at]
        whole = cell.end - cell.start
        parts = [f"{number(cell.start)} – {number(cell.end)}"]
        parts += [f"{_named(topic)} {count / whole:.0%}" for topic, count in cell.topics[:8]]
        for count, words in (
            (cell.damaged, tr("damaged {size}", size=size(cell.damaged))),
            (cell.blank, tr("end-of-file unit {size}", size=size(cell.blank))),
            (cell.zero, tr("zeros {size}", size=size(cell.zero))),
            (cell.bad, tr("{n:,} wrong CRC", n=cell.bad)),
        ):
            if count:
                parts.append(words)
        if cell.held < whole:
            parts.append(tr("a hole: {size} of {whole} are on the disk", size=size(cell.held), whole=size(whole)))
        return "\n".join(parts)


def _named(topic: str) -> str:
    kind = kind_words(topic)
    return f"{plain(topic)} ({kind})" if kind else plain(topic)


CELLS = 400


class FilePanel(Paper):
    """Hidden until a file is chosen. ``placed(offset)`` where the strip is clicked, ``closed()`` when put away."""

    placed = Signal(object)
    closed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("space.filePanel")
        self._session: StoreSession | None = None
        self._name = ""
        self._maps: dict[str, FileMap] = {}
        close = Tool("close", tr("Put the map away"))
        close.setObjectName("space.fileClose")
        close.clicked.connect(self.put_away)
        self.head = PaneHead("", "", close)
        self.strip = FileStrip()
        self.strip.placed.connect(self.placed)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(self.head)
        box.addWidget(self.strip)
        self.hide()

    def set_session(self, session: StoreSession | None) -> None:
        """Another store: what was drawn is forgotten."""
        self._session = session
        self._maps.clear()
        self._name = ""
        self.hide()

    def put_away(self) -> None:
        """Hide the map."""
        self._name = ""
        self.hide()
        self.closed.emit()

    def show_file(self, name: str) -> None:
        """Draw the map of a file; a map drawn before stands until the new one is there."""
        self._name = name
        self.head.set_title(tr("File {name}", name=name))
        known = self._maps.get(name)
        self._show(known, tr("Reading the file and checking every CRC …"))
        self.show()
        if self._session is not None:
            self._session.jobs.start(self._draw(self._session, name))

    def _show(self, found: FileMap | None, words: str) -> None:
        self.strip.show_map(found, words)
        if found is None:
            self.head.set_note("")
            return
        parts = [tr("{n:,} units", n=found.units)]
        if found.bad:
            parts.append(tr("{n:,} wrong CRC", n=len(found.bad)))
        if found.damage:
            parts.append(tr("{n:,} spans of damage", n=len(found.damage)))
        if not found.bad and not found.damage:
            parts.append(tr("every CRC right"))
        if not found.complete:
            parts.append(tr("stopped before its end"))
        self.head.set_note(" · ".join(parts))

    async def _draw(self, session: StoreSession, name: str) -> None:
        found: FileMap | None = None
        words = tr("stopped")
        try:
            found = await session.jobs.in_worker(
                tr("Drawing file {name}", name=name),
                "viewer.space.work:map_of",
                session.path,
                session.config,
                name,
                CELLS,
            )
        except Cancelled:
            pass
        except (StoreError, OSError, WorkerDied, RuntimeError) as error:
            words = str(error)
        if session is not self._session:
            return
        if found is not None:
            while len(self._maps) >= 8:
                del self._maps[next(iter(self._maps))]
            self._maps[name] = found
        if name == self._name:
            self._show(found, words)
