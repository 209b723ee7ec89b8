"""Short turns come and go, and overlap."""

from __future__ import annotations

import sys

import pytest

from engine.services.short_turns import INTERVAL, short_turns


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
