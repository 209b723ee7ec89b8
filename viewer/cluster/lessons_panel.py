"""The lessons beside the lanes: a click runs one, its line of result stays."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from viewer.cluster.cluster_model import ClusterModel
from viewer.cluster.lessons import LESSONS, Lesson, LessonRun
from viewer.cluster.own_clients import OwnClients
from viewer.look.assets import tr
from viewer.look.theme import follow, px
from viewer.widgets.basics import Button, Hairline, Label, Mark, PaneHead, Paper, column, row, scrolling

WIDE = 250
MARKS = {"done": "ok", "failed": "warn", "running": "live"}


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
        self._number = 0
        self._results: dict[str, Label] = {}
        self._marks: dict[str, Mark] = {}
        self._buttons: dict[str, Button] = {}
        parts: list[QWidget] = []
        for lesson in LESSONS:
            parts += [self._lesson(lesson), Hairline()]
        said = tr("Every figure is counted from deliveries. Each run has a topic and a group of its own.")
        parts.append(column(Label(said, 12, "text3", wrap=True), margins=(12, 10, 12, 10)))
        ground = Paper("pane")
        box = QVBoxLayout(ground)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        for part in parts:
            box.addWidget(part)
        box.addStretch(1)
        area = scrolling(ground)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 1, 0)
        layout.setSpacing(0)
        layout.addWidget(PaneHead(tr("Lessons"), ""))
        layout.addWidget(area, 1)
        self._fit()
        follow(self, self._fit)

    def _fit(self) -> None:
        self.setFixedWidth(px(WIDE))

    def _lesson(self, lesson: Lesson) -> QWidget:
        mark = self._marks[lesson.key] = Mark("")
        result = self._results[lesson.key] = Label(tr("not run yet"), 12, "text3", wrap=True, select=True)
        button = self._buttons[lesson.key] = Button(tr("Run"))
        button.setObjectName(f"cluster.lesson.{lesson.key}")
        button.setAccessibleName(tr("Run the lesson: {name}", name=tr(lesson.title)))
        button.clicked.connect(lambda _on=False, lesson=lesson: self.run(lesson))
        return column(
            row(Label(tr(lesson.title), 13, "text", 600), None, mark), Label(tr(lesson.about), 12, "text2", wrap=True),
            result, row(button, None), gap=5, margins=(12, 10, 12, 10),
        )  # fmt: skip

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
        made = self.runs[lesson.key] = LessonRun(lesson, self.model.kept[-1].at % 1_000_000 if self.model.kept else
                                                 self._number)  # fmt: skip
        self.did.emit(tr(lesson.title))
        made.go_on(self.model, self.own)
        self.refresh()

    def go_on(self) -> None:
        """Another reading has come."""
        if self.own is None:
            return
        for one in self.runs.values():
            if one.standing == "running":
                one.go_on(self.model, self.own)
                if one.group in self.model.moments:
                    self.shown.emit(one.group)
                self.refresh()

    def refresh(self) -> None:
        """As the runs stand."""
        for key, one in self.runs.items():
            running = one.standing == "running"
            said = tr("running, {n:,} of {m:,}", n=one.done, m=len(one.lesson.acts)) if running else one.result
            self._results[key].setText(said)
            self._marks[key].set_kind(MARKS[one.standing])
            self._buttons[key].setText(tr("Stop") if running else tr("Run again"))
        for key, button in self._buttons.items():
            run = self.runs.get(key)
            button.setEnabled(self.model.is_own or (run is not None and run.standing == "running"))
