"""What the window does for its pipeline jobs: lists them, opens what they wrote, stops them at its end."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject

from viewer.assets import tr
from viewer.bridge.pipeline_desk import PipelineDesk
from viewer.desk.windows import open_beside
from viewer.menus import enable_actions
from viewer.models.pipeline_state import JobState
from viewer.panes.pipeline import PipelinePane
from viewer.panes.pipeline_words import standing

if TYPE_CHECKING:
    from viewer.bridge.jobs import Job
    from viewer.main_window import MainWindow
    from viewer.panes import Pane


class PipelineRoom(QObject):
    """The pipeline of one window; it outlives the panes, which are made anew with the language."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self.setObjectName("pipeline.room")
        self._window = window
        self.desk = PipelineDesk()
        self._shown: dict[int, Job] = {}
        self.desk.listed.connect(self._listed)
        self.desk.told.connect(self._told)
        self.desk.ended.connect(self._ended)
        window.installEventFilter(self)

    def wire(self, pane: PipelinePane) -> None:
        """A pane was made: it shows these jobs."""
        pane.besideAsked.connect(self._open)
        pane.compareAsked.connect(lambda store: self._window.desk.comparison.begin(Path(store)))
        pane.deedsChanged.connect(lambda: enable_actions(self._window))
        pane.set_desk(self.desk)

    def _open(self, store: str, place: str) -> None:
        session = self._window.session
        path = Path(store) if store else session.path if session is not None else None
        if path is not None:
            open_beside(self._window, path, place)

    def _listed(self) -> None:
        jobs = self._window.jobs
        for job in self.desk.jobs:
            if job.running and job.number not in self._shown:
                made = jobs.announce(job.wish.job, partial(self.desk.cancel, job))
                made.stays = True
                self._shown[job.number] = made

    def _told(self, job: JobState) -> None:
        made = self._shown.get(job.number)
        if made is not None:
            made.total = None if job.part is None else 1.0
            made.done = job.part or 0.0
            self._window.jobs.tell(made, standing(job))

    def _ended(self, job: JobState) -> None:
        made = self._shown.pop(job.number, None)
        if made is not None:
            self._window.jobs.retire(made)
        if not self._window.closed:
            self._window.say(tr("{job} has ended: {words}", job=job.wish.job, words=standing(job)))
            enable_actions(self._window)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """A window that closes stops its jobs and waits until their processes are gone."""
        if event.type() == QEvent.Type.Close and self.desk.running:
            self._window.jobs.finish(self.desk.end())
        return False


def wire(window: MainWindow, pane: Pane) -> None:
    """The pipeline's pane of a window was made."""
    assert isinstance(pane, PipelinePane)
    room = window.desk.pipeline
    if room is None:
        room = window.desk.pipeline = PipelineRoom(window)
    room.wire(pane)
