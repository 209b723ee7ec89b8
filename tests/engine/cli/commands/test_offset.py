"""``offset``: the queue offset at a time, on either side of it."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("offset_ms", "boundary", "expected_offset"),
    [(0, "lower", 0), (50, "lower", 2), (60, "lower", 3), (50, "upper", 2), (9999, "upper", 5)],
)
def test_messages_of_a_topic_are_20_ms_apart(storescope, offset_ms, boundary, expected_offset):
    start = storescope.store.time - 120
    (record,) = storescope("offset", "Orders", 0, "--time", start + offset_ms, "--boundary", boundary)
    assert record["queueOffset"] == expected_offset
