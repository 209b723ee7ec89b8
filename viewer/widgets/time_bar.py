"""The strip below live plots: record, pause, replay, and a slider over the recorded time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from viewer.look.assets import tr
from viewer.look.formats import clock
from viewer.look.theme import C, follow, px, ui
from viewer.widgets.basics import Button, Label, ThemedPanel, ToolButton

EDGE = 8


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on the slider: a time in ms, a colour role and words below it."""

    at: int
    role: str
    words: str


class TimeTrack(QWidget):
    """The slider; times are in ms. Emits ``moved(ms)`` on a drag, arrow keys (a second), Page keys (ten), Home and
    End.
    """

    moved = Signal(object)

    def __init__(self, name: str = "track") -> None:
        super().__init__()
        self.setObjectName(name)
        self.setAccessibleName(tr("Time that is shown"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._span, self._at = (0, 0), 0
        self._ticks: tuple[Tick, ...] = ()
        self._fit()
        follow(self, self._fit)

    def _fit(self) -> None:
        self.setFixedHeight(px(44))
        self.update()

    @property
    def at(self) -> int:
        """The chosen time."""
        return self._at

    def show_time(self, span: tuple[int, int], time_ms: int, ticks: Sequence[Tick]) -> None:
        """Draw the recorded span, the chosen time in it, and marks."""
        self._span, self._at, self._ticks = span, min(max(time_ms, span[0]), span[1]), tuple(ticks)
        self.setAccessibleDescription(clock(self._at))
        self.update()

    def _x(self, time: int) -> float:
        start, end = self._span
        return EDGE + (self.width() - 2 * EDGE) * (time - start) / max(1, end - start)

    def _move(self, time: float) -> None:
        self.moved.emit(round(min(max(time, self._span[0]), self._span[1])))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.mouseMoveEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            share = (event.position().x() - EDGE) / max(1, self.width() - 2 * EDGE)
            self._move(self._span[0] + share * (self._span[1] - self._span[0]))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {
            Qt.Key.Key_Left: -1000,
            Qt.Key.Key_Right: 1000,
            Qt.Key.Key_PageUp: -10_000,
            Qt.Key.Key_PageDown: 10_000,
        }
        if event.key() in steps:
            self._move(self._at + steps[Qt.Key(event.key())])
        elif event.key() in (Qt.Key.Key_Home, Qt.Key.Key_End):
            self._move(self._span[0 if event.key() == Qt.Key.Key_Home else 1])
        else:
            super().keyPressEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        p = QPainter(self)
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        middle = px(17)
        p.setPen(Qt.PenStyle.NoPen)
        p.setBrush(C("accent", 0.6))
        p.drawRoundedRect(QRectF(EDGE, middle - 3, self.width() - 2 * EDGE, 6), 3, 3)
        p.setFont(ui(11))
        metrics, free_from = QFontMetrics(p.font()), 0.0
        for tick in self._ticks:
            x = self._x(tick.at)
            p.setPen(QPen(C(tick.role), 2))
            p.drawLine(QPointF(x, middle - 7), QPointF(x, middle + 7))
            text_width = metrics.horizontalAdvance(tick.words)
            text_x = min(x - 2, self.width() - text_width - 2)
            if text_x >= free_from:
                p.setPen(C("text2"))
                p.drawText(QRectF(text_x, middle + 9, text_width + 4, px(16)), tick.words)
                free_from = text_x + text_width + 10
        p.setPen(QPen(C("accent"), 2))
        p.setBrush(C("pane"))
        p.drawEllipse(QPointF(self._x(self._at), middle), 6, 6)
        if self.hasFocus():
            p.setPen(QPen(C("accent"), 2))
            p.setBrush(Qt.BrushStyle.NoBrush)
            p.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 4, 4)


class TimeBar(ThemedPanel):
    """Buttons, the chosen time, the slider, and the way back to now. The names of its parts begin with the view's
    name.
    """

    def __init__(self, view: str) -> None:
        super().__init__("side", ("top",))
        self.setObjectName(f"{view}.time")
        self.setAccessibleName(tr("Recording and time"))
        self.record = self._tool("record", f"{view}.record", tr("Record to a file"), checkable=True)
        self.pause = self._tool("pause", f"{view}.pause", tr("Pause the picture (Space)"), checkable=True)
        self.play = self._tool("play", f"{view}.play", tr("Replay from here"), checkable=True)
        self.end = self._tool("step", f"{view}.end", tr("To the end"))
        self.load = self._tool("open", f"{view}.load", tr("Open a recording…"))
        self.clock = Label("", 13, code=True)
        self.note = Label("", 11, "text3")
        self.track = TimeTrack(f"{view}.track")
        self.live = Button(tr("Live"), "pill", "follow")
        self.live.setObjectName(f"{view}.live")
        self.live.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.held = Label("", 12, "text3", code=True)
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addWidget(self.clock)
        words.addWidget(self.note)
        line = QHBoxLayout(self)
        line.setContentsMargins(px(12), px(4), px(12), px(4))
        line.setSpacing(px(8))
        for tool in (self.record, self.pause, self.play, self.end, self.load):
            line.addWidget(tool)
        line.addSpacing(px(8))
        line.addLayout(words)
        line.addWidget(self.track, 1)
        line.addWidget(self.live)
        line.addWidget(self.held)
        self._fit()
        follow(self, self._fit)

    def _fit(self) -> None:
        self.setFixedHeight(px(54))
        self.clock.setMinimumWidth(px(120))

    @staticmethod
    def _tool(icon: str, name: str, tip: str, *, checkable: bool = False) -> ToolButton:
        tool = ToolButton(icon, tip, checkable=checkable)
        tool.setObjectName(name)
        return tool
