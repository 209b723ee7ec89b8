"""Requests a second by code over time: rates, colours that stay, gaps, and memory that does not grow."""

from __future__ import annotations

import numpy as np

from engine.lab.serving import CodeCount, ServingState
from viewer.lab.serve_history import CAPACITY, MAX_CODES, ROLES, ServeHistory


def state(at: float, counts: dict[int, int], held: int = 0, not_ok: int = 0, began: int = 0) -> ServingState:
    codes = tuple(CodeCount(code, f"R{code}", count, not_ok=not_ok) for code, count in counts.items())
    return ServingState("h:1", "h:2", "b", began, 0.1, at, held=held, codes=codes)


def test_rates_are_differences_of_states() -> None:
    history = ServeHistory()
    assert history.rates(300, 2) is None
    assert history.waits(300) is None
    history.take(state(1.0, {10: 5}), 100.0)
    assert history.rates(300, 2) is None, "one state tells no rate"
    history.take(state(2.0, {10: 25, 11: 4}, held=3), 101.0)
    history.take(state(2.0, {10: 99}), 101.2)
    frame = history.rates(300, 1)
    assert frame is not None
    assert [(trace.name, trace.value) for trace in frame.traces] == [("all", "24"), ("R10", "20"), ("R11", "")]
    assert float(np.nanmax(frame.traces[0].ys)) == 24.0
    assert frame.top >= 24.0
    history.take(state(3.0, {10: 25, 11: 4}, held=1, not_ok=2), 102.0)
    waits = history.waits(300)
    assert waits is not None
    assert [(trace.name, trace.value) for trace in waits.traces] == [("held pulls", "1"), ("not 0 /s", "4")]


def test_a_code_keeps_its_colour_as_long_as_it_is_drawn() -> None:
    history = ServeHistory()
    counts = dict.fromkeys(range(8), 0)
    for second in range(10):
        for code in counts:
            counts[code] += 10 - code if second < 5 else code
        history.take(state(float(second), dict(counts)), 100.0 + second)
        if second == 4:
            first_roles = dict(history.roles)
    assert list(first_roles) == [0, 1, 2, 3, 4]
    assert set(first_roles.values()) == set(ROLES)
    still_drawn = {code: role for code, role in history.roles.items() if code in first_roles}
    assert still_drawn == {code: first_roles[code] for code in still_drawn}
    assert len(set(history.roles.values())) == len(ROLES)


def test_a_time_without_states_is_a_gap() -> None:
    history = ServeHistory()
    for seconds, count in ((0.0, 0), (1.0, 10), (2.0, 20), (9.0, 90), (10.0, 100)):
        history.take(state(seconds, {10: count}), 100.0 + seconds)
    frame = history.rates(300, 1)
    assert frame is not None
    assert frame.breaks == ((-8.0, -1.0),)
    assert np.isnan(frame.traces[0].ys).any()


def test_another_serving_begins_anew_and_memory_is_bounded() -> None:
    history = ServeHistory()
    for second in range(3 * CAPACITY):
        history.take(state(float(second), {second % 100: second, 500: second}), 100.0 + second)
    assert len(history.codes) == MAX_CODES
    assert max(len(series) for series in (history.all_requests, history.held, *history.codes.values())) <= CAPACITY
    history.take(state(1.0, {10: 5}, began=7), 9_000.0)
    assert not history.codes
    assert history.rates(300, 1) is None
