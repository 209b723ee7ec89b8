"""The outcome of recovery on a copy beside the plan: a row a figure, and buttons to open it or to start it again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout

from viewer.findings.recovery_trial import Trial
from viewer.look.assets import tr, tr_plural, words
from viewer.look.formats import number, span
from viewer.widgets.basics import Button, PaneHead, ThemedPanel
from viewer.widgets.basics import Chip as ChipPart
from viewer.widgets.boxes import stacked
from viewer.widgets.columns import Chip as ChipValue
from viewer.widgets.columns import Column, RecordKind, chip_column, text_column
from viewer.widgets.record_view import RecordView
from viewer.widgets.word_tabs import WordTabs

if TYPE_CHECKING:
    from engine.lab.power_loss_report import Figure


NAMES = {
    "endOffset": words("end of log"),
    "units": words("units"),
    "unitsDropped": words("units dropped"),
    "unitsDispatched": words("units dispatched again"),
    "logFiles": words("log files"),
    "logFilesDeleted": words("log files deleted"),
    "indexEntries": words("index entries"),
    "indexDeleted": words("index files deleted"),
    "indexKept": words("index files kept"),
}


class TrialRow(NamedTuple):
    """A figure of a recovery: the planned and the actual value, and whether they are equal."""

    what: str
    planned: int
    done: int
    mark: str
    verdict: str


def tried_rows(trial: Trial) -> list[TrialRow]:
    """All figures; differences come first."""
    rows = [_row(figure) for figure in trial.figures]
    return sorted(rows, key=lambda row: row.mark != "error")


def _row(figure: Figure) -> TrialRow:
    name = tr(NAMES[figure.name]) if figure.name in NAMES else figure.name.replace("/", " / ")
    if figure.equal:
        return TrialRow(name, figure.planned, figure.done, "ok", tr("equal"))
    return TrialRow(name, figure.planned, figure.done, "error", tr("differs"))


def tried_note(trial: Trial) -> str:
    """Return the folder, the duration, and whether everything is as expected."""
    wrong = sum(not figure.equal for figure in trial.figures)
    if wrong:
        result = _differing_words(wrong, len(trial.figures))
    elif trial.round > 1:
        result = tr_plural(
            "a further recovery changed nothing: equal in all {n} figure",
            "a further recovery changed nothing: equal in all {n} figures",
            n=len(trial.figures),
        )
    else:
        result = tr_plural("equal in all {n} figure", "equal in all {n} figures", n=len(trial.figures))
    return f"{result} · {span(round(trial.took * 1000))} · {trial.folder}"


def _differing_words(count: int, all_count: int) -> str:
    return tr_plural("{n} of {all} figures differs", "{n} of {all} figures differ", n=count, all=all_count)


def tried_chip(trial: Trial) -> tuple[str, str]:
    """Return mark and words of the overall result."""
    wrong = sum(not figure.equal for figure in trial.figures)
    if wrong:
        return "error", _differing_words(wrong, len(trial.figures))
    return "ok", tr("nothing changed") if trial.round > 1 else tr("as planned")


def tried_kind() -> RecordKind:
    """The table that compares the result of a recovery with its plan."""
    return RecordKind(
        "tried",
        (
            text_column("what", words("Figure"), 170, elide="middle"),
            _figure("planned", words("Expected")),
            _figure("done", words("In the copy")),
            chip_column("verdict", words("Verdict"), 120, lambda row: ChipValue(row.mark, row.verdict)),
        ),
        verdict=lambda row: row.verdict,
        record=lambda row: {"what": row.what, "expected": row.planned, "done": row.done, "verdict": row.verdict},
    )


def _figure(key: str, title: str) -> Column:
    return Column(
        key, title, 120, lambda row: number(getattr(row, key)), lambda row: getattr(row, key), right=True, mono=True
    )


class Outcome(ThemedPanel):
    """The table of files as planned. After a trial a second tab has the files as recovered.

    Emits ``againRequested()`` to recover the copy once more, ``openRequested(Path)`` to open it.
    """

    againRequested = Signal()
    openRequested = Signal(object)

    def __init__(self, files: RecordView) -> None:
        super().__init__()
        self._files = files
        self.trial: Trial | None = None
        self._pages = QStackedWidget()
        self.table = RecordView("recovery.tried", tried_kind())
        self.table.setAccessibleName(tr("Plan and result"))
        self.tabs = WordTabs("recovery.outcome", (("plan", tr("Kept and lost")), ("tried", tr("Plan and result"))))
        self.tabs.chosen.connect(lambda key: self._pages.setCurrentIndex(int(key == "tried")))
        self.again = Button(tr("Recover again"), "pill")
        self.again.setObjectName("recovery.again")
        self.again.setToolTip(tr("Recovers the copy once more: a second recovery must change nothing"))
        self.again.clicked.connect(self.againRequested)
        self.open = Button(tr("Open the copy"), "pill")
        self.open.setObjectName("recovery.open")
        self.open.clicked.connect(self.open_copy)
        self._chip = ChipPart("ok", "")
        self._head = PaneHead("", "", self._chip, self.again, self.open)
        self._head.box.insertWidget(0, self.tabs)
        self._head.title.hide()
        self._head.hide()
        self._pages.addWidget(files)
        self._pages.addWidget(stacked(self.table, self.table.strip, room=0))
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(self._head)
        box.addWidget(self._pages, 1)

    def show_trial(self, trial: Trial | None) -> None:
        """Show the result of a trial; None for none."""
        self.trial = trial
        self._head.setVisible(trial is not None)
        if trial is None:
            self.table.set_rows([])
            self.tabs.choose("plan")
            return
        self.table.set_rows(tried_rows(trial))
        self._head.set_note(tried_note(trial))
        self._chip.set_chip(*tried_chip(trial))
        self.again.setEnabled(True)
        self.tabs.choose("tried")

    def set_busy(self, on: bool) -> None:
        """A recovery of the copy is under way."""
        self.again.setEnabled(not on and self.trial is not None)

    def open_copy(self) -> None:
        """Have the copy opened."""
        if self.trial is not None:
            self.openRequested.emit(Path(self.trial.folder))

    @property
    def in_front(self) -> RecordView:
        """The table that is seen."""
        return self.table if self.tabs.key == "tried" and self.trial is not None else self._files

    def retheme(self) -> None:
        """Colours, fonts or zoom changed."""
        self.table.refresh_look()
