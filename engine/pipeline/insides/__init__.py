"""What rests on Spark's insides: one room, so that whoever brings a new Spark knows where to look.

Each trick says what it rests on, why it is there, and what happens on a Spark that has no place for it: the answers
stay right, a read goes on. Nothing else of the pipeline may touch what Spark keeps to itself (a test walks the names).
"""

from __future__ import annotations

from typing import NamedTuple

RELEASES = ("4.0.5", "4.1.4", "4.2.1", "4.3.0")
"""The Spark of each minor that was tried, every format and every trick: the newest that ``pip`` gave."""


class Trick(NamedTuple):
    """One thing that rests on what Spark does not promise."""

    place: str
    """Module and name."""
    rests_on: str
    why: str
    elsewhere: str
    """What happens where Spark has no place for it."""


TRICKS = (
    Trick(
        "engine.pipeline.insides.one_read_each.inject",
        "Janino in Spark's jars; the private fields PythonTable.ds, PythonDataSourceV2.readInfo and their kin",
        "Spark plans a Python source once for all places of a query, and hands it no columns: rows would be missing, "
        "and all columns read",
        "a warning; all columns are read, no condition is handed down",
    ),
    Trick(
        "engine.pipeline.insides.java_process.noted",
        "the name Popen in pyspark.java_gateway",
        "whoever interrupts the launcher has no other way to end the Java that it has begun",
        "a Java whose start is interrupted lives until its parent ends",
    ),
    Trick(
        "engine.pipeline.insides.java_process.forget_java",
        "SparkContext._gateway, _jvm, _active_spark_context, SparkSession._instantiatedSession",
        "the next session of this process gets a Java of its own",
        "the names are set on classes that do not look at them: a second session of one process fails in one sentence",
    ),
    Trick(
        "engine.pipeline.insides.java_process.without_last_words",
        "SparkContext._accumulatorServer.handle_error",
        "a session that is ended in the middle would tell of its lost connection on the terminal",
        "it is told",
    ),
    Trick(
        "engine.pipeline.insides.java_process.own_interrupts",
        "py4j tells the root logger, and pyspark takes SIGINT",
        "an interrupt reaches our own handler; errors reach the caller once, without stacks",
        "stacks on the terminal beside the error's own sentence",
    ),
    Trick(
        "engine.pipeline.insides.java_process.gives_an_executor",
        "SparkContext._jsc.sc().getExecutorMemoryStatus()",
        "a master that gives no executor lets every job wait for ever",
        "taken for given: the first job waits",
    ),
    Trick(
        "engine.pipeline.insides.java_process.SETTINGS",
        "spark.sql.execution.arrow.localRelationThreshold = 0",
        "each chunk of a table that Python gives is a task, small tables too",
        "an unknown setting is not looked at: fewer tasks",
    ),
    Trick(
        "engine.pipeline.insides.java_process.by_unix_socket",
        "spark.python.unix.domain.socket.* (4.1 and later), a path of at most 104 characters",
        "by TCP each small task waits 40 ms for an acknowledgement",
        "an unknown setting is not looked at: TCP",
    ),
    Trick(
        "engine.pipeline.insides.worker_process.settling",
        "pyspark collects garbage after every task",
        "with numpy, pyarrow and the engine loaded that took 45 ms a task; what is loaded is frozen",
        "nothing to gain, nothing lost",
    ),
    Trick(
        "engine.pipeline.insides.worker_process.in_one_line",
        "SPARK_HIDE_TRACEBACK, read by pyspark where a planner ends",
        "an error that tells its cause in a sentence reaches the user without the stack of Spark's own process",
        "the sentence stands below the stack",
    ),
    Trick(
        "engine.shipped.import_from",
        "addPyFile hands executors a zip, which Python imports",
        "executors need not have the project; machine code is kept by path and time, a zip has another each session",
        "executors that have the project import theirs",
    ),
)
