"""The pipeline jobs of one window. A job goes on when its view is closed or another store is opened.

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

PROGRESS_INTERVAL_MS = 100
"""Minimum time between two ``jobChanged`` of one job."""
TICK_MS = 1000
MAX_JOBS = 50


class PipelineRuns(QObject):
    """Emits ``jobsChanged()`` after a change of the list, ``jobChanged(job)`` with progress, ``ended(job)``."""

    jobsChanged = Signal()
    jobChanged = Signal(object)
    ended = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        open_mailbox()
        self.jobs: list[JobState] = []
        """The newest first."""
        self.command: Sequence[str] | None = None
        """Command to run instead of this program; None: this program."""
        self._processes: dict[int, PipelineProcess] = {}
        self._number = 0
        self._dirty: dict[int, JobState] = {}
        self._progress_timer = QTimer(self, interval=PROGRESS_INTERVAL_MS, singleShot=True)
        self._progress_timer.timeout.connect(self._emit_progress)
        self._tick = QTimer(self, interval=TICK_MS)
        self._tick.timeout.connect(self._ticked)

    def start(self, job_request: JobRequest) -> JobState:
        """Run a job in a process of its own."""
        self._number += 1
        job = JobState(self._number, job_request, time.time(), time.monotonic())
        self.jobs = [job, *self.jobs][:MAX_JOBS]
        process = self._processes[job.number] = PipelineProcess(job_request.arguments, job_request.job, self.command)

        def on_log_file(path: str) -> None:
            job.log_file = path
            self._changed(job)

        def on_records(records: list[dict[str, object]], lines: list[str]) -> None:
            job.take_all(records, time.monotonic())
            for line in lines:
                job.say(line)
            self._changed(job)

        process.start(on_log_file, on_records, lambda code: self._over(job, code))
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
        self._changed(job)

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
        waiting = list(self._processes.values())
        self._tick.stop()
        for process in waiting:
            if not await asyncio.to_thread(process.wait, STOP_TIMEOUT_S + 5):
                process.kill()

    def _over(self, job: JobState, code: int) -> None:
        del self._processes[job.number]
        job.end(code, time.monotonic())
        self._dirty.pop(job.number, None)
        if not self._processes:
            self._tick.stop()
        self.jobChanged.emit(job)
        self.jobsChanged.emit()
        self.ended.emit(job)

    def _changed(self, job: JobState) -> None:
        self._dirty[job.number] = job
        if not self._progress_timer.isActive():
            self._progress_timer.start()

    def _emit_progress(self) -> None:
        dirty, self._dirty = self._dirty, {}
        for job in dirty.values():
            self.jobChanged.emit(job)

    def _ticked(self) -> None:
        for job in self.jobs:
            if job.running:
                self._changed(job)


STOP_TIMEOUT_S = 20.0
"""Time that a stopped job has to remove its staged files, before it is killed."""
BATCHES = 4
"""Maximum number of batches that wait for the loop."""
CHUNK = 1 << 16
MAX_LINES = 200
_SERVE = """
import signal, sys
signal.signal(signal.SIGBREAK if sys.platform == "win32" else signal.SIGINT, signal.default_int_handler)
from engine.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
"""Restores SIGINT: a program that was started in the background ignores it, and so would its children."""
OnRecords = Callable[[list[dict[str, Any]], list[str]], None]


def program() -> list[str]:
    """Return the command that runs ``storescope``; its arguments are appended."""
    if getattr(sys, "frozen", False):
        return [sys.executable]
    return [sys.executable, "-P", "-c", _SERVE]


class PipelineProcess:
    """A process that runs one job.

    It calls on the loop's thread: ``on_log_file(path)`` once, ``on_records(records, text lines)`` for each batch, at
    last ``on_end(exit code)``. The code is negative if a signal ended the process, 127 if it could not be started.
    """

    def __init__(self, arguments: Callable[[str], list[str]], name: str, command: Sequence[str] | None = None) -> None:
        self._arguments, self._name = arguments, name
        self._command = list(command) if command is not None else program()
        self._process: subprocess.Popen[bytes] | None = None
        self._free_batches = threading.Semaphore(BATCHES)
        self._stop = threading.Event()
        self._over = threading.Event()
        self._on_log_file: Callable[[str], None] = _nothing
        self._on_records: OnRecords = _nothing
        self._on_end: Callable[[int], None] = _nothing

    def start(self, on_log_file: Callable[[str], None], on_records: OnRecords, on_end: Callable[[int], None]) -> None:
        """Start the process in a thread."""
        self._on_log_file, self._on_records, self._on_end = on_log_file, on_records, on_end
        threading.Thread(target=self._run, name=f"pipeline {self._name}", daemon=True).start()

    def cancel(self) -> None:
        """Interrupt the job: it cancels its Spark jobs and removes its staged files. May be called from any thread."""
        if self._stop.is_set():
            return
        self._stop.set()
        self._interrupt()
        threading.Thread(target=self._kill_after_timeout, name="pipeline end", daemon=True).start()

    def kill(self) -> None:
        """Kill the process and its children."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        with contextlib.suppress(OSError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)

    def wait(self, seconds: float) -> bool:
        """Return True if it ended within ``seconds``. Blocks; not for the loop's thread."""
        return self._over.wait(seconds)

    # ---- in threads --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        code = 127
        lines: deque[str] = deque(maxlen=MAX_LINES)
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
            if _remove_if_empty(log_file):
                post(self._name_log, "")
            post(self._finish, _take_all(lines), code)
            self._over.set()

    def _launch(self, arguments: list[str]) -> None:
        root = str(Path(engine.__file__).parent.parent)
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1"}
        environment[TEMPLATES_IN_JSON] = "1"
        new_group: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            new_group = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
        self._process = subprocess.Popen(  # noqa: S603 (our own program, no shell)
            [*self._command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            **new_group,
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
        while not self._free_batches.acquire(timeout=0.5):
            if self._stop.is_set():
                return
        post(self._deliver, records, _take_all(lines))

    def _deliver(self, records: list[dict[str, Any]], lines: list[str]) -> None:
        self._free_batches.release()
        self._on_records(records, lines)

    def _name_log(self, path: str) -> None:
        self._on_log_file(path)

    def _finish(self, lines: list[str], code: int) -> None:
        """Call ``on_end`` and drop the callbacks, on the loop's thread: no other thread may hold them last."""
        on_records, on_end = self._on_records, self._on_end
        self._on_log_file, self._on_records, self._on_end = _nothing, _nothing, _nothing
        on_records([], lines)
        on_end(code)

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

    def _kill_after_timeout(self) -> None:
        if not self._over.wait(STOP_TIMEOUT_S):
            self.kill()


def _nothing(*_arguments: object) -> None:
    """Do nothing: the callback before a start and after an end."""


def _take_all(lines: deque[str]) -> list[str]:
    """Remove and return all ``lines``; another thread may add lines meanwhile."""
    all_lines = []
    with contextlib.suppress(IndexError):
        while True:
            all_lines.append(lines.popleft())
    return all_lines


def _remove_if_empty(path: str) -> bool:
    """Remove an empty log file. Return True if it was removed."""
    with contextlib.suppress(OSError):
        if path and not Path(path).stat().st_size:
            Path(path).unlink()
            return True
    return False
