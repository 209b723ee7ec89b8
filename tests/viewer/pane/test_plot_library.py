"""pyqtgraph is imported on the loop's thread, in steps, once."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest
from PySide6.QtCore import QObject

from viewer.pane import plot_library as module
from viewer.pane.plot_library import PlotLibrary


def test_all_waiters_are_notified_and_each_step_has_its_own_turn(run, monkeypatch):
    steps = []

    def import_steps():
        for number in range(3):
            steps.append((number, threading.current_thread() is threading.main_thread()))
            yield

    monkeypatch.setattr(module, "_import_steps", import_steps)
    library, first_waiter, second_waiter, deleted_waiter = PlotLibrary(), QObject(), QObject(), QObject()
    notified = []

    async def drive():
        library.load(first_waiter, lambda: notified.append("first"))
        library.load(deleted_waiter, lambda: notified.append("gone"))
        library.load(second_waiter, lambda: notified.append("second"))
        assert steps == []
        deleted_waiter.deleteLater()
        while not library.loaded:
            await asyncio.sleep(0)
        library.load(first_waiter, lambda: notified.append("again"))

    run(drive())
    assert steps == [(0, True), (1, True), (2, True)]
    assert notified == ["first", "second", "again"]


def test_a_failed_import_is_reported_and_can_be_retried(run, monkeypatch):
    def broken():
        raise ImportError("no OpenGL")
        yield

    monkeypatch.setattr(module, "_import_steps", broken)
    library, receiver, errors = PlotLibrary(), QObject(), []

    async def drive():
        for _ in range(2):
            library.load(receiver, lambda: None, errors.append)
            await asyncio.sleep(0.05)

    run(drive())
    assert [str(error) for error in errors] == ["no OpenGL", "no OpenGL"]
    assert not library.loaded


def test_a_package_is_imported_one_statement_a_step(tmp_path, monkeypatch):
    """The import of pyqtgraph was one step of half a second: the first chart in SQL held the window up."""
    (tmp_path / "stepwise").mkdir()
    (tmp_path / "stepwise" / "__init__.py").write_text("from .part import value\nsum_of_both = value + 1\n")
    (tmp_path / "stepwise" / "part.py").write_text("value = 41\n")
    monkeypatch.syspath_prepend(tmp_path)
    steps = module._import_by_statements("stepwise")
    next(steps)
    package = sys.modules["stepwise"]
    assert package.value == 41
    assert not hasattr(package, "sum_of_both")
    assert list(steps) == [None]
    assert package.sum_of_both == 42
    assert list(module._import_by_statements("stepwise")) == [], "it is imported already"
    (tmp_path / "broken_package.py").write_text("value = 1\nraise ImportError('no OpenGL')\n")
    with pytest.raises(ImportError, match="no OpenGL"):
        list(module._import_by_statements("broken_package"))
    assert "broken_package" not in sys.modules, "another try begins anew"


def test_a_thread_is_refused():
    library, errors = PlotLibrary(), []

    def load():
        with pytest.raises(RuntimeError, match="loop's thread") as raised:
            library.load(QObject(), lambda: None)
        errors.append(raised)

    thread = threading.Thread(target=load)
    thread.start()
    thread.join()
    assert len(errors) == 1
