"""The window's side of pipeline jobs: lists them, opens their output, stops them when the window closes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject

from viewer.look.assets import tr
from viewer.pipeline.jobs import PipelineRuns
from viewer.pipeline.pane import PipelinePane
from viewer.pipeline.state import JobState
from viewer.pipeline.words import job_status
from viewer.shell.windows import open_beside

if TYPE_CHECKING:
    from viewer.pane import Pane
    from viewer.runtime.jobs import Job
    from viewer.shell.main_window import MainWindow


class WindowPipeline(QObject):
    """The pipeline of one window. It outlives the panes, which are made again when the language changes."""

    def __init__(self, window: MainWindow, compare: Callable[[Path], object]) -> None:
        """``compare(store)`` opens another store beside the window's."""
        super().__init__(window)
        self.setObjectName("pipeline.room")
        self._window, self._compare = window, compare
        self.runs = PipelineRuns()
        self._shown: dict[int, Job] = {}
        self.runs.jobsChanged.connect(self._listed)
        self.runs.jobChanged.connect(self._on_job_changed)
        self.runs.ended.connect(self._ended)
        window.installEventFilter(self)

    def wire(self, pane: Pane) -> None:
        """Connect a new pipeline pane, so that it shows these jobs."""
        assert isinstance(pane, PipelinePane)
        pane.besideRequested.connect(self._open)
        pane.compareRequested.connect(lambda store: self._compare(Path(store)))
        pane.commandsChanged.connect(self._window.enable)
        pane.set_runs(self.runs)

    def _open(self, store: str, place: str) -> None:
        session = self._window.session
        path = Path(store) if store else session.path if session is not None else None
        if path is not None:
            open_beside(self._window, path, place)

    def _listed(self) -> None:
        jobs = self._window.jobs
        for job in self.runs.jobs:
            if job.running and job.number not in self._shown:
                shown_job = jobs.announce(job.request.job, partial(self.runs.cancel, job))
                shown_job.stays = True
                self._shown[job.number] = shown_job

    def _on_job_changed(self, job: JobState) -> None:
        shown_job = self._shown.get(job.number)
        if shown_job is not None:
            shown_job.total = None if job.part is None else 1.0
            shown_job.done = job.part or 0.0
            self._window.jobs.tell(shown_job, job_status(job))

    def _ended(self, job: JobState) -> None:
        shown_job = self._shown.pop(job.number, None)
        if shown_job is not None:
            self._window.jobs.retire(shown_job)
        if not self._window.closed:
            self._window.say(tr("{job} has ended: {words}", job=job.request.job, words=job_status(job)))
            self._window.enable()

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Stop the jobs when the window closes, and wait until their processes have ended.

        If the user closes the window, :class:`~viewer.shell.end_question.CloseQuestion` asks first.
        """
        if event.type() == QEvent.Type.Close and self.runs.running and not event.spontaneous():
            self._window.jobs.finish(self.runs.end())
        return False

    def running_in_words(self) -> list[str]:
        """Return a sentence for each running job."""
        jobs = [f"{job.request.job}: {job_status(job)}" for job in self.runs.jobs if job.running]
        return [*jobs, tr("A job that is stopped leaves nothing behind.")] if jobs else []
