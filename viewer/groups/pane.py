"""Consumer groups: how far each came in each queue, how old its oldest unread message is, when retention overtakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QVBoxLayout

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
from viewer.widgets.basics import Hairline, Label, PaneHead, WordTabs, column, stacked
from viewer.widgets.line_strip import LineStrip
from viewer.widgets.log_line import Pin
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from viewer.runtime.store_session import StoreSession

PINS = 200
MOST_LETTERS = 48
"""Of a name in the sentence below the table; its tool tip has it whole."""


class GroupsPane(Pane):
    """One table over all groups and queues, what needs somebody first."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("groups.pane")
        self._wanted = ""
        self._said = ""
        self._rows: list[GroupRow] = []
        self._found: GroupsRead | None = None
        self.strip = LineStrip("groups.line")
        self.strip.placed.connect(lambda offset: self.placeRequested.emit(places.log(offset)))
        self._survey = LogSurvey(self.strip)
        self._survey.lined.connect(lambda _line: self._pin())
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
        """Read the tables of another store when they are asked for."""
        super().set_session(session)
        self._survey.set_session(session)
        self.table.copier = None if session is None else command_copier(self.table, str(session.path))
        self.table.set_rows([])
        self._rows, self._said, self._found = [], "", None
        self._sentence.setText("")
        if session is not None:
            self._survey.look()

    def show_place(self, place: Place) -> None:
        """All groups, or one chosen."""
        self._wanted = place.name
        self.refresh()

    def refresh(self) -> None:
        """Read the tables again."""
        session = self.session
        if session is None or not self.isVisible():
            return
        self._survey.grown()

        def done(found: GroupsRead) -> None:
            if session is self.session:
                self._fill(found)

        session.jobs.read(
            lambda: read_groups(session.snapshot), done, lambda error: self.table.set_state(State("error", str(error)))
        )

    def _fill(self, found: GroupsRead) -> None:
        chosen = self.table.current_row()
        self._found = found
        rows = self._rows = order(found.rows)
        told = [row.progress for row in rows]
        self._said = tr(
            "{groups:,} groups, {queues:,} offsets, {behind:,} messages behind",
            groups=len({one.group for one in told}),
            queues=len(rows),
            behind=sum(one.behind for one in told),
        )
        if found.unknown is not None and not rows:
            self._said = tr("The progress of groups: {why}", why=engine_words(found.unknown))
        rule = tr(
            "retention: files older than {hours:,} h, at {when} h", hours=found.reserved_hours, when=found.delete_when
        )
        whose = tr("as the broker is configured") if found.configured else tr("by RocketMQ's defaults")
        runs = "" if found.running else tr("; no broker runs, nothing is deleted before one does")
        self.head.set_note(f"{tr('config/consumerOffset.json against the queues')} · {rule}, {whose}{runs}")
        self.statusMessage.emit(self._said)
        empty = State("empty", tr("No group has an offset in this store. Looked at: consumerOffset.json and its .bak"))
        if found.unknown is not None:
            empty = State("unread", self._said)
        self.table.set_state(None if rows else empty)
        self._pin()
        self._show_rows()
        if self.tabs.key == "queues":
            self._choose(chosen if isinstance(chosen, GroupRow) else None)

    def _show_rows(self) -> None:
        """The queues, or the sums of topics or groups."""
        by_topic = self.tabs.key == "topics"
        summed = self.tabs.key != "queues"
        self.table.set_rows([])  # rows of one kind are nothing to the columns of the other
        self.table.set_kind(sums_kind(by_topic=by_topic) if summed else groups_kind())
        rows: list[GroupRow] | list[GroupSum] = self._rows
        if summed:
            rows = sums(self._found, by_topic=by_topic) if self._found is not None else []
        self.table.set_rows(list(rows))
        self.table.go_to_row(0)

    def _choose(self, before: GroupRow | None) -> None:
        wanted = self._wanted or (before.progress.group if before is not None else "")
        same = (before.progress.group, before.progress.topic, before.progress.queue_id) if before is not None else None
        at = next(
            (
                n
                for n, row in enumerate(self._rows)
                if same == (row.progress.group, row.progress.topic, row.progress.queue_id)
            ),
            None,
        )
        if at is None or (self._wanted and self._rows[at].progress.group != self._wanted):
            at = next((n for n, row in enumerate(self._rows) if row.progress.group == wanted), 0)
        if self._rows:
            self.table.go_to_row(at)

    def _pin(self) -> None:
        """Where groups read next, on the Line."""
        pins = [
            Pin(row.unread, "warn" if row.progress.state == "belowMin" else "note", sentence(row))
            for row in self._rows[:PINS]
            if row.unread is not None
        ]
        self.strip.set_pins(pins)

    def _chosen(self, row: GroupRow | GroupSum | None) -> None:
        if isinstance(row, GroupSum):
            whole = shown = sum_sentence(row)
            row = row.worst
        else:
            whole = sentence(row) if row is not None else ""
            shown = sentence(row, MOST_LETTERS) if row is not None else ""
        self._sentence.setText(shown)
        self._sentence.setToolTip(whole if whole != shown else "")
        self._sentence.setAccessibleDescription(whole)
        if row is not None and row.unread is not None:
            self.strip.set_frame(row.unread, row.unread + 1)

    def retheme(self) -> None:
        """Fonts and colours."""
        self.table.refresh_look()

    def status(self) -> str:
        """What the table holds."""
        return self._said

    def commands(self) -> dict[str, Callable[[], object]]:
        """Copying and stepping."""
        return table_commands(self, lambda: self.table, "groups.jsonl")
