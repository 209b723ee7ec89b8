"""``trace``: the path from a key through the index to its messages, step by step."""

from __future__ import annotations

import agree


def test_a_key_is_found_and_its_chain_is_listed(storescope):
    records = storescope("trace", "Orders", "K2")
    assert [record["physicalOffset"] for record in records if record["type"] == "match"] == [
        storescope.store.units[2].offset
    ]
    steps = [row["kind"] for row in records if row["type"] == "traceStep"]
    assert steps[0] == "slot"
    assert set(steps[1:]) == {"entry"}
    assert (records[-1]["type"], records[-1]["matches"], records[-1]["complete"]) == ("traceEnd", 1, True)


def test_a_key_of_another_topic_does_not_match(storescope):
    records = storescope("trace", "Paid", "K2", status=1)
    assert records[-1]["matches"] == 0


def test_tags_are_traced_by_option_or_by_their_index_key(golden):
    store = golden("broker-tags-5.5.1")
    for question in (["--tag", "paid"], ["T#paid"]):
        response = agree.records_of("trace", store, "TagTopic", *question, "--max", "1000")
        assert response[-1] == {"type": "traceEnd", "matches": 350, "steps": response[-1]["steps"], "complete": True}
        assert {record["verdict"] for record in response if record["type"] == "traceStep"} == {"match", "hashDiffers"}


def test_a_trace_needs_a_key_or_tags(golden):
    for question in ([], ["--tag"]):
        status, _, error = agree.command("trace", golden("broker-tags-5.5.1"), "TagTopic", *question)
        assert status == 2
        assert "KEY" in error
