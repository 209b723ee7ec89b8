"""Mappings of static topics: offsets of logical queues, and which mappings are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.codec.queue_mappings import (
    UNDECIDED,
    MappedRange,
    TopicMapping,
    WrongMapping,
    check_ranges,
    merged,
    next_range,
    range_at,
    read_mapping,
    read_mappings,
)

OLD = MappedRange(0, 3, "a", 0, 0, 11)
NEW = MappedRange(1, 1, "b", 10_000)
NEXT = MappedRange(2, 0, "c", UNDECIDED)
MAPPING = TopicMapping("T", "b", 2, 5, {0: (OLD, NEW), 1: (MappedRange(0, 0, "a", 0),)})


def test_an_offset_belongs_to_the_range_that_begins_before_it():
    assert [range_at((OLD, NEW, NEXT), offset) for offset in (0, 9_999, 10_000, 10**9)] == [OLD, OLD, NEW, NEW]
    assert range_at((NEW,), 5) == NEW
    assert range_at((NEXT,), 5) is None
    assert (next_range((OLD, NEW, NEXT), OLD), next_range((OLD, NEW, NEXT), NEW)) == (NEW, None)


def test_physical_and_logical_offsets_are_translated():
    assert (NEW.physical(10_004), NEW.logical(4), NEW.delta) == (4, 10_004, 10_000)
    assert (OLD.logical_within(50), OLD.logical(50), OLD.logical_end) == (11, 50, 11)
    assert NEXT.logical_within(3) == UNDECIDED


def test_a_broker_leads_the_queues_whose_last_range_is_its_own():
    assert (MAPPING.leads(0), MAPPING.leads(1), MAPPING.leads(7)) == (True, False, False)
    assert MAPPING.info()["currIdMap"] == {0: 1}


def test_a_mapping_is_read_as_it_was_written():
    assert read_mapping(MAPPING.record()) == MAPPING
    assert read_mappings({"topicQueueMappingInfoMap": {"T": MAPPING.record(), "U": None}}) == {"T": MAPPING}
    assert read_mapping({}) == TopicMapping("", "", 0, 0, {})
    assert read_mapping(7) is None


@pytest.mark.parametrize(
    ("ranges", "words"),
    [
        ([replace(OLD, queue_id=-1)], "The field is illegal, should not be negative"),
        ([replace(OLD, logical_offset=-1), NEW], "The non-latest item has negative logic offset"),
        ([OLD, replace(NEW, generation=0)], "The gen does not increase monotonically"),
        ([replace(OLD, start_offset=20), NEW], "The endOffset is smaller than the start offset"),
        ([OLD, replace(NEW, logical_offset=0)], "The base logic offset does not increase monotonically"),
        ([OLD, replace(NEW, logical_offset=11)], "The max logic offset does not increase monotonically"),
    ],
)
def test_ranges_that_contradict_each_other_are_refused(ranges, words):
    with pytest.raises(WrongMapping, match=words):
        check_ranges(ranges)


def test_ranges_of_a_remapped_queue_are_accepted():
    check_ranges([OLD, NEW, NEXT])


def test_a_mapping_replaces_an_older_one_and_keeps_the_queues_that_it_leaves_out():
    newer = replace(MAPPING, epoch=6, queues={0: (OLD, NEW, NEXT)})
    assert merged(MAPPING, newer).queues == {0: (OLD, NEW, NEXT), 1: MAPPING.queues[1]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epoch": 4}, "Can't accept data with small epoch 4 < 5"),
        ({"scope": "x"}, "Can't accept data with unmatched scope x != __global__"),
        ({"queues": {0: (OLD, NEW)}}, "Cannot accept equal epoch with null data"),
        ({"queues": {0: (OLD,), 1: MAPPING.queues[1]}}, "The new leader is different but epoch equal"),
    ],
)
def test_a_mapping_that_is_older_or_changes_the_leader_is_refused_unless_forced(change, words):
    with pytest.raises(WrongMapping, match=words):
        merged(MAPPING, replace(MAPPING, **change))
    assert set(merged(MAPPING, replace(MAPPING, **change), force=True).queues) == {0, 1}
