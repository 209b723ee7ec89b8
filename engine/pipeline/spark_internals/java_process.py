"""Spark's Java and the session in it, where pyspark's public interface is not enough to start, stop or silence it."""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {"spark.sql.execution.arrow.localRelationThreshold": "0"}
"""Each chunk of a table is a task, small tables too."""
_LONGEST_WAY = 60
"""Characters of a folder in which a Unix socket with Spark's name of 42 has room: a path of 104, the least there is.

By TCP, each small task waits 40 ms for an acknowledgement.
"""


def by_unix_socket(scratch: Path) -> dict[str, str]:
    """Settings by which workers of this machine talk over sockets in ``scratch``; none where they have no room."""
    if not hasattr(socket, "AF_UNIX") or len(str(scratch)) > _LONGEST_WAY:
        return {}
    return {"spark.python.unix.domain.socket.enabled": "true", "spark.python.unix.domain.socket.dir": str(scratch)}


@contextlib.contextmanager
def noted(java: list[subprocess.Popen[bytes]]) -> Iterator[None]:
    """Collect the processes that Spark's launcher starts in ``java``: there is no other way to end one that was
    interrupted, because the launcher returns nothing then.
    """
    from pyspark import java_gateway as gateways

    launcher: Any = gateways
    start = getattr(launcher, "Popen", None)
    if start is None:
        yield
        return

    def kept(*words: Any, **how: Any) -> subprocess.Popen[bytes]:
        java.append(subprocess.Popen(*words, **how))  # noqa: S603  the launcher's own words
        return java[-1]

    launcher.Popen = kept
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


def gives_an_executor(spark: SparkSession) -> bool | None:
    """Return whether there is an executor beside the driver; None where the session has ended, True where this cannot
    be known.
    """
    java = getattr(spark.sparkContext, "_jsc", None)
    if java is None:
        return True
    context = java.sc()
    return None if context.isStopped() else bool(context.getExecutorMemoryStatus().size() > 1)


@contextlib.contextmanager
def own_interrupts() -> Iterator[None]:
    """Keep this process's handler of SIGINT: Spark's would call Java in the middle of another call, and py4j reports
    both.

    That, and lost connections, py4j tells the root logger, with stacks; errors reach the caller as they are.
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


def hear_py4j() -> None:
    """Restore py4j's messages to the root logger as they were before there was a session here."""
    logging.getLogger().removeFilter(_no_py4j)
