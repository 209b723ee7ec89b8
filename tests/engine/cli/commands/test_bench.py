"""``bench``: what it measures is named; measuring itself has tests of its own."""

from __future__ import annotations

import agree


def test_a_measure_that_is_none_is_refused_with_those_that_are():
    status, _out, err = agree.command("bench", "nonsense")
    assert status == 2
    assert "scan" in err
    assert "recover" in err
