"""The table of all differences of two stores that stand side by side: by kind, each a link into either window.

Both stores are only read; what they hold is walked in step, so that their size does not matter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QVBoxLayout

from engine.errors import StoreError
from viewer.compare.work import MOST, Differences, Row, compare
from viewer.look.assets import tr, words
from viewer.look.formats import size
from viewer.look.theme import px, ui
from viewer.pane.exporting import ask_export
from viewer.runtime.jobs import Cancelled, Control
from viewer.runtime.places import Place
from viewer.widgets.basics import Button, Label, row
from viewer.widgets.choices import ChoiceField
from viewer.widgets.columns import Chip, Column, RecordKind, chip_column, number_column, text_column
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from viewer.pane.store_window import StoreWindow

KIND_WORDS = {
    "unit": words("unit"),
    "queue": words("queue entry"),
    "index": words("index entry"),
    "config": words("table"),
    "checkpoint": words("checkpoint"),
    "state": words("state"),
}
SIDES = {
    "here": Chip("warn", words("only here")),
    "there": Chip("note", words("only there")),
    "differs": Chip("error", words("differs")),
}
Test = Callable[[Row], bool]
FILTERS: tuple[tuple[str, str, Test], ...] = (
    ("all", words("All differences"), lambda _row: True),
    ("units.here", words("Units only here"), lambda one: one.kind == "unit" and one.side == "here"),
    ("units.there", words("Units only there"), lambda one: one.kind == "unit" and one.side == "there"),
    ("units.differ", words("Units that differ"), lambda one: one.kind == "unit" and one.side == "differs"),
    ("queues", words("Queues"), lambda one: one.kind == "queue"),
    ("index", words("Index"), lambda one: one.kind == "index"),
    ("config", words("Config"), lambda one: one.kind == "config"),
    ("checkpoint", words("Checkpoint"), lambda one: one.kind == "checkpoint"),
    ("state", words("State and sizes"), lambda one: one.kind == "state"),
)


@dataclass(frozen=True, slots=True)
class There:
    """A link into the other window."""

    place: Place
    own: bool = False


def _side(one: Row) -> Chip:
    chip = SIDES[one.side]
    return Chip(chip.kind, tr(chip.word))


def _there(one: Row) -> There | None:
    return There(one.place_there) if one.place_there is not None else None


KIND = RecordKind(
    "difference",
    (
        chip_column("side", words("Difference"), 120, _side, filterable=False),
        Column(
            "kind", words("Kind"), 100, lambda one: tr(KIND_WORDS[one.kind]), lambda one: one.kind, filterable=False
        ),
        text_column("subject", words("What"), 250, mono=True, elide="middle", filterable=False),
        number_column("count", words("Count"), 72, filterable=False),
        text_column("fields", words("Fields"), 200, filterable=False),
        Column(
            "here",
            words("Here"),
            240,
            lambda one: one.here,
            lambda one: one.here,
            mono=True,
            filterable=False,
            jump=lambda one: one.place_here,
        ),
        Column(
            "there",
            words("There"),
            240,
            lambda one: one.there,
            lambda one: one.there,
            mono=True,
            filterable=False,
            jump=_there,
        ),
    ),
    verdict=lambda one: tr(SIDES[one.side].word),
    record=lambda one: {
        "type": "difference",
        "kind": one.kind,
        "side": one.side,
        "subject": one.subject,
        "count": one.count,
        "bytes": one.size,
        "fields": one.fields,
        "here": one.here,
        "there": one.there,
        "physicalOffset": place.offset
        if (place := one.place_here or one.place_there) is not None and place.kind == "log"
        else None,
    },
)


def verdict_words(found: Differences, *, whole: bool = True) -> str:
    """How much was compared, how much differs, and what is not in the table; not ``whole`` where something could not be
    read: then nothing is equal.
    """
    compared = tr("{size} of log compared at the same physical offsets.", size=size(found.compared))
    if not found.total:
        return (tr("Both stores are equal.") if whole else tr("No difference in what can be read.")) + " " + compared
    said = tr("{n:,} differences.", n=found.total) + " " + compared
    if found.cut:
        said += " " + tr("The table has the first {n:,} rows; all are counted.", n=MOST)
    return said


class DifferencesBox(QDialog):
    """Stays beside both windows; :meth:`run` compares, ``found`` is what came of it."""

    def __init__(self, window: StoreWindow, other: StoreWindow) -> None:
        super().__init__(window)
        self._window, self._other = window, other
        self._control: Control | None = None
        self._closed = self._running = False
        self.found: Differences | None = None
        self.setObjectName("compare.box")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Differences of two stores"))
        self.setAccessibleName(tr("Differences of two stores"))
        self.resize(px(1120), px(560))
        self.finished.connect(lambda _n: self._leave())
        paths = [one.session.path if one.session is not None else "" for one in (window, other)]
        told = Label(
            tr("Here: {here} · There: {there}", here=str(paths[0]), there=str(paths[1])), 12, "text2", wrap=True
        )
        self.kinds = ChoiceField()
        self.kinds.setObjectName("compare.kind")
        self.kinds.setAccessibleName(tr("Which differences are shown"))
        self.kinds.setFont(ui(13))
        self.kinds.currentIndexChanged.connect(lambda _n: self._fill())
        self.table = RecordView("compare.table", KIND)
        self.table.setAccessibleName(tr("Differences of two stores"))
        self.table.placeRequested.connect(self.go)
        self.table.rowChosen.connect(lambda _row: self._able())
        self.note = Label("", 12, "text2", wrap=True)
        self.note.setObjectName("compare.note")
        self._buttons()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(16), px(14), px(16), px(12))
        layout.setSpacing(px(8))
        layout.addWidget(told)
        layout.addWidget(row(self.kinds, None, self.stop, self.again))
        layout.addWidget(self.table, 1)
        layout.addWidget(self.table.strip)
        layout.addWidget(self.note)
        layout.addWidget(row(self.here, self.there, self.export, None, self.close_button))
        self._count()
        self._able()

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
            lambda: ask_export(self._window.pane(self._window.view), self.table, "differences.jsonl")
        )
        self.stop.clicked.connect(self.cancel)
        self.again.clicked.connect(self.begin)
        self.close_button.clicked.connect(self.reject)

    def begin(self) -> None:
        """Compare both stores as they are now."""
        if not self._running:
            self._window.jobs.start(self.run())

    async def run(self) -> None:
        """The same, awaited: a job of the window's that can be stopped."""
        mine, theirs = self._window.session, self._other.session
        if mine is None or theirs is None:
            self.note.setText(tr("One of the two stores is not open any more."))
            return

        def work(control: Control) -> Differences:
            self._control = control
            return compare(control, mine.snapshot, theirs.snapshot, found)

        found = Differences()
        self._running, self.found = True, None
        self.note.setText("")
        self.table.set_state(State("loading", tr("Comparing two stores…")))
        self._able()
        said = ""
        try:
            await self._window.jobs.run(tr("Comparing two stores"), work)
        except (Cancelled, asyncio.CancelledError):
            said = tr("Stopped before the end: the table is not complete.")
        except (StoreError, OSError) as error:
            said = str(error)
        self.found = found
        self._control, self._running = None, False
        if self._closed:
            return
        self._count()
        self._fill()
        for side in (mine, theirs):
            side.unread.note(side.snapshot.unread)
        said = said or verdict_words(found, whole=not mine.unread and not theirs.unread)
        said = theirs.unread.beside(mine.unread.beside(said))
        self.note.setText(said)
        self._window.say(said)

    def _count(self) -> None:
        """The choices, each with how many there are."""
        found, chosen = self.found or Differences(), self.kinds.currentIndex()
        self.kinds.blockSignals(True)
        self.kinds.clear()
        for key, text, test in FILTERS:
            count = sum(n for (kind, side), n in found.counts.items() if test(Row(kind, side, "")))
            self.kinds.addItem(f"{tr(text)} ({count:,})", key)
        self.kinds.setCurrentIndex(max(0, chosen))
        self.kinds.blockSignals(False)

    def _fill(self) -> None:
        """The rows of the chosen kind."""
        if self.found is None:
            self.table.set_rows([])
            self.table.set_state(State("empty", tr("Nothing was compared yet.")))
        else:
            test = FILTERS[max(0, self.kinds.currentIndex())][2]
            rows = [one for one in self.found.rows if test(one)]
            self.table.set_rows(rows)
            empty = tr("No difference of this kind.") if self.found.total else tr("Both stores are equal.")
            self.table.set_state(None if rows else State("empty", empty))
            if rows:
                self.table.first_row()
        self._able()

    def _show(self, side: str) -> None:
        chosen = self.table.current_row()
        if isinstance(chosen, Row):
            place = chosen.place_here if side == "here" else chosen.place_there
            if place is not None:
                self.go(There(place) if side == "there" else place)

    def go(self, goal: object) -> None:
        """Follow a link, in this window or in the other one."""
        place, window = (goal.place, self._other) if isinstance(goal, There) else (goal, self._window)
        if window.closed or window.session is None:
            self.note.setText(tr("One of the two stores is not open any more."))
        elif isinstance(place, Place):
            window.go(place)
            window.raise_()

    def cancel(self) -> None:
        """Stop comparing."""
        if self._control is not None:
            self._control.stop.set()

    def _leave(self) -> None:
        self._closed = True
        self.cancel()

    def _able(self) -> None:
        chosen = self.table.current_row()
        known = chosen if isinstance(chosen, Row) else None
        self.stop.setEnabled(self._running)
        self.again.setEnabled(not self._running)
        self.export.setEnabled(not self._running and self.found is not None)
        self.here.setEnabled(known is not None and known.place_here is not None)
        self.there.setEnabled(known is not None and known.place_there is not None)


def show_differences(window: StoreWindow, other: StoreWindow) -> DifferencesBox:
    """The box over ``window``, comparing."""
    box = DifferencesBox(window, other)
    box.show()
    box.begin()
    box.table.setFocus()
    return box
