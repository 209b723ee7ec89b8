"""The view Timeline: crashes, starts, stalls, clock steps and more, in order of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine.errors import StoreError
from viewer.look.assets import tr
from viewer.look.theme import ui
from viewer.pane import Pane
from viewer.pane.event_words import CHIPS, message_text
from viewer.pane.table_commands import command_copier, table_commands
from viewer.runtime.jobs import Cancelled
from viewer.runtime.places import Place
from viewer.runtime.worker import WorkerDied
from viewer.timeline.timeline_model import EVENT, TROUBLE, TimelineModel, evidence_text
from viewer.widgets.basics import Label, PaneHead
from viewer.widgets.boxes import stacked
from viewer.widgets.choices import ChoiceField
from viewer.widgets.record_state import State, state_of
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from engine.inspection.timeline.events import TimelineEvent
    from viewer.runtime.store_session import StoreSession


class TimelinePane(Pane):
    """A table of events; each leads to the unit at which it shows."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("timeline.pane")
        self.model = TimelineModel()
        self._is_reading = False
        self._is_filling = False
        """True while a row is chosen that the user did not choose."""
        self._shown: list[TimelineEvent] = []
        self.kinds = ChoiceField()
        self.kinds.setObjectName("timeline.kind")
        self.kinds.setAccessibleName(tr("Which events are shown"))
        self.kinds.setToolTip(tr("Which events are shown"))
        self.kinds.setFont(ui(12))
        self.kinds.setSizeAdjustPolicy(ChoiceField.SizeAdjustPolicy.AdjustToContents)  # counts come after the read
        self.kinds.currentIndexChanged.connect(lambda _index: self._choose())
        self.head = PaneHead(tr("Timeline"), "", self.kinds)
        self.table = RecordView("timeline.table", EVENT)
        self.table.setAccessibleName(tr("What happened to the store"))
        self.table.placeRequested.connect(self.placeRequested)
        self.table.rowChosen.connect(self._chosen)
        self.message = Label("", 13, wrap=True, select=True)
        self.message.setObjectName("timeline.message")
        self.evidence = Label("", 12, "text2", wrap=True, select=True, code=True)
        self.evidence.setObjectName("timeline.evidence")
        self._unknown = Label("", 12, "text2", wrap=True, select=True)
        self._unknown.setObjectName("timeline.unknown")
        self._unknown.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        below = QWidget()
        lines = QVBoxLayout(below)
        lines.setContentsMargins(12, 8, 12, 8)
        for label in (self.message, self.evidence, self._unknown):
            lines.addWidget(label)
        layout.addWidget(stacked(self.head, self.table, self.table.strip, below, room=1))
        self.lead = self.table
        self._fill_choices()

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store; its log is read when the view is opened."""
        super().set_session(session)
        self._is_reading = False
        self.model.forget_store()
        self.table.copier = None if session is None else command_copier(self.table, session.command_line)
        self._shown = []
        self.table.set_rows([])
        self.table.set_state(None)
        self._unknown.hide()
        self._chosen(None)
        self._fill_choices()

    def show_place(self, place: Place) -> None:
        """Show the events of the kind that the place names."""
        if place.name == TROUBLE or place.name in CHIPS:
            self.model.choose(place.name or "")
            self._fill()
        session = self.session
        if session is not None and self.model.timeline is None and session.timeline is not None:
            self.model.take(session.timeline)
            self._fill()
        if session is not None and session.chosen_event in self.model.rows:
            self.table.go_to_row(self.model.row_like(session.chosen_event))
        if session is None or not session.timeline_is_current:
            self.refresh()

    def refresh(self) -> None:
        """Read the log again."""
        session = self.session
        if session is not None and self.isVisible() and not self._is_reading:
            self._is_reading = True
            session.jobs.start(self._read(session))

    async def _read(self, session: StoreSession) -> None:
        if self.model.timeline is None:
            self.table.set_state(State("loading", tr("Reading the log for events")))
        log_end = session.log_end
        try:
            timeline = await session.jobs.in_worker(
                tr("Reading the log for events"),
                "viewer.timeline.timeline_work:find_events",
                session.path,
                session.config,
            )
        except Cancelled:
            timeline = None
        except (StoreError, OSError, WorkerDied, RuntimeError) as error:
            if session is self.session:
                self._is_reading = False
                self.model.fail(str(error))
                self._fill()
            return
        if session is not self.session:
            return
        self._is_reading = False
        if timeline is None:
            self.model.stop()
        else:
            self.model.take(timeline)
            session.set_timeline(timeline, log_end)
        self._fill()

    def _choose(self) -> None:
        choice = self.kinds.currentData() or ""
        if choice != self.model.choice:
            self.model.choose(choice)
            self._fill()

    def _fill_choices(self) -> None:
        self.kinds.blockSignals(True)
        self.kinds.clear()
        for key, text in self.model.choices():
            self.kinds.addItem(text, key)
        self.kinds.setCurrentIndex(max(0, self.kinds.findData(self.model.choice)))
        self.kinds.blockSignals(False)

    def _fill(self) -> None:
        self._fill_choices()
        self.head.set_note(self.model.head_note())
        if self.model.rows != self._shown:  # the same events again leave the chosen row and an open menu alone
            chosen_event = self.session.chosen_event if self.session is not None else None
            previous, self._shown = self.table.current_row() or chosen_event, self.model.rows
            self.table.set_rows(self.model.rows)
            if self.model.rows:
                self._is_filling = True
                self.table.go_to_row(self.model.row_like(previous))
                self._is_filling = False
        self.table.set_state(state_of(self.model.table_state()))
        self._unknown.setText(self.model.unknown_words())
        self._unknown.setVisible(bool(self._unknown.text()) and bool(self.model.rows))
        self.statusUpdated.emit(self.status())

    def _chosen(self, row: TimelineEvent | None) -> None:
        self.message.setText("" if row is None else message_text(row))
        self.evidence.setText("" if row is None else evidence_text(row))
        if row is None or self.session is None or self._is_filling:
            return
        self.session.choose_event(row)
        if row.physical_offset is not None:
            self.session.select(row.physical_offset)

    def retheme(self) -> None:
        """Apply fonts and colours."""
        self.table.refresh_look()

    def status(self) -> str:
        """Return the number of the events."""
        return self.model.summary()

    def focus_stops(self) -> Sequence[QWidget]:
        """Return the parts between which F6 moves the focus."""
        return self.kinds, self.table

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the commands for copying and stepping."""
        return table_commands(self, lambda: self.table, "timeline.jsonl")
