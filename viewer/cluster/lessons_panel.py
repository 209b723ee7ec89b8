"""The lessons beside the lanes: the chosen one tells what it is about, a click runs it, its figures stay."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from viewer.cluster.cluster_model import ClusterModel
from viewer.cluster.lessons import LESSONS, Lesson, LessonRun
from viewer.cluster.own_clients import OwnClients
from viewer.cluster.rebalance_panel import RebalancePanel
from viewer.cluster.rebalance_words import Harm
from viewer.cluster.side import FoldedStrip
from viewer.look.assets import tr
from viewer.look.theme import follow, px
from viewer.widgets.basics import (
    Boxed,
    Button,
    Elided,
    Hairline,
    Label,
    Mark,
    PaneHead,
    Paper,
    Tool,
    column,
    empty,
    row,
    scrolling,
)

WIDE = 290
BESIDE = 1150
"""Px from which the lessons stand beside the lanes and the harm; below, they are folded to a strip, and opened they
take the place of the harm.
"""
MARKS = {"done": "ok", "failed": "warn", "running": "live"}


class LessonEntry(QWidget):
    """One lesson: its name and what came of it; where it is ``open``, all that is said of it and the button.

    ``chosen()`` as its head is clicked, ``asked()`` as it is to run or to stop.
    """

    chosen = Signal()
    asked = Signal()

    def __init__(self, lesson: Lesson) -> None:
        super().__init__()
        self.lesson = lesson
        self.mark = Mark("")
        self.fold = Tool("chevron", tr("About this lesson: {name}", name=tr(lesson.title)), tr(lesson.title))
        self.fold.setObjectName(f"cluster.lesson.{lesson.key}.about")
        self.fold.clicked.connect(lambda _on: self.chosen.emit())
        self.line = Elided(tr("not run yet"), 12, "text3")
        self.result = Label("", 12, "text2", wrap=True, select=True)
        self.button = Button(tr("Run"), "primary")
        self.button.setObjectName(f"cluster.lesson.{lesson.key}")
        self.button.setAccessibleName(tr("Run the lesson: {name}", name=tr(lesson.title)))
        self.button.clicked.connect(lambda _on=False: self.asked.emit())
        self._figures = column(gap=3)
        self._shown: tuple[Harm, ...] = ()
        about = Label(tr(lesson.about), 12, "text2", wrap=True)
        self.more: Boxed = column(
            about, row(self.button, self.result, None), self._figures, gap=7, margins=(6, 2, 0, 4)
        )
        self.brief: Boxed = column(self.line, margins=(28, 0, 0, 2))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(6), px(5), px(12), px(5))
        layout.setSpacing(0)
        for part in (row(self.fold, None, self.mark), self.brief, self.more):
            layout.addWidget(part)
        self.open(wide=False)

    def open(self, *, wide: bool) -> None:
        """Say all of it, or only what came of it."""
        self.fold.set_icon("chevron-down" if wide else "chevron")
        self.more.setVisible(wide)
        self.brief.setVisible(not wide)

    def show_run(self, run: LessonRun | None) -> bool:
        """As its last run stands; whether there are other figures than before."""
        if run is None:
            return False
        running = run.standing == "running"
        said = tr("running, {n:,} of {m:,}", n=run.done, m=len(run.lesson.acts)) if running else run.result
        self.line.setText(said)
        self.result.setText(said if running or not run.figures else "")
        self.mark.set_kind(MARKS[run.standing])
        self.button.setText(tr("Stop") if running else tr("Run again"))
        if run.figures == self._shown:
            return False
        self._shown = run.figures
        self._fill()
        return True

    def _fill(self) -> None:
        empty(self._figures.box)
        for one in self._shown:
            name = Elided(one.name, 12, "text", 600)
            name.setAccessibleName(f"{one.name}: {one.figure}, {one.note}")
            told = Label(one.figure, 12, "text", 600, code=True)
            self._figures.box.addWidget(row(Mark(one.kind), name, None, told, gap=6))
            self._figures.box.addWidget(
                column(Label(one.note, 12, "text2", wrap=True, select=True), margins=(22, 0, 0, 3))
            )


class LessonsPanel(Paper):
    """``shown(group)`` as the group of a lesson is to be looked at; ``did(words)`` for the operation log."""

    shown = Signal(str)
    did = Signal(str)

    def __init__(self) -> None:
        super().__init__("pane", ("right",))
        self.setObjectName("cluster.lessons")
        self.setAccessibleName(tr("Lessons"))
        self.model = ClusterModel()
        self.own: OwnClients | None = None
        self.runs: dict[str, LessonRun] = {}
        self.entries: dict[str, LessonEntry] = {}
        self._number = 0
        self._last = ""
        """The lesson that was begun or chosen last: its group is looked at."""
        parts: list[QWidget] = []
        for lesson in LESSONS:
            entry = self.entries[lesson.key] = LessonEntry(lesson)
            entry.chosen.connect(lambda key=lesson.key: self.choose(key))
            entry.asked.connect(lambda lesson=lesson: self.run(lesson))
            parts += [entry, Hairline()]
        said = tr(
            "Every figure is counted from what clients told. Each run has a topic and a group of its own, which "
            "go with it."
        )
        parts.append(column(Label(said, 12, "text3", wrap=True), margins=(12, 10, 12, 10)))
        ground = Paper("pane")
        box = QVBoxLayout(ground)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        for part in parts:
            box.addWidget(part)
        box.addStretch(1)
        area = self._area = scrolling(ground)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 1, 0)
        layout.setSpacing(0)
        self.head = PaneHead(tr("Lessons"), "")
        layout.addWidget(self.head)
        layout.addWidget(area, 1)
        self.chosen = ""
        self.choose(LESSONS[0].key)
        self._fit()
        follow(self, self._fit)

    def _fit(self) -> None:
        self.setFixedWidth(px(WIDE))

    def choose(self, key: str) -> None:
        """Say all of one lesson, and of the others what came of them; the same one again: of none."""
        self.chosen = "" if key == self.chosen else key
        for name, entry in self.entries.items():
            entry.open(wide=name == self.chosen)
        self._bring()
        run = self.runs.get(self.chosen)
        if run is not None:
            self._last = self.chosen
            self._look_at(run)

    def _bring(self) -> None:
        """Have the chosen lesson in sight, as much of it as there is room for, once it is laid out."""
        QTimer.singleShot(0, self, self._scroll)

    def _scroll(self) -> None:
        entry, bar = self.entries.get(self.chosen), self._area.verticalScrollBar()
        if entry is not None:
            high = self._area.viewport().height()
            bar.setValue(min(entry.y(), max(bar.value(), entry.y() + entry.height() - high)))

    def run(self, lesson: Lesson) -> None:
        """Begin a lesson, or stop it where it runs."""
        known = self.runs.get(lesson.key)
        if known is not None and known.standing == "running":
            if self.own is not None:
                known.cancel(self.own)
            self.refresh()
            return
        if self.own is None or not self.model.is_own:
            return
        self._number += 1
        made = self.runs[lesson.key] = LessonRun(
            lesson, self.model.kept[-1].at % 1_000_000 if self.model.kept else self._number
        )
        self._last = lesson.key
        self.did.emit(tr(lesson.title))
        made.go_on(self.model, self.own)
        self.refresh()

    def go_on(self) -> None:
        """Another reading has come, or clients told something."""
        if self.own is None:
            return
        for key, one in self.runs.items():
            if one.standing == "running":
                one.go_on(self.model, self.own)
                if key == self._last:
                    self._look_at(one)
                self.refresh()

    def _look_at(self, run: LessonRun) -> None:
        """Its group, where readings have it."""
        if run.group in self.model.moments:
            self.shown.emit(run.group)

    def refresh(self) -> None:
        """As the runs stand."""
        done = sum(run.standing == "done" for run in self.runs.values())
        self.head.set_note(tr("{n:,} of {m:,} run", n=done, m=len(LESSONS)) if done else "")
        for key, entry in self.entries.items():
            run = self.runs.get(key)
            if entry.show_run(run) and key == self.chosen:
                self._bring()
            entry.button.setEnabled(self.model.is_own or (run is not None and run.standing == "running"))


class LessonsBeside(QWidget):
    """The lessons at the left of the rebalance that they make; where there is no room, a strip that opens them."""

    def __init__(self) -> None:
        super().__init__()
        self.lessons, self.rebalance = LessonsPanel(), RebalancePanel()
        self.strip = FoldedStrip("cluster.lessons.folded", at_left=True)
        self.strip.toggled.connect(lambda _on: self.fit())
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        for part in (self.strip, self.lessons, self.rebalance):
            layout.addWidget(part)
        layout.setStretch(2, 1)
        self.fit()

    @property
    def offered(self) -> bool:
        """Whether there are lessons: only where clients may be added."""
        return self.lessons.model.is_own

    @property
    def _wide(self) -> bool:
        return self.width() >= px(BESIDE)

    def refresh(self) -> None:
        """As the model and the runs stand."""
        self.lessons.refresh()
        self.rebalance.refresh()
        self.fit()

    def fit(self) -> None:
        """Lessons, strip and harm as there is room for them."""
        opened = self.strip.isChecked()
        self.strip.setVisible(self.offered and not self._wide)
        self.lessons.setVisible(self.offered and (self._wide or opened))
        self.rebalance.side.setVisible(self._wide or not self.offered or not opened)
        note = self.lessons.head.note.text()
        self.strip.show_words(tr("Lessons"), note, f"{tr('Lessons')} {note}".strip())

    def bring(self) -> None:
        """Open the lessons, with the focus at the chosen one."""
        if not self._wide:
            self.strip.setChecked(True)
        key = self.lessons.chosen or LESSONS[0].key
        self.lessons.entries[key].fold.setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Esc folds what the strip has opened."""
        if event.key() == Qt.Key.Key_Escape and self.strip.isVisible() and self.strip.isChecked():
            self.strip.setChecked(False)
            self.strip.setFocus()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()
