"""A standalone Spark cluster of processes on this machine, and drivers beside it that can be watched and killed.

The workers run outside the project, under a Python that has its libraries and not the project itself. Each process is
the first of a session of its own, so that its children are found again: nothing is left behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
import venv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyspark
from real_cluster import free_port

from engine.pipeline.java import find_java

PROJECT = Path(__file__).resolve().parent.parent.parent
TIMEOUT_S = 240.0
"""Seconds that anything here may take on a busy machine."""


def wait_until(expectation: str, get_value: Callable[[], Any], timeout_s: float = TIMEOUT_S) -> Any:
    """Wait for ``holds`` to return something true, and return that."""
    end = time.monotonic() + timeout_s
    while not (value := get_value()):
        assert time.monotonic() < end, f"waited {timeout_s:g} s for {expectation}"
        time.sleep(0.01)
    return value


def family(leader: int) -> dict[int, str]:
    """Return process → command line of all running descendants of a process."""
    processes: dict[int, tuple[int, int, str]] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                state, parent, _, session = (place / "stat").read_text().rpartition(")")[2].split()[:4]
                if state != "Z":
                    words = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    processes[int(place.name)] = (int(parent), int(session), words)
    ids, size = {leader}, 0
    while size < len(ids):
        size = len(ids)
        ids |= {process for process, (parent, session, _) in processes.items() if parent in ids or session in ids}
    return {process: processes[process][2] for process in ids if process in processes}


def kill_all(leader: subprocess.Popen[Any]) -> None:
    """SIGKILL a process and all its descendants, and wait until they are gone."""
    killed = family(leader.pid)
    while running := family(leader.pid):
        killed |= running
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        leader.poll()
    leader.wait()
    wait_until(f"the end of what process {leader.pid} started", lambda: not any(family(process) for process in killed))


def python_without_the_project(folder: Path) -> Path:
    """Make a Python that finds the installed libraries but not the project's checkout."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    place = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    # A folder that a .pth file names is searched, and its own .pth files are not read.
    Path(place.stdout.strip(), "libraries.pth").write_text(f"{Path(pyspark.__file__).parent.parent}\n")
    script = "import pyspark, pandas, pyarrow, importlib.util as u; print(u.find_spec('engine'), u.find_spec('viewer'))"
    process = subprocess.run(
        [python, "-c", script], cwd=folder, capture_output=True, text=True, env=_environment(folder)
    )
    assert (process.returncode, process.stdout) == (0, "None None\n"), process
    return python


def _environment(folder: Path) -> dict[str, str]:
    """Return the environment of all processes here, without this process's settings of Python and Spark."""
    saved = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "SPARK", "PYSPARK"))}
    settings = {
        "JAVA_HOME": find_java().home,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # nothing runs long enough for more
        "TMPDIR": str(folder),
        # The unpacked engine stays as long as the machine code that is made of it.
        "XDG_CACHE_HOME": str(Path(os.environ["NUMBA_CACHE_DIR"], "executors")),
    }
    return {**saved, **settings}


