"""Tables in a RocksDB: the rows of all three layouts become the values of the JSON files."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec import config_tables
from engine.codec.rocksdb_tables import GROUPS, OFFSETS, TOPICS, table_value, version_2_values

VERSION = b'{"counter":12,"stateVersion":0,"timestamp":1795834212382}'
TOPIC = (
    b'{"attributes":{},"order":false,"perm":6,"readQueueNums":4,"topicFilterType":"SINGLE_TAG",'
    b'"topicName":"StockLevels","topicSysFlag":0,"writeQueueNums":4}'
)
V2_TOPIC = (b"\x01\x00\x03\x02\x00\x0bStockLevels", b"\x01" + TOPIC)
V2_OFFSET = (b"\x01\x00\x01\x02\x00\x07archive\x01\x00\x0bClickStream\x01\x00\x00\x00\x01", (131).to_bytes(8, "big"))
V2_VERSION = (
    b"\x01\x00\x01\x01data_version",
    bytes.fromhex("0000000000000000 000001a220138083 00000000000021d9"),
)
"""Rows of real brokers of 5.5.1."""


def test_topics_and_their_version():
    value = table_value(TOPICS, [(b"StockLevels", TOPIC)], VERSION)
    (topic,) = config_tables.topics(value).rows
    assert (topic.name, topic.write_queue_nums, topic.perm) == ("StockLevels", 4, 6)
    assert value["dataVersion"] == {"counter": 12, "stateVersion": 0, "timestamp": 1795834212382}


def test_groups_with_the_topics_that_are_forbidden_to_them():
    value = table_value(GROUPS, [(b"billing", b'{"consumeEnable":false}')], None, [(b"billing", b'{"Orders":1}')])
    (group,) = config_tables.subscription_groups(value).rows
    assert (group.name, group.consume_enable) == ("billing", False)
    assert value["forbiddenTable"] == {"billing": {"Orders": 1}}
    assert value["dataVersion"] == {}


def test_offsets_have_the_keys_of_the_file():
    rows = [
        (b"OrderEvents@billing", b'{"offsetTable":{"0":394,"1":368}}'),
        (b"ShipmentEvents@dashboard@broadcast", b'{"offsetTable":{"0":63}}'),
    ]
    value = table_value(OFFSETS, rows, VERSION)
    assert value["offsetTable"]["OrderEvents@billing"] == {0: 394, 1: 368}
    assert [(row.topic, row.group, row.mode, row.offsets) for row in config_tables.consumer_offsets(value).rows] == [
        ("OrderEvents", "billing", "cluster", {0: 394, 1: 368}),
        ("ShipmentEvents", "dashboard", "broadcast", {0: 63}),
    ]


def test_version_2_has_all_tables_in_one_family():
    pull = (V2_OFFSET[0].replace(b"\x00\x01\x02", b"\x00\x02\x02", 1), V2_OFFSET[1])
    group = (b"\x01\x00\x04\x02\x00\x07billing", b'\x01{"consumeEnable":true}')
    values = version_2_values([V2_TOPIC, V2_OFFSET, V2_VERSION, pull, group])
    assert values[TOPICS]["topicConfigTable"]["StockLevels"]["writeQueueNums"] == 4
    assert values[OFFSETS]["offsetTable"] == {"ClickStream@archive": {1: 131}}
    assert values[OFFSETS]["dataVersion"]["counter"] == 8665
    assert list(values[GROUPS]["subscriptionGroupTable"]) == ["billing"]
    assert values[TOPICS]["dataVersion"] == {}


@pytest.mark.parametrize(
    "rows",
    [
        [(V2_TOPIC[0], b"\x02" + TOPIC)],
        [(V2_TOPIC[0], b"\x01{")],
        [(V2_TOPIC[0][:-1], V2_TOPIC[1])],
        [(V2_OFFSET[0], b"\x00")],
        [(V2_OFFSET[0][:-2], V2_OFFSET[1])],
        [(V2_VERSION[0], b"")],
        [(b"\x01", b"")],
    ],
)
def test_rows_that_no_broker_reads_are_refused(rows):
    with pytest.raises(ValueError, match="expected"):
        version_2_values(rows)


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"offsets":1}', b'{"offsetTable":3}'])
def test_broken_offsets_are_refused(data):
    with pytest.raises(ValueError, match="expected"):
        table_value(OFFSETS, [(b"Orders@billing", data)], None)


@given(st.lists(st.tuples(st.binary(max_size=40), st.binary(max_size=30))))
def test_any_rows_give_values_or_a_reason(rows):
    with contextlib.suppress(ValueError):
        assert set(version_2_values(rows)) == {TOPICS, GROUPS, OFFSETS}
