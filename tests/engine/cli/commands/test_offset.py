"""``offset``: the queue offset at a time, on either side of it."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("after", "boundary", "wanted"),
    [(0, "lower", 0), (50, "lower", 2), (60, "lower", 3), (50, "upper", 2), (9999, "upper", 5)],
)
def test_messages_of_a_topic_are_20_ms_apart(asked, after, boundary, wanted):
    start = asked.made.time - 120
    (record,) = asked("offset", "Orders", 0, "--time", start + after, "--boundary", boundary)
    assert record["queueOffset"] == wanted
