"""Errors of Spark in one line: the cause, with what names it."""

import pytest

from engine.cli.pipeline_jobs import in_a_line

PROGRAM = 'Cannot run program "/opt/env/bin/python": error=13, Permission denied'


@pytest.mark.parametrize(
    ("told", "line"),
    [
        pytest.param(
            "An error occurred while calling o64.collectToPython.\n"
            ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, "
            f"most recent failure: Lost task 0.3 in stage 0.0 (TID 3): java.io.IOException: {PROGRAM}\n"
            "\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)\n"
            f"Caused by: java.io.IOException: {PROGRAM}\n"
            "\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)\n"
            "Caused by: java.io.IOException: error=13, Permission denied\n"
            "\t... 19 more",
            PROGRAM,
            id="a Python that cannot be run",
        ),
        pytest.param(
            "An error occurred.\n: java.io.IOException: Job aborted.\nCaused by: java.io.IOException: No room",
            "No room",
            id="a cause that stands alone",
        ),
        pytest.param(
            "Caused by: a.RuntimeException: java.io.IOException: broken\nCaused by: java.io.IOException: broken",
            "broken",
            id="the same words around it",
        ),
        pytest.param(
            "Traceback (most recent call last):\nengine.errors.CannotRead: /a: cannot be read: Permission denied\n"
            "Caused by: java.io.IOException: Broken pipe",
            "/a: cannot be read: Permission denied",
            id="what the Python worker said",
        ),
    ],
)
def test_the_line_names_the_cause_and_what_it_happened_to(told, line):
    """Of a Python that cannot be run "error=13, Permission denied" was left, without the program's name."""
    assert in_a_line(Exception(told)) == line
