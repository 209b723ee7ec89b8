"""The pipeline jobs of one window. A job continues when its view is closed or another store is opened."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from PySide6.QtCore import QObject, QTimer, Signal

from viewer.pipeline.process import STOP_TIMEOUT_S, PipelineProcess
from viewer.pipeline.request import JobRequest
from viewer.pipeline.state import JobState
from viewer.runtime.loop_calls import open_mailbox

PROGRESS_INTERVAL_MS = 100
"""Minimum time between two ``jobChanged`` of one job."""
TICK_MS = 1000
"""Interval at which the elapsed time of running jobs is shown anew."""
MAX_JOBS = 50


class PipelineRuns(QObject):
    """The list of jobs, running and ended, and their processes.

    Emits ``jobsChanged()`` after a change of the list, ``jobChanged(job)`` when a job has progressed, ``ended(job)``.
    """

    jobsChanged = Signal()
    jobChanged = Signal(object)
    ended = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        open_mailbox()
        self.jobs: list[JobState] = []
        """Newest job first."""
        self.command: Sequence[str] | None = None
        """Command to run instead of this program; None: this program."""
        self._processes: dict[int, PipelineProcess] = {}
        self._number = 0
        self._changed_jobs: dict[int, JobState] = {}
        self._progress_timer = QTimer(self, interval=PROGRESS_INTERVAL_MS, singleShot=True)
        self._progress_timer.timeout.connect(self._emit_progress)
        self._tick = QTimer(self, interval=TICK_MS)
        self._tick.timeout.connect(self._on_tick)

    def start(self, job_request: JobRequest) -> JobState:
        """Run a job in a process of its own."""
        self._number += 1
        job = JobState(self._number, job_request, time.time(), time.monotonic())
        self.jobs = [job, *self.jobs][:MAX_JOBS]
        process = self._processes[job.number] = PipelineProcess(job_request.arguments, job_request.job, self.command)

        def on_log_file(path: str) -> None:
            job.log_file = path
            self._note_change(job)

        def on_records(records: list[dict[str, object]], lines: list[str]) -> None:
            job.take_all(records, time.monotonic())
            for line in lines:
                job.say(line)
            self._note_change(job)

        process.start(on_log_file, on_records, lambda code: self._on_end(job, code))
        self._tick.start()
        self.jobsChanged.emit()
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
        self._note_change(job)

    def cancel_all(self) -> None:
        """Stop every job."""
        for job in self.jobs:
            if job.running and not job.stopping:
                self.cancel(job)

    def forget_ended(self) -> None:
        """Remove the jobs that have ended from the list."""
        self.jobs = [job for job in self.jobs if job.running]
        self.jobsChanged.emit()

    def find(self, number: int) -> JobState | None:
        """Return the job of this number, or None if the list has none."""
        return next((job for job in self.jobs if job.number == number), None)

    @property
    def running(self) -> bool:
        """True if any job runs."""
        return bool(self._processes)

    async def end(self) -> None:
        """Stop every job and wait until its process is gone."""
        self.cancel_all()
        processes = list(self._processes.values())
        self._tick.stop()
        for process in processes:
            if not await asyncio.to_thread(process.wait, STOP_TIMEOUT_S + 5):
                process.kill()

    def _on_end(self, job: JobState, code: int) -> None:
        del self._processes[job.number]
        job.end(code, time.monotonic())
        self._changed_jobs.pop(job.number, None)
        if not self._processes:
            self._tick.stop()
        self.jobChanged.emit(job)
        self.jobsChanged.emit()
        self.ended.emit(job)

    def _note_change(self, job: JobState) -> None:
        self._changed_jobs[job.number] = job
        if not self._progress_timer.isActive():
            self._progress_timer.start()

    def _emit_progress(self) -> None:
        changed_jobs, self._changed_jobs = self._changed_jobs, {}
        for job in changed_jobs.values():
            self.jobChanged.emit(job)

    def _on_tick(self) -> None:
        for job in self.jobs:
            if job.running:
                self._note_change(job)
