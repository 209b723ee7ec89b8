"""Round values on the axes of a live plot."""

from __future__ import annotations

import pytest

from viewer.widgets.live_axes import ago, time_step, value_step, value_words


@pytest.mark.parametrize(
    ("span", "room", "step"),
    [(60, 1060, 10), (60, 480, 15), (3600, 1060, 600), (2, 1060, 0.2), (7 * 86_400, 1060, 86_400)],
)
def test_times_stand_at_round_places_with_room_between_them(span: float, room: float, step: float) -> None:
    assert time_step(span, room) == step


@pytest.mark.parametrize(("span", "room", "step"), [(4000, 145, 1000), (0.8, 145, 0.2), (25, 145, 5), (1e7, 145, 2e6)])
def test_values_stand_at_one_two_or_five_times_a_power_of_ten(span: float, room: float, step: float) -> None:
    assert value_step(span, room) == pytest.approx(step)


def test_places_in_words() -> None:
    assert [ago(value, 10) for value in (0.0, -50.0, -270.0, -12_000.0)] == ["0", "-50 s", "-4:30", "-3:20 h"]
    assert ago(-0.4, 0.2) == "-0.4 s"
    assert [value_words(value, step) for value, step in ((0.0, 0.2), (0.4, 0.2), (4000.0, 1000.0), (2e6, 2e6))] == [
        "0",
        "0.4",
        "4,000",
        "2M",
    ]
    assert value_words(0.05, 0.01) == "0.05"
