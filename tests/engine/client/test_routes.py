"""Routes as name servers write them, and the queues for sending and reading."""

from __future__ import annotations

import pytest

from engine.client.routes import MessageQueue, TopicRoute, queue_order, read_route
from engine.remoting.answers import UnexpectedAnswer

BARE = (
    b'{"brokerDatas":[{"brokerAddrs":{0:"127.0.0.1:10911",1:"127.0.0.1:10921"},"brokerName":"broker-b","cluster":"C"},'
    b'{"brokerAddrs":{1:"127.0.0.1:10931"},"brokerName":"broker-a","cluster":"C"}],"filterServerTable":{},"queueDatas":['
    b'{"brokerName":"broker-b","perm":6,"readQueueNums":3,"topicSysFlag":0,"writeQueueNums":2},'
    b'{"brokerName":"broker-a","perm":6,"readQueueNums":1,"topicSysFlag":0,"writeQueueNums":1}]}'
)


@pytest.mark.parametrize("body", [BARE, BARE.replace(b"{0:", b'{"0":').replace(b",1:", b',"1":')])
def test_both_spellings_are_read(body: bytes) -> None:
    route = read_route("T", body)
    assert route.address("broker-b") == "127.0.0.1:10911"
    assert route.address("broker-b", 1) == "127.0.0.1:10921"
    assert route.address("broker-b", 7) == "127.0.0.1:10911"
    assert route.address("nobody") is None


def test_only_brokers_with_a_master_are_sent_to_and_all_are_read() -> None:
    route = read_route("T", BARE)
    assert route.publish_queues == (MessageQueue("T", "broker-b", 0), MessageQueue("T", "broker-b", 1))
    assert [(queue.broker, queue.queue_id) for queue in route.subscribe_queues] == [
        ("broker-a", 0),
        ("broker-b", 0),
        ("broker-b", 1),
        ("broker-b", 2),
    ]
    assert route.address("broker-a") is None


def test_permissions_are_respected() -> None:
    route = read_route("T", BARE.replace(b'"perm":6', b'"perm":4'))
    assert route.publish_queues == ()
    assert len(read_route("T", BARE.replace(b'"perm":6', b'"perm":2')).subscribe_queues) == 0


def test_an_order_topic_lists_its_own_queues() -> None:
    body = BARE[:-1] + b',"orderTopicConf":"broker-b:1;broker-a:2"}'
    queues = read_route("T", body).publish_queues
    assert [(queue.broker, queue.queue_id) for queue in queues] == [("broker-b", 0), ("broker-a", 0), ("broker-a", 1)]


def test_a_new_topic_gets_the_smaller_of_wanted_and_template_queues() -> None:
    assert len(read_route("TBW102", BARE).for_new_topic("T", 1).publish_queues) == 1
    assert len(read_route("TBW102", BARE).for_new_topic("T", 8).publish_queues) == 2


def test_queues_sort_as_java_sorts_them() -> None:
    astral, replacement = MessageQueue("\U0001f600", "b", 0), MessageQueue("\ufffd", "b", 0)
    assert sorted([replacement, astral], key=queue_order) == [astral, replacement]  # surrogates stand before U+FFFD


@pytest.mark.parametrize(
    "body", [b"", b"[1]", b'{"brokerDatas":5}', b'{"brokerDatas":[{"brokerName":"a","brokerAddrs":null}]}']
)
def test_a_body_without_a_route(body: bytes) -> None:
    with pytest.raises(UnexpectedAnswer):
        read_route("T", body)
    assert TopicRoute("T").publish_queues == ()


def mapping(broker: str, epoch: int, led: str, total: int = 3, scope: str = "__global__") -> str:
    return (
        f'"{broker}":{{"bname":"{broker}","currIdMap":{led},"dirty":false,"epoch":{epoch},"scope":"{scope}",'
        f'"topic":"T","totalQueues":{total}}}'
    )


def test_a_static_topic_has_logical_queues_of_the_brokers_that_lead_them() -> None:
    """Of two brokers that lead a queue the newer mapping counts, as in Java; a queue that none leads is listed."""
    mappings = ",".join((mapping("broker-a", 1, "{0:0,1:1}"), mapping("broker-b", 2, '{"0":4}')))
    route = read_route("T", BARE[:-1] + f',"topicQueueMappingByBroker":{{{mappings}}}}}'.encode())
    queues = [MessageQueue("T", "__syslo__global__", number) for number in range(3)]
    assert route.publish_queues == route.subscribe_queues == tuple(queues)
    assert [route.leaders[queue] for queue in queues] == ["broker-b", "broker-a", "__syslo__none__"]
    without = BARE[:-1] + b',"topicQueueMappingByBroker":null}'
    assert read_route("T", without).leaders == {}
