"""Offsets that wait for their checkpoints."""

from __future__ import annotations

from collections import deque

from engine.broker.pop_state import PopState, Step


def test_the_next_pop_goes_on_behind_the_last() -> None:
    state = PopState()
    assert state.latest("popping", "Orders", 0) == -1
    state.steps["popping", "Orders", 0] = deque([Step(4), Step(9)])
    assert state.latest("popping", "Orders", 0) == 9
    state.clear("popping", "Orders", 0)
    state.clear("popping", "Orders", 0)
    assert state.latest("popping", "Orders", 0) == -1
