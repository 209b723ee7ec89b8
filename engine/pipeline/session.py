"""The Spark session of this process, quiet, with its output in a file.

Spark is a Java program beside this one. It starts once, in some seconds, and ends with this process or by :func:`stop`.
"""

from __future__ import annotations

import atexit
import importlib.util
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING

from engine.pipeline.defaults import NEEDED
from engine.pipeline.java import CannotStart, find_java
from engine.pipeline.java_session import Running, end, launch, names_this_process
from engine.pipeline.reachable import check_reachable, timeout_for
from engine.pipeline.spark_internals.java_process import (
    forget_java,
    has_executor,
    restore_py4j_logging,
    without_last_words,
)
from engine.sentences import sentence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["CannotStart", "abandon", "start", "stop"]


START_TIMEOUT_S = 15.0
"""Seconds of Spark's own beginning, beside what a master is given to answer."""
STOP_TIMEOUT_S = 3.0
"""Seconds that a cluster is given to hear that a job was stopped."""


class _Current:
    """The session of this process, while there is one."""

    running: Running | None = None


def start(
    master: str = "local[*]",
    log_file: str | Path | None = None,
    memory: str | None = None,
    settings: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
) -> SparkSession:
    """Return the session of this process, started where there is none yet; the output of Spark and Java goes to
    ``log_file``.

    ``memory`` is the driver's heap (None: as ``spark-defaults.conf`` says, else 1 GiB), ``settings`` are Spark's own.
    Raises :class:`CannotStart` in one sentence: a package or Java is missing, the master does not answer or gives
    nothing within ``timeout_s`` seconds (None: what is usual for it), or a session with another master runs.
    """
    if (running_session := _Current.running) is not None:
        if running_session.master != master:
            raise CannotStart(
                sentence(
                    "this process already has a session on {running}, so none on {master} can start",
                    running=running_session.master,
                    master=master,
                )
            )
        return running_session.spark
    lacking = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if lacking:
        raise CannotStart(
            sentence("the pipeline needs {packages}: pip install 'storescope[spark]'", packages=", ".join(lacking))
        )
    java = find_java()
    if timeout_s is None:
        timeout_s = timeout_for(master)
    check_reachable(master, timeout_s)
    log = _open_log(log_file)
    try:
        heap = {"spark.driver.memory": memory} if memory is not None else {}
        watched = None if names_this_process(master) else timeout_s + START_TIMEOUT_S
        running = launch(master, java.home, log, {**heap, **(settings or {})}, watched)
    except BaseException:
        log.close()
        raise
    _Current.running = running
    atexit.register(stop)
    if not names_this_process(master):
        _await_executor(running, timeout_s)
    return running.spark


def stop() -> None:
    """End the session and its Java; do nothing if none runs."""
    running, _Current.running = _Current.running, None
    if running is None:
        return
    atexit.unregister(stop)
    try:
        running.spark.stop()
    finally:
        forget_java()
        running.gateway.shutdown()
        process = running.gateway.proc
        process.stdin.close()
        process.wait()
        running.log.close()
        running.scratch.give_up()
        restore_py4j_logging()


def abandon() -> None:
    """End the session now: the cluster is asked to end it, Java is killed, temporary files are removed."""
    running, _Current.running = _Current.running, None
    if running is None:
        return
    atexit.unregister(stop)
    without_last_words(running.spark)
    if not running.master.startswith("local"):
        stopping = threading.Thread(target=running.spark.stop, daemon=True)
        stopping.start()
        stopping.join(STOP_TIMEOUT_S)
    forget_java(session=True)
    end(running.gateway.proc)
    running.log.close()
    running.scratch.give_up()


def _open_log(log_file: str | Path | None) -> IO[bytes]:
    if log_file is None:
        return tempfile.NamedTemporaryFile("ab", prefix="storescope-spark-", suffix=".log", delete=False)
    path = Path(log_file)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("ab")
    except OSError as error:
        raise CannotStart(
            sentence("the log file cannot be written: {reason}", reason=sentence(error.strerror or "")), file=str(path)
        ) from error


def _await_executor(running: Running, timeout_s: float) -> None:
    """Raise :class:`CannotStart` where the master gives no executor, unless they are asked for as tasks come."""
    if running.spark.sparkContext.getConf().get("spark.dynamicAllocation.enabled") == "true":
        return
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        executor_exists = has_executor(running.spark)
        if executor_exists:
            return
        if executor_exists is None:
            break
        time.sleep(0.2)
    stop()
    raise CannotStart(
        sentence(
            "the master {master} provided no executor within {seconds:g} s; Spark's messages are in {file}",
            master=running.master,
            seconds=timeout_s,
            file=running.log.name,
        )
    )
