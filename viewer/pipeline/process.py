"""The process of one pipeline job: ``storescope pipeline … --json``, read line by line in a thread, stopped by SIGINT.

Its lines arrive on the loop in batches, no faster than the loop takes them. A process that ignores SIGINT is killed
with all its children.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import engine
from engine import system
from engine.sentences import TEMPLATES_IN_JSON, object_hook
from viewer.runtime.loop_calls import post

STOP_TIMEOUT_S = 20.0
"""Time that a stopped job has to remove its staged files, before it is killed."""
MAX_WAITING_BATCHES = 4
"""Maximum number of batches that wait for the loop."""
READ_BYTES = 1 << 16
MAX_LINES = 200
"""Maximum number of text lines between two batches; older ones are dropped."""
_PROGRAM = """
import signal, sys
from engine import system
signal.signal(system.INTERRUPT, signal.default_int_handler)
from engine.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
"""Restores SIGINT: a program that was started in the background ignores it, and so would its children."""
OnRecords = Callable[[list[dict[str, Any]], list[str]], None]


def program() -> list[str]:
    """Return the command that runs ``storescope``; its arguments are appended."""
    if getattr(sys, "frozen", False):
        return [sys.executable]
    return [sys.executable, "-P", "-c", _PROGRAM]


class PipelineProcess:
    """A process that runs one job.

    It calls on the loop's thread: ``on_log_file(path)`` once, ``on_records(records, text lines)`` for each batch, at
    last ``on_end(exit code)``. The code is negative if a signal ended the process, 127 if it could not be started.
    """

    def __init__(self, arguments: Callable[[str], list[str]], name: str, command: Sequence[str] | None = None) -> None:
        self._arguments, self._name = arguments, name
        self._command = list(command) if command is not None else program()
        self._process: subprocess.Popen[bytes] | None = None
        self._free_batches = threading.Semaphore(MAX_WAITING_BATCHES)
        self._stop = threading.Event()
        self._has_ended = threading.Event()
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
        threading.Thread(target=self._kill_after_timeout, name="pipeline timeout", daemon=True).start()

    def kill(self) -> None:
        """Kill the process and its children."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        with contextlib.suppress(OSError):
            system.kill_group(process)

    def wait(self, seconds: float) -> bool:
        """Return True if it ended within ``seconds``. Blocks; not for the loop's thread."""
        return self._has_ended.wait(seconds)

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
            error_reader = threading.Thread(target=self._read_errors, args=(process.stderr, lines), daemon=True)
            error_reader.start()
            if self._stop.is_set():
                self._interrupt()
            self._read(process, lines)
            error_reader.join()
            code = process.wait()
        except OSError as error:
            lines.append(f"storescope: {error.strerror or error}")
        finally:
            if _remove_if_empty(log_file):
                post(self._name_log, "")
            post(self._finish, _take_all(lines), code)
            self._has_ended.set()

    def _launch(self, arguments: list[str]) -> None:
        root = str(Path(engine.__file__).parent.parent)
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1"}
        environment[TEMPLATES_IN_JSON] = "1"
        self._process = subprocess.Popen(  # noqa: S603 (our own program, no shell)
            [*self._command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            **system.new_group(),
        )

    def _read(self, process: subprocess.Popen[bytes], lines: deque[str]) -> None:
        assert process.stdout is not None
        tail = b""
        with process.stdout as stream:
            while chunk := os.read(stream.fileno(), READ_BYTES):
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

    def _read_errors(self, stream: Any, lines: deque[str]) -> None:
        with stream:
            for line in stream:
                lines.append(line.decode("utf-8", "replace").rstrip())

    def _interrupt(self) -> None:
        process = self._process
        if process is None or process.poll() is not None:
            return
        with contextlib.suppress(OSError):
            system.interrupt(process)

    def _kill_after_timeout(self) -> None:
        if not self._has_ended.wait(STOP_TIMEOUT_S):
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
