"""Java beside this process with a session of Spark in it: started whole, or ended with all that it put aside."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from engine.pipeline.java import CannotStart
from engine.scratch import Scratch, hold_new

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.localRelationThreshold": "0",  # each chunk of a table is a task, small tables too
}
_LOCAL = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_LONGEST_WAY = 60
"""Characters of a folder in which a Unix socket with Spark's name of 42 has room: a path of 104, the least there is.

By TCP, each small task waits 40 ms for an acknowledgement.
"""


@dataclass(slots=True)
class Running:
    """A session, the way to its Java, and the folder of this machine where both put things aside."""

    spark: SparkSession
    gateway: Any
    master: str
    log: IO[bytes]
    scratch: Scratch


def launch(
    master: str, java_home: str, log: IO[bytes], settings: Mapping[str, str], patience: float | None = None
) -> Running:
    """A new session, begun within ``patience`` seconds (None: however long it takes) behind the start of Java.

    Raises :class:`CannotStart` in one sentence. Nothing is left of one that was interrupted.
    """
    from pyspark import SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    held = hold_new(Path(tempfile.gettempdir()), "storescope-java-")
    scratch = held.path
    java: list[subprocess.Popen[bytes]] = []
    whole, late = False, threading.Event()
    try:
        with _surroundings(master.startswith("local"), java_home), _own_interrupts():
            with _kept(java):
                gateway = launch_gateway(  # type: ignore[no-untyped-call]
                    _conf(master, scratch, settings), {"stdout": log, "stderr": log, "start_new_session": True}
                )
            with _ended_late(java, patience, late):
                session = SparkSession(SparkContext(conf=_conf(master, scratch, settings), gateway=gateway))
        whole = True
        return Running(session, gateway, master, log, held)
    except Exception as error:
        if late.is_set():
            told = f"the master {master} does not answer within {patience:g} s"
            raise CannotStart(f"{told}; what Spark said stands in {log.name}") from error
        kind = error.__class__.__name__ if isinstance(error, PySparkException) else _first_line(error)
        raise CannotStart(f"Spark did not start on {master} ({kind}); what it said stands in {log.name}") from error
    finally:
        if not whole:
            SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001  the next start gets a Java of its own
            for process in java:
                end(process)
            held.give_up()
            hear_py4j()


def _conf(master: str, scratch: Path, settings: Mapping[str, str]) -> SparkConf:
    """Spark's settings; what it and Java put aside on this machine goes to ``scratch``."""
    from pyspark import SparkConf

    local = master.startswith("local")
    conf = SparkConf(loadDefaults=False).setMaster(master).setAppName("storescope")
    conf.set("spark.driver.extraJavaOptions", f'-XX:-UsePerfData "-Djava.io.tmpdir={scratch}"')
    if local:
        conf.set("spark.local.dir", str(scratch))
        if hasattr(socket, "AF_UNIX") and len(str(scratch)) <= _LONGEST_WAY:
            conf.set("spark.python.unix.domain.socket.enabled", "true")
            conf.set("spark.python.unix.domain.socket.dir", str(scratch))
    return conf.setAll([*_QUIET.items(), *(_LOCAL.items() if local else ()), *settings.items()])


@contextlib.contextmanager
def _surroundings(local: bool, java_home: str) -> Iterator[None]:
    """The environment that Spark's launcher reads, put back at the end."""
    before = {name: os.environ.get(name) for name in ("JAVA_HOME", "SPARK_LOCAL_IP", "PYTHONPATH")}
    os.environ["JAVA_HOME"] = java_home
    if local:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        root = str(Path(__file__).parent.parent.parent)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (root, before["PYTHONPATH"])))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _kept(java: list[subprocess.Popen[bytes]]) -> Iterator[None]:
    """Put what Spark's launcher starts into ``java``: whoever interrupts the launcher has no other way to end it."""
    from pyspark import java_gateway as gateways

    launcher: Any = gateways

    start = launcher.Popen

    def kept(*words: Any, **how: Any) -> subprocess.Popen[bytes]:
        java.append(subprocess.Popen(*words, **how))  # noqa: S603  the launcher's own words
        return java[-1]

    launcher.Popen = kept
    try:
        yield
    finally:
        launcher.Popen = start


@contextlib.contextmanager
def _ended_late(
    java: Sequence[subprocess.Popen[bytes]], patience: float | None, late: threading.Event
) -> Iterator[None]:
    """Java is killed, and the block raises, where its end is not reached within ``patience`` seconds."""
    if patience is None:
        yield
        return

    def over() -> None:
        late.set()
        for process in java:
            end(process)

    watch = threading.Timer(patience, over)
    watch.daemon = True
    watch.start()
    try:
        yield
    finally:
        watch.cancel()
        watch.join()
    if late.is_set():
        raise TimeoutError


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a Java, with all that its launcher began: it has a process group of its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    if process.stdin is not None:
        process.stdin.close()
    process.wait()


@contextlib.contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep what SIGINT does: Spark's own answer talks to Java in the middle of another talk, and py4j tells of both.

    That, and lost connections, py4j tells the root logger, with stacks; errors reach the caller as they are.
    """
    logging.getLogger().addFilter(_no_py4j)
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # not the main thread: then nobody changed it
            signal.signal(signal.SIGINT, before)


def _no_py4j(record: logging.LogRecord) -> bool:
    from py4j import java_gateway

    return bool(record.pathname != java_gateway.__file__)


def hear_py4j() -> None:
    """What py4j tells the root logger goes where it went before there was a session here."""
    logging.getLogger().removeFilter(_no_py4j)


def _first_line(error: BaseException) -> str:
    """What a Java error says, without its stack."""
    java = getattr(error, "java_exception", None)
    said = str(java.getMessage()) if java is not None else str(error)
    return said.strip().partition("\n")[0][:300] or error.__class__.__name__
