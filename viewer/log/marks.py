"""What a person puts on rows of the log: marks, ignored rows, a time that counts as zero, colouring rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from viewer.log.colour_box import ColourBox
from viewer.log.colour_rules import Rule, dresser, kept, read
from viewer.log.columns import unit_kind
from viewer.log.filter_work import file_name
from viewer.log.made_columns import readers
from viewer.log.row_dress import RowDress
from viewer.log.row_marks import RowMarks, marks_file
from viewer.log.row_marks import read as read_marks
from viewer.log.row_marks import write as write_marks
from viewer.log.rows import UnitRow
from viewer.look.assets import tr
from viewer.runtime import places
from viewer.runtime.edit import Edit

if TYPE_CHECKING:
    from viewer.log.pane import UnitsPane
    from viewer.runtime.settings import Settings
    from viewer.runtime.store_session import StoreSession


class LogMarks(QObject):
    """Marks, ignored rows, reference and rules of one log pane."""

    def __init__(self, pane: UnitsPane) -> None:
        super().__init__(pane)
        self._pane = pane
        self.dress = RowDress()
        self.rules: list[Rule] = []
        self._settings: Settings | None = None
        self._session: StoreSession | None = None
        self._keeps = False  # not before it is known what was kept: it would be lost
        pane.table.fitting.made.connect(self.show_columns)
        pane.unit.columnRequested.connect(pane.table.fitting.add)
        pane.unit.detail.columns = lambda: frozenset(column.key for column in pane.table.kind.columns)
        self._show_kind()

    def use(self, settings: Settings) -> None:
        """Take the rules that were kept."""
        self._settings = settings
        self.rules = read(settings.colour_rules)
        self._show_kind()

    def set_session(self, session: StoreSession | None) -> None:
        """Marks belong to one store; those that were kept come with it."""
        self._session, self._keeps = session, False
        self.dress.clear()
        self._show_kind()
        if session is not None and self._settings is not None:
            file = marks_file(self._settings.folder, session.path)

            def known(kept: RowMarks) -> None:
                if session is self._session:
                    self._known(kept)

            session.later(lambda: session.jobs.read_kept(lambda: read_marks(file), known, self._not_kept))

    def _known(self, kept: RowMarks) -> None:
        """What was kept, with what was put on rows meanwhile: from now on changes are kept."""
        self._keeps = True
        meanwhile = self._state()
        if kept != RowMarks():
            self.dress.marked |= kept.marked
            self.dress.ignored |= kept.ignored
            self.dress.reference = self.dress.reference or kept.reference
            self._show_kind()
        if meanwhile != RowMarks():
            self._keep(self._state())

    def _not_kept(self, error: Exception) -> None:
        self._pane.statusMessage.emit(str(error))

    def _state(self) -> RowMarks:
        return RowMarks(frozenset(self.dress.marked), frozenset(self.dress.ignored), self.dress.reference)

    def _put(self, marks: RowMarks) -> None:
        """Show ``marks`` and keep them."""
        timed = marks.reference != self.dress.reference
        self.dress.marked, self.dress.ignored = set(marks.marked), set(marks.ignored)
        self.dress.reference = marks.reference
        if timed:
            self._show_kind()
        else:
            self._pane.table.refresh_look()
        if self._keeps:
            self._keep(marks)

    def _keep(self, marks: RowMarks) -> None:
        session, settings = self._session, self._settings
        if session is not None and settings is not None:
            file, store = marks_file(settings.folder, session.path), session.path
            session.jobs.keep(file, lambda: write_marks(file, store, marks), self._not_kept)

    def _edit(self, what: str, after: RowMarks) -> None:
        """A change by a person: shown, kept, and to be taken back."""
        before = self._state()
        self._put(after)
        self._pane.edited.emit(Edit(what, before, after, self._put))

    def dress_log(self) -> None:
        """Have the rows of the log read with the rules in force."""
        log, session = self._pane.log, self._session
        if log is not None and session is not None:
            reader = session.snapshot.log
            log.dress = dresser(self.rules, lambda offset: file_name(reader, offset))
            log.fields = readers(self._pane.table.fitting.kept.added)

    def commands(self) -> dict[str, Callable[[], object]]:
        """Marking, ignoring, the reference, the rules."""
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

    def heeded(self, text: str) -> str:
        """The filter ``text`` without the ignored rows: what find, sheets and exports look at."""
        if not self.dress.ignored:
            return text
        from engine.query import and_

        return and_(text, f"not physicalOffset in ({', '.join(map(str, sorted(self.dress.ignored)))})")

    # ---- marks -------------------------------------------------------------------------------------------------------

    def toggle_mark(self) -> None:
        """Mark the chosen row, or take its mark away; the next row is chosen."""
        row, state = self._pane.table.current_row(), self._state()
        if row is not None:
            self._edit(tr("marks of rows"), replace(state, marked=state.marked ^ {row.offset}))
        self._pane.statusMessage.emit(tr("Marked rows: {n:,}", n=len(self.dress.marked)))

    def toggle_ignore(self) -> None:
        """Ignore the chosen row: it stays, quiet, and is left out of exports, sheets and finding; or heed it again."""
        row, state = self._pane.table.current_row(), self._state()
        if row is not None:
            self._edit(tr("ignored rows"), replace(state, ignored=state.ignored ^ {row.offset}))
        self._pane.statusMessage.emit(tr("Ignored rows: {n:,}", n=len(self.dress.ignored)))

    def next_mark(self, step: int) -> None:
        """Go to the next marked row, round the end."""
        row, marked = self._pane.table.current_row(), sorted(self.dress.marked)
        if not marked:
            self._pane.statusMessage.emit(tr("No row is marked."))
            return
        here = row.offset if row is not None else -1
        ahead = [o for o in marked if o > here] if step > 0 else [o for o in reversed(marked) if o < here]
        self._pane.go_to(ahead[0] if ahead else marked[0 if step > 0 else -1])

    def only_marked(self) -> None:
        """Filter by the marked rows."""
        if not self.dress.marked:
            self._pane.statusMessage.emit(tr("No row is marked."))
            return
        self._pane.filter.apply(f"physicalOffset in ({', '.join(map(str, sorted(self.dress.marked)))})")

    def clear_marks(self) -> None:
        """No marks, nothing ignored, no reference."""
        self._edit(tr("marks of rows"), RowMarks())

    def toggle_reference(self) -> None:
        """The chosen row's store time counts as zero from now on; on the same row again, times are times."""
        row = self._pane.table.current_row()
        if not isinstance(row, UnitRow):
            return
        same = self.dress.reference is not None and self.dress.reference[0] == row.offset
        reference = None if same else (row.offset, row.store_timestamp)
        self._edit(tr("time reference"), replace(self._state(), reference=reference))
        said = tr("Times are times of day again") if same else tr("Times count from {offset:,} on", offset=row.offset)
        self._pane.statusMessage.emit(said)

    # ---- rules -------------------------------------------------------------------------------------------------------

    def ask_rules(self, added: str = "") -> ColourBox:
        """The dialog of the rules; ``added`` is the filter of a new one."""
        box = ColourBox(self.rules, added, self._pane)
        box.changed.connect(self.set_rules)
        box.open()
        return box

    def set_rules(self, rules: list[Rule]) -> None:
        """Colour by ``rules`` from now on, also at the next start."""
        before = tuple(self.rules)
        self._put_rules(tuple(rules))
        self._pane.edited.emit(Edit(tr("colouring rules"), before, tuple(rules), self._put_rules))

    def _put_rules(self, rules: tuple[Rule, ...]) -> None:
        self.rules = list(rules)
        if self._settings is not None:
            self._settings.colour_rules = kept(self.rules)
        self.show_columns()

    def show_columns(self) -> None:
        """Read and show the rows anew: with other rules, or with other fields."""
        self._show_kind()
        self.dress_log()
        pane = self._pane
        if pane.log is not None:
            row = pane.table.current_row()
            source = pane.table.source
            pane.table.set_source(source, at=source.position(row) if row is not None else None, choose=row is not None)

    def _show_kind(self) -> None:
        """The columns: what was put on rows is painted anew."""
        rules, made = any(rule.on and not rule.fault for rule in self.rules), self._pane.table.fitting.kept.added
        self._pane.table.set_kind(unit_kind(places.queue, self.dress, rules=rules, made=made))
        self._pane.table.refresh_look()
