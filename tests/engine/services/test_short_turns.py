"""Short turns come and go, and overlap; a crowd is told by those who oversleep."""

from __future__ import annotations

import sys

import pytest

from engine.services.short_turns import INTERVAL, Crowd, short_turns


def test_the_interval_from_before_comes_back_with_the_last_end() -> None:
    before = sys.getswitchinterval()
    with short_turns():
        assert sys.getswitchinterval() == pytest.approx(INTERVAL)
        with short_turns():
            pass
        assert sys.getswitchinterval() == pytest.approx(INTERVAL)
    assert sys.getswitchinterval() == before


def test_a_shorter_interval_stays() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.0000705)
    try:
        for _ in range(20):
            with short_turns():
                assert sys.getswitchinterval() == pytest.approx(0.00007)
        assert sys.getswitchinterval() == pytest.approx(0.00007)
    finally:
        sys.setswitchinterval(before)


def test_an_error_ends_it_too() -> None:
    before = sys.getswitchinterval()
    with pytest.raises(ValueError, match="no"), short_turns():
        raise ValueError("no")
    assert sys.getswitchinterval() == before


def naps(crowd: Crowd, clock: list[float], late: float, count: int) -> None:
    for _ in range(count):
        crowd.sleeps(0.01)
        clock[0] += 0.01 + late
        crowd.wakes()


def test_a_crowd_is_dense_where_naps_are_late_on_the_mean() -> None:
    clock = [100.0]
    crowd = Crowd(lambda: clock[0])
    crowd.wakes()
    assert not crowd.is_dense
    naps(crowd, clock, 0.001, 50)
    naps(crowd, clock, 0.006, 1)
    assert not crowd.is_dense
    naps(crowd, clock, 0.006, 2)
    assert crowd.is_dense
    naps(crowd, clock, -0.005, 50)  # woken by somebody
    assert crowd.is_dense
    naps(crowd, clock, 0.0, 20)
    assert not crowd.is_dense


def test_one_long_pause_is_forgotten_soon() -> None:
    clock = [100.0]
    crowd = Crowd(lambda: clock[0])
    naps(crowd, clock, 3600.0, 1)
    assert crowd.is_dense
    naps(crowd, clock, 0.0, 9)
    assert not crowd.is_dense
