"""The pipeline jobs of one window: started, followed, stopped; they outlive views, languages and the store in front."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from PySide6.QtCore import QObject, QTimer, Signal

from viewer.pipeline.process import PATIENCE, PipelineProcess
from viewer.pipeline.request import Wish
from viewer.pipeline.state import JobState
from viewer.runtime.loop_calls import open_mailbox

TOLD_EVERY_MS = 100
"""Between two times that a view is told of one job's progress."""
TICK_MS = 1000
MOST_KEPT = 50


class PipelineRuns(QObject):
    """``listed()`` as jobs come and go, ``told(job)`` as one goes on, ``ended(job)`` once for each."""

    listed = Signal()
    told = Signal(object)
    ended = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        open_mailbox()
        self.jobs: list[JobState] = []
        """The newest first."""
        self.command: Sequence[str] | None = None
        """What runs instead of this program's own command line; None for that."""
        self._processes: dict[int, PipelineProcess] = {}
        self._number = 0
        self._dirty: dict[int, JobState] = {}
        self._telling = QTimer(self, interval=TOLD_EVERY_MS, singleShot=True)
        self._telling.timeout.connect(self._tell)
        self._tick = QTimer(self, interval=TICK_MS)
        self._tick.timeout.connect(self._ticked)

    def start(self, wish: Wish) -> JobState:
        """Run a job in a process of its own."""
        self._number += 1
        job = JobState(self._number, wish, time.time(), time.monotonic())
        self.jobs = [job, *self.jobs][:MOST_KEPT]
        process = self._processes[job.number] = PipelineProcess(wish.arguments, wish.job, self.command)

        def logging(path: str) -> None:
            job.log_file = path
            self._changed(job)

        def took(records: list[dict[str, object]], lines: list[str]) -> None:
            job.take_all(records, time.monotonic())
            for line in lines:
                job.say(line)
            self._changed(job)

        process.start(logging, took, lambda code: self._over(job, code))
        self._tick.start()
        self.listed.emit()
        return job

    def cancel(self, job: JobState) -> None:
        """Stop a job; a second time: end it at once."""
        process = self._processes.get(job.number)
        if process is None:
            return
        if job.stopping:
            process.kill()
        else:
            job.stopping = True
            process.cancel()
        self._changed(job)

    def cancel_all(self) -> None:
        """Stop every job."""
        for job in self.jobs:
            if job.running and not job.stopping:
                self.cancel(job)

    def forget_ended(self) -> None:
        """Take the jobs that have ended from the list."""
        self.jobs = [job for job in self.jobs if job.running]
        self.listed.emit()

    def find(self, number: int) -> JobState | None:
        """A job of the list."""
        return next((job for job in self.jobs if job.number == number), None)

    @property
    def running(self) -> bool:
        """Whether any job runs."""
        return bool(self._processes)

    async def end(self) -> None:
        """Stop every job and wait until its process is gone."""
        self.cancel_all()
        waiting = list(self._processes.values())
        self._tick.stop()
        for process in waiting:
            if not await asyncio.to_thread(process.wait, PATIENCE + 5):
                process.kill()

    def _over(self, job: JobState, code: int) -> None:
        del self._processes[job.number]
        job.end(code, time.monotonic())
        self._dirty.pop(job.number, None)
        if not self._processes:
            self._tick.stop()
        self.told.emit(job)
        self.listed.emit()
        self.ended.emit(job)

    def _changed(self, job: JobState) -> None:
        self._dirty[job.number] = job
        if not self._telling.isActive():
            self._telling.start()

    def _tell(self) -> None:
        dirty, self._dirty = self._dirty, {}
        for job in dirty.values():
            self.told.emit(job)

    def _ticked(self) -> None:
        for job in self.jobs:
            if job.running:
                self._changed(job)
