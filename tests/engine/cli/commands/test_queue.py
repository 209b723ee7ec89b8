"""``queue``: entries of one consume queue."""

from __future__ import annotations


def test_entries_are_those_that_were_dispatched(asked):
    results = asked("queue", "Orders", 0)
    expected = [unit for unit in asked.made.units if unit.topic == "Orders"]
    assert [
        (record["queueOffset"], record["physicalOffset"], record["size"], record["tagsCode"]) for record in results
    ] == [(unit.queue_offset, unit.offset, unit.size, unit.tags_code) for unit in expected]


def test_a_stretch_of_it_is_held_against_the_log(asked):
    results = asked("queue", "Paid", 0, "--from", 2, "--to", 4, "--resolve")
    assert [(record["queueOffset"], record["verdict"]) for record in results] == [(2, "ok"), (3, "ok")]


def test_a_queue_that_is_not_there_is_named(asked):
    assert "Nowhere" in asked.words("queue", "Nowhere", 0, status=3)
