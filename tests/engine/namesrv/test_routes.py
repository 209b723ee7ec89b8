"""The name server's tables: registrations, removals, and the routes that follow from them.

The body of a registration, plain and compressed, and the error for an invalid one.
"""

from __future__ import annotations

import json
import struct
import zlib

import pytest

from engine.namesrv import routes
from engine.namesrv.routes import DataVersion, MasterAddresses, Queues, Registration, Routes, check_crc, read_body

T = {"Orders": Queues(4, 4, 6), "Payments": Queues(8, 8, 6)}


def registration(
    address: str = "1.1.1.1:10911", broker_id: int = 0, topics=T, version: int = 1, **options
) -> Registration:
    return Registration("C", "a", address, broker_id, "1.1.1.1:10912", DataVersion(0, 0, version), topics, **options)


def test_a_broker_that_registers_is_found_by_its_topics():
    routes = Routes()
    assert routes.register(registration(), 1_000, "x") == MasterAddresses()
    route = routes.route("Orders")
    assert route["queueDatas"] == [Queues(4, 4, 6).record("a")]
    assert route["brokerDatas"][0]["brokerAddrs"] == {0: "1.1.1.1:10911"}
    assert routes.route("Nothing") is None
    assert routes.cluster_info()["clusterAddrTable"] == {"C": ["a"]}
    assert sorted(routes.topics_of("C")) == ["Orders", "Payments"]


def test_a_slave_gets_its_masters_address_and_registers_no_queues():
    routes = Routes()
    routes.register(registration(), 0, "x")
    received = routes.register(
        registration("2.2.2.2:10911", 1, {"Other": Queues(1, 1, 6), "Orders": Queues(9, 9, 6)}), 0, "y"
    )
    assert received == MasterAddresses("1.1.1.1:10911", "1.1.1.1:10912")
    assert routes.route("Other") is None
    assert routes.route("Orders")["brokerDatas"][0]["brokerAddrs"] == {0: "1.1.1.1:10911", 1: "2.2.2.2:10911"}


def test_one_topic_alone_is_refused_before_a_whole_registration():
    routes = Routes()
    assert routes.register(registration(topics={"Orders": Queues(4, 4, 6)}), 0, "x") is None
    assert routes.cluster_info()["brokerAddrTable"]["a"]["brokerAddrs"] == {}
    assert routes.route("Orders") is None
    routes.register(registration(), 0, "x")
    assert routes.register(registration(topics={"Later": Queues(2, 2, 6)}, version=2), 0, "x") == MasterAddresses()
    assert routes.route("Later") is not None


def test_topics_missing_from_a_registration_stay_unless_configured_otherwise():
    for drops, remaining in ((False, {"Orders", "Payments", "New"}), (True, {"Payments", "New"})):
        routes = Routes(drop_topics=drops)
        routes.register(registration(), 0, "x")
        routes.register(registration(topics={"Payments": T["Payments"], "New": Queues(1, 1, 6)}, version=2), 0, "x")
        assert set(routes.topics) == remaining


def test_a_repeated_registration_changes_nothing():
    routes = Routes()
    routes.register(registration(), 0, "x")
    routes.set_write("a", allowed=False)
    routes.register(registration(), 1, "x")
    assert routes.topics["Orders"]["a"].permission == 4, "what an operator has taken away stays until the topics change"
    routes.register(registration(version=2), 2, "x")
    assert routes.topics["Orders"]["a"].permission == 6
    assert routes.set_write("a", allowed=True) == 2


def test_an_address_has_one_id_and_an_older_state_is_ignored():
    routes = Routes()
    routes.register(registration(broker_id=1), 0, "x")
    routes.register(registration(broker_id=0), 1, "x")
    assert routes.brokers["a"].addresses == {0: "1.1.1.1:10911"}
    newer = Registration("C", "a", "1.1.1.1:10911", 0, "h", DataVersion(5, 0, 1), T)
    routes.register(newer, 2, "x")
    assert routes.register(registration("9.9.9.9:1"), 3, "y") == MasterAddresses()
    assert routes.brokers["a"].addresses == {0: "1.1.1.1:10911"}
    assert ("C", "9.9.9.9:1") not in routes.live_brokers


def test_a_silent_or_disconnected_broker_is_removed():
    routes = Routes()
    routes.register(registration(timeout=10_000), 0, "x")
    assert routes.expire(10_000) == []
    routes.heartbeat("C", "1.1.1.1:10911", 5_000)
    assert routes.expire(15_000) == []
    [(change, connection)] = routes.expire(15_001)
    assert (change.word, change.broker, connection) == ("gone", "a", "x")
    assert (routes.brokers, routes.topics, routes.clusters, routes.live_brokers) == ({}, {}, {}, {})
    routes.register(registration(), 0, "x")
    assert [item.address for item in routes.disconnected("x")] == ["1.1.1.1:10911"]
    assert routes.disconnected("x") == []
    assert routes.route("Orders") is None


