"""Start Java with a session of Spark in it: completely, or not at all, with all its temporary files removed."""

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
    """One killed worker ended a whole job on this machine: Spark tries no task of local[N] again."""
    assert java_session.with_retries(master) == expected
