"""``bench``: the names of its measures. Other tests check the measuring."""

from __future__ import annotations

import agree


def test_an_unknown_measure_is_refused_with_the_known_ones():
    status, _out, err = agree.command("bench", "nonsense")
    assert status == 2
    assert "scan" in err
    assert "recover" in err
