"""Names, table and index of tiered storage."""

from __future__ import annotations

import struct

import pytest

from engine.codec import tiered as codec


def test_names_are_those_of_the_broker():
    assert codec.segment_name(0) == "cfcd208400000000000000000000"
    assert codec.cluster_folder("PeerCluster") == "a007e11b_PeerCluster"
    assert codec.is_cluster_folder("a007e11b_PeerCluster")
    assert not codec.is_cluster_folder("a007e11c_PeerCluster")


@pytest.mark.parametrize(
    "value",
    [{}, {"commitLogFileSegmentTable": 1}, {"consumeQueueFileSegmentTable": {"b/T/0": {"0": {"baseOffset": "x"}}}}],
)
def test_a_table_without_rows_is_empty(value):
    table = codec.decode_table(value)
    assert not any(segments for paths in table.segments.values() for segments in paths.values())


def test_the_table_lists_segments_by_offset_and_topics_by_id():
    row = {"baseOffset": 1024, "size": 10, "beginTimestamp": 5, "endTimestamp": 6}
    table = codec.decode_table(
        {
            "topicMetadataTable": {"Orders": {"topicId": 3}, "Broken": "x", "Other": {"topicId": None}},
            "commitLogFileSegmentTable": {"b/Orders/0": {"1024": row, "0": {**row, "baseOffset": 0, "size": 1024}}},
            "indexFileSegmentTable": {"b/index/0": {"0": {**row, "size": -1}}},
        }
    )
    assert table.topics == {3: "Orders"}
    assert table.segments == {
        "COMMIT_LOG": {"b/Orders/0": [codec.Segment(0, 1024, 5, 6), codec.Segment(1024, 10, 5, 6)]},
        "INDEX": {"b/index/0": []},
    }
    assert [segment.end_offset for segment in table.segments["COMMIT_LOG"]["b/Orders/0"]] == [1024, 1034]


def test_an_entry_is_twenty_bytes():
    entry = struct.pack(">qiq", 4096, 123, -5)
    assert codec.decode_entry(entry) == (4096, 123, -5)
    assert codec.decode_entry(entry[:-1]) is None


def index_head(items: int) -> bytes:
    return bytes(20) + struct.pack(">ii", 2, items)


@pytest.mark.parametrize(
    ("head", "size", "slots"),
    [
        (index_head(3), 28 + 5 * 8 + 3 * 28, 5),
        (index_head(3), 28 + 5 * 8 + 3 * 28 + 1, None),  # cut
        (index_head(3), 28 + 3 * 28, None),  # no room for a slot
        (index_head(3)[:-1], 1000, None),
    ],
)
def test_the_slots_of_an_index_fill_what_its_items_leave(head, size, slots):
    assert codec.index_slots(head, size) == slots


def test_items_of_a_key_are_found_by_its_hash():
    hash_code = codec.key_hash("Orders", "k1")
    assert hash_code == codec.key_hash("Orders", "k1") >= 0
    assert codec.slot_position(hash_code, 5) == 28 + hash_code % 5 * 8
    items = struct.pack(">iiiqii", hash_code, 3, 0, 4096, 123, 7) + struct.pack(">iiiqii", hash_code + 1, 3, 0, 1, 2, 3)
    assert list(codec.decode_items(items + b"cut", hash_code)) == [codec.IndexItem(3, 0, 4096, 123, 7)]


@pytest.mark.parametrize(
    ("slot", "items"),
    [
        (struct.pack(">ii", 68, 56), (68, 56)),
        (struct.pack(">ii", -1, 0), (0, 0)),
        (struct.pack(">ii", 68, 0), (0, 0)),
        (b"cut", (0, 0)),
    ],
)
def test_a_slot_without_items_has_none(slot, items):
    assert codec.decode_slot(slot) == items
