"""Rows that a broker keeps in a RocksDB, one subject at a time: each leads to its message in the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QVBoxLayout, QWidget

from viewer.look.assets import tr
from viewer.pane import Pane
from viewer.pane.table_commands import command_copier, table_commands
from viewer.rows.rows import SUBJECTS, TITLES, RowLine, RowsModel, RowsRead, read_rows, rows_kind, subjects_of
from viewer.runtime.places import Place
from viewer.widgets.basics import PaneHead
from viewer.widgets.boxes import stacked
from viewer.widgets.record_state import State, state_of
from viewer.widgets.record_view import RecordView
from viewer.widgets.word_tabs import WordTabs

if TYPE_CHECKING:
    from engine.inspection.rocksdb_rows import RowSubject
    from engine.inspection.snapshot import StoreSnapshot
    from viewer.runtime.store_session import StoreSession


class RowsPane(Pane):
    """A table of rows, with a tab for each subject."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("rows.pane")
        self.model = RowsModel()
        self.tabs = WordTabs("rows.tabs", tuple((subject, tr(TITLES[subject])) for subject in SUBJECTS))
        self.tabs.setAccessibleName(tr("What the rows are about"))
        self.tabs.chosen.connect(self._choose_subject)
        self.head = PaneHead(tr("Rows in a RocksDB"), self.model.head_note(), self.tabs)
        self.table = RecordView("rows.table", rows_kind(self.model.subject))
        self.table.setAccessibleName(tr("Rows in a RocksDB"))
        self.table.placeRequested.connect(self.placeRequested)
        self.table.rowChosen.connect(self._chosen)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(stacked(self.head, self.table, self.table.strip, room=1))
        self.lead = self.table

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store; its rows are read when the view is opened."""
        super().set_session(session)
        self.model.forget_store()
        self.table.copier = None if session is None else command_copier(self.table, session.command_line)
        self.table.set_rows([])
        self.table.set_state(None)

    def show_place(self, place: Place) -> None:
        """Show the rows of the subject that the place names."""
        if place.name in SUBJECTS:
            self.model.is_chosen = True
            self.model.subject = next(subject for subject in SUBJECTS if subject == place.name)
        self.refresh()

    def refresh(self) -> None:
        """Read the rows again."""
        session = self.session
        if session is None or not self.isVisible():
            return
        if self.model.rows_read is None:
            self.table.set_state(State("loading", tr("Reading the rows")))
        chosen = self.model.subject if self.model.is_chosen else None

        def done(rows_read: RowsRead) -> None:
            if session is self.session and chosen == (self.model.subject if self.model.is_chosen else None):
                self._fill(rows_read)

        def failed(error: Exception) -> None:
            if session is self.session:
                self.model.error = str(error)
                self.table.set_state(state_of(self.model.table_state()))

        session.jobs.read(lambda: _read(session.snapshot, chosen), done, failed)

    def _choose_subject(self, subject: RowSubject) -> None:
        if subject == self.model.subject:
            return
        self.model.subject, self.model.is_chosen, self.model.rows_read = subject, True, None
        self.table.set_rows([])
        self.refresh()

    def _fill(self, rows_read: RowsRead) -> None:
        previous = self.table.current_row()
        is_same = self.model.rows_read is not None and self.model.rows_read.subject == rows_read.subject
        self.model.take(rows_read)
        self.tabs.choose(rows_read.subject)
        self.head.set_note(self.model.head_note())
        if not is_same:
            self.table.set_rows([])  # rows of one subject do not fit the columns of another
            self.table.set_kind(rows_kind(rows_read.subject))
        self.table.set_rows(list(self.model.lines))
        self.table.set_state(state_of(self.model.table_state()))
        if self.model.lines:
            self.table.go_to_row(self.model.line_like(previous if is_same else None))
        self.statusUpdated.emit(self.status())

    def _chosen(self, line: RowLine | None) -> None:
        if line is not None and self.session is not None and line.row.unit is not None:
            self.session.select(line.physical_offset)

    def retheme(self) -> None:
        """Apply fonts and colours."""
        self.table.refresh_look()

    def status(self) -> str:
        """Return the counts of the table."""
        return self.model.summary()

    def focus_stops(self) -> Sequence[QWidget]:
        """Return the parts between which F6 moves the focus."""
        return self.tabs, self.table

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the commands for copying and stepping."""
        return table_commands(self, lambda: self.table, "rows.jsonl")


def _read(store: StoreSnapshot, chosen: RowSubject | None) -> RowsRead:
    """Read the chosen subject, or the first one that the store has rows of."""
    subject: RowSubject = SUBJECTS[0]
    subject = chosen if chosen is not None else next(iter(subjects_of(store)), subject)
    return read_rows(store, subject)
