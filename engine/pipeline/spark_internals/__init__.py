"""All code that depends on Spark's internals. To support a new Spark, look here.

Each workaround says what it depends on, why it is needed, and what happens on a Spark that does not support it: reads
still work and results stay correct. No other code of the pipeline may use Spark's private parts (a test checks the
names).
"""

from __future__ import annotations

from typing import NamedTuple

RELEASES = ("4.0.5", "4.1.4", "4.2.1", "4.3.0")
"""The Spark releases with which every format and workaround was tested: the newest of each minor version."""


class Workaround(NamedTuple):
    """A use of something that is not part of Spark's public API."""

    place: str
    """Module and name."""
    rests_on: str
    why: str
    elsewhere: str
    """What happens on a Spark without it."""


WORKAROUNDS = (
    Workaround(
        "engine.pipeline.spark_internals.one_read_each.inject",
        "Janino in Spark's jars; the private fields PythonTable.ds, PythonDataSourceV2.readInfo and similar ones",
        "Spark plans a Python source once for all its uses in a query, and passes it no columns: rows would be "
        "missing, and all columns read",
        "a warning; all columns are read, no condition is pushed down",
    ),
    Workaround(
        "engine.pipeline.spark_internals.java_process.recording_processes",
        "the name Popen in pyspark.java_gateway",
        "there is no other way to end the Java process of an interrupted launcher",
        "a Java process whose start is interrupted lives until its parent ends",
    ),
    Workaround(
        "engine.pipeline.spark_internals.java_process.forget_java",
        "SparkContext._gateway, _jvm, _active_spark_context, SparkSession._instantiatedSession",
        "the next session of this process gets its own Java process",
        "the names are set without effect: a second session of one process fails with a clear message",
    ),
    Workaround(
        "engine.pipeline.spark_internals.java_process.without_last_words",
        "SparkContext._accumulatorServer.handle_error",
        "a session that is ended early would print an error about its lost connection",
        "it is printed",
    ),
    Workaround(
        "engine.pipeline.spark_internals.java_process.own_interrupts",
        "py4j logs to the root logger, and pyspark handles SIGINT",
        "an interrupt reaches our own handler; errors reach the caller once, without stack traces",
        "stack traces on the terminal beside the error message",
    ),
    Workaround(
        "engine.pipeline.spark_internals.java_process.has_executor",
        "SparkContext._jsc.sc().getExecutorMemoryStatus()",
        "without an executor every job waits forever",
        "an executor is assumed: the first job waits",
    ),
    Workaround(
        "engine.pipeline.spark_internals.java_process.SETTINGS",
        "spark.sql.execution.arrow.localRelationThreshold = 0",
        "each chunk of a Python table is a task, even of small tables",
        "an unknown setting is ignored: fewer tasks",
    ),
    Workaround(
        "engine.pipeline.spark_internals.java_process.by_unix_socket",
        "spark.python.unix.domain.socket.* (4.1 and later), a path of at most 104 characters",
        "over TCP each small task waits 40 ms for an acknowledgement",
        "an unknown setting is ignored: TCP is used",
    ),
    Workaround(
        "engine.pipeline.spark_internals.worker_process.settling",
        "pyspark collects garbage after every task",
        "with numpy, pyarrow and the engine loaded that took 45 ms a task; so loaded objects are frozen",
        "no effect",
    ),
    Workaround(
        "engine.pipeline.spark_internals.worker_process.in_one_line",
        "SPARK_HIDE_TRACEBACK, read by pyspark where a planner ends",
        "an error with a clear message reaches the user without the stack trace of Spark's process",
        "the message stands below the stack trace",
    ),
    Workaround(
        "engine.files.zip_import.import_from",
        "addPyFile hands executors a zip, which Python imports",
        "executors need not have the project installed; machine code is cached by path and time, new for each zip",
        "executors that have the project import their own copy",
    ),
)