def test_a_topic_stays_while_a_slave_remains():
    routes = Routes()
    routes.register(registration(), 0, "x")
    routes.register(registration("2.2.2.2:10911", 1), 0, "y")
    assert routes.unregister("C", "a", "1.1.1.1:10911") is not None
    assert routes.route("Orders")["brokerDatas"][0]["brokerAddrs"] == {1: "2.2.2.2:10911"}
    assert routes.unregister("C", "a", "1.1.1.1:10911") is None


def test_a_topic_is_deleted_everywhere_or_in_one_cluster():
    routes = Routes()
    routes.register(registration(), 0, "x")
    routes.register(Registration("D", "b", "3.3.3.3:1", 0, "h", DataVersion(), T), 0, "y")
    routes.delete_topic("Orders", "D")
    assert set(routes.topics["Orders"]) == {"a"}
    routes.delete_topic("Orders")
    assert routes.route("Orders") is None
    routes.delete_topic("Orders", "D")


VERSION = {"stateVersion": 0, "timestamp": 1_700_000_000_000, "counter": 3}
MAPPING = {"topic": "T", "bname": "a", "totalQueues": 1, "epoch": 1, "currIdMap": {"0": 0}}


def text(value):
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return struct.pack(">i", len(raw)) + raw


def packed(*topics, servers=(), mappings=()):
    data = text(VERSION) + struct.pack(">i", len(topics)) + b"".join(map(text, topics)) + text(list(servers))
    if mappings:
        data += struct.pack(">i", len(mappings)) + b"".join(map(text, mappings))
    return zlib.compress(data)


def test_plain_and_compressed_bodies_are_equal():
    table = {"T": {"topicName": "T", "readQueueNums": 4, "writeQueueNums": 8, "perm": 6}}
    plain = {
        "topicConfigSerializeWrapper": {
            "topicConfigTable": table,
            "dataVersion": VERSION,
            "topicQueueMappingInfoMap": {"T": MAPPING},
        },
        "filterServerList": ["f:1"],
    }
    expected = (DataVersion(0, VERSION["timestamp"], 3), {"T": Queues(4, 8, 6)}, ("f:1",), {"T": MAPPING})
    assert read_body(json.dumps(plain).encode(), compressed=False) == expected
    assert read_body(packed(b"T 4 8 6 SINGLE_TAG", servers=["f:1"], mappings=[MAPPING]), compressed=True) == expected
    before_5 = packed(b"T 4 8 6 SINGLE_TAG", servers=["f:1"])
    assert read_body(before_5, compressed=True) == (*expected[:3], {})
    assert read_body(b"", compressed=True) == (DataVersion(), {}, (), {})


def test_missing_topic_fields_have_javas_defaults():
    body = {"topicConfigTable": {"T": {}}}  # the form that brokers before 3.0.11 send
    assert read_body(json.dumps(body).encode(), compressed=False)[1] == {"T": Queues(16, 16, 6)}


@pytest.mark.parametrize(
    ("body", "compressed", "message"),
    [
        (b"[]", False, "the body is no object"),
        (b"{", False, "the body is no JSON"),
        (b"no zlib", True, "cannot be unpacked"),
        (zlib.compress(b"\0\0"), True, "the body ends at 2, within a number"),
        (zlib.compress(struct.pack(">i", 99) + b"{}"), True, "a text of the body has 99 bytes, and 2 are there"),
        (packed(b"T four 8 6"), True, "a topic of the body cannot be read: 'T four 8 6'"),
    ],
)
def test_an_invalid_body_is_refused_with_a_message(body, compressed, message):
    with pytest.raises(routes.WrongRequest, match=message):
        read_body(body, compressed=compressed)


def test_a_body_that_unpacks_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(routes, "MAX_BODY_BYTES", 1000)
    with pytest.raises(routes.WrongRequest, match="unpacks to more than 1,000 bytes"):
        read_body(zlib.compress(bytes(5000)), compressed=True)


def test_the_crc_of_the_body_is_checked_if_given():
    check_crc(b"body", 0)
    check_crc(b"body", zlib.crc32(b"body") & 0x7FFFFFFF)
    with pytest.raises(routes.WrongRequest, match="crc32 not match"):
        check_crc(b"body", 5)


def test_parts_of_static_topics_are_in_the_route_and_keep_its_topics():
    routes = Routes(drop_topics=True)
    routes.register(registration(), 0, "x")
    routes.register(registration(topics={"Payments": T["Payments"]}, version=2, mappings={"Orders": MAPPING}), 0, "x")
    assert routes.route("Orders")["topicQueueMappingByBroker"] == {"a": MAPPING}
    assert "topicQueueMappingByBroker" not in routes.route("Payments")
