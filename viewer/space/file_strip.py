"""Strip of one file of the log: topics by bytes, damage and wrong CRCs as marks; a click goes to the place.

Upper lane: content of the bytes. Lower lane: what the file system has allocated; a hole is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QVBoxLayout

from engine.errors import StoreError
from viewer.look.assets import tr, tr_plural
from viewer.look.engine_words import engine_words
from viewer.look.formats import number, plain, size
from viewer.look.theme import C, dark, px, scale, ui
from viewer.look.topic_colours import colours_of
from viewer.look.topic_kinds import kind_words
from viewer.runtime.jobs import Cancelled
from viewer.runtime.worker import WorkerDied
from viewer.widgets.basics import PaneHead, ThemedPanel, ToolButton
from viewer.widgets.canvas import Canvas
from viewer.widgets.drawn_marks import place_mark
from viewer.widgets.paint import hatch, mark
from viewer.widgets.record_menu import Found, MarkMenu

if TYPE_CHECKING:
    from engine.inspection.file_map import FileMap, MapCell
    from viewer.runtime.store_session import StoreSession


HEIGHT, TOP, BAND, ALLOCATED_HEIGHT, SIDE = 52, 14, 22, 5, 12


class FileStrip(Canvas):
    """Emits ``offsetChosen(offset)`` on a click and on Enter: the first damage of the cell, else its first byte."""

    offsetChosen = Signal(object)

    def __init__(self, name: str = "space.file") -> None:
        super().__init__(name, tr("The file as a strip"), HEIGHT)
        self._map: FileMap | None = None
        self._words = ""
        self._selected = 0
        self.menu = MarkMenu(self, self.mark_at)

    def show_map(self, file_map: FileMap | None, words: str = "") -> None:
        """Draw the map of another file, or say why there is none."""
        self._map, self._words, self._selected = file_map, words, 0
        self._describe()
        self.update()

    @property
    def map(self) -> FileMap | None:
        return self._map

    def _cell_left(self, cell: int) -> float:
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
        for index, cell in enumerate(self._map.cells):
            cell_left = round(self._cell_left(index))
            width = round(self._cell_left(index + 1)) - cell_left
            if width:
                self._paint_cell(p, cell, QRectF(cell_left, px(TOP), width, px(BAND)))
        self._paint_marks(p)
        if self.hasFocus():
            frame_left = self._cell_left(self._selected)
            p.setPen(QPen(C("accent"), 2))
            p.setBrush(Qt.BrushStyle.NoBrush)
            p.drawRect(
                QRectF(
                    frame_left - 1,
                    px(TOP) - 3,
                    max(self._cell_left(self._selected + 1) - frame_left, 4) + 2,
                    px(BAND + ALLOCATED_HEIGHT) + 9,
                )
            )

    def _paint_cell(self, p: QPainter, cell: MapCell, box: QRectF) -> None:
        cell_bytes = max(cell.end - cell.start, 1)
        p.fillRect(box, C("sunken"))
        y = box.top()
        for topic, count in cell.topics:
            part_height = box.height() * count / cell_bytes
            color = colours_of(self).color(topic)
            if color is None:
                color = C("text3", 0.4)
            else:
                color.setAlphaF(0.7 if dark() else 0.78)
            p.fillRect(QRectF(box.left(), y, box.width(), part_height), color)
            y += part_height
        if cell.damaged:
            part = QRectF(box.left(), y, box.width(), max(box.height() * cell.damaged / cell_bytes, 2))
            p.fillRect(part, C("errorFill"))
            hatch(p, part, "error")
        lower_lane = QRectF(box.left(), box.bottom() + px(3), box.width(), px(ALLOCATED_HEIGHT))
        if cell.held:
            p.fillRect(lower_lane, C("posMin", 0.25 + 0.55 * min(cell.held / cell_bytes, 1.0)))

    def _paint_marks(self, p: QPainter) -> None:
        assert self._map is not None
        last_x = -10.0
        for index, cell in enumerate(self._map.cells):
            x = (self._cell_left(index) + self._cell_left(index + 1)) / 2
            if (cell.bad or cell.damaged) and x - last_x > 7 * scale():
                mark(p, "error", QPointF(x, px(TOP) - px(7)), 3.6 * scale())
                last_x = x

    # ---- pointer and keys --------------------------------------------------------------------------------------------

    def _target(self, index: int) -> int:
        """Return the offset of the first damage in a cell, else of its first byte."""
        assert self._map is not None
        cell = self._map.cells[index]
        damaged_offsets = [*self._map.bad, *(offset for offset, _ in self._map.damage)]
        offsets_in_cell = [offset for offset in damaged_offsets if cell.start <= offset < cell.end]
        return min(offsets_in_cell, default=cell.start)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self._map is not None:
            self._selected = self._cell_at(event.position().x())
            self._describe()
            self.offsetChosen.emit(self._target(self._selected))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_PageUp: -20, Qt.Key.Key_PageDown: 20}
        if self._map is None:
            super().keyPressEvent(event)
        elif key in steps:
            self._selected = min(max(self._selected + steps[key], 0), len(self._map.cells) - 1)
            self._describe()
            self.update()
        elif key in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self.offsetChosen.emit(self._target(self._selected))
        else:
            super().keyPressEvent(event)

    def _describe(self) -> None:
        self.setAccessibleDescription(self.words_of(self._selected) if self._map is not None else self._words)

    def mark_at(self, point: QPointF | None) -> Found | None:
        """Return the mark of the cell under the point, or of the selected cell."""
        if self._map is None:
            return None
        index = self._selected if point is None else self._cell_at(point.x())
        cell = self._map.cells[index]
        field = "damaged" if cell.damaged else "bodyCRC" if cell.bad else "commitLogFile"
        cell_mark = place_mark("lineMark", "", self._target(index), self.words_of(index), field)
        return cell_mark, QPointF(self._cell_left(index), px(TOP + BAND))

    def words_under(self, point: QPointF) -> str:
        """Describe the cell under a point, or say why there is no map."""
        return self.words_of(self._cell_at(point.x())) if self._map is not None else self._words

    def words_of(self, index: int) -> str:
        """Describe the content of a cell."""
        assert self._map is not None
        cell = self._map.cells[index]
        cell_bytes = cell.end - cell.start
        parts = [f"{number(cell.start)} – {number(cell.end)}"]
        parts += [f"{_topic_with_kind(topic)} {count / cell_bytes:.0%}" for topic, count in cell.topics[:8]]
        for count, words in (
            (cell.damaged, tr("damaged {size}", size=size(cell.damaged))),
            (cell.blank, tr("end-of-file unit {size}", size=size(cell.blank))),
            (cell.zero, tr("zeros {size}", size=size(cell.zero))),
            (cell.bad, tr("{n:,} wrong CRC", n=cell.bad)),
        ):
            if count:
                parts.append(words)
        if cell.held < cell_bytes:
            parts.append(tr("a hole: {size} of {whole} are on the disk", size=size(cell.held), whole=size(cell_bytes)))
        return "\n".join(parts)


def _topic_with_kind(topic: str) -> str:
    kind = kind_words(topic)
    return f"{plain(topic)} ({kind})" if kind else plain(topic)


CELL_COUNT = 400


class FilePanel(ThemedPanel):
    """Panel with the strip of one file; hidden until a file is selected.

    Emits ``offsetChosen(offset)`` when the strip is clicked, ``closed()`` when the panel is closed.
    """

    offsetChosen = Signal(object)
    closed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("space.filePanel")
        self._session: StoreSession | None = None
        self._name = ""
        self._maps: dict[str, FileMap] = {}
        close = ToolButton("close", tr("Hide the map"))
        close.setObjectName("space.fileClose")
        close.clicked.connect(self.put_away)
        self.head = PaneHead("", "", close)
        self.strip = FileStrip()
        self.strip.offsetChosen.connect(self.offsetChosen)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(self.head)
        box.addWidget(self.strip)
        self.hide()

    def set_session(self, session: StoreSession | None) -> None:
        """Forget the drawn maps and show another store."""
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
        """Draw the map of a file; the map drawn before stays until the new one is ready."""
        self._name = name
        self.head.set_title(tr("File {name}", name=name))
        file_map = self._maps.get(name)
        self._show(file_map, tr("Reading the file and checking every CRC …"))
        self.show()
        if self._session is not None:
            self._session.jobs.start(self._read_map(self._session, name))

    def _show(self, file_map: FileMap | None, words: str) -> None:
        self.strip.show_map(file_map, words)
        if file_map is None:
            self.head.set_note("")
            return
        parts = [tr_plural("{n:,} unit", "{n:,} units", n=file_map.units)]
        if file_map.bad:
            parts.append(tr("{n:,} wrong CRC", n=len(file_map.bad)))
        if file_map.damage:
            parts.append(tr_plural("{n:,} span of damage", "{n:,} spans of damage", n=len(file_map.damage)))
        if not file_map.bad and not file_map.damage:
            parts.append(tr("all CRCs correct"))
        if not file_map.complete:
            parts.append(tr("stopped before its end"))
        self.head.set_note(" · ".join(parts))

    async def _read_map(self, session: StoreSession, name: str) -> None:
        file_map: FileMap | None = None
        words = tr("stopped")
        try:
            file_map = await session.jobs.in_worker(
                tr("Drawing file {name}", name=name),
                "viewer.space.work:map_of",
                session.path,
                session.config,
                name,
                CELL_COUNT,
            )
        except Cancelled:
            pass
        except (StoreError, OSError, WorkerDied, RuntimeError) as error:
            words = engine_words(str(error))
        if session is not self._session:
            return
        if file_map is not None:
            while len(self._maps) >= 8:
                del self._maps[next(iter(self._maps))]
            self._maps[name] = file_map
        if name == self._name:
            self._show(file_map, words)
