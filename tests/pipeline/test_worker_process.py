"""One-time settings of Spark's Python processes: loaded modules are frozen after a task, errors have no stack."""

from __future__ import annotations

import sys
import types
from importlib.machinery import ModuleSpec

import pytest

from engine.errors import StoreError
from engine.pipeline.spark_internals import worker_process
from engine.pipeline.spark_internals.worker_process import MIN_NEW_MODULES, in_one_line, settling


@pytest.fixture
def environment(monkeypatch):
    results = {}
    monkeypatch.setattr(worker_process, "os", types.SimpleNamespace(environ=results))
    return results


def begun_as(monkeypatch, name):
    main = types.ModuleType("__main__")
    main.__spec__ = None if name is None else ModuleSpec(name, None)
    monkeypatch.setitem(sys.modules, "__main__", main)


@pytest.mark.parametrize(("main", "hidden"), [("pyspark.daemon", True), ("pytest.__main__", False), (None, False)])
def test_a_sentence_of_ours_hides_the_stack_in_a_process_of_sparks_alone(monkeypatch, environment, main, hidden):
    begun_as(monkeypatch, main)

    @in_one_line
    def read(path):
        raise StoreError("no such store", file=path)

    with pytest.raises(StoreError, match="no such store"):
        read("x")
    assert ("SPARK_HIDE_TRACEBACK" in environment) is hidden


def test_a_bug_keeps_its_stack(monkeypatch, environment):
    begun_as(monkeypatch, "pyspark.daemon")

    @in_one_line
    def halve(number, *, by=2):
        """Say half."""
        return number // by

    assert halve(9) == 4
    assert halve.__name__ == "halve"
    with pytest.raises(ZeroDivisionError):
        halve(9, by=0)
    assert environment == {}


@pytest.fixture
def collections(monkeypatch):
    """Return the calls of the collector, in a process that works for Spark and has frozen nothing yet."""
    texts = []
    collector = types.SimpleNamespace(collect=lambda: texts.append("collect"), freeze=lambda: texts.append("freeze"))
    monkeypatch.setattr(worker_process, "gc", collector)
    monkeypatch.setattr(worker_process, "_in_a_task", lambda: True)
    monkeypatch.setattr(worker_process._settled, "modules", 0, raising=False)
    return texts


def test_what_is_loaded_is_set_aside_once_behind_the_last_item(collections):
    items = settling([1, 2])
    assert next(items) == 1
    assert collections == []
    assert list(items) == [2]
    assert collections == ["collect", "freeze"]
    assert list(settling([3])) == [3]
    assert collections == ["collect", "freeze"]


def test_many_more_modules_are_set_aside_again(collections, monkeypatch):
    monkeypatch.setattr(worker_process._settled, "modules", len(sys.modules) - MIN_NEW_MODULES + 1)
    assert list(settling([1])) == [1]
    assert collections == []
    worker_process._settled.modules -= 1
    list(settling([1]))
    assert collections == ["collect", "freeze"]


def test_a_process_of_ones_own_is_left_alone(collections, monkeypatch):
    monkeypatch.setattr(worker_process, "_in_a_task", lambda: False)
    assert list(settling(iter("ab"))) == ["a", "b"]
    assert collections == []
