"""The incident card: four answers under the Line if messages are lost or will be, and the losses of each queue.

A click folds it to a line, another opens the table. Every view of the store shows this form until the store is
valid.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QRect, Qt, Signal
from PySide6.QtGui import QGuiApplication, QMouseEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from viewer.look.assets import tr, tr_plural
from viewer.look.theme import C, follow, px
from viewer.pane.incident_words import Answer, Incident, LostRow, incident_of, lost_kind, lost_rows
from viewer.pane.plan_words import messages_in_words
from viewer.runtime.lab_session import lab_of
from viewer.runtime.places import recovery
from viewer.widgets.basics import Button, ElidedLine, Label, Link, PaneHead, StatusMark, ThemedPanel, ToolButton
from viewer.widgets.boxes import BoxWidget, column, fill, row, scrolling
from viewer.widgets.record_view import RecordView
from viewer.widgets.word_tabs import WordTabs

if TYPE_CHECKING:
    from viewer.runtime.settings import Settings
    from viewer.runtime.store_session import StoreSession

HEIGHT, FOLDED, EDGE = 216, 35, 3
MAX_HEIGHT = 300
"""Largest height (px at 100 %) of the answers. Above it they scroll."""
MAX_TABLE, MIN_TABLE, HEADS = 208, 134, 62
"""Largest and smallest height of the table, and height of its heads (px at 100 %)."""
ROOM, ROOM_FOR_BOTH = 840, 1080
"""Heights of a view (px at 100 %). From the first on, the incident is first shown in full. From the second on, the
table is shown below the answers instead of replacing them. Findings and the recovery plan below keep their room.
"""
INCIDENT_VIEWS = ("line", "card", "table")
ROLES = {"error": "error", "warn": "warn", "": "text3"}


class IncidentCard(ThemedPanel):
    """The card.

    Emits ``reportRequested()`` to save the report, ``placeRequested(place)`` when a link is followed,
    ``statusText(sentence)`` when the command of a step was copied. ``first_look`` is its form until the user chooses
    one; None: its form depends on the room.
    """

    reportRequested = Signal()
    placeRequested = Signal(object)
    statusText = Signal(str)

    def __init__(self, name: str, first_look: str | None = None) -> None:
        super().__init__("pane", ("bottom",))
        self.setObjectName(name)
        self.setAccessibleName(tr("Incident"))
        self._given_look, self._initial_look = first_look, "line"
        self._session: StoreSession | None = None
        self._incident: Incident | None = None
        self.settings: Settings | None = None
        self._answers = [
            _Answer(words) for words in (tr("What happened"), tr("Lost already"), tr("Lost by the next start"))
        ]
        self._plan = Link(tr("Recovery plan"))
        self._plan.setObjectName(f"{name}.plan")
        self._plan.clicked.connect(lambda: self.placeRequested.emit(recovery()))
        self._answers[2].add(self._plan)
        self._steps = [_Step() for _ in range(3)]
        for step in self._steps:
            step.placeRequested.connect(self.placeRequested)
            step.statusText.connect(self.statusText)
        report = Button(tr("Save report…"))
        report.setObjectName(f"{name}.report")
        report.clicked.connect(self.reportRequested)
        self._fold_button = ToolButton("chevron-down", tr("Collapse the incident to one line"))
        self._fold_button.setObjectName(f"{name}.fold")
        self._fold_button.clicked.connect(lambda _on=False: self._set_look("card" if self.folded else "line"))
        self._table_button = ToolButton(
            "queue", tr("What is lost of each topic and queue"), tr("Lost by topic"), checkable=True
        )
        self._table_button.setObjectName(f"{name}.list")
        self._table_button.clicked.connect(lambda on: self._set_look("table" if on else "card"))
        steps = column(
            row(Label(tr("First steps"), 12, "text2"), None),
            *self._steps,
            None,
            row(report, None),
            gap=4,
            margins=(14, 6, 14, 8),
        )
        answers = row(*self._answers, steps, gap=0)
        for number in range(4):
            answers.box.setStretch(number, 1)
        self._inner, self._open = answers, scrolling(answers)
        for part in (answers, self._open.viewport()):
            part.setAutoFillBackground(False)
        self._line = ElidedLine("", 13, "error", 600)
        self._head = _Head(
            row(StatusMark("error"), self._line, self._table_button, self._fold_button, gap=8, margins=(14, 0, 8, 0))
        )
        self._head.clicked.connect(self._fold_button.click)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, EDGE, 0, 1)
        box.setSpacing(0)
        fill(box, (self._head, self._open, self._make_table(name)))
        follow(self, self._fit)
        self._show()

    def _make_table(self, name: str) -> QWidget:
        self.tabs = WordTabs(f"{name}.tabs", (("already", tr("Lost already")), ("start", tr("By the next start"))))
        self.tabs.chosen.connect(lambda _key: self._show_lost())
        self.table = RecordView(f"{name}.table", lost_kind(()))
        self.table.setAccessibleName(tr("Lost by topic"))
        self.table.placeRequested.connect(self.placeRequested)
        self._table_head = PaneHead(tr("Lost by topic"), "", self.tabs)
        self._below = column(self._table_head, self.table, gap=0)
        self._below.box.setStretch(1, 1)
        return self._below

    # ---- what a view calls -------------------------------------------------------------------------------------------

    def set_session(self, session: StoreSession | None) -> None:
        """Show this store from now on."""
        self._session = session
        if session is not None:
            if not session.incident_look and self.settings is not None:
                session.incident_look = self.settings.incident_look(str(session.path))
            session.findingsChanged.connect(self._update)
            session.incidentLookChanged.connect(self._fit)
        self._update()

    @property
    def look(self) -> str:
        """The current form, one of :data:`INCIDENT_VIEWS`."""
        chosen_look = self._session.incident_look if self._session is not None else ""
        if chosen_look in INCIDENT_VIEWS:
            return chosen_look
        return self._given_look or self._initial_look

    @property
    def folded(self) -> bool:
        """True if the card is folded to a line."""
        return self._open.isHidden() and self._below.isHidden()

    def _has_room(self, height: int) -> bool:
        """Return True if the view around the card is at least ``height`` px high, at 100 %."""
        view = self.parentWidget()
        return view is not None and view.height() >= px(height)

    # ---- below -------------------------------------------------------------------------------------------------------

    def _update(self) -> None:
        """Show the answers if something is lost; hide the card while some data could not be read."""
        session = self._session
        self._incident = None
        if session is not None and not session.unread and lab_of(session.path) is None:
            self._incident = incident_of(session.incident, complete=session.findings_complete)
        self._show()

    def _set_look(self, look: str) -> None:
        if self._session is not None:
            self._session.look_at_incident(look)
            if self.settings is not None:
                self.settings.set_incident_look(str(self._session.path), look)

    def _show(self) -> None:
        incident = self._incident
        if incident is not None and self.isHidden():
            self._initial_look = "card" if self._has_room(ROOM) else "line"
        self.setVisible(incident is not None)
        if incident is None:
            self.table.set_rows([])
            return
        for part, answer in zip(self._answers, (incident.happened, incident.lost, incident.start), strict=True):
            part.show_answer(answer)
        self._answers[2].set_name(incident.start_title)
        for number, label in enumerate(self._steps):
            text, command = incident.steps[number] if number < len(incident.steps) else ("", "")
            command = self._session.with_config(command) if self._session is not None else command
            label.show_step(f"{number + 1}  {text}" if text else "", command)
        self.setAccessibleDescription(incident.line)
        self.tabs.choose("already" if incident.already or not incident.to_come else "start")
        self._show_lost()

    def _show_lost(self) -> None:
        incident = self._incident
        if incident is not None:
            rows = lost_rows(incident.already if self.tabs.key == "already" else incident.to_come)
            self.table.set_kind(lost_kind(rows))
            self.table.set_rows(rows)
            self._table_head.set_note(_sum_words(rows))
            self._fit()

    def _fit(self) -> None:
        look, incident = self.look, self._incident
        folded, listed = look == "line", look == "table"
        shows_answers = not folded and (not listed or self._has_room(ROOM_FOR_BOTH))
        self._open.setVisible(shows_answers)
        self._below.setVisible(listed)
        self._table_button.setVisible(not folded)
        self._table_button.setChecked(listed)
        self._table_button.setText(tr("Lost by topic") if shows_answers else "")
        self._line.setText(tr("Incident") if shows_answers or incident is None else incident.line)
        self._fold_button.set_icon("chevron" if folded else "chevron-down")
        fold_tip = tr("Open the incident") if folded else tr("Collapse the incident to one line")
        self._fold_button.setToolTip(fold_tip)
        self._fold_button.setAccessibleName(fold_tip)
        self._head.setFixedHeight(px(FOLDED - EDGE))
        answers = min(max(self._needed_height(), px(HEIGHT - FOLDED)), px(MAX_HEIGHT - FOLDED))
        self._open.setFixedHeight(answers)
        lines = px(HEADS) + self.table.total_rows() * self.table.row_height()
        below = min(max(lines, px(MIN_TABLE)), px(MAX_TABLE))
        self._below.setFixedHeight(below)
        self.setFixedHeight(px(FOLDED) + 1 + (answers if shows_answers else 0) + (below if listed else 0))

    def _needed_height(self) -> int:
        """Return the height (px) that the answers need at their current width."""
        box = self._inner.layout()
        return box.heightForWidth(self.width()) if box is not None else 0

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Adjust the height, because narrow columns are higher."""
        super().resizeEvent(event)
        if event.oldSize().width() != event.size().width():
            self._fit()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the background, and a red line of three px on top."""
        super().paintEvent(event)
        QPainter(self).fillRect(QRect(0, 0, self.width(), EDGE), C("error"))


def _sum_words(rows: Sequence[LostRow]) -> str:
    """Return the losses of all queues together, as the last row shows them. That row may be out of sight."""
    if not rows:
        return ""
    queues = tr_plural("{n:,} queue", "{n:,} queues", n=rows[-1].queues)
    return f"{messages_in_words(rows[-1].messages)} · {queues}"


class _Head(QWidget):
    """The line over the card. ``clicked()`` on a click anywhere except on its buttons."""

    clicked = Signal()

    def __init__(self, parts: BoxWidget) -> None:
        super().__init__()
        parts.box.setStretch(1, 1)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.addWidget(parts)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Open or fold the card."""
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.clicked.emit()


