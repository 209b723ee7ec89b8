"""The further queues of a unit."""

from __future__ import annotations

import pytest

from engine.rules.dispatch_rules import light_entries

LIGHT = [
    ("%LMQ%a,b", "3,4", [("%LMQ%a", 0, 3), ("b", 3, 4)]),
    ("%LMQ%a,b", "3", []),
    ("a/b,c", "1,2", [("c", 3, 2)]),
    ("a,b", "x,2", [("b", 3, 2)]),
    ("a,", "1,", [("a", 3, 1)]),
]


@pytest.mark.parametrize(("names", "offsets", "expected_entries"), LIGHT)
def test_a_unit_names_its_further_queues(names, offsets, expected_entries):
    properties = {"INNER_MULTI_DISPATCH": names, "INNER_MULTI_QUEUE_OFFSET": offsets}
    assert light_entries(properties, "T", 3) == expected_entries


@pytest.mark.parametrize("topic", ["%RETRY%g", "rmq_sys_x", "SCHEDULE_TOPIC_XXXX"])
def test_topics_of_the_system_have_no_further_queues(topic):
    names = {"INNER_MULTI_DISPATCH": "a", "INNER_MULTI_QUEUE_OFFSET": "1"}
    assert light_entries(names, topic, 3) == []
