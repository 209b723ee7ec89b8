"""The wanted ranges narrow with each condition, and never widen."""

from __future__ import annotations

from engine.pipeline.filters import EVERYWHERE, QueryLimits


def test_sets_meet_and_ranges_too():
    wanted_ranges = QueryLimits().and_among("topics", ["a", "b"]).and_among("topics", ["b", "c"])
    assert wanted_ranges.topics == {"b"}
    wanted_ranges = wanted_ranges.and_between("physical_offsets", 10, None).and_between("physical_offsets", None, 99)
    assert wanted_ranges.physical_offsets == (10, 99)
    assert wanted_ranges.and_between("physical_offsets", 5, 200).physical_offsets == (10, 99)
    assert (wanted_ranges.queue_ids, wanted_ranges.store_timestamps) == (None, EVERYWHERE)


def test_one_of_several_numbers_is_the_range_around_them_and_of_none_nothing():
    assert QueryLimits().and_among("queue_offsets", [7, 3, 5]).queue_offsets == (3, 7)
    begin, end = QueryLimits().and_among("queue_offsets", []).queue_offsets
    assert begin > end


def test_a_want_is_a_value():
    limits = QueryLimits()
    limits.and_among("queue_ids", [1])
    assert limits == QueryLimits()
