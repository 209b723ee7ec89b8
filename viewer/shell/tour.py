"""The guided tour: five steps over the damaged sample store, each a place, a part to look at and a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, QTimer
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QVBoxLayout,
    QWidget,
)

from viewer.look.assets import tr, words
from viewer.look.theme import C, follow, px
from viewer.widgets.basics import Button, Label, ThemedPanel
from viewer.widgets.boxes import row

if TYPE_CHECKING:
    from viewer.shell.main_window import MainWindow


SAMPLE = "orders-damaged"


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the tour: place, framed part, title, text, and a ``command`` that may be run here."""

    at: str
    part: str
    title: str
    text: str
    command: str = ""


STEPS = (
    Step(
        "log:1049472",
        "unit.hex",
        words("Read a message down to its bytes"),
        words(
            "Each row is a unit of the commit log. The chosen one is decoded below and shown as bytes beside it: "
            "click a field, a byte or a link, and the others follow. F7 and F8 move the list from anywhere."
        ),
    ),
    Step(
        "trace:ShipmentEvents/SO-000421",
        "trace.steps",
        words("Follow a key through the index"),
        words(
            "The index has hashes, not keys: this is the chain that a broker walks for the key, newest first. "
            "Each step has its verdict and leads to its unit. Here a damaged link makes a loop: the walk detects "
            "it and stops."
        ),
    ),
    Step(
        "where:SO-000749",
        "where.evidence",
        words("See why a message was not consumed"),
        words(
            "One field for an id, a key, an offset or a queue entry. The verdict is on the right, and the chain "
            "of evidence is below it. Name a group to see whether it has read the message."
        ),
    ),
    Step(
        "findings:CL03",
        "finding.hex",
        words("Find the damage, see what recovery would do"),
        words(
            "Every rule checked the whole store. The most serious finding is chosen, with its bytes, its cause "
            "and a safe next step. Below it you see what the next start of a broker would keep and drop. F4 goes "
            "to the next finding from anywhere."
        ),
    ),
    Step(
        "findings:CL03",
        "rail.lab",
        words("Cut the power of a lab store"),
        words(
            "In the lab you put messages into a lab store and watch them being written, flushed and dispatched. "
            "Then cut its power and compare the recovery plan with the result. Your own stores are not touched."
        ),
        "lab.create",
    ),
)


STEPS_ACROSS = 8
"""Number of positions that are tried for the card in each direction."""


class Frame(QWidget):
    """A frame around the described part. It lets every click through."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setObjectName("tour.frame")

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint a frame of two px in the accent colour."""
        p = QPainter(self)
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.setPen(QPen(C("accent"), 2))
        p.drawRoundedRect(self.rect().adjusted(1, 1, -2, -2), 5, 5)


def _shown_rect(part: QWidget, window: QWidget) -> QRect:
    """Return where ``part`` shows in ``window``: its rectangle, as far as none of the widgets around it cuts it off.

    Its own visible region is empty where its children cover it, as the rows of a scrolled view do.
    """
    shown = QRect(part.mapTo(window, QPoint(0, 0)), part.size())
    around = part.parentWidget()
    while around is not None and around is not window:
        shown &= QRect(around.mapTo(window, QPoint(0, 0)), around.size())
        around = around.parentWidget()
    return shown


