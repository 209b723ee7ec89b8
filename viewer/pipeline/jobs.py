"""The pipeline jobs of one window: started, followed, stopped; they outlive views, languages and the store in front.

The process of one pipeline job: ``storescope pipeline … --json``, read line by line in a thread, stopped by SIGINT.

What it writes comes to the loop in batches, and only as fast as the loop takes them. A process that does not stop when
it is told to is ended with everything that it started.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

import engine
from engine.sentences import TEMPLATES_IN_JSON, object_hook
from viewer.pipeline.request import JobRequest
from viewer.pipeline.state import JobState
from viewer.runtime.loop_calls import open_mailbox, post

TOLD_EVERY_MS = 100
"""Between two times that a view is told of one job's progress."""
TICK_MS = 1000
MOST_KEPT = 50


class PipelineRuns(QObject):
    """``listed()`` as jobs come and go, ``jobChanged(job)`` as one goes on, ``ended(job)`` once for each."""

    listed = Signal()
    jobChanged = Signal(object)
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

    def start(self, job_request: JobRequest) -> JobState:
        """Run a job in a process of its own."""
        self._number += 1
        job = JobState(self._number, job_request, time.time(), time.monotonic())
        self.jobs = [job, *self.jobs][:MOST_KEPT]
        process = self._processes[job.number] = PipelineProcess(job_request.arguments, job_request.job, self.command)

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
        """True if any job runs."""
        return bool(self._processes)

    async def end(self) -> None:
        """Stop every job and wait until its process is gone."""
        self.cancel_all()
        waiting = list(self._processes.values())
        self._tick.stop()
        for process in waiting:
            if not await asyncio.to_thread(process.wait, TIMEOUT_S + 5):
                process.kill()

    def _over(self, job: JobState, code: int) -> None:
        del self._processes[job.number]
        job.end(code, time.monotonic())
        self._dirty.pop(job.number, None)
        if not self._processes:
            self._tick.stop()
        self.jobChanged.emit(job)
        self.listed.emit()
        self.ended.emit(job)

    def _changed(self, job: JobState) -> None:
        self._dirty[job.number] = job
        if not self._telling.isActive():
            self._telling.start()

    def _tell(self) -> None:
        dirty, self._dirty = self._dirty, {}
        for job in dirty.values():
            self.jobChanged.emit(job)

    def _ticked(self) -> None:
        for job in self.jobs:
            if job.running:
                self._changed(job)


