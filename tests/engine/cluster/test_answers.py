"""Bodies as a broker of 5.3.3 writes them, and invalid bodies."""

from __future__ import annotations

import pytest

from engine.cluster import answers
from engine.cluster.state import Client, Queue, QueueEnds
from engine.remoting.answers import UnexpectedAnswer

CLUSTER = (
    b'{"brokerAddrTable":{"broker-a":{"brokerAddrs":{0:"127.0.0.1:10911",1:"127.0.0.1:10921"},"brokerName":"broker-a",'
    b'"cluster":"DefaultCluster","enableActingMaster":false}},"clusterAddrTable":{"DefaultCluster":["broker-a"]}}'
)
STATS = (
    b'{"offsetTable":{{"brokerName":"broker-a","queueId":1,"topic":"T"}:{"lastUpdateTimestamp":1700000000000,'
    b'"maxOffset":12,"minOffset":2}},"topicPutTps":0.0}'
)
RUNNING = (
    b'{"jstack":"","mqTable":{{"brokerName":"broker-a","queueId":1,"topic":"T"}:{"cachedMsgCount":0,"droped":false},'
    b'{"brokerName":"broker-a","queueId":2,"topic":"T"}:{"droped":true}},"properties":{},"statusTable":{}}'
)
GROUP = (
    b'{"connectionSet":[{"clientAddr":"127.0.0.1:5","clientId":"c@1","language":"JAVA","version":479}],'
    b'"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING",'
    b'"subscriptionTable":{"T":{"subString":"a || b","topic":"T"}}}'
)
PRODUCERS = (
    b'{"data":{"shop":[{"clientId":"p@1","language":"GO","lastUpdateTimestamp":1,"remoteIP":"/127.0.0.1:7",'
    b'"version":3}]}}'
)


def test_brokers_of_a_cluster():
    master, slave = answers.brokers(CLUSTER)
    assert (master.name, master.broker_id, master.address, master.is_master) == ("broker-a", 0, "127.0.0.1:10911", True)
    assert (slave.broker_id, slave.address, slave.cluster) == (1, "127.0.0.1:10921", "DefaultCluster")


def test_queue_ends_have_objects_as_keys():
    assert answers.queue_ends(STATS) == {Queue("T", "broker-a", 1): QueueEnds(2, 12, 1_700_000_000_000)}
    assert answers.queue_ends(b'{"offsetTable":{"no queue":{"maxOffset":1},7:{}}}') == {}


def test_a_consumer_owns_the_queues_it_has_not_dropped():
    assert answers.owned_queues(RUNNING) == {Queue("T", "broker-a", 1)}


def test_a_group_and_its_producers():
    group = answers.consumer_group(GROUP, "g")
    assert group.clients == (Client("c@1", "127.0.0.1:5", "JAVA", 479),)
    assert (group.model, dict(group.subscriptions)) == ("CLUSTERING", {"T": "a || b"})
    assert answers.producers(PRODUCERS) == {"shop": (Client("p@1", "127.0.0.1:7", "GO", 3),)}


def test_held_pulls_are_read_if_the_broker_reports_them():
    queue = Queue("T", "broker-a", 1)
    reported = {"heldPulls": '[["T",1,"g",2],["T",1,"h",1],["T"],7]'}
    assert answers.held_pulls(reported, "broker-a") == {queue: {"g": 2, "h": 1}}
    assert answers.held_pulls({"heldPulls": "[]"}, "broker-a") == {}
    assert answers.held_pulls({}, "broker-a") is None
    assert answers.held_pulls({"heldPulls": "7"}, "broker-a") is None


def test_tables_of_a_broker():
    assert answers.topic_names(b'{"topicConfigTable":{"T":{"topicName":"T"}}}') == ["T"]
    assert answers.group_names(b'{"subscriptionGroupTable":{"g":{"groupName":"g"}}}') == ["g"]
    assert answers.group_offsets(b'{"offsetTable":{"T@g":{0:5},"T@g@0":{0:1},"odd":{}}}', "a") == {
        "g": {Queue("T", "a", 0): 5}
    }
    assert answers.runtime(b'{"table":{"brokerVersionDesc":"V5_3_3"}}') == {"brokerVersionDesc": "V5_3_3"}


@pytest.mark.parametrize("body", [b"", b"[]", b"5", b"<html>"])
def test_a_body_without_an_object(body: bytes):
    with pytest.raises(UnexpectedAnswer):
        answers.queue_ends(body)
