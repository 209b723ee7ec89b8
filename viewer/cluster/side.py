"""Side column: details of the selection, its rate over a minute, and links."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QVBoxLayout

from viewer.cluster.cluster_model import MINUTE_MS, ClusterModel, Selection
from viewer.cluster.details import Detail, details_of, title_of
from viewer.cluster.drawing import RIGHT, client_colour
from viewer.look.assets import icon_pixmap, tr, tr_plural
from viewer.look.theme import C, follow, mono, px, ui
from viewer.widgets.basics import Hairline, Label, Link, PaneHead, ThemedPanel
from viewer.widgets.boxes import column, scrolling
from viewer.widgets.canvas import Canvas
from viewer.widgets.facts import Fact, Facts

SIDE_WIDTH_PX = 376
MAX_LINES = 60
"""Maximum number of lines of an item; the Tables tab shows all."""


class MinuteCurve(Canvas):
    """Curve of a rate over a minute, newest at the right; the line breaks where nothing was measured."""

    def __init__(self) -> None:
        super().__init__("cluster.minute", tr("A minute of its rate"), 96, Qt.FocusPolicy.NoFocus, followed=False)
        self._points: list[tuple[int, float | None]] = []
        self._colour_number = -1

    def show_minute(self, points: deque[tuple[int, float | None]], colour_number: int) -> None:
        """Show these points, (ms, messages a second).

        ``colour_number`` is the client's place in the palette; −1 for the accent colour.
        """
        self._points, self._colour_number = list(points), colour_number
        known_rates = [rate for _, rate in points if rate is not None]
        self.setAccessibleDescription(f"{known_rates[-1]:,.0f} /s" if known_rates else "…")
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        p = QPainter(self)
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        left_x, bottom, top = px(52), self.height() - px(18), px(8)
        width = self.width() - left_x - px(10)
        known_rates = [rate for _, rate in self._points if rate is not None]
        top_rate = _round_up(max(known_rates, default=0.0))
        p.setFont(mono(11))
        p.setPen(C("text3"))
        for share in (0.0, 0.5, 1.0):
            y = bottom - (bottom - top) * share
            p.fillRect(QRectF(left_x, y, width, 1), C("hair"))
            p.drawText(QRectF(0, y - px(8), left_x - px(6), px(16)), RIGHT, f"{top_rate * share:,.0f}")
        for share, words in ((0.0, "−60 s"), (0.5, "−30 s"), (1.0, tr("now"))):
            text_width = p.fontMetrics().horizontalAdvance(words)
            x = left_x + width * share - text_width * share
            p.drawText(QPointF(x, self.height() - px(4)), words)
        if not self._points:
            return
        end, path, drawn = self._points[-1][0], QPainterPath(), False
        for time_ms, rate in self._points:
            if rate is None:
                drawn = False
                continue
            point = QPointF(
                left_x + width * (1 - (end - time_ms) / MINUTE_MS), bottom - (bottom - top) * rate / top_rate
            )
            if drawn:
                path.lineTo(point)
            else:
                path.moveTo(point)
            drawn = True
        p.setPen(QPen(client_colour(self._colour_number) if self._colour_number >= 0 else C("accent"), 2))
        p.drawPath(path)


def _round_up(value: float) -> float:
    """Return the top of the scale: 1, 2 or 5 times a power of ten."""
    step = 10.0
    while step < value:
        step *= 2 if str(step)[0] in "15" else 2.5
    return step


class SidePanel(ThemedPanel):
    """Details and links of the selection.

    Emits ``chosen(Selection)`` when a line is clicked, ``placeRequested(place)`` when a link is clicked.
    """

    chosen = Signal(object)
    placeRequested = Signal(object)

    def __init__(self) -> None:
        super().__init__("pane", ("left",))
        self.setObjectName("cluster.side")
        self.setAccessibleName(tr("Selected item"))
        self.head = PaneHead("", "")
        self.facts = Facts(84)
        self.facts.placeRequested.connect(self.chosen)
        self.hidden_note = Label("", 12, "text3", wrap=True)
        self.curve_head = PaneHead(tr("Consumed"), tr("messages a second"))
        self.curve = MinuteCurve()
        self._links = column(gap=6, margins=(12, 10, 12, 10))
        self._shown_links: tuple[tuple[str, object], ...] = ()
        body = column(
            column(self.facts, self.hidden_note, gap=6, margins=(12, 10, 12, 10)),
            self.curve_head,
            self.curve,
            Hairline(),
            self._links,
            None,
            gap=0,
        )
        ground = ThemedPanel("pane")
        box = QVBoxLayout(ground)
        box.setContentsMargins(0, 0, 0, 0)
        box.addWidget(body)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(1, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.head)
        layout.addWidget(scrolling(ground), 1)
        self._fit()
        follow(self, self._fit)

    def _fit(self) -> None:
        self.setFixedWidth(px(SIDE_WIDTH_PX))

    def show_chosen(self, model: ClusterModel, item_links: Callable[[Selection], list[tuple[str, object]]]) -> None:
        """Show the model's selection; ``item_links`` returns labels and places of its links."""
        chosen = model.chosen
        name, note = title_of(model, chosen)
        self.head.set_title(name)
        self.head.set_note(note)
        details = details_of(model, chosen)
        self.facts.show_facts([_fact(item_detail) for item_detail in details[:MAX_LINES]])
        hidden_count = len(details) - MAX_LINES
        self.hidden_note.setText(
            tr_plural("{n:,} more line: see Tables", "{n:,} more lines: see Tables", n=hidden_count)
            if hidden_count > 0
            else ""
        )
        self.hidden_note.setVisible(hidden_count > 0)
        minute_key = {
            "client": (chosen.group, chosen.name),
            "group": (chosen.name, ""),
            "topic": ("", chosen.name),
        }.get(chosen.kind)
        minute = model.minutes.get(minute_key) if minute_key is not None else None
        for part in (self.curve_head, self.curve):
            part.setVisible(minute is not None)
        if minute is not None:
            self.curve_head.set_title(tr("Received") if chosen.kind == "topic" else tr("Consumed"))
            self.curve.show_minute(minute, model.badge(chosen.name).place if chosen.kind == "client" else -1)
        self._show_links(tuple(item_links(chosen)))

    def _show_links(self, links: tuple[tuple[str, object], ...]) -> None:
        if links == self._shown_links:
            return
        self._shown_links = links
        while (item := self._links.box.takeAt(0)) is not None:
            part = item.widget()
            if part is not None:
                part.hide()
                part.deleteLater()
        for words, place in links:
            if place is None:
                self._links.box.addWidget(Label(words, 12, "text3", wrap=True))
                continue
            link = Link(words)
            link.clicked.connect(lambda place=place: self.placeRequested.emit(place))
            self._links.box.addWidget(link)


