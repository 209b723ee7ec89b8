"""Changes of a session in its own process, and their end."""

from __future__ import annotations

import logging
import subprocess
from pathlib import Path
from types import SimpleNamespace

import py4j.java_gateway
from pyspark import java_gateway

from engine.pipeline.spark_internals import java_process


def record(path: str) -> logging.LogRecord:
    return logging.LogRecord("root", logging.ERROR, path, 1, "Exception while sending command.", None, None)


def test_only_records_of_py4j_itself_are_dropped_while_a_session_runs():
    """A filter stayed on the root logger for ever, and dropped all records of programs with "py4j" in their path."""
    root = logging.getLogger()
    other_session_runs = java_process._no_py4j in root.filters  # a session of another test runs in this process
    java_process.restore_py4j_logging()
    filters_before = list(root.filters)
    with java_process.own_interrupts():
        assert not root.filter(record(py4j.java_gateway.__file__))
        assert root.filter(record("/home/somebody/py4j-tools/own.py"))
    assert root.filters != filters_before, "lost connections are told while the session runs"
    java_process.restore_py4j_logging()
    assert root.filters == filters_before
    assert root.filter(record(py4j.java_gateway.__file__))
    if other_session_runs:
        root.addFilter(java_process._no_py4j)


def test_a_launcher_without_that_name_starts_all_the_same(monkeypatch):
    started: list[subprocess.Popen[bytes]] = []
    monkeypatch.delattr(java_gateway, "Popen")
    with java_process.recording_processes(started):
        assert not hasattr(java_gateway, "Popen")
    assert started == []


def test_a_session_without_those_names_is_taken_at_its_word():
    spark = SimpleNamespace(sparkContext=SimpleNamespace())
    java_process.without_last_words(spark)
    assert java_process.has_executor(spark) is True


def test_a_session_that_has_ended_gives_no_executor():
    ended = SimpleNamespace(isStopped=lambda: True)
    context = SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: ended))
    assert java_process.has_executor(SimpleNamespace(sparkContext=context)) is None


def test_a_path_too_long_for_a_socket_is_no_setting(tmp_path):
    assert java_process.by_unix_socket(Path("/tmp/" + "a" * 80)) == {}
    assert java_process.by_unix_socket(Path("/tmp/a"))["spark.python.unix.domain.socket.dir"] == "/tmp/a"