TIMEOUT_S = 20.0
"""Seconds that a job has for taking back what it staged, once it was told to stop."""
BATCHES = 4
"""Batches of lines that may wait for the loop."""
CHUNK = 1 << 16
MOST_LINES = 200
_SERVE = """
import signal, sys
signal.signal(signal.SIGBREAK if sys.platform == "win32" else signal.SIGINT, signal.default_int_handler)
from engine.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
"""A program that was started behind another ignores Ctrl+C, and so would all that it starts."""
Took = Callable[[list[dict[str, Any]], list[str]], None]


def program() -> list[str]:
    """Return the command that runs ``storescope`` with the words that follow."""
    if getattr(sys, "frozen", False):
        return [sys.executable]
    return [sys.executable, "-P", "-c", _SERVE]


class PipelineProcess:
    """A process that runs one job. Calls on the loop's thread: ``logging(path)`` once, ``took(records, lines for
    people)`` as they come, at last ``ended(exit code)``; the code is negative if a signal ended it, 127 if it
    could not be started.
    """

    def __init__(self, arguments: Callable[[str], list[str]], name: str, command: Sequence[str] | None = None) -> None:
        self._arguments, self._name = arguments, name
        self._command = list(command) if command is not None else program()
        self._process: subprocess.Popen[bytes] | None = None
        self._room = threading.Semaphore(BATCHES)
        self._stop = threading.Event()
        self._over = threading.Event()
        self._logging: Callable[[str], None] = _nothing
        self._took: Took = _nothing
        self._ended: Callable[[int], None] = _nothing

    def start(self, logging: Callable[[str], None], on_records: Took, ended: Callable[[int], None]) -> None:
        """Start the process in a thread."""
        self._logging, self._took, self._ended = logging, on_records, ended
        threading.Thread(target=self._run, name=f"pipeline {self._name}", daemon=True).start()

    def cancel(self) -> None:
        """Tell the job to stop; it cancels what runs on the cluster and removes what it staged. From any thread."""
        if self._stop.is_set():
            return
        self._stop.set()
        self._interrupt()
        threading.Thread(target=self._insist, name="pipeline end", daemon=True).start()

    def kill(self) -> None:
        """End the process and all that it started, at once."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        with contextlib.suppress(OSError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)

    def wait(self, seconds: float) -> bool:
        """Return whether it ended within ``seconds``; not to be called on the loop's thread."""
        return self._over.wait(seconds)

    # ---- in threads --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        code = 127
        lines: deque[str] = deque(maxlen=MOST_LINES)
        log_file = ""
        try:
            descriptor, log_file = tempfile.mkstemp(prefix=f"storescope-{self._name}-", suffix=".log")
            os.close(descriptor)
            post(self._name_log, log_file)
            self._launch(self._arguments(log_file))
            process = self._process
            assert process is not None
            assert process.stderr is not None
            listener = threading.Thread(target=self._listen, args=(process.stderr, lines), daemon=True)
            listener.start()
            if self._stop.is_set():
                self._interrupt()
            self._read(process, lines)
            listener.join()
            code = process.wait()
        except OSError as error:
            lines.append(f"storescope: {error.strerror or error}")
        finally:
            if _forget_empty(log_file):
                post(self._name_log, "")
            post(self._finish, _taken(lines), code)
            self._over.set()

    def _launch(self, arguments: list[str]) -> None:
        root = str(Path(engine.__file__).parent.parent)
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1"}
        environment[TEMPLATES_IN_JSON] = "1"
        apart: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            apart = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
        self._process = subprocess.Popen(  # noqa: S603 (our own program, no shell)
            [*self._command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            **apart,
        )

    def _read(self, process: subprocess.Popen[bytes], lines: deque[str]) -> None:
        assert process.stdout is not None
        tail = b""
        with process.stdout as stream:
            while chunk := os.read(stream.fileno(), CHUNK):
                *complete_lines, tail = (tail + chunk).split(b"\n")
                self._hand_over(complete_lines, lines)
        self._hand_over([tail], lines)

    def _hand_over(self, complete_lines: list[bytes], lines: deque[str]) -> None:
        records = []
        for line in complete_lines:
            if not line.strip():
                continue
            try:
                record = json.loads(line, object_hook=object_hook)
            except ValueError:
                lines.append(line.decode("utf-8", "replace"))
                continue
            if isinstance(record, dict):
                records.append(record)
        if not records:
            return
        while not self._room.acquire(timeout=0.5):
            if self._stop.is_set():
                return
        post(self._deliver, records, _taken(lines))

    def _deliver(self, records: list[dict[str, Any]], lines: list[str]) -> None:
        self._room.release()
        self._took(records, lines)

    def _name_log(self, path: str) -> None:
        self._logging(path)

    def _finish(self, lines: list[str], code: int) -> None:
        """On the loop's thread, which lets go of whoever listened: a thread must not be the last to hold them."""
        on_records, ended = self._took, self._ended
        self._logging, self._took, self._ended = _nothing, _nothing, _nothing
        on_records([], lines)
        ended(code)

    def _listen(self, stream: Any, lines: deque[str]) -> None:
        with stream:
            for line in stream:
                lines.append(line.decode("utf-8", "replace").rstrip())

    def _interrupt(self) -> None:
        process = self._process
        if process is None or process.poll() is not None:
            return
        with contextlib.suppress(OSError):
            if sys.platform == "win32":
                process.send_signal(signal.CTRL_BREAK_EVENT)
            else:
                process.send_signal(signal.SIGINT)

    def _insist(self) -> None:
        if not self._over.wait(TIMEOUT_S):
            self.kill()


def _nothing(*_told: object) -> None:
    """Nobody listens."""


def _taken(lines: deque[str]) -> list[str]:
    """Remove and return all ``lines``; another thread may add lines meanwhile."""
    taken_lines = []
    with contextlib.suppress(IndexError):
        while True:
            taken_lines.append(lines.popleft())
    return taken_lines


def _forget_empty(path: str) -> bool:
    """A log file to which nobody wrote is no help to anybody: whether it was taken away."""
    with contextlib.suppress(OSError):
        if path and not Path(path).stat().st_size:
            Path(path).unlink()
            return True
    return False
