"""Spark's Java and the session in it, where pyspark's public interface is not enough to start, stop or silence it."""

from __future__ import annotations

import contextlib
import logging
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import system

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {"spark.sql.execution.arrow.localRelationThreshold": "0"}
"""Each chunk of a table is a task, small tables too."""
_MAX_FOLDER_LENGTH = 60
"""Maximum characters of a folder for Unix sockets: Spark's name has 42, and some systems allow a path of only 104.

Over TCP, each small task waits 40 ms for an acknowledgement.
"""


def by_unix_socket(folder: Path) -> dict[str, str]:
    """Return the settings that let workers of this machine use Unix sockets in ``folder``; none if its path is too
    long.
    """
    if not system.HAS_UNIX_SOCKETS or len(str(folder)) > _MAX_FOLDER_LENGTH:
        return {}
    return {"spark.python.unix.domain.socket.enabled": "true", "spark.python.unix.domain.socket.dir": str(folder)}


@contextlib.contextmanager
def recording_processes(java: list[subprocess.Popen[bytes]]) -> Iterator[None]:
    """Append the processes that Spark's launcher starts to ``java``.

    This is the only way to end one whose start was interrupted, because the launcher returns nothing then.
    """
    from pyspark import java_gateway as gateways

    launcher: Any = gateways
    start = getattr(launcher, "Popen", None)
    if start is None:
        yield
        return

    def start_and_record(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        java.append(subprocess.Popen(*arguments, **options))  # noqa: S603  the launcher's own command
        return java[-1]

    launcher.Popen = start_and_record
    try:
        yield
    finally:
        launcher.Popen = start


def forget_java(*, session: bool = False) -> None:
    """Make the next start use a Java of its own; with ``session`` the session that was killed with its Java is
    forgotten, too.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context: Any = SparkContext
    context._gateway = context._jvm = None  # noqa: SLF001
    if session:
        context._active_spark_context = None  # noqa: SLF001
        session_class: Any = SparkSession
        session_class._instantiatedSession = None  # noqa: SLF001


def without_last_words(spark: SparkSession) -> None:
    """Silence the messages about lost connections of a session whose Java is about to be killed."""
    server = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None


def has_executor(spark: SparkSession) -> bool | None:
    """Return True if there is an executor besides the driver, or if that is unknown; None if the session has ended."""
    java = getattr(spark.sparkContext, "_jsc", None)
    if java is None:
        return True
    context = java.sc()
    return None if context.isStopped() else bool(context.getExecutorMemoryStatus().size() > 1)


@contextlib.contextmanager
def own_interrupts() -> Iterator[None]:
    """Keep this process's handler of SIGINT: Spark's would call Java in the middle of another call, and py4j reports
    both.

    py4j logs that, and lost connections, to the root logger with stack traces; errors reach the caller anyway.
    """
    logging.getLogger().addFilter(_no_py4j)
    old_handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # not the main thread: then nobody changed it
            signal.signal(signal.SIGINT, old_handler)


def _no_py4j(record: logging.LogRecord) -> bool:
    from py4j import java_gateway

    return bool(record.pathname != java_gateway.__file__)


def restore_py4j_logging() -> None:
    """Restore py4j's messages to the root logger as they were before there was a session here."""
    logging.getLogger().removeFilter(_no_py4j)
