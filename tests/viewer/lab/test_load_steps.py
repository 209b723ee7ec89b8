"""Sliders of a load: every step has its words, and a value stands at the nearest of them."""

from __future__ import annotations

import pytest

from viewer.lab.load_steps import BY_KEY, KNOBS, spread_bytes


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.key)
def test_every_step_is_called_something_else_and_found_again(knob):
    said = [knob.say(step) for step in knob.steps]
    assert all(said)
    assert len(set(said)) == len(said)
    assert [knob.step_of(step) for step in knob.steps] == list(range(len(knob.steps)))
    assert knob.first in knob.steps


def test_values_between_steps_stand_at_the_nearest():
    body = BY_KEY["body_size"]
    assert body.steps[body.step_of(210)] == 200
    assert body.steps[body.step_of(10**9)] == 1_048_576
    assert BY_KEY["rate"].say(0) == "no limit"


def test_a_spread_is_a_share_of_the_body():
    assert (spread_bytes(200, 25), spread_bytes(0, 50)) == (50, 0)
