"""The process of one pipeline job: ``storescope pipeline … --json``, read line by line in a thread, stopped by SIGINT.

What it writes comes to the loop in batches, and only as fast as the loop takes them. A process that does not stop when
it is told to is ended with everything that it started.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import engine
from viewer.runtime.loop_calls import post

PATIENCE = 20.0
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
    """What runs ``storescope`` with the words that follow."""
    if getattr(sys, "frozen", False):
        return [sys.executable]
    return [sys.executable, "-P", "-c", _SERVE]


class PipelineProcess:
    """One job. On the loop's thread: ``logging(path)`` once, ``took(records, lines for people)`` as they come, at last
    ``ended(exit code)``; the code is negative where a signal ended it, 127 where it could not be started.
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

    def start(self, logging: Callable[[str], None], took: Took, ended: Callable[[int], None]) -> None:
        """Begin, in a thread."""
        self._logging, self._took, self._ended = logging, took, ended
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
        """Whether it has ended within ``seconds``; not on the loop's thread."""
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
        apart: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            apart = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
        self._process = subprocess.Popen(  # noqa: S603 (our own program, no shell)
            [*self._command, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment, **apart,
        )  # fmt: skip

    def _read(self, process: subprocess.Popen[bytes], lines: deque[str]) -> None:
        assert process.stdout is not None
        rest = b""
        with process.stdout as stream:
            while chunk := os.read(stream.fileno(), CHUNK):
                *whole, rest = (rest + chunk).split(b"\n")
                self._hand_over(whole, lines)
        self._hand_over([rest], lines)

    def _hand_over(self, whole: list[bytes], lines: deque[str]) -> None:
        records = []
        for line in whole:
            if not line.strip():
                continue
            try:
                record = json.loads(line)
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
        took, ended = self._took, self._ended
        self._logging, self._took, self._ended = _nothing, _nothing, _nothing
        took([], lines)
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
        if not self._over.wait(PATIENCE):
            self.kill()


def _nothing(*_told: object) -> None:
    """Nobody listens."""


def _taken(lines: deque[str]) -> list[str]:
    """What is in ``lines``, taken out; another thread may add to them meanwhile."""
    found = []
    with contextlib.suppress(IndexError):
        while True:
            found.append(lines.popleft())
    return found


def _forget_empty(path: str) -> bool:
    """A log file to which nobody wrote is no help to anybody: whether it was taken away."""
    with contextlib.suppress(OSError):
        if path and not Path(path).stat().st_size:
            Path(path).unlink()
            return True
    return False
