"""The name server's tables: registrations, removals, and the routes that follow from them."""

from __future__ import annotations

from engine.namesrv.routes import DataVersion, MasterAddresses, Queues, Registration, Routes

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
    routes.register(registration(timeout_ms=10_000), 0, "x")
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


MAPPING = {"topic": "T", "bname": "a", "totalQueues": 1, "epoch": 1, "currIdMap": {"0": 0}}


def test_parts_of_static_topics_are_in_the_route_and_keep_its_topics():
    routes = Routes(drop_topics=True)
    routes.register(registration(), 0, "x")
    routes.register(registration(topics={"Payments": T["Payments"]}, version=2, mappings={"Orders": MAPPING}), 0, "x")
    assert routes.route("Orders")["topicQueueMappingByBroker"] == {"a": MAPPING}
    assert "topicQueueMappingByBroker" not in routes.route("Payments")
