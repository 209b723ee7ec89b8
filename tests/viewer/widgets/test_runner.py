"""What is in memory is done at once: an answer, or the error of the work."""

from __future__ import annotations

import pytest

from viewer.widgets.runner import run_here


def test_the_answer_or_what_stood_in_the_way_comes_at_once():
    told: list[object] = []
    run_here(lambda: 42, told.append, told.append)
    run_here(lambda: int("x"), told.append, told.append)
    assert told[0] == 42
    assert isinstance(told[1], ValueError)


def test_a_mistake_of_ours_flies():
    with pytest.raises(ZeroDivisionError):
        run_here(lambda: 1 // 0, print, print)
