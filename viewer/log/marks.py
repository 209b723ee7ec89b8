"""Marks on rows of the log: marked and ignored rows, a time that counts as zero, colouring rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from viewer.log.colour_box import ColourBox
from viewer.log.colour_rules import Rule, kept, read
from viewer.log.columns import unit_kind
from viewer.log.log_model import LogModel
from viewer.log.row_markings import RowMarks, marks_file, read_marks, write_marks
from viewer.log.rows import UnitRow
from viewer.look.assets import tr
from viewer.look.engine_words import engine_words
from viewer.runtime import places
from viewer.runtime.edit import Edit
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from viewer.runtime.settings import Settings
    from viewer.runtime.store_session import StoreSession


class LogMarks(QObject):
    """Marks, ignored rows, time reference and colouring rules of one table of units.

    ``over`` is the widget that dialogs are shown over. Emits ``statusText(sentence)``, ``edited(edit)``,
    ``offsetRequested(offset)`` to go to a row, ``filterRequested(text)``.
    """

    statusText = Signal(str)
    edited = Signal(object)
    offsetRequested = Signal(object)
    filterRequested = Signal(str)

    def __init__(self, model: LogModel, table: RecordView, over: QWidget) -> None:
        super().__init__(table)
        self._model, self._table, self._over = model, table, over
        self._settings: Settings | None = None
        self._session: StoreSession | None = None
        self._has_priorities = False
        self._saves = False  # not before the saved marks are read: they would be overwritten
        table.fitting.columnsEdited.connect(self.show_columns)
        self._show_kind()

    def use(self, settings: Settings) -> None:
        """Load the saved colouring rules."""
        self._settings = settings
        self._model.rules = read(settings.colour_rules)
        self._show_kind()

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store, and load its saved marks."""
        self._session, self._saves, self._has_priorities = session, False, False
        self._show_kind()
        if session is not None:
            session.surveyed.connect(self._note_priorities)
            self._note_priorities()
        if session is not None and self._settings is not None:
            file = marks_file(self._settings.folder, session.path)

            def on_marks(saved: RowMarks) -> None:
                if session is self._session:
                    self._add_saved(saved)

            session.later(lambda: session.jobs.read_saved(lambda: read_marks(file), on_marks, self._on_save_error))

    def _note_priorities(self) -> None:
        """Add a column of priorities once a topic of type PRIORITY is known."""
        survey = self._session.survey if self._session is not None else None
        if survey is not None and survey.has_priorities and not self._has_priorities:
            self._has_priorities = True
            self.show_columns()

    def _add_saved(self, saved: RowMarks) -> None:
        """Add the saved marks to those made meanwhile; from now on changes are saved."""
        self._saves = True
        meanwhile = self._model.marks
        if saved != RowMarks():
            self._model.add_marks(saved)
            self._show_kind()
        if meanwhile != RowMarks():
            self._save(self._model.marks)

    def _on_save_error(self, error: Exception) -> None:
        self.statusText.emit(engine_words(str(error)))

    def _put(self, marks: RowMarks) -> None:
        """Show ``marks`` and save them."""
        if self._model.put_marks(marks):
            self._show_kind()
        else:
            self._table.refresh_look()
        if self._saves:
            self._save(marks)

    def _save(self, marks: RowMarks) -> None:
        session, settings = self._session, self._settings
        if session is not None and settings is not None:
            file, store = marks_file(settings.folder, session.path), session.path
            session.jobs.keep(file, lambda: write_marks(file, store, marks), self._on_save_error)

    def _edit(self, title: str, new_marks: RowMarks) -> None:
        """Apply a user's change: show it, save it, make it undoable."""
        old_marks = self._model.marks
        self._put(new_marks)
        self.edited.emit(Edit(title, old_marks, new_marks, self._put))

    def apply_row_styles(self) -> None:
        """Read the rows of the log with the current rules."""
        if self._session is not None:
            reader = self._session.snapshot.log
            self._model.custom_columns = self._added_columns()
            self._model.apply_row_styles(reader.file_name)

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the commands for marks, ignored rows, the time reference and the rules."""
        return {
            "mark.toggle": self.toggle_mark,
            "mark.next": partial(self.next_mark, 1),
            "mark.previous": partial(self.next_mark, -1),
            "mark.only": self.only_marked,
            "mark.clear": self.clear_marks,
            "ignore.toggle": self.toggle_ignore,
            "time.reference": self.toggle_reference,
            "colour.rules": self.ask_rules,
        }

    # ---- marks -------------------------------------------------------------------------------------------------------

    def toggle_mark(self) -> None:
        """Mark the chosen row, or remove its mark."""
        row = self._table.current_row()
        if row is not None:
            self._edit(tr("marks of rows"), self._model.mark_turned(row))
        self.statusText.emit(tr("Marked rows: {n:,}", n=len(self._model.markings.marked)))

    def toggle_ignore(self) -> None:
        """Ignore the chosen row, or stop ignoring it. An ignored row is dimmed and left out of exports and searches."""
        row = self._table.current_row()
        if row is not None:
            self._edit(tr("ignored rows"), self._model.ignore_turned(row))
        self.statusText.emit(tr("Ignored rows: {n:,}", n=len(self._model.markings.ignored)))

    def next_mark(self, step: int) -> None:
        """Go to the next marked row; after the last one, to the first."""
        mark_offset = self._model.next_mark(self._table.current_row(), step)
        if mark_offset is None:
            self.statusText.emit(tr("No row is marked."))
        else:
            self.offsetRequested.emit(mark_offset)

    def only_marked(self) -> None:
        """Filter by the marked rows."""
        if text := self._model.marked_filter():
            self.filterRequested.emit(text)
        else:
            self.statusText.emit(tr("No row is marked."))

    def clear_marks(self) -> None:
        """Remove all marks, ignored rows and the time reference."""
        self._edit(tr("marks of rows"), RowMarks())

    def toggle_reference(self) -> None:
        """Show times relative to the chosen row's store time; on the same row again, as times of day."""
        row = self._table.current_row()
        if not isinstance(row, UnitRow):
            return
        turned = self._model.reference_turned(row)
        self._edit(tr("time reference"), turned)
        self.statusText.emit(
            tr("Times count from {offset:,} on", offset=row.offset)
            if turned.reference is not None
            else tr("Times are times of day again")
        )

    # ---- rules -------------------------------------------------------------------------------------------------------

    def ask_rules(self, added: str = "") -> ColourBox:
        """Open the dialog of the rules; ``added`` is the filter of a new rule."""
        box = ColourBox(self._model.rules, added, self._over)
        box.changed.connect(self.set_rules)
        box.open()
        return box

    def set_rules(self, rules: list[Rule]) -> None:
        """Colour by ``rules`` from now on, also at the next start."""
        old_rules = tuple(self._model.rules)
        self._put_rules(tuple(rules))
        self.edited.emit(Edit(tr("colouring rules"), old_rules, tuple(rules), self._put_rules))

    def _put_rules(self, rules: tuple[Rule, ...]) -> None:
        self._model.rules = list(rules)
        if self._settings is not None:
            self._settings.colour_rules = kept(self._model.rules)
        self.show_columns()

    def show_columns(self) -> None:
        """Read and show the rows again, after a change of rules or columns."""
        self._show_kind()
        self.apply_row_styles()
        if self._model.log is not None:
            row, source = self._table.current_row(), self._table.source
            self._table.set_source(
                source, start_position=source.position(row) if row is not None else None, choose=row is not None
            )

    def _added_columns(self) -> tuple[str, ...]:
        """Return the fields that the user made columns of, with the priority if a topic is of type PRIORITY."""
        added = tuple(self._table.fitting.kept.added)
        return (*added, "priority") if self._has_priorities and "priority" not in added else added

    def _show_kind(self) -> None:
        """Update the columns and repaint the rows' styles."""
        model = self._model
        model.custom_columns = self._added_columns()
        self._table.set_kind(
            unit_kind(places.queue, model.markings, rules=model.coloured, added_fields=model.custom_columns)
        )
        self._table.refresh_look()
