"""Names, table and index of tiered storage."""

from __future__ import annotations

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