class _Step(QWidget):
    """A first step: plain text, a link to the recovery plan, or a link that copies the step's command."""

    placeRequested = Signal(object)
    statusText = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._command = ""
        self._words = Label("", 13, wrap=True)
        self._link = Link("", 13, wrap=True)
        self._link.clicked.connect(self._follow)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        fill(box, (self._words, self._link))

    def show_step(self, text: str, command: str) -> None:
        """Show the step. It is a link only if it has a command."""
        self._command = command
        self._words.setText(text)
        self._words.setVisible(not command)
        self._link.setText(text)
        self._link.setAccessibleName(text)
        self._link.setVisible(bool(command))
        self._link.setToolTip(
            tr("Shows the recovery plan") if self._shows_plan else tr("Copies {command}", command=command)
        )
        self.setVisible(bool(text))

    @property
    def _shows_plan(self) -> bool:
        """True if the command only prints the recovery plan, which the window shows itself."""
        words = shlex.split(self._command)
        return words[:2] == ["storescope", "recover"] and "--plan" in words

    def _follow(self) -> None:
        if self._shows_plan:
            self.placeRequested.emit(recovery())
        else:
            QGuiApplication.clipboard().setText(self._command)
            self.statusText.emit(tr("Copied: {text}", text=self._command))


class _Answer(QWidget):
    """A question with its answer."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._mark = StatusMark("error")
        self._clause = Label("", 15, "text", 600, wrap=True)
        self._why = Label("", 12, "text2", wrap=True, select=True)
        head: BoxWidget = row(self._mark, self._clause, gap=6)
        head.box.setStretch(1, 1)
        head.box.setAlignment(self._mark, Qt.AlignmentFlag.AlignTop)
        box = QVBoxLayout(self)
        box.setContentsMargins(px(14), px(6), px(14), px(10))
        box.setSpacing(px(6))
        self._box = box
        self._title = Label(name, 12, "text2", wrap=True)
        fill(box, (self._title, head, self._why, None))

    def set_name(self, name: str) -> None:
        """Set another question, for the release that it is about."""
        self._name = name
        self._title.setText(name)
        self.setAccessibleName(f"{name}: {self._clause.text()}")

    def add(self, part: QWidget) -> None:
        """Put ``part`` below the answer's reason."""
        self._box.insertWidget(self._box.count() - 1, part, 0, Qt.AlignmentFlag.AlignLeft)

    def show_answer(self, answer: Answer) -> None:
        """Show the answer. One without harm is a single grey clause."""
        self._mark.setVisible(bool(answer.mark))
        if answer.mark:
            self._mark.set_kind(answer.mark)
        self._clause.setText(answer.clause)
        self._clause.set_role(ROLES[answer.mark])
        self._why.setText(answer.why)
        self.setAccessibleName(f"{self._name}: {answer.clause}")
