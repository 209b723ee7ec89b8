"""``trace``: the way from a key through the index to its messages, step by step."""

from __future__ import annotations


def test_a_key_is_found_and_its_chain_is_told(asked):
    found = asked("trace", "Orders", "K2")
    assert [one["physicalOffset"] for one in found if one["type"] == "match"] == [asked.made.units[2].offset]
    steps = [one["kind"] for one in found if one["type"] == "traceStep"]
    assert steps[0] == "slot"
    assert set(steps[1:]) == {"entry"}
    assert (found[-1]["type"], found[-1]["matches"], found[-1]["complete"]) == ("traceEnd", 1, True)


def test_a_key_of_another_topic_is_not_its_own(asked):
    found = asked("trace", "Paid", "K2", status=1)
    assert found[-1]["matches"] == 0
