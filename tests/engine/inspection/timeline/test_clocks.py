"""Clocks that were set, told apart from delays."""

from __future__ import annotations

import numpy as np
from timeline_rows import chunk_of, steady

from engine.inspection.timeline.clocks import find_clock_steps


def test_store_times_that_jump_while_born_times_go_on_are_the_brokers_clock():
    born = steady(200)
    for step in (3_600_000, -30_000):
        stored = [time + 2 + (step if number >= 100 else 0) for number, time in enumerate(born)]
        (found,) = find_clock_steps(chunk_of(stored=stored, born=born))
        assert (found.clock, found.amount, found.row) == ("broker", step, 99)


def test_born_times_of_one_of_two_producers_that_jump_are_its_own_clock():
    stored = steady(400)
    hosts = [1 + number % 2 for number in range(400)]
    born = [
        time - 2 + (7000 if host == 2 and number >= 200 else 0)
        for number, (time, host) in enumerate(zip(stored, hosts, strict=True))
    ]
    (found,) = find_clock_steps(chunk_of(stored=stored, born=born, host=hosts))
    assert (found.clock, found.amount, found.hosts) == ("producer", 7000, [2])


def test_requests_that_waited_and_came_late_are_no_step():
    born = steady(400)
    stored = [max(time + 1, 1_020_000 + 5000) if time >= 1_020_000 else time + 1 for time in born]
    assert find_clock_steps(chunk_of(stored=stored, born=born)) == []


def test_a_single_unit_with_a_wrong_store_time_is_no_step():
    born = steady(100)
    stored = np.array(born) + 1
    stored[50] += 400 * 86_400_000
    assert find_clock_steps(chunk_of(stored=stored.tolist(), born=born)) == []


def test_born_times_years_away_say_nothing_about_a_clock():
    stored = [time + (1500 if number >= 50 else 0) for number, time in enumerate(steady(100, start=10**12))]
    born = [number * 100 for number in range(100)]
    assert find_clock_steps(chunk_of(stored=stored, born=born)) == []


def test_a_step_that_either_clock_could_explain_names_none():
    stored = steady(100) + steady(100, start=1_000_000 + 100 * 100 + 60_000)
    born = [time - 1 for time in stored[:100]] + [time - 30_001 for time in stored[100:]]
    (found,) = find_clock_steps(chunk_of(stored=stored, born=born))
    assert found.clock == "unknown"
