"""Consumer groups: progress in each queue, age of the oldest unread message, and when retention overtakes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QVBoxLayout, QWidget

from viewer.look.assets import tr
from viewer.look.engine_words import engine_words
from viewer.pane import Pane
from viewer.pane.group_rows import (
    GroupRow,
    GroupsRead,
    GroupSum,
    groups_kind,
    order,
    read_groups,
    sentence,
    sum_sentence,
    sums,
    sums_kind,
)
from viewer.pane.log_survey import LogSurvey
from viewer.pane.table_commands import command_copier, table_commands
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.widgets.basics import Hairline, Label, PaneHead
from viewer.widgets.boxes import column, stacked
from viewer.widgets.line_strip import LineStrip
from viewer.widgets.log_line import Pin
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView
from viewer.widgets.word_tabs import WordTabs

if TYPE_CHECKING:
    from viewer.runtime.store_session import StoreSession

MAX_PINS = 200
MAX_LETTERS = 48
"""Maximum letters of a name in the sentence below the table; the tooltip has the full name."""


class GroupsPane(Pane):
    """Table of all groups and queues, the most urgent first."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("groups.pane")
        self._pending_group = ""
        self._summary = ""
        self._rows: list[GroupRow] = []
        self._groups_read: GroupsRead | None = None
        self.strip = LineStrip("groups.line")
        self.strip.placed.connect(lambda offset: self.placeRequested.emit(places.log(offset)))
        self._survey = LogSurvey(self.strip)
        self._survey.lined.connect(lambda _line: self._set_pins())
        tabs = (("queues", tr("Queues")), ("topics", tr("Topics")), ("groups", tr("Groups")))
        self.tabs = WordTabs("groups.tabs", tabs)
        self.tabs.setToolTip(tr("A row each queue, or the sums of each topic or group"))
        self.tabs.chosen.connect(lambda _key: self._show_rows())
        self.head = PaneHead(tr("Consumer groups"), tr("config/consumerOffset.json against the queues"), self.tabs)
        self.table = RecordView("groups.table", groups_kind())
        self.table.setAccessibleName(tr("Consumer groups"))
        self.table.placeRequested.connect(self.placeRequested)
        self.table.rowChosen.connect(self._chosen)
        self._sentence = Label("", 13, "text", wrap=True, select=True)
        self._sentence.setObjectName("groups.says")
        below = column(self._sentence, margins=(14, 8, 14, 10))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(stacked(self.strip, self.head, self.table, self.table.strip, Hairline(), below, room=2))
        self.lead = self.table

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store; its tables are read when the view is opened."""
        super().set_session(session)
        self._survey.set_session(session)
        self.table.copier = None if session is None else command_copier(self.table, session.command_line)
        self.table.set_rows([])
        self._rows, self._summary, self._groups_read = [], "", None
        self._sentence.setText("")
        if session is not None:
            self._survey.look()

    def show_place(self, place: Place) -> None:
        """Show all groups, or select one."""
        self._pending_group = place.name
        self.refresh()

    def refresh(self) -> None:
        """Read the tables again."""
        session = self.session
        if session is None or not self.isVisible():
            return
        self._survey.grown()

        def done(groups_read: GroupsRead) -> None:
            if session is self.session:
                self._fill(groups_read)

        session.jobs.read(
            lambda: read_groups(session.snapshot), done, lambda error: self.table.set_state(State("error", str(error)))
        )

    def _fill(self, groups_read: GroupsRead) -> None:
        chosen = self.table.current_row()
        self._groups_read = groups_read
        rows = self._rows = order(groups_read.rows)
        progress_list = [row.progress for row in rows]
        self._summary = tr(
            "{groups:,} groups, {queues:,} offsets, {behind:,} messages behind",
            groups=len({progress.group for progress in progress_list}),
            queues=len(rows),
            behind=sum(progress.behind for progress in progress_list),
        )
        if groups_read.unknown is not None and not rows:
            self._summary = tr("The progress of groups: {why}", why=engine_words(groups_read.unknown))
        rule = tr(
            "retention: files older than {hours:,} h, at {when} h",
            hours=groups_read.reserved_hours,
            when=groups_read.delete_when,
        )
        rule_source = tr("as the broker is configured") if groups_read.configured else tr("by RocketMQ's defaults")
        broker_note = "" if groups_read.running else tr("; no broker runs, nothing is deleted before one does")
        self.head.set_note(
            f"{tr('config/consumerOffset.json against the queues')} · {rule}, {rule_source}{broker_note}"
        )
        self.statusMessage.emit(self._summary)
        empty = State("empty", tr("No group has an offset in this store. Looked at: consumerOffset.json and its .bak"))
        if groups_read.unknown is not None:
            empty = State("unread", self._summary)
        self.table.set_state(None if rows else empty)
        self._set_pins()
        self._show_rows()
        if self.tabs.key == "queues":
            self._restore_selection(chosen if isinstance(chosen, GroupRow) else None)

    def _show_rows(self) -> None:
        """Show the queues, or the sums of topics or groups."""
        by_topic = self.tabs.key == "topics"
        summed = self.tabs.key != "queues"
        self.table.set_rows([])  # rows of one kind do not fit the columns of the other
        self.table.set_kind(sums_kind(by_topic=by_topic) if summed else groups_kind())
        rows: list[GroupRow] | list[GroupSum] = self._rows
        if summed:
            rows = sums(self._groups_read, by_topic=by_topic) if self._groups_read is not None else []
        self.table.set_rows(list(rows))
        self.table.go_to_row(0)

    def _restore_selection(self, previous_row: GroupRow | None) -> None:
        group = self._pending_group or (previous_row.progress.group if previous_row is not None else "")
        previous_queue = (
            (previous_row.progress.group, previous_row.progress.topic, previous_row.progress.queue_id)
            if previous_row is not None
            else None
        )
        index = next(
            (
                number
                for number, row in enumerate(self._rows)
                if previous_queue == (row.progress.group, row.progress.topic, row.progress.queue_id)
            ),
            None,
        )
        if index is None or (self._pending_group and self._rows[index].progress.group != self._pending_group):
            index = next((number for number, row in enumerate(self._rows) if row.progress.group == group), 0)
        if self._rows:
            self.table.go_to_row(index)

    def _set_pins(self) -> None:
        """Pin on the Line the offsets that groups read next."""
        pins = [
            Pin(row.unread, "warn" if row.progress.state == "belowMin" else "note", sentence(row))
            for row in self._rows[:MAX_PINS]
            if row.unread is not None
        ]
        self.strip.set_pins(pins)

    def _chosen(self, row: GroupRow | GroupSum | None) -> None:
        if isinstance(row, GroupSum):
            full_sentence = short_sentence = sum_sentence(row)
            row = row.worst
        else:
            full_sentence = sentence(row) if row is not None else ""
            short_sentence = sentence(row, MAX_LETTERS) if row is not None else ""
        self._sentence.setText(short_sentence)
        self._sentence.setToolTip(full_sentence if full_sentence != short_sentence else "")
        self._sentence.setAccessibleDescription(full_sentence)
        if row is not None and row.unread is not None:
            self.strip.set_frame(row.unread, row.unread + 1)

    def retheme(self) -> None:
        """Apply fonts and colours."""
        self.table.refresh_look()

    def status(self) -> str:
        """Return the summary of the table."""
        return self._summary

    def focus_stops(self) -> Sequence[QWidget]:
        """Return the parts between which F6 moves the focus."""
        return (self.table,)

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the commands for copying and stepping."""
        return table_commands(self, lambda: self.table, "groups.jsonl")
