"""pyqtgraph is imported on the loop's thread, in steps, once."""

from __future__ import annotations

import asyncio
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
