"""``get``: the answer of a broker to one pull."""

from __future__ import annotations


def test_messages_follow_the_answer(storescope):
    answer, *units = storescope("get", "Orders", 0, 2, "--max", 2)
    assert (answer["status"], answer["nextBeginOffset"], answer["count"]) == ("FOUND", 4, 2)
    assert [record["queueOffset"] for record in units] == [2, 3]


def test_a_tag_filter_skips_other_tags(storescope):
    _answer, *units = storescope("get", "Orders", 0, 0, "--tag", "T0 || T1")
    assert {record["tags"] for record in units} == {"T0", "T1"}


def test_a_pull_at_the_end_gets_no_messages(storescope):
    (answer,) = storescope("get", "Orders", 0, 6)
    assert (answer["status"], answer["count"]) == ("OFFSET_OVERFLOW_ONE", 0)
