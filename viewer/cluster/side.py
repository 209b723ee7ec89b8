"""The side column: what is chosen, taken apart, with a minute of its rate and the ways on from there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QVBoxLayout

from viewer.cluster.cluster_model import MINUTE, Chosen, ClusterModel
from viewer.cluster.drawn import RIGHT, client_colour
from viewer.cluster.words import Told, title_of, told_of
from viewer.look.assets import icon_pixmap, tr
from viewer.look.theme import C, follow, mono, px, ui
from viewer.widgets.basics import Hairline, Label, Link, PaneHead, Paper, column, scrolling
from viewer.widgets.canvas import Canvas
from viewer.widgets.facts import Fact, Facts

WIDE, MOST = 376, 60
"""Px, and lines that are told of one thing; Tables has the rest."""


class MinuteCurve(Canvas):
    """A minute of a rate, the end at the right; where nobody measured the line breaks."""

    def __init__(self) -> None:
        super().__init__("cluster.minute", tr("A minute of its rate"), 96, Qt.FocusPolicy.NoFocus, followed=False)
        self._points: list[tuple[int, float | None]] = []
        self._place = -1

    def show_minute(self, points: deque[tuple[int, float | None]], place: int) -> None:
        """These, (ms, messages a second), in the colour of a client."""
        self._points, self._place = list(points), place
        told = [rate for _, rate in points if rate is not None]
        self.setAccessibleDescription(f"{told[-1]:,.0f} /s" if told else "…")
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        p = QPainter(self)
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        left, bottom, top = px(52), self.height() - px(18), px(8)
        wide = self.width() - left - px(10)
        told = [rate for _, rate in self._points if rate is not None]
        high = _round_up(max(told, default=0.0))
        p.setFont(mono(11))
        p.setPen(C("text3"))
        for part in (0.0, 0.5, 1.0):
            y = bottom - (bottom - top) * part
            p.fillRect(QRectF(left, y, wide, 1), C("hair"))
            p.drawText(QRectF(0, y - px(8), left - px(6), px(16)), RIGHT, f"{high * part:,.0f}")
        for part, words in ((0.0, "−60 s"), (0.5, "−30 s"), (1.0, tr("now"))):
            w = p.fontMetrics().horizontalAdvance(words)
            x = left + wide * part - w * part
            p.drawText(QPointF(x, self.height() - px(4)), words)
        if not self._points:
            return
        end, path, drawn = self._points[-1][0], QPainterPath(), False
        for at, rate in self._points:
            if rate is None:
                drawn = False
                continue
            there = QPointF(left + wide * (1 - (end - at) / MINUTE), bottom - (bottom - top) * rate / high)
            if drawn:
                path.lineTo(there)
            else:
                path.moveTo(there)
            drawn = True
        p.setPen(QPen(client_colour(self._place) if self._place >= 0 else C("accent"), 2))
        p.drawPath(path)


def _round_up(value: float) -> float:
    """The end of a scale: 1, 2 or 5 with noughts."""
    step = 10.0
    while step < value:
        step *= 2 if str(step)[0] in "15" else 2.5
    return step


class SidePanel(Paper):
    """``chose(Chosen)`` where a line of it is clicked, ``followed(place)`` where a way on is taken."""

    chose = Signal(object)
    followed = Signal(object)

    def __init__(self) -> None:
        super().__init__("pane", ("left",))
        self.setObjectName("cluster.side")
        self.setAccessibleName(tr("What is chosen"))
        self.head = PaneHead("", "")
        self.facts = Facts(84)
        self.facts.placeRequested.connect(self.chose)
        self.more = Label("", 12, "text3", wrap=True)
        self.curve_head = PaneHead(tr("Consumed"), tr("messages a second"))
        self.curve = MinuteCurve()
        self._links = column(gap=6, margins=(12, 10, 12, 10))
        self._shown_links: tuple[tuple[str, object], ...] = ()
        body = column(
            column(self.facts, self.more, gap=6, margins=(12, 10, 12, 10)),
            self.curve_head,
            self.curve,
            Hairline(),
            self._links,
            None,
            gap=0,
        )
        ground = Paper("pane")
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
        self.setFixedWidth(px(WIDE))

    def show_chosen(self, model: ClusterModel, ways: Callable[[Chosen], list[tuple[str, object]]]) -> None:
        """What the model has chosen; ``ways`` are the words and places to go on to from there."""
        chosen = model.chosen
        name, note = title_of(model, chosen)
        self.head.set_title(name)
        self.head.set_note(note)
        told = told_of(model, chosen)
        self.facts.show_facts([_fact(one) for one in told[:MOST]])
        left = len(told) - MOST
        self.more.setText(tr("{n:,} lines more: Tables has them", n=left) if left > 0 else "")
        self.more.setVisible(left > 0)
        key = {"client": (chosen.group, chosen.name), "group": (chosen.name, ""), "topic": ("", chosen.name)}.get(
            chosen.kind
        )
        minute = model.minutes.get(key) if key is not None else None
        for part in (self.curve_head, self.curve):
            part.setVisible(minute is not None)
        if minute is not None:
            self.curve_head.set_title(tr("Came in") if chosen.kind == "topic" else tr("Consumed"))
            self.curve.show_minute(minute, model.badge(chosen.name).place if chosen.kind == "client" else -1)
        self._show_links(tuple(ways(chosen)))

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
            link.clicked.connect(lambda place=place: self.followed.emit(place))
            self._links.box.addWidget(link)


def _fact(told: Told) -> Fact:
    return Fact(told.name, told.value, told.note, told.role, told.goes, code=True)


class FoldedStrip(QAbstractButton):
    """A column that a narrow window folds, as a strip at its edge: its name and a note, upright; a click opens it."""

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
        """What stands on it, and what a screen reader and the tool tip say."""
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
    """The side column of a narrow window, closed: what is chosen."""

    def __init__(self) -> None:
        super().__init__("cluster.folded")

    def show_chosen(self, model: ClusterModel) -> None:
        """What the model has chosen."""
        name, note = title_of(model, model.chosen)
        self.show_words(name, note, tr("Side column: {name}", name=f"{name} {note}".strip()))
