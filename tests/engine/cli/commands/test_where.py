"""``where``: one verdict for a message, and one for each way to it."""

from __future__ import annotations


def test_each_way_to_a_message_that_is_there_finds_it(asked):
    found = asked("where", "K2")[0]
    assert (found["verdict"], found["physicalOffset"]) == ("found", asked.made.units[2].offset)
    assert {(one["by"], one["verdict"]) for one in found["routes"]} >= {
        ("offset", "found"),
        ("queue", "found"),
        ("uniqueKey", "found"),
        ("key", "found"),
    }
    assert all(one["why"] for one in found["routes"])


def test_what_was_never_put_is_not_found(asked):
    assert [one["verdict"] for one in asked("where", "nobody", status=1) if one["type"] == "whereResult"] != ["found"]
