"""pyqtgraph is imported on the loop's thread, in steps, once."""

from __future__ import annotations

import asyncio
import threading

import pytest
from PySide6.QtCore import QObject

from viewer.pane import plot_library as module
from viewer.pane.plot_library import PlotLibrary


def test_all_who_wait_are_told_and_each_step_has_a_turn_of_its_own(run, monkeypatch):
    steps = []

    def import_steps():
        for number in range(3):
            steps.append((number, threading.current_thread() is threading.main_thread()))
            yield

    monkeypatch.setattr(module, "_import_steps", import_steps)
    library, first, second, removed = PlotLibrary(), QObject(), QObject(), QObject()
    texts = []

    async def drive():
        library.load(first, lambda: texts.append("first"))
        library.load(removed, lambda: texts.append("gone"))
        library.load(second, lambda: texts.append("second"))
        assert steps == []
        removed.deleteLater()
        while not library.loaded:
            await asyncio.sleep(0)
        library.load(first, lambda: texts.append("again"))

    run(drive())
    assert steps == [(0, True), (1, True), (2, True)]
    assert texts == ["first", "second", "again"]


def test_a_library_that_fails_is_told_and_asked_for_again(run, monkeypatch):
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
