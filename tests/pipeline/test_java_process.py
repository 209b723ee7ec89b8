"""What a session changes in the process that it runs in, and gives back."""

from __future__ import annotations

import logging

from py4j import java_gateway

from engine.pipeline.insides import java_process


def record(path: str) -> logging.LogRecord:
    return logging.LogRecord("root", logging.ERROR, path, 1, "Exception while sending command.", None, None)


def test_only_what_py4j_itself_says_is_kept_quiet_and_only_while_a_session_runs():
    """A filter stayed on the root logger for ever, and dropped all records of whoever had "py4j" in a path."""
    root = logging.getLogger()
    others = java_process._no_py4j in root.filters  # a session of another test runs in this process
    java_process.hear_py4j()
    before = list(root.filters)
    with java_process.own_interrupts():
        assert not root.filter(record(java_gateway.__file__))
        assert root.filter(record("/home/somebody/py4j-tools/own.py"))
    assert root.filters != before, "lost connections are told while the session runs"
    java_process.hear_py4j()
    assert root.filters == before
    assert root.filter(record(java_gateway.__file__))
    if others:
        root.addFilter(java_process._no_py4j)