class Cluster:
    """A master, and workers of one core each."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder, self._wanted = folder, workers
        self.python = python_without_the_project(folder / "python")
        self.environment = _environment(folder)
        self.workers: list[subprocess.Popen[bytes]] = []
        self._number = 0
        port, self._pages = free_port(), free_port()
        self.url = f"spark://127.0.0.1:{port}"
        listening = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(self._pages)]
        self._master = self._start("master.Master", "master", *listening)
        try:
            wait_until("the master", lambda: self._state() is not None)
            self.fill()
        except BaseException:
            self.stop()
            raise

    def _start(self, daemon_class: str, name: str, *words: str) -> subprocess.Popen[bytes]:
        place = self.folder / name
        place.mkdir()
        with (self.folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [
                    Path(pyspark.__file__).parent / "bin" / "spark-class",
                    f"org.apache.spark.deploy.{daemon_class}",
                    *words,
                ],
                cwd=place,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _state(self) -> dict[str, Any] | None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._pages}/json/", timeout=60) as page:
                return dict(json.load(page))
        except (OSError, ValueError):  # the page is there before its JSON
            return None

    def fill(self) -> None:
        """Start workers until all exist again, and wait until the master knows them."""
        while len(self.workers) < self._wanted:
            self._number += 1
            name = f"worker-{self._number}"
            words = ["--host", "127.0.0.1", "--webui-port", "0", "-c", "1", "-m", "1g", "-d", str(self.folder / name)]
            self.workers.append(self._start("worker.Worker", name, *words, self.url))
        wait_until("the workers", lambda: (self._state() or {}).get("aliveworkers") == self._wanted)

    def is_free(self) -> bool:
        """Return True if no application is on the cluster."""
        state = self._state()
        return state is not None and not state["activeapps"] and not state["coresused"]

    def executor_of(self, worker: subprocess.Popen[bytes]) -> int:
        """Return the process that runs tasks for ``worker``, as soon as there is one."""
        return int(
            wait_until(
                "an executor",
                lambda: [p for p, words in family(worker.pid).items() if "CoarseGrainedExecutorBackend" in words],
            )[0]
        )

    @contextlib.contextmanager
    def killed_in_the_middle(self) -> Iterator[Callable[[], None]]:
        """In the block one executor is stopped: its tasks never end. The function that the block gets kills it and its
        worker, and others replace them after the block.
        """
        victim = self.workers.pop(0)
        executor = self.executor_of(victim)
        os.kill(executor, signal.SIGSTOP)
        try:
            yield lambda: kill_all(victim)
        finally:
            kill_all(victim)
            self.fill()

    def stop(self) -> None:
        """End all of it."""
        for process in (*self.workers, self._master):
            kill_all(process)


class Driver:
    """A process that runs one pipeline command after another in one session of Spark."""

    def __init__(self, master: str, folder: Path, environment: dict[str, str], python: Path | str) -> None:
        folder.mkdir()
        self.folder = folder
        self._number = 0
        self.records: list[dict[str, Any]] = []
        """Records of the last command."""
        words = [str(PROJECT), master, str(folder / "spark.log")]
        self._process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("pipeline_driver.py"), *words],
            cwd=folder,
            env={**environment, "PYSPARK_PYTHON": str(python)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def _ask(self, **question: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def ask(self, **question: Any) -> Any:
        """Ask a question of :mod:`pipeline_driver` that is no command, and wait for the answer."""
        self._ask(**question)
        return self._answer()

    def await_executors(self, count: int) -> None:
        wait_until("executors", lambda: self.ask(executors=True) >= count)

    def run(
        self, words: Sequence[object], middle: Callable[[], None] | None = None
    ) -> tuple[int, list[dict[str, Any]], str]:
        """Return (exit code, records, standard error) of ``storescope pipeline WORDS``; ``middle`` is called when some
        tasks of the first stage have ended and some have not.
        """
        self._number += 1
        out, err = (self.folder / f"{self._number}.{name}" for name in ("out", "err"))
        out.touch()
        self._ask(words=["pipeline", *map(str, words), "--json"], out=str(out), err=str(err))
        if middle is not None:
            wait_until("the middle of the job", lambda: any(_is_middle(record) for record in records(out)))
            middle()
        return self._answer(), list(records(out)), err.read_text()

    def stop(self) -> None:
        """End the session in order, then make sure."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(TIMEOUT_S)
        kill_all(self._process)
        self._process.stdout.close()


def assert_elsewhere(probes: Sequence[Sequence[Any]], folder: Path) -> None:
    """Assert that two executors (:func:`pipeline_driver.probe`) run below ``folder`` and have the engine alone."""
    assert len(probes) == 2
    for place, package, module, viewer, compiled in probes:
        assert Path(place).is_relative_to(folder)
        assert package.endswith("storescope-engine.zip/engine/__init__.py")
        assert not Path(module).is_relative_to(PROJECT)
        assert (viewer, compiled) == ("None", True)


def _is_middle(record: dict[str, Any]) -> bool:
    return record["type"] == "progress" and 0 < record["done"] < record["tasks"]


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Return the records in a file that may still grow."""
    for line in path.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            yield json.loads(line)