class Tour(ThemedPanel):
    """The card over the lower right corner of the window. Escape ends the tour."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__("raised", ("top", "bottom", "left", "right"))
        self.setParent(window)
        self.setObjectName("tour")
        self._window = window
        self.at = -1
        self._frame = Frame(window)
        self._number = Label("", 12, "text3")
        self._title = Label("", 15, "text", 600)
        self._text = Label("", 13, "text", wrap=True)
        self._back, self._next = Button(tr("Back")), Button(tr("Next"), "primary")
        self._end, self._command = Button(tr("End the tour"), "flat"), Button("")
        for name, button, command in (
            ("back", self._back, lambda: self.go(self.at - 1)),
            ("next", self._next, self._forward),
            ("end", self._end, self.end),
            ("deed", self._command, self._do),
        ):
            button.setObjectName(f"tour.{name}")
            button.clicked.connect(command)
        layout = self._lines = QVBoxLayout(self)
        layout.setContentsMargins(px(16), px(12), px(16), px(12))
        layout.setSpacing(px(6))
        for part in (self._number, self._title, self._text):
            layout.addWidget(part)
        layout.addWidget(row(self._end, None, self._command, self._back, self._next, gap=8))
        self._look = QTimer(self, interval=150)
        self._look.timeout.connect(self._place)
        follow(self, self._place)
        window.installEventFilter(self)

    def go(self, number: int) -> None:
        """Show step ``number``."""
        if not 0 <= number < len(STEPS):
            return
        self.at = number
        step = STEPS[number]
        self._number.setText(tr("Step {n} of {all}", n=number + 1, all=len(STEPS)))
        self._title.setText(tr(step.title))
        self._text.setText(tr(step.text))
        self.setAccessibleName(f"{tr(step.title)}. {tr(step.text)}")
        self._back.setEnabled(number > 0)
        self._next.setText(tr("Next") if number + 1 < len(STEPS) else tr("End the tour"))
        self._end.setVisible(number + 1 < len(STEPS))
        self._command.setVisible(bool(step.command))
        if step.command:
            self._command.setText(self._window.actions_by_id[step.command].text())
        self._window.jobs.start(self._window.go_to_text(step.at))
        self._look.start()
        self.show()
        self._place()
        self._next.setFocus()

    def end(self) -> None:
        """Remove card and frame."""
        self._look.stop()
        self.hide()
        self._frame.hide()
        self.deleteLater()
        self._frame.deleteLater()
        self._window.removeEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Keep the card in its corner."""
        if event.type() == QEvent.Type.Resize:
            self._place()
        return False

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """End the tour on Escape."""
        if event.key() == Qt.Key.Key_Escape:
            self.end()
        else:
            super().keyPressEvent(event)

    def _forward(self) -> None:
        if self.at + 1 < len(STEPS):
            self.go(self.at + 1)
        else:
            self.end()

    def _do(self) -> None:
        command = STEPS[self.at].command
        self.end()
        self._window.actions_by_id[command].trigger()

    def _place(self) -> None:
        """Place card and frame. A part appears only when its view is shown."""
        window = self._window
        if window.session is None:
            self.end()
            return
        width = px(460)
        self.setFixedWidth(width)
        self.setFixedHeight(self._lines.heightForWidth(width))
        part = QWidget.findChild(window, QWidget, STEPS[self.at].part)  # makes no views
        is_visible = part is not None and part.isVisible()
        self._frame.setVisible(is_visible)
        box = QRect()
        if part is not None and is_visible:
            box = _shown_rect(part, window).adjusted(-2, -2, 2, 2)
            self._frame.setGeometry(box)
            self._frame.raise_()
        self.move(self._corner(box))
        self.raise_()

    def _corner(self, box: QRect) -> QPoint:
        """Return the corner at which the card covers least of ``box``, among equal ones that nearest to the lower
        right.
        """
        window, gap = self._window, px(16)
        right_edge, bottom = window.width() - self.width() - gap, window.height() - self.height() - px(44)
        left_edge, top = min(px(96), right_edge), min(px(120), bottom)
        places = [
            QPoint(
                right_edge - (right_edge - left_edge) * column // STEPS_ACROSS,
                bottom - (bottom - top) * line // STEPS_ACROSS,
            )
            for line in range(STEPS_ACROSS + 1)
            for column in range(STEPS_ACROSS + 1)
        ]

        def covered(corner: QPoint) -> tuple[int, int]:
            over = QRect(corner, self.size()).intersected(box)
            moved = places[0] - corner
            return over.width() * over.height() if not over.isEmpty() else 0, moved.manhattanLength()

        return min(places, key=covered)
