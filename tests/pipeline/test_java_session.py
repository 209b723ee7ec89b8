"""Java starts with a Spark session in it completely or not at all, and removes all its temporary files."""

from __future__ import annotations

import pytest

from engine.pipeline import java_session


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local[*]", "local[*,3]"),
        ("local[2]", "local[2,3]"),
        ("local[2,5]", "local[2,5]"),
        ("local", "local"),
        ("spark://a:7077", "spark://a:7077"),
    ],
)
def test_tasks_of_a_local_session_are_tried_again(master, expected):
    """A killed worker ended a whole job on this machine: Spark does not retry tasks of local[N]."""
    assert java_session.with_retries(master) == expected
