"""The view Waiting: messages that wait, for whom and until when, and what their services have reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine.errors import StoreError
from viewer.look.assets import tr
from viewer.look.theme import px, ui
from viewer.pane import Pane
from viewer.pane.table_commands import command_copier, table_commands
from viewer.pane.view_tabs import WAITING_TAB, QueueTabs
from viewer.runtime.jobs import Cancelled, Control
from viewer.runtime.places import Place
from viewer.waiting.waiting_model import (
    KIND_CHOICES,
    SERVICE,
    TOTAL,
    WAITING,
    WaitingChoice,
    WaitingModel,
    WaitingTotal,
    read_waiting,
)
from viewer.widgets.basics import Label, PaneHead, ThemedPanel
from viewer.widgets.boxes import fill, splitter, stacked
from viewer.widgets.choices import ChoiceField
from viewer.widgets.flow import WrappedRow
from viewer.widgets.record_state import State, state_of
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from engine.inspection.waiting import WaitingMessage, WaitingMessages
    from viewer.runtime.store_session import StoreSession


class WaitingPane(Pane):
    """A table of waiting messages; below it the services and the totals by topic and group."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("waiting.pane")
        self.model = WaitingModel()
        self._control: Control | None = None
        self._is_filling = False
        """True while a row is chosen that the user did not choose: the unit selected in the log stays."""
        self.tabs = QueueTabs("waiting.tabs", WAITING_TAB)
        self.tabs.placeRequested.connect(self.placeRequested)
        self.kinds = self._choice_field("waiting.kind", tr("Which messages are shown"))
        self.groups = self._choice_field("waiting.group", tr("Messages of which group are shown"))
        self.head = PaneHead(tr("Waiting"), self.model.head_note())
        self.table = RecordView("waiting.table", WAITING)
        self.table.setAccessibleName(tr("Waiting messages"))
        self.table.placeRequested.connect(self.placeRequested)
        self.table.rowChosen.connect(self._chosen)
        self.services = RecordView("waiting.services", SERVICE)
        self.services.setAccessibleName(tr("What each service has reached"))
        self.services.placeRequested.connect(self.placeRequested)
        self.totals = RecordView("waiting.totals", TOTAL)
        self.totals.setAccessibleName(tr("Totals by topic and group"))
        self._unknown = Label("", 12, "text2", wrap=True, select=True)
        self._unknown.setObjectName("waiting.unknown")
        self._unknown.hide()
        above = stacked(self._form(), self.head, self.table, self.table.strip, self._unknown, room=1)
        services = stacked(PaneHead(tr("Services"), ""), self.services, self.services.strip, room=1)
        totals = stacked(PaneHead(tr("Totals"), ""), self.totals, self.totals.strip, room=1)
        below = splitter(False, (services, 760), (totals, 380))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(splitter(True, (above, 470), (below, 190)))
        self.lead = self.table
        self._fill_choices()

    def _form(self) -> ThemedPanel:
        """Tabs and choices, on as many lines as the width needs."""
        form = ThemedPanel("pane", ("bottom",))
        line = WrappedRow(gap=12, line_gap=0, line_height=39)
        form.setLayout(line)
        line.setContentsMargins(px(12), 0, px(8), 1)
        fill(line, (self.tabs, self.kinds, self.groups))
        return form

    def _choice_field(self, name: str, title: str) -> ChoiceField:
        field = ChoiceField()
        field.setObjectName(name)
        field.setAccessibleName(title)
        field.setToolTip(title)
        field.setFont(ui(12))
        field.setSizeAdjustPolicy(ChoiceField.SizeAdjustPolicy.AdjustToContents)  # counts come after the first show
        field.currentIndexChanged.connect(lambda _index: self._choose())
        return field

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store; its messages are read when the view is opened."""
        super().set_session(session)
        self._stop()
        self.model.forget_store()
        for table in (self.table, self.services, self.totals):
            table.copier = None if session is None else command_copier(table, session.command_line)
            table.set_rows([])
            table.set_state(None)
        self._unknown.hide()
        self._fill_choices()

    def show_place(self, place: Place) -> None:
        """Show the messages of the kind that the place names."""
        if place.name in KIND_CHOICES:
            self.model.choice = WaitingChoice(place.name or "")
            self._fill_choices()
        self.refresh()

    def refresh(self) -> None:
        """Read the messages again."""
        session = self.session
        if session is not None and self.isVisible() and self._control is None:
            session.jobs.start(self._read(session, self.model.choice))

    async def _read(self, session: StoreSession, choice: WaitingChoice) -> None:
        if self.model.waiting is None:
            for table in (self.table, self.services, self.totals):
                table.set_state(State("loading", tr("Reading the waiting messages")))

        def work(control: Control) -> WaitingMessages:
            self._control = control
            return read_waiting(session.snapshot, choice, control.check)

        waiting: WaitingMessages | None = None
        error = ""
        try:
            waiting = await session.jobs.run(tr("Reading the waiting messages"), work)
        except Cancelled:
            pass
        except (StoreError, OSError) as failure:
            error = str(failure)
        self._control = None
        if session is not self.session:
            return
        if choice != self.model.choice:  # the user chose others meanwhile
            self.refresh()
            return
        if waiting is not None:
            self.model.take(waiting)
        elif error:
            self.model.fail(error)
        else:
            self.model.stop()
        self._fill()

    def _stop(self) -> None:
        if self._control is not None:
            self._control.stop.set()

    def _choose(self) -> None:
        choice = WaitingChoice(self.kinds.currentData() or "", self.groups.currentData() or "")
        if choice == self.model.choice:
            return
        self.model.choice = choice
        if self._control is not None:
            self._stop()  # what is read now is not wanted any more; the end of that job reads again
        else:
            self.refresh()

    def _fill_choices(self) -> None:
        pairs = (
            (self.kinds, self.model.kind_choices(), self.model.choice.kind),
            (self.groups, self.model.group_choices(), self.model.choice.group),
        )
        for field, choices, chosen in pairs:
            field.blockSignals(True)
            field.clear()
            for key, text in choices:
                field.addItem(text, key)
            field.setCurrentIndex(max(0, field.findData(chosen)))
            field.blockSignals(False)

    def _fill(self) -> None:
        previous = self.table.current_row()
        self._fill_choices()
        self.head.set_note(self.model.head_note())
        self.table.set_rows(self.model.rows)
        self.table.set_state(state_of(self.model.table_state()))
        if self.model.rows:
            self._is_filling = True
            self.table.go_to_row(self.model.row_like(previous))
            self._is_filling = False
        self.services.set_rows(self.model.services)
        self.totals.set_rows(self.model.totals)
        self.services.set_state(state_of(self.model.services_state()))
        self.totals.set_state(state_of(self.model.totals_state()))
        self._unknown.setText(self.model.unknown_words())
        self._unknown.setVisible(bool(self._unknown.text()) and bool(self.model.rows))
        self.statusUpdated.emit(self.status())

    def _chosen(self, row: WaitingMessage | None) -> None:
        is_users_choice = row is not None and not self._is_filling
        if row is not None and is_users_choice and self.session is not None and row.physical_offset is not None:
            self.session.select(row.physical_offset)

    def _table_in_front(self) -> RecordView:
        """The table that has the focus; that of the messages if none has."""
        return next((table for table in (self.services, self.totals) if table.hasFocus()), self.table)

    def choose_group(self, total: WaitingTotal) -> None:
        """Show only messages of a group of the totals."""
        if total.of == "group":
            self.groups.setCurrentIndex(max(0, self.groups.findData(total.name)))

    def retheme(self) -> None:
        """Apply fonts and colours."""
        for table in (self.table, self.services, self.totals):
            table.refresh_look()

    def status(self) -> str:
        """Return the counts of the messages."""
        return self.model.summary()

    def focus_stops(self) -> Sequence[QWidget]:
        """Return the parts between which F6 moves the focus."""
        return self.tabs, self.kinds, self.groups, self.table, self.services, self.totals

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the commands for copying and stepping."""
        return table_commands(self, self._table_in_front, "waiting.jsonl")
