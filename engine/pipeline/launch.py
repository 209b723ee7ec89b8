"""Java beside this process with a session of Spark in it: started whole, or ended with all that it put aside."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from engine.pipeline.insides.java_process import SETTINGS, by_unix_socket, forget_java, hear_py4j, noted, own_interrupts
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
    **SETTINGS,
}
_LOCAL = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


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
        with _surroundings(master.startswith("local"), java_home), own_interrupts():
            with noted(java):
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
            forget_java()
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
        conf.setAll([*by_unix_socket(scratch).items()])
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


def _first_line(error: BaseException) -> str:
    """What a Java error says, without its stack."""
    java = getattr(error, "java_exception", None)
    said = str(java.getMessage()) if java is not None else str(error)
    return said.strip().partition("\n")[0][:300] or error.__class__.__name__
