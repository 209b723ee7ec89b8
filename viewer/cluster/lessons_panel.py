"""Lessons beside the lanes: description of the selected lesson, a button that runs it, its figures."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from viewer.cluster.cluster_model import ClusterModel
from viewer.cluster.drawing import LinkOf, no_link
from viewer.cluster.lessons import LESSONS, Lesson, LessonRun
from viewer.cluster.own_clients import OwnClients
from viewer.cluster.rebalance_panel import RebalancePanel
from viewer.cluster.rebalance_words import Impact
from viewer.cluster.side import FoldedStrip
from viewer.look.assets import tr
from viewer.look.theme import follow, px
from viewer.widgets.basics import Button, ElidedLine, Hairline, Label, PaneHead, StatusMark, ThemedPanel, ToolButton
from viewer.widgets.boxes import BoxWidget, column, empty, row, scrolling

PANEL_WIDTH = 290
MIN_BESIDE_WIDTH = 1150
"""Width from which the lessons are beside lanes and impacts, px. In narrower views they are folded to a strip; when
opened they replace the impacts.
"""
MARKS = {"done": "ok", "failed": "warn", "running": "live"}


class LessonEntry(QWidget):
    """Entry of a lesson: title and result; when ``open``, the description and the button too.

    Emits ``chosen()`` when its heading is clicked, ``runRequested()`` to run or stop it.
    """

    chosen = Signal()
    runRequested = Signal()

    def __init__(self, lesson: Lesson) -> None:
        super().__init__()
        self.lesson = lesson
        self.mark = StatusMark("")
        self.fold = ToolButton("chevron", tr("About this lesson: {name}", name=tr(lesson.title)), tr(lesson.title))
        self.fold.setObjectName(f"cluster.lesson.{lesson.key}.about")
        self.fold.clicked.connect(lambda _on: self.chosen.emit())
        self.line = ElidedLine(tr("not run yet"), 12, "text3")
        self.result = Label("", 12, "text2", wrap=True, select=True)
        self.button = Button(tr("Run"), "primary")
        self.button.setObjectName(f"cluster.lesson.{lesson.key}")
        self.button.setAccessibleName(tr("Run the lesson: {name}", name=tr(lesson.title)))
        self.button.clicked.connect(lambda _on=False: self.runRequested.emit())
        self._figures = column(gap=3)
        self._shown: tuple[Impact, ...] = ()
        about = Label(tr(lesson.description), 12, "text2", wrap=True)
        self.details: BoxWidget = column(
            about, row(self.button, self.result, None), self._figures, gap=7, margins=(6, 2, 0, 4)
        )
        self.brief: BoxWidget = column(self.line, margins=(28, 0, 0, 2))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(6), px(5), px(12), px(5))
        layout.setSpacing(0)
        for part in (row(self.fold, None, self.mark), self.brief, self.details):
            layout.addWidget(part)
        self.open(wide=False)

    def open(self, *, wide: bool) -> None:
        """Show the description, or only the result."""
        self.fold.set_icon("chevron-down" if wide else "chevron")
        self.details.setVisible(wide)
        self.brief.setVisible(not wide)

    def show_run(self, run: LessonRun | None) -> bool:
        """Show the status of the last run; return True if the figures changed."""
        if run is None:
            return False
        running = run.status == "running"
        status = tr("running, {n:,} of {m:,}", n=run.done, m=len(run.lesson.actions)) if running else run.result
        self.line.setText(status)
        self.result.setText(status if running or not run.figures else "")
        self.mark.set_kind(MARKS[run.status])
        self.button.setText(tr("Stop") if running else tr("Run again"))
        if run.figures == self._shown:
            return False
        self._shown = run.figures
        self._fill()
        return True

    def _fill(self) -> None:
        empty(self._figures.box)
        for impact in self._shown:
            name = ElidedLine(impact.name, 12, "text", 600)
            name.setAccessibleName(f"{impact.name}: {impact.figure}, {impact.note}")
            figure_label = Label(impact.figure, 12, "text", 600, code=True)
            self._figures.box.addWidget(row(StatusMark(impact.kind), name, None, figure_label, gap=6))
            self._figures.box.addWidget(
                column(Label(impact.note, 12, "text2", wrap=True, select=True), margins=(22, 0, 0, 3))
            )


class LessonsPanel(ThemedPanel):
    """Emits ``groupRequested(group)`` to show the group of a lesson, ``operationDone(words)`` for the operation log."""

    groupRequested = Signal(str)
    operationDone = Signal(str)

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
        """Lesson that was started or selected last: its group is shown."""
        parts: list[QWidget] = []
        for lesson in LESSONS:
            entry = self.entries[lesson.key] = LessonEntry(lesson)
            entry.chosen.connect(lambda key=lesson.key: self.choose(key))
            entry.runRequested.connect(lambda lesson=lesson: self.run(lesson))
            parts += [entry, Hairline()]
        explanation = tr(
            "All figures come from the reports of the clients. Each run has its own topic and group, which are "
            "removed with it."
        )
        parts.append(column(Label(explanation, 12, "text3", wrap=True), margins=(12, 10, 12, 10)))
        ground = ThemedPanel("pane")
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
        self.setFixedWidth(px(PANEL_WIDTH))

    def choose(self, key: str) -> None:
        """Open one lesson and fold the others; the same lesson again folds it."""
        self.chosen = "" if key == self.chosen else key
        for name, entry in self.entries.items():
            entry.open(wide=name == self.chosen)
        self._bring()
        run = self.runs.get(self.chosen)
        if run is not None:
            self._last = self.chosen
            self._look_at(run)

    def _bring(self) -> None:
        """Scroll to the selected lesson once it is laid out."""
        QTimer.singleShot(0, self, self._scroll)

    def _scroll(self) -> None:
        entry, bar = self.entries.get(self.chosen), self._area.verticalScrollBar()
        if entry is not None:
            visible_height = self._area.viewport().height()
            bar.setValue(min(entry.y(), max(bar.value(), entry.y() + entry.height() - visible_height)))

    def run(self, lesson: Lesson) -> None:
        """Start a lesson, or stop it if it runs."""
        last_run = self.runs.get(lesson.key)
        if last_run is not None and last_run.status == "running":
            if self.own is not None:
                last_run.cancel(self.own)
            self.refresh()
            return
        if self.own is None or not self.model.is_own:
            return
        self._number += 1
        lesson_run = self.runs[lesson.key] = LessonRun(
            lesson, self.model.readings[-1].time_ms % 1_000_000 if self.model.readings else self._number
        )
        self._last = lesson.key
        self.operationDone.emit(tr(lesson.title))
        lesson_run.go_on(self.model, self.own)
        self.refresh()

    def go_on(self) -> None:
        """Continue the running lessons after a reading or an event of the clients."""
        if self.own is None:
            return
        for key, lesson_run in self.runs.items():
            if lesson_run.status == "running":
                lesson_run.go_on(self.model, self.own)
                if key == self._last:
                    self._look_at(lesson_run)
                self.refresh()

    def _look_at(self, run: LessonRun) -> None:
        """Show the group of a run if readings contain it."""
        if run.group in self.model.moments:
            self.groupRequested.emit(run.group)

    def refresh(self) -> None:
        """Show the status of all runs."""
        done = sum(run.status == "done" for run in self.runs.values())
        self.head.set_note(tr("{n:,} of {m:,} run", n=done, m=len(LESSONS)) if done else "")
        for key, entry in self.entries.items():
            run = self.runs.get(key)
            if entry.show_run(run) and key == self.chosen:
                self._bring()
            entry.button.setEnabled(self.model.is_own or (run is not None and run.status == "running"))


class LessonsSidebar(QWidget):
    """Lessons at the left of the rebalance; in narrow windows, a strip that opens them."""

    def __init__(self, link_of: LinkOf = no_link) -> None:
        super().__init__()
        self.lessons, self.rebalance = LessonsPanel(), RebalancePanel(link_of)
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
        """Return True if there are lessons: only where clients may be added."""
        return self.lessons.model.is_own

    @property
    def _wide(self) -> bool:
        return self.width() >= px(MIN_BESIDE_WIDTH)

    def refresh(self) -> None:
        """Show the present state of the model and the runs."""
        self.lessons.refresh()
        self.rebalance.refresh()
        self.fit()

    def fit(self) -> None:
        """Show lessons, strip and impacts according to the width."""
        opened = self.strip.isChecked()
        self.strip.setVisible(self.offered and not self._wide)
        self.lessons.setVisible(self.offered and (self._wide or opened))
        self.rebalance.side.setVisible(self._wide or not self.offered or not opened)
        note = self.lessons.head.note.text()
        self.strip.show_words(tr("Lessons"), note, f"{tr('Lessons')} {note}".strip())

    def bring(self) -> None:
        """Open the lessons and focus the selected one."""
        if not self._wide:
            self.strip.setChecked(True)
        key = self.lessons.chosen or LESSONS[0].key
        self.lessons.entries[key].fold.setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Fold the opened lessons on Esc."""
        if event.key() == Qt.Key.Key_Escape and self.strip.isVisible() and self.strip.isChecked():
            self.strip.setChecked(False)
            self.strip.setFocus()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()
