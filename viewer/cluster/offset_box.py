"""The box that moves a group's offsets on a cluster that the user declared to be their own.

It shows what each move means before it sets anything. It writes the old offsets into a file, and sets them again on
request.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QVBoxLayout, QWidget

from viewer.cluster.offset_work import MoveKind, OffsetPlan, OffsetRequest, OffsetResult, undo_request
from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.theme import px, ui
from viewer.runtime.places import parse_number, parse_time
from viewer.widgets.basics import Button, Field, Label
from viewer.widgets.boxes import row
from viewer.widgets.choices import ChoiceField, TickBox
from viewer.widgets.columns import Column, RecordKind, gutter, number_column, text_column, topic_column
from viewer.widgets.record_state import state_of
from viewer.widgets.record_view import RecordView
from viewer.widgets.table_state import TableState

if TYPE_CHECKING:
    from engine.client.offset_moves import OffsetMove
    from viewer.cluster.access import AccessFiles

PLAN, APPLY = "viewer.cluster.offset_work:plan", "viewer.cluster.offset_work:apply"
Finished = Callable[[Any, Exception | None], None]
Ask = Callable[[str, tuple[object, ...], Finished], None]
"""Runs a function of the worker, and calls the last argument with its value or error."""
KINDS: tuple[tuple[MoveKind, str], ...] = (
    ("time", words("To a time")),
    ("end", words("To the end: skip what waits")),
    ("group", words("To the offsets of another group")),
)
HINTS: dict[str, str] = {
    "time": words("2026-11-20 09:41:07, or ms since 1970"),
    "end": "",
    "group": words("Group whose offsets are taken"),
}


def _span(offsets: range) -> str:
    """Return how many messages, and their offsets."""
    if not offsets:
        return ""
    if len(offsets) == 1:
        return f"1 ({offsets.start:,})"
    return f"{len(offsets):,} ({offsets.start:,} – {offsets.stop - 1:,})"


def _meaning_column(key: str, title: str, offsets: Callable[[Any], range]) -> Column:
    return Column(
        key,
        title,
        150,
        lambda move: _span(offsets(move)),
        lambda move: len(offsets(move)),
        right=True,
        filterable=False,
    )


MOVE = RecordKind(
    "offsetMove",
    (
        gutter(12),
        topic_column("topic", words("Topic"), 150, filterable=False),
        text_column("broker", words("Broker"), 100, filterable=False),
        number_column("queue_id", words("Queue"), 56, filterable=False),
        number_column("old", words("Old offset"), 92, filterable=False),
        number_column("new", words("New offset"), 92, filterable=False),
        _meaning_column("again", words("Comes again"), lambda move: move.again),
        _meaning_column("never", words("Never comes"), lambda move: move.never),
    ),
)


class MoveRow:
    """A move as the table shows it."""

    def __init__(self, move: OffsetMove) -> None:
        self.topic, self.broker, self.queue_id = move.queue.topic, move.queue.broker, move.queue.queue_id
        self.old, self.new = move.old, move.new
        self.again, self.never = move.again, move.never


def summary_text(plan: OffsetPlan) -> str:
    """Return what a plan means in sentences."""
    if not plan.changes:
        return tr("No offset would change.")
    parts = [
        tr_plural("{n:,} message comes again", "{n:,} messages come again", n=plan.again_count),
        tr_plural("{n:,} message never comes", "{n:,} messages never come", n=plan.never_count),
    ]
    if plan.members:
        parts.append(
            tr_plural(
                "{n:,} consumer is connected and may read on until the offsets are set",
                "{n:,} consumers are connected and may read on until the offsets are set",
                n=len(plan.members),
            )
        )
    return " · ".join(parts)


def result_text(result: OffsetResult) -> str:
    """Return what was set, what was not and why, and where the old offsets are."""
    changed = sum(move.changes for move in result.moves) - len(result.failures)
    parts = [tr_plural("{n:,} offset was set", "{n:,} offsets were set", n=changed)]
    for queue, reason in result.failures.items():
        parts.append(f"{queue.topic}/{queue.queue_id}: {engine_words(reason)}")
    parts.append(tr("the old offsets are in {file}", file=str(result.undo_file)))
    return " · ".join(parts)


class OffsetBox(QDialog):
    """Emits ``operationDone(command, words, parameters, line)`` after offsets were set."""

    operationDone = Signal(str, str, object, str)

    def __init__(
        self,
        addresses: tuple[str, ...],
        access: AccessFiles,
        ask: Ask,
        undo_folder: Path,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("offsets.box")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Move the offsets of a group"))
        self.setAccessibleName(self.windowTitle())
        self.resize(px(860), px(520))
        self._addresses, self._access, self._ask, self._undo_folder = addresses, access, ask, undo_folder
        self._plan: OffsetPlan | None = None
        self._request: OffsetRequest | None = None
        self._is_running = False
        self.group, self.topic = (
            Field(tr("Consumer group"), code=True, width=190),
            Field(tr("Topic"), code=True, width=190),
        )
        self.kind = ChoiceField()
        self.kind.setObjectName("offsets.kind")
        self.kind.setAccessibleName(tr("Where the offsets go"))
        self.kind.setFont(ui(13))
        for key, title in KINDS:
            self.kind.addItem(tr(title), key)
        self.value = Field("", code=True, width=250)
        for name, field in (("group", self.group), ("topic", self.topic), ("value", self.value)):
            field.setObjectName(f"offsets.{name}")
            field.textEdited.connect(self._changed)
            field.returnPressed.connect(self.show_plan)
        self.kind.currentIndexChanged.connect(self._changed)
        self.table = RecordView("offsets.table", MOVE)
        self.table.setAccessibleName(tr("What it means, by queue"))
        self.summary = Label("", 13, "text", wrap=True, select=True)
        self.summary.setObjectName("offsets.summary")
        self.confirmed = TickBox(tr("I know what comes again and what never comes"))
        self.confirmed.setObjectName("offsets.confirm")
        self.confirmed.setAccessibleName(self.confirmed.text())
        self.confirmed.toggled.connect(lambda _on: self._enable())
        self.show_button = Button(tr("Show what it means"), "primary")
        self.undo_button = Button(tr("Set the old offsets again…"))
        self.close_button, self.apply_button = Button(tr("Close")), Button(tr("Set the offsets"), "danger")
        for name, button, action in (
            ("show", self.show_button, self.show_plan),
            ("undo", self.undo_button, self.show_undo),
            ("close", self.close_button, self.reject),
            ("apply", self.apply_button, self.apply),
        ):
            button.setObjectName(f"offsets.{name}")
            button.clicked.connect(action)
        self.undo_button.hide()
        self._undo: OffsetRequest | None = None
        self._lay_out()
        self._changed()

    def _lay_out(self) -> None:
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(16), px(14), px(16), px(12))
        layout.setSpacing(px(8))
        group_label, topic_label = Label(tr("Group"), 12, "text3"), Label(tr("Topic"), 12, "text3")
        layout.addWidget(row(group_label, self.group, topic_label, self.topic, None, gap=8))
        layout.addWidget(row(self.kind, self.value, None, self.show_button, gap=8))
        layout.addWidget(self.table, 1)
        layout.addWidget(self.table.strip)
        layout.addWidget(self.summary)
        layout.addWidget(row(self.confirmed, None, self.undo_button, self.close_button, self.apply_button, gap=8))

    def fill(self, group: str, topic: str) -> None:
        """Put the names of what is chosen in the picture into the fields."""
        self.group.setText(group)
        self.topic.setText(topic)
        self._changed()

    def request(self) -> OffsetRequest | None:
        """Return what the fields ask for; None if they are not complete."""
        group, topic, value = (field.text().strip() for field in (self.group, self.topic, self.value))
        kind: MoveKind = self.kind.currentData()
        time_ms = (parse_time(value) or parse_number(value)) if kind == "time" else 0
        if not group or not topic or time_ms is None or (kind == "group" and not value):
            return None
        source = value if kind == "group" else ""
        return OffsetRequest(self._addresses, kind, group, topic, time_ms, source, access=self._access)

    def _changed(self, *_: object) -> None:
        """Another question needs another plan."""
        kind = self.kind.currentData()
        self.value.setVisible(kind != "end")
        self.value.setPlaceholderText(tr(HINTS[kind]) if HINTS[kind] else "")
        self.value.setAccessibleName(self.value.placeholderText())
        self._forget_plan("")

    def _forget_plan(self, text: str) -> None:
        self._plan = self._request = None
        self.confirmed.setChecked(False)
        self.table.set_rows([])
        self.summary.setText(text)
        self._enable()

    def _enable(self) -> None:
        self.show_button.setEnabled(self.request() is not None and not self._is_running)
        has_changes = self._plan is not None and self._plan.changes
        self.confirmed.setEnabled(has_changes and not self._is_running)
        self.apply_button.setEnabled(has_changes and self.confirmed.isChecked() and not self._is_running)
        self.table.set_state(
            state_of(
                TableState("loading", tr("Asking the brokers…"))
                if self._is_running
                else None
                if self._plan is not None
                else TableState("hint", tr("Nothing is set before you have seen what it means."))
            )
        )

    # ---- asking and setting ------------------------------------------------------------------------------------------

    def show_plan(self) -> None:
        """Ask the brokers what the move in the fields means."""
        request = self.request()
        if request is not None:
            self._show_plan_of(request)

    def show_undo(self) -> None:
        """Show what it means to set the old offsets again."""
        if self._undo is not None:
            self._show_plan_of(self._undo)

    def _show_plan_of(self, request: OffsetRequest) -> None:
        if self._is_running:
            return
        self._forget_plan("")

        def finished(plan: OffsetPlan | None, error: Exception | None) -> None:
            self._is_running = False
            if plan is None:
                self._forget_plan(engine_words(str(error)) if error is not None else "")
                return
            self._plan, self._request = plan, request
            self.table.set_rows([MoveRow(move) for move in plan.moves])
            self.summary.setText(summary_text(plan))
            self._enable()

        self._run(PLAN, (request,), finished)

    def apply(self) -> None:
        """Set the offsets that are shown."""
        from engine.client.offset_undo import undo_name

        plan, request = self._plan, self._request
        if plan is None or request is None or not self.apply_button.isEnabled():
            return
        try:
            self._undo_folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self.summary.setText(f"{self._undo_folder}: {error.strerror}")
            return
        undo_file = self._undo_folder / undo_name(plan.group)

        def finished(result: OffsetResult | None, error: Exception | None) -> None:
            self._is_running = False
            if result is None:
                self._forget_plan(engine_words(str(error)) if error is not None else "")
                return
            self._forget_plan(result_text(result))
            self._undo = undo_request(request, result.undo_file)
            self.undo_button.show()
            parameters = {
                "group": plan.group,
                "again": plan.again_count,
                "never": plan.never_count,
                "undoFile": str(result.undo_file),
            }
            self.operationDone.emit("cluster.offsets", tr("Move the offsets of a group"), parameters, _line(request))

        self._run(APPLY, (request, plan, undo_file), finished)

    def _run(self, target: str, arguments: tuple[object, ...], finished: Finished) -> None:
        self._is_running = True
        self._enable()
        self._ask(target, arguments, finished)


def _line(request: OffsetRequest) -> str:
    return shlex.join(request.options())
