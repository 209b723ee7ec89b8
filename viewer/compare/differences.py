"""Table of all differences between two open stores, each row a link into either window.

Both stores are only read. They are walked in parallel, so memory does not depend on their size.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QVBoxLayout, QWidget

from engine.errors import StoreError
from engine.inspection.difference_rows import Differences, Row
from engine.inspection.store_differences import compare
from viewer.compare.difference_tables import KIND, TOTAL, OtherWindowLink
from viewer.compare.differences_model import TOTALS, DifferencesModel, place_of
from viewer.look.assets import tr
from viewer.look.theme import px, ui
from viewer.pane.exporting import ask_export_of
from viewer.runtime.jobs import Cancelled, Control
from viewer.runtime.places import Place
from viewer.widgets.basics import Button, Label
from viewer.widgets.boxes import row
from viewer.widgets.choices import ChoiceField
from viewer.widgets.record_state import state_of
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from viewer.runtime.store_session import StoreSession


class DifferencesBox(QDialog):
    """Window with the table of differences. It stays open beside both store windows.

    :meth:`run` compares; ``model`` has the last result. ``say`` shows a sentence in the status bar.
    """

    placeRequested = Signal(object)
    """A place to show in this window."""
    otherPlaceRequested = Signal(object)
    """A place to show in the other window."""

    def __init__(
        self, parent: QWidget, session: StoreSession, other_session: StoreSession, say: Callable[[str], object]
    ) -> None:
        super().__init__(parent)
        self._session, self._other_session, self._say = session, other_session, say
        self._control: Control | None = None
        self._closed = False
        self.model = DifferencesModel()
        self.setObjectName("compare.box")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Differences of two stores"))
        self.setAccessibleName(tr("Differences of two stores"))
        self.resize(px(1120), px(560))
        self.finished.connect(lambda _n: self._on_finished())
        paths = tr("Here: {here} · There: {there}", here=str(session.path), there=str(other_session.path))
        paths_label = Label(paths, 12, "text2", wrap=True)
        self.kinds = ChoiceField()
        self.kinds.setObjectName("compare.kind")
        self.kinds.setAccessibleName(tr("Which differences are shown"))
        self.kinds.setFont(ui(13))
        self.kinds.currentIndexChanged.connect(lambda _n: self._choose_kind())
        self.table = RecordView("compare.table", KIND)
        self.table.setAccessibleName(tr("Differences of two stores"))
        self.table.placeRequested.connect(self.go)
        self.table.rowChosen.connect(lambda _row: self._update_buttons())
        self.note = Label("", 12, "text2", wrap=True)
        self.note.setObjectName("compare.note")
        self._buttons()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(16), px(14), px(16), px(12))
        layout.setSpacing(px(8))
        layout.addWidget(paths_label)
        layout.addWidget(row(self.kinds, None, self.stop, self.again))
        layout.addWidget(self.table, 1)
        layout.addWidget(self.table.strip)
        layout.addWidget(self.note)
        layout.addWidget(row(self.here, self.there, self.export, None, self.close_button))
        self._count()
        self._update_buttons()

    def _choose_kind(self) -> None:
        self.model.kind = self.kinds.currentData()
        self._fill()

    def _buttons(self) -> None:
        self.here, self.there, self.export, self.stop, self.again, self.close_button = (
            Button(tr("Show it here")),
            Button(tr("Show it there")),
            Button(tr("Export the table…")),
            Button(tr("Stop")),
            Button(tr("Compare again")),
            Button(tr("Close")),
        )
        for name in ("here", "there", "export", "stop", "again"):
            getattr(self, name).setObjectName(f"compare.{name}")
        self.close_button.setObjectName("compare.close")
        self.here.clicked.connect(lambda: self._show("here"))
        self.there.clicked.connect(lambda: self._show("there"))
        self.export.clicked.connect(
            lambda: ask_export_of(self._session, self, self._say, self.table, "differences.jsonl")
        )
        self.stop.clicked.connect(self.cancel)
        self.again.clicked.connect(self.begin)
        self.close_button.clicked.connect(self.reject)

    def begin(self) -> None:
        """Compare both stores as they are now."""
        if not self.model.running:
            self._session.jobs.start(self.run())

    async def run(self) -> None:
        """Compare both stores as a job that the user can stop, and await the result."""
        session, other_session = self._session, self._other_session
        if session.closed or other_session.closed:
            self.note.setText(tr("One of the two stores is not open any more."))
            return

        def work(control: Control) -> Differences:
            self._control = control
            return compare(control, session.snapshot, other_session.snapshot, differences)

        differences = Differences()
        if not self.model.begin():
            return
        self.note.setText("")
        self.table.set_state(state_of(self.model.table_state()))
        self._update_buttons()
        is_stopped, error_words = False, ""
        try:
            await session.jobs.run(tr("Comparing two stores"), work)
        except (Cancelled, asyncio.CancelledError):
            is_stopped = True
        except (StoreError, OSError) as error:
            error_words = str(error)
        self.model.end(differences, is_stopped=is_stopped, error=error_words)
        self._control = None
        if self._closed:
            return
        self._count()
        self._fill()
        for compared_session in (session, other_session):
            compared_session.unread.note(compared_session.snapshot.unread)
        note = self.model.note(is_complete=not session.unread and not other_session.unread)
        note = other_session.unread.beside(session.unread.beside(note))
        self.note.setText(note)
        self._say(note)

    def _count(self) -> None:
        """Fill the choice of kinds, each with its number of differences."""
        self.kinds.blockSignals(True)
        self.kinds.clear()
        for key, text in self.model.kinds():
            self.kinds.addItem(text, key)
        self.kinds.setCurrentIndex(self.kinds.findData(self.model.kind))
        self.kinds.blockSignals(False)

    def _fill(self) -> None:
        """Show the rows of the chosen kind."""
        is_totals = self.model.kind == TOTALS
        rows = self.model.totals if is_totals else self.model.rows
        self.table.set_rows([])  # rows of one kind do not fit the columns of the other
        self.table.set_kind(TOTAL if is_totals else KIND)
        self.table.set_rows(rows)
        self.table.set_state(state_of(self.model.table_state()))
        if rows:
            self.table.first_row()
        self._update_buttons()

    def _show(self, side: str) -> None:
        place = place_of(self._chosen(), side)
        if place is not None:
            self.go(OtherWindowLink(place) if side == "there" else place)

    def _chosen(self) -> Row | None:
        chosen = self.table.current_row()
        return chosen if isinstance(chosen, Row) else None

    def go(self, link: object) -> None:
        """Follow a link, in this window or in the other one."""
        is_of_other_store = isinstance(link, OtherWindowLink)
        session = self._other_session if is_of_other_store else self._session
        if session.closed:
            self.note.setText(tr("One of the two stores is not open any more."))
        elif isinstance(link, OtherWindowLink):
            self.otherPlaceRequested.emit(link.place)
        elif isinstance(link, Place):
            self.placeRequested.emit(link)

    def cancel(self) -> None:
        """Stop comparing."""
        if self._control is not None:
            self._control.stop.set()

    def _on_finished(self) -> None:
        self._closed = True
        self.cancel()

    def _update_buttons(self) -> None:
        chosen = self._chosen()
        self.stop.setEnabled(self.model.running)
        self.again.setEnabled(not self.model.running)
        self.export.setEnabled(self.model.can_export)
        self.here.setEnabled(place_of(chosen, "here") is not None)
        self.there.setEnabled(place_of(chosen, "there") is not None)
