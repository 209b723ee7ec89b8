"""Consumer groups: progress in each queue, age of the oldest unread message, and when retention overtakes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QVBoxLayout, QWidget

from viewer.groups.groups_model import Grouping, GroupsModel, sentences
from viewer.look.assets import tr
from viewer.pane import Pane
from viewer.pane.group_rows import GroupRow, GroupSum, GroupTable, groups_kind, read_groups, sentence, sums_kind
from viewer.pane.log_survey import LogSurvey
from viewer.pane.table_commands import command_copier, table_commands
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.widgets.basics import Hairline, Label, PaneHead
from viewer.widgets.boxes import column, stacked
from viewer.widgets.line_strip import LineStrip
from viewer.widgets.log_line import LinePin
from viewer.widgets.record_state import state_of
from viewer.widgets.record_view import RecordView
from viewer.widgets.word_tabs import WordTabs

if TYPE_CHECKING:
    from viewer.runtime.store_session import StoreSession


class GroupsPane(Pane):
    """Table of all groups and queues, the most urgent first."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("groups.pane")
        self.model = GroupsModel()
        self.strip = LineStrip("groups.line")
        self.strip.offsetChosen.connect(lambda offset: self.placeRequested.emit(places.log(offset)))
        self._survey = LogSurvey(self.strip)
        self._survey.extentKnown.connect(lambda _line: self._set_pins())
        tabs = (("queues", tr("Queues")), ("topics", tr("Topics")), ("groups", tr("Groups")))
        self.tabs = WordTabs("groups.tabs", tabs)
        self.tabs.setToolTip(tr("A row each queue, or the sums of each topic or group"))
        self.tabs.chosen.connect(self._group_by)
        self.head = PaneHead(tr("Consumer groups"), self.model.head_note(), self.tabs)
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
        self.model.forget_store()
        self._sentence.setText("")
        if session is not None:
            self._survey.read_extent()

    def show_place(self, place: Place) -> None:
        """Show all groups, or select one."""
        self.model.pending_group = place.name
        self.refresh()

    def refresh(self) -> None:
        """Read the tables again."""
        session = self.session
        if session is None or not self.isVisible():
            return
        self._survey.on_log_grown()

        def done(groups_read: GroupTable) -> None:
            if session is self.session:
                self._fill(groups_read)

        def failed(error: Exception) -> None:
            if session is self.session:
                self.model.fail(str(error))
                self.table.set_state(state_of(self.model.table_state()))

        session.jobs.read(lambda: read_groups(session.snapshot), done, failed)

    def _fill(self, groups_read: GroupTable) -> None:
        chosen = self.table.current_row()
        self.model.take(groups_read)
        self.head.set_note(self.model.head_note())
        self.statusMessage.emit(self.model.summary())
        self.table.set_state(state_of(self.model.table_state()))
        self._set_pins()
        self._show_rows()
        if self.model.queue_rows and self.model.grouping == "queues":
            self.table.go_to_row(self.model.row_to_choose(chosen if isinstance(chosen, GroupRow) else None))

    def _group_by(self, grouping: Grouping) -> None:
        """Show the queues, or the sums of topics or groups."""
        self.model.grouping = grouping
        self._show_rows()

    def _show_rows(self) -> None:
        self.table.set_rows([])  # rows of one kind do not fit the columns of the other
        grouping = self.model.grouping
        self.table.set_kind(groups_kind() if grouping == "queues" else sums_kind(by_topic=grouping == "topics"))
        self.table.set_rows(list(self.model.rows))
        self.table.go_to_row(0)

    def _set_pins(self) -> None:
        """Pin on the Line the offsets that groups read next."""
        self.strip.set_pins(
            [
                LinePin(offset, "warn" if row.progress.state == "belowMin" else "note", sentence(row))
                for offset, row in self.model.pinned_rows()
            ]
        )

    def _chosen(self, row: GroupRow | GroupSum | None) -> None:
        short_sentence, full_sentence = sentences(row)
        if isinstance(row, GroupSum):
            row = row.worst
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
        return self.model.summary()

    def focus_stops(self) -> Sequence[QWidget]:
        """Return the parts between which F6 moves the focus."""
        return (self.table,)

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the commands for copying and stepping."""
        return table_commands(self, lambda: self.table, "groups.jsonl")
