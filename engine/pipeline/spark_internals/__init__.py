"""Everything that depends on Spark's internals, in one folder: whoever adapts the code to a new Spark looks here.

Each workaround says what it depends on, why it is needed, and what happens on a Spark that does not support it: results
stay correct and reads go on. No other code of the pipeline may use Spark's private parts (a test checks the names).
"""

from __future__ import annotations

from typing import NamedTuple

RELEASES = ("4.0.5", "4.1.4", "4.2.1", "4.3.0")
"""The Spark of each minor that was tried, every format and every workaround: the newest that ``pip`` gave."""


class Workaround(NamedTuple):
    """A use of something that Spark does not promise."""

    place: str
    """Module and name."""
    rests_on: str
    why: str
    elsewhere: str
    """What happens where Spark has no place for it."""


WORKAROUNDS = (
    Workaround(
        "engine.pipeline.spark_internals.one_read_each.inject",
        "Janino in Spark's jars; the private fields PythonTable.ds, PythonDataSourceV2.readInfo and their kin",
        "Spark plans a Python source once for all places of a query, and hands it no columns: rows would be missing, "
        "and all columns read",
        "a warning; all columns are read, no condition is handed down",
    ),
    Workaround(
        "engine.pipeline.spark_internals.java_process.noted",
        "the name Popen in pyspark.java_gateway",
        "whoever interrupts the launcher has no other way to end the Java that it has begun",
        "a Java whose start is interrupted lives until its parent ends",
    ),
    Workaround(
        "engine.pipeline.spark_internals.java_process.forget_java",
        "SparkContext._gateway, _jvm, _active_spark_context, SparkSession._instantiatedSession",
        "the next session of this process gets a Java of its own",
        "the names are set on classes that do not look at them: a second session of one process fails in one sentence",
    ),
    Workaround(
        "engine.pipeline.spark_internals.java_process.without_last_words",
        "SparkContext._accumulatorServer.handle_error",
        "a session that is ended in the middle would tell of its lost connection on the terminal",
        "it is told",
    ),
    Workaround(
        "engine.pipeline.spark_internals.java_process.own_interrupts",
        "py4j tells the root logger, and pyspark takes SIGINT",
        "an interrupt reaches our own handler; errors reach the caller once, without stacks",
        "stacks on the terminal beside the error's own sentence",
    ),
    Workaround(
        "engine.pipeline.spark_internals.java_process.gives_an_executor",
        "SparkContext._jsc.sc().getExecutorMemoryStatus()",
        "a master that gives no executor lets every job wait for ever",
        "taken for given: the first job waits",
    ),
    Workaround(
        "engine.pipeline.spark_internals.java_process.SETTINGS",
        "spark.sql.execution.arrow.localRelationThreshold = 0",
        "each chunk of a table that Python gives is a task, small tables too",
        "an unknown setting is not looked at: fewer tasks",
    ),
    Workaround(
        "engine.pipeline.spark_internals.java_process.by_unix_socket",
        "spark.python.unix.domain.socket.* (4.1 and later), a path of at most 104 characters",
        "by TCP each small task waits 40 ms for an acknowledgement",
        "an unknown setting is not looked at: TCP",
    ),
    Workaround(
        "engine.pipeline.spark_internals.worker_process.settling",
        "pyspark collects garbage after every task",
        "with numpy, pyarrow and the engine loaded that took 45 ms a task; what is loaded is frozen",
        "nothing to gain, nothing lost",
    ),
    Workaround(
        "engine.pipeline.spark_internals.worker_process.in_one_line",
        "SPARK_HIDE_TRACEBACK, read by pyspark where a planner ends",
        "an error that tells its cause in a sentence reaches the user without the stack of Spark's own process",
        "the sentence stands below the stack",
    ),
    Workaround(
        "engine.files.zip_import.import_from",
        "addPyFile hands executors a zip, which Python imports",
        "executors need not have the project; machine code is kept by path and time, a zip has another each session",
        "executors that have the project import theirs",
    ),
)
