"""Zero pages are found by page, not by byte."""

from __future__ import annotations

import pytest

from engine.rules.damage_causes import PAGE, zero_pages

X = b"x"


@pytest.mark.parametrize(
    ("data", "base", "expected"),
    [
        pytest.param(b"", 0, None, id="nothing"),
        pytest.param(X * 9000, 0, None, id="no zeros"),
        pytest.param(b"\0" * 4095 + X, 0, None, id="a byte too few"),
        pytest.param(X * 10 + b"\0" * 5000 + X, 0, None, id="long enough, but no whole page"),
        pytest.param(X * 10 + b"\0" * (4086 + PAGE) + X, 0, (PAGE, PAGE), id="one page"),
        pytest.param(b"\0" * PAGE + X * PAGE + b"\0" * 3 * PAGE, 8 * PAGE, (10 * PAGE, 3 * PAGE), id="the longest"),
        pytest.param(X * 96 + b"\0" * (2 * PAGE + 50), 4000, (PAGE, 2 * PAGE), id="pages of the log, not of the piece"),
    ],
)
def test_the_longest_run_of_whole_pages(data: bytes, base: int, expected: tuple[int, int] | None) -> None:
    assert zero_pages(data, base) == expected
