"""Work in steps."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication

from viewer.widgets.stepwise import StepQueue, run_here


def test_newer_work_replaces_waiting_work(themed_app: QApplication) -> None:
    done: list[int] = []
    turns = StepQueue(themed_app)
    turns.take([lambda: done.append(1), lambda: done.append(2)])
    assert done == [1]
    assert turns.busy
    turns.take([lambda: done.append(3), lambda: done.append(4)], spread=False)
    for _ in range(20):
        themed_app.processEvents()
    assert done == [1, 3, 4]
    assert not turns.busy


def test_an_answer_or_an_os_error_comes_at_once():
    calls: list[object] = []
    run_here(lambda: 42, calls.append, calls.append)
    run_here(lambda: int("x"), calls.append, calls.append)
    assert calls[0] == 42
    assert isinstance(calls[1], ValueError)


def test_a_programming_error_is_raised():
    with pytest.raises(ZeroDivisionError):
        run_here(lambda: 1 // 0, print, print)
