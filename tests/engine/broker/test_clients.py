"""Connected clients: groups, their members and subscriptions; nothing remains of a client that disconnects."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, ClassVar

import pytest
from brokers import BrokerClient, asking_broker, run_scenario, units

from engine.broker.clients import Clients, ConsumerGroup, Member
from engine.broker.config import BrokerConfig
from engine.codec.message import decode
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.remoting.subscriptions import Subscription


class Link(str):
    """A named connection without unread output."""

    __slots__ = ()
    is_congested = False


def member(name, last_seen_ms=0):
    return Member(name, "JAVA", 479, last_seen_ms)


def group_subscribed_to(*topics, version=1):
    return ConsumerGroup("g", subscriptions={topic: Subscription(topic, version=version) for topic in topics})


@pytest.fixture
def clients():
    return Clients()


def test_members_are_notified_of_a_new_member_and_of_a_changed_subscription(clients):
    assert clients.add_consumer(group_subscribed_to("T"), "link-1", member("one"))
    assert not clients.add_consumer(group_subscribed_to("T"), "link-1", member("one"))
    assert clients.add_consumer(group_subscribed_to("T"), "link-2", member("two"))
    assert clients.add_consumer(group_subscribed_to("T", "U"), "link-2", member("two"))
    assert clients.consumers["g"].client_ids == ["one", "two"]
    assert clients.subscription("g", "U").topic == "U"
    assert clients.add_consumer(group_subscribed_to("T"), "link-2", member("two"))
    assert clients.subscription("g", "U") is None
    assert clients.subscription("h", "T") is None


def test_an_older_subscription_does_not_replace_a_newer_one(clients):
    clients.add_consumer(group_subscribed_to("T", version=5), "link-1", member("one"))
    clients.add_consumer(group_subscribed_to("T", version=4), "link-2", member("two"))
    assert clients.subscription("g", "T").version == 5


def test_a_closed_connection_leaves_its_groups(clients):
    removed = []
    clients.emptied = removed.append
    clients.add_consumer(group_subscribed_to("T"), "link-1", member("one"))
    clients.add_consumer(group_subscribed_to("T"), "link-2", member("two"))
    clients.add_producer("p", Link("link-1"), member("one"))
    assert (clients.producer_of("p"), clients.producer("one")) == ("link-1", "link-1")
    assert [group.name for group in clients.disconnected("link-1")] == ["g"]
    assert (clients.producer_of("p"), clients.producers) == (None, {})
    assert clients.disconnected("link-2") == []
    assert (removed, clients.consumers) == (["g"], {})


def test_a_client_without_heartbeats_is_silent_unless_its_link_has_an_active_client(clients):
    clients.add_producer("p", Link("link-1"), member("one", last_seen_ms=10))
    clients.add_consumer(group_subscribed_to("T"), "link-1", member("one", last_seen_ms=90))
    clients.add_producer("p", Link("link-2"), member("two", last_seen_ms=20))
    assert clients.silent(50) == ["link-2"]


def beat(client_id: str, *topics: str, group: str = "readers") -> bytes:
    subscriptions = [{"topic": topic, "subString": "*", "subVersion": 1, "expressionType": "TAG"} for topic in topics]
    consumer = {
        "groupName": group,
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "subscriptionDataSet": subscriptions,
    }
    return json.dumps({"clientID": client_id, "consumerDataSet": [consumer], "producerDataSet": []}).encode()


def test_members_are_listed_and_notified_of_each_other(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as first_client:
            second_client = BrokerClient(first_client.server)
            await second_client.open()
            assert (await first_client.ask(38, consumerGroup="readers")).code == 1
            assert (await first_client.ask(34, beat("one", "Orders"))).code == 0
            assert (await second_client.ask(34, beat("two", "Orders"))).code == 0
            listed = json.loads(bytes((await first_client.ask(38, consumerGroup="readers")).body))
            assert listed == {"consumerIdList": ["one", "two"]}
            told_before = len(first_client.requests)
            assert {command.code for command in first_client.requests} == {40}
            second_client.close()
            while len(first_client.requests) == told_before:
                await asyncio.sleep(0.005)
            listed = json.loads(bytes((await first_client.ask(38, consumerGroup="readers")).body))
            assert listed == {"consumerIdList": ["one"]}
            assert (await first_client.ask(35, clientID="one", consumerGroup="readers")).code == 0
            assert (await first_client.ask(38, consumerGroup="readers")).code == 1

    run_scenario(scenario)


def test_a_group_gets_its_retry_topic(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await client.ask(34, beat("one", "Orders"))
            assert (await client.ask(351, topic="%RETRY%readers")).code == 0

    run_scenario(scenario)


def test_subscriptions_by_sql_are_checked_before_they_apply(tmp_path: Path) -> None:
    def subscription_body(kind: str, text: str) -> bytes:
        reported = {"topic": "Orders", "subString": text, "expressionType": kind, "subVersion": 1}
        return json.dumps({"clientId": "one", "group": "readers", "subscriptionData": reported}).encode()

    async def off() -> None:
        async with asking_broker(tmp_path / "off") as client:
            assert (await client.ask(46, subscription_body("TAG", "a"))).code == 0
            answer = await client.ask(46, subscription_body("SQL92", "a > 1"))
            assert (answer.code, answer.remark) == (
                1,
                "The broker does not support consumer to filter message by SQL92",
            )

    async def on() -> None:
        async with asking_broker(tmp_path / "on", BrokerConfig(property_filter=True)) as client:
            assert (await client.ask(46, subscription_body("SQL92", "a > 1"))).code == 0
            assert (await client.ask(46, subscription_body("SQL92", "a >"))).code == 23

    run_scenario(off)
    run_scenario(on)


BEAT = {
    "clientID": "c@1",
    "producerDataSet": [],
    "consumerDataSet": [{"groupName": "readers", "subscriptionDataSet": [{"topic": "Orders", "subString": "*"}]}],
}
READS = b'{"messageQueueTable":{{"brokerName":"broker-a","queueId":0,"topic":"Orders"}:5}}'


class Consumer(BrokerClient):
    """A client that answers each request with the body prepared for its code."""

    bodies: ClassVar = {221: READS, 307: b'{"jstack":"none"}', 309: b'{"consumeResult":"CR_SUCCESS"}'}

    def _hear(self, request: Command, connection: Connection) -> Command | None:
        self.requests.append(request)
        return answer_to(request, self.response_code or 0, body=self.bodies.get(request.code, b""))


async def consumer(client: BrokerClient) -> Consumer:
    item = Consumer(client.server)
    await item.open()
    assert (await item.ask(34, json.dumps(BEAT).encode())).code == 0
    return item


def test_a_consumer_reports_its_running_information(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            item = await consumer(client)
            answer = await client.ask(307, consumerGroup="readers", clientId="c@1", jstackEnable=True)
            assert (answer.code, bytes(answer.body)) == (0, b'{"jstack":"none"}')
            assert item.requests[-1].fields["jstackEnable"] == "true"
            item.response_code = 1
            assert (await client.ask(307, consumerGroup="readers", clientId="c@1")).code == 1
            response = await client.ask(307, consumerGroup="readers", clientId="c@2")
            assert (response.code, response.remark) == (1, "The Consumer <readers> <c@2> not online")
            item.close()

    run_scenario(scenario)


def test_a_consumer_consumes_one_message_on_request(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            item = await consumer(client)
            await client.send("Orders", b"tea")
            (unit,) = units(client, "Orders")
            answer = await client.ask(309, consumerGroup="readers", clientId="c@1", msgId=unit.offset_msg_id)
            assert bytes(answer.body) == b'{"consumeResult":"CR_SUCCESS"}'
            request = item.requests[-1]
            assert decode(bytes(request.body), 0, 0).body == b"tea"
            assert request.fields["brokerName"] == client.server.broker.config.broker_name
            wrong = await client.ask(309, consumerGroup="readers", clientId="c@1", msgId="nonsense")
            assert (wrong.code, wrong.remark) == (1, "no message id: nonsense")
            item.close()

    run_scenario(scenario)


def test_members_report_their_queue_offsets(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            member_client = await consumer(client)
            table = b'{{"brokerName":"broker-a","queueId":0,"topic":"Orders"}:5}'
            answer = await client.ask(223, topic="Orders", group="readers")
            assert bytes(answer.body) == b'{"consumerTable":{"c@1":' + table + b'},"messageQueueTable":{}}'
            other_address_answer = await client.ask(223, topic="Orders", group="readers", clientAddr="c@2")
            assert bytes(other_address_answer.body) == b'{"consumerTable":{},"messageQueueTable":{}}'
            unknown_group_answer = await client.ask(223, topic="Orders", group="gone")
            assert (unknown_group_answer.code, unknown_group_answer.remark) == (
                1,
                "No Any Consumer online in the consumer group: [gone]",
            )
            member_client.close()

    run_scenario(scenario)


HELLO = {
    "clientID": "one",
    "producerDataSet": [{"groupName": "senders"}],
    "consumerDataSet": [
        {
            "groupName": "readers",
            "consumeType": "CONSUME_PASSIVELY",
            "messageModel": "CLUSTERING",
            "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
            "subscriptionDataSet": [Subscription.of("Orders", "a || b", 7).record()],
        }
    ],
}


async def body(client: BrokerClient, code: int, **fields: object) -> dict[str, Any]:
    answer = await client.ask(code, **fields)
    assert answer.code == 0
    read: dict[str, Any] = json.loads(bytes(answer.body))
    return read


def test_connections_of_groups(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            nobody = await client.ask(203, consumerGroup="readers")
            assert (nobody.code, nobody.remark) == (206, "the consumer group[readers] not online")
            nobody = await client.ask(204, producerGroup="senders")
            assert (nobody.code, nobody.remark) == (1, "the producer group[senders] not exist")
            await client.ask(34, json.dumps(HELLO).encode())
            record = await body(client, 203, consumerGroup="readers")
            assert [(row["clientId"], row["language"]) for row in record["connectionSet"]] == [("one", "JAVA")]
            assert (record["consumeType"], record["messageModel"]) == ("CONSUME_PASSIVELY", "CLUSTERING")
            assert record["subscriptionTable"]["Orders"]["tagsSet"] == ["a", "b"]
            assert len((await body(client, 204, producerGroup="senders"))["connectionSet"]) == 1
            (sender,) = (await body(client, 328))["data"]["senders"]
            assert (sender["clientId"], sender["language"]) == ("one", "JAVA")

    run_scenario(scenario)


def test_consumers_are_listed_by_topic(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await client.send("Orders", b"one")
            client.server.broker.store.tables.create_group("gone")
            await client.ask(15, consumerGroup="gone", topic="Orders", queueId=0, commitOffset=1)
            await client.ask(34, json.dumps(HELLO).encode())
            assert (await body(client, 300, topic="Orders"))["groupList"] == ["readers", "gone"]
            assert (await body(client, 343, group="gone"))["topicList"] == ["Orders"]

    run_scenario(scenario)
