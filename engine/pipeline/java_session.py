"""Start Java with a session of Spark in it: completely, or not at all, with all its temporary files removed."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from engine import system
from engine.files.temporary_folders import TemporaryFolder, hold_new
from engine.pipeline.java import CannotStart
from engine.pipeline.spark_internals.java_process import (
    SETTINGS,
    by_unix_socket,
    forget_java,
    own_interrupts,
    recording_processes,
    restore_py4j_logging,
)
from engine.sentences import sentence

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
    """A session, the way to its Java, and the folder of this machine with the temporary files of both."""

    spark: SparkSession
    gateway: Any
    master: str
    log: IO[bytes]
    scratch: TemporaryFolder


def launch(
    master: str, java_home: str, log: IO[bytes], settings: Mapping[str, str], timeout_s: float | None = None
) -> Running:
    """Start a session within ``timeout_s`` seconds after the start of Java (None: however long it takes).

    Raises :class:`CannotStart` in one sentence. Nothing is left of one that was interrupted.
    """
    from pyspark import SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    scratch_holder = hold_new(Path(tempfile.gettempdir()), "storescope-java-")
    scratch = scratch_holder.path
    java: list[subprocess.Popen[bytes]] = []
    is_running, timed_out = False, threading.Event()
    try:
        with _launcher_environment(master.startswith("local"), java_home), own_interrupts():
            with recording_processes(java):
                gateway = launch_gateway(  # type: ignore[no-untyped-call]
                    _conf(master, scratch, settings), {"stdout": log, "stderr": log, **system.new_group()}
                )
            with _ended_late(java, timeout_s, timed_out):
                session = SparkSession(SparkContext(conf=_conf(master, scratch, settings), gateway=gateway))
        is_running = True
        return Running(session, gateway, master, log, scratch_holder)
    except Exception as error:
        if timed_out.is_set():
            raise CannotStart(
                sentence(
                    "the master {master} did not answer within {seconds:g} s; Spark's messages are in {file}",
                    master=master,
                    seconds=timeout_s,
                    file=log.name,
                )
            ) from error
        kind = error.__class__.__name__ if isinstance(error, PySparkException) else _first_line(error)
        raise CannotStart(
            sentence(
                "Spark did not start on {master} ({reason}); its messages are in {file}",
                master=master,
                reason=kind,
                file=log.name,
            )
        ) from error
    finally:
        if not is_running:
            forget_java()
            for process in java:
                end(process)
            scratch_holder.give_up()
            restore_py4j_logging()


def _conf(master: str, scratch: Path, settings: Mapping[str, str]) -> SparkConf:
    """Return Spark's settings; its and Java's temporary files on this machine go to ``scratch``."""
    from pyspark import SparkConf

    local = master.startswith("local")
    conf = SparkConf(loadDefaults=False).setMaster(with_retries(master)).setAppName("storescope")
    conf.set("spark.driver.extraJavaOptions", f'-XX:-UsePerfData "-Djava.io.tmpdir={scratch}"')
    if local:
        conf.set("spark.local.dir", str(scratch))
        conf.setAll([*by_unix_socket(scratch).items()])
    return conf.setAll([*_QUIET.items(), *(_LOCAL.items() if local else ()), *settings.items()])


@contextlib.contextmanager
def _launcher_environment(local: bool, java_home: str) -> Iterator[None]:
    """Set the environment that Spark's launcher reads, and restore it at the end."""
    old_values = {name: os.environ.get(name) for name in ("JAVA_HOME", "SPARK_LOCAL_IP", "PYTHONPATH")}
    os.environ["JAVA_HOME"] = java_home
    if local:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        root = str(Path(__file__).parent.parent.parent)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (root, old_values["PYTHONPATH"])))
    try:
        yield
    finally:
        for name, value in old_values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _ended_late(
    java: Sequence[subprocess.Popen[bytes]], timeout_s: float | None, late: threading.Event
) -> Iterator[None]:
    """Kill Java, and raise, if the block does not end within ``timeout_s`` seconds."""
    if timeout_s is None:
        yield
        return

    def over() -> None:
        late.set()
        for process in java:
            end(process)

    watch = threading.Timer(timeout_s, over)
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
    """Kill a Java, with all processes of its launcher: it has its own process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        system.kill_group(process)
    if process.stdin is not None:
        process.stdin.close()
    process.wait()


def _first_line(error: BaseException) -> str:
    """Return a Java error's message without its stack."""
    java = getattr(error, "java_exception", None)
    message = str(java.getMessage()) if java is not None else str(error)
    return message.strip().partition("\n")[0][:300] or error.__class__.__name__


def is_local(spark: SparkSession) -> bool:
    """Return True if the executors run in this process's own Java, and so import what this process imports."""
    return names_this_process(str(spark.sparkContext.master))


_LOCAL_MASTER = re.compile(r"local\[(\d+|\*)\]")
TASK_ATTEMPTS = 3
"""How often a task of a local session is tried: Spark's own ``local[N]`` gives a job up when one worker is killed."""


def with_retries(master: str) -> str:
    """Return the master URL with :data:`TASK_ATTEMPTS`, where it is a local one that names no number of attempts."""
    local = _LOCAL_MASTER.fullmatch(master)
    return f"local[{local[1]},{TASK_ATTEMPTS}]" if local else master


def names_this_process(master: str) -> bool:
    """Return True if ``master`` names threads beside this process, and not workers elsewhere."""
    return master == "local" or master.startswith("local[")