def _fact(item_detail: Detail) -> Fact:
    return Fact(item_detail.name, item_detail.value, item_detail.note, item_detail.role, item_detail.target, code=True)


class FoldedStrip(QAbstractButton):
    """A folded column of a narrow window: a strip with name and note; a click opens it."""

    def __init__(self, name: str, *, at_left: bool = False) -> None:
        super().__init__()
        self.setObjectName(name)
        self._at_left = at_left
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCheckable(True)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self._name = self._note = ""
        self._fit()
        follow(self, self._fit)

    def _fit(self) -> None:
        self.setFixedWidth(px(32))
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(px(32), px(200))

    def show_words(self, name: str, note: str, spoken: str) -> None:
        """Set the text, and the tooltip and accessible name ``spoken``."""
        self._name, self._note = name, note
        self.setAccessibleName(spoken)
        self.setToolTip(spoken)
        self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        p = QPainter(self)
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.fillRect(self.rect(), C("hover" if self.underMouse() else "pane"))
        p.fillRect(QRectF(self.width() - 1 if self._at_left else 0, 0, 1, self.height()), C("hair"))
        icon = "forward" if self.isChecked() != self._at_left else "back"
        p.drawPixmap(px(8), px(12), icon_pixmap(icon, C("text2"), px(16)))
        if self.hasFocus():
            p.setPen(QPen(C("accent"), 2))
            p.drawRect(self.rect().adjusted(1, 1, -1, -1))
        p.translate(self.width() / 2, px(48))
        p.rotate(90)
        p.setFont(ui(13, 600))
        p.setPen(C("text"))
        room = self.height() - px(60)
        name = p.fontMetrics().elidedText(self._name, Qt.TextElideMode.ElideMiddle, room)
        p.drawText(QRectF(0, -px(10), room, px(20)), int(Qt.AlignmentFlag.AlignVCenter), name)
        shift = p.fontMetrics().horizontalAdvance(name) + px(8)
        p.setFont(ui(12))
        p.setPen(C("text3"))
        p.drawText(QRectF(shift, -px(10), room - shift, px(20)), int(Qt.AlignmentFlag.AlignVCenter), self._note)


class FoldedSide(FoldedStrip):
    """Side column of a narrow window, folded: the name of the selection."""

    def __init__(self) -> None:
        super().__init__("cluster.folded")

    def show_chosen(self, model: ClusterModel) -> None:
        """Show the model's selection."""
        name, note = title_of(model, model.chosen)
        self.show_words(name, note, tr("Side column: {name}", name=f"{name} {note}".strip()))
