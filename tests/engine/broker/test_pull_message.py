"""Held pulls: listed by queue until they are answered or their connection ends."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from brokers import BrokerClient, asking_broker, run_scenario, units

from engine import releases
from engine.broker.pull_message import HeldPull, HeldPulls
from engine.broker.server import ListeningBroker
from engine.codec.java import jhash
from engine.codec.message import decode
from engine.message_store import MessageStore
from engine.remoting.codes import see
from engine.remoting.connection import bind
from engine.remoting.frame import Command


def pull(connection, queue=("T", 0), offset=5):
    return HeldPull(Command(11), connection, queue, offset, 10_000, lambda: None)


def test_a_held_pull_waits_at_its_queue_until_it_is_answered():
    pulls, item, two = HeldPulls(), pull("a"), pull("b")
    for each in (item, two, pull("a", ("T", 1))):
        pulls.hold(each)
    assert (len(pulls), pulls.queues) == (3, [("T", 0), ("T", 1)])
    assert pulls.at(("T", 0)) == [item, two]
    pulls.release(item)
    pulls.release(item)
    assert (pulls.at(("T", 0)), len(list(pulls))) == ([two], 2)
    pulls.release(two)
    assert pulls.queues == [("T", 1)]
    assert pulls.at(("T", 0)) == []


def test_pulls_of_a_closed_connection_are_dropped():
    pulls, other_pull = HeldPulls(), pull("b")
    for held_pull in (pull("a"), pull("a", ("T", 1)), other_pull):
        pulls.hold(held_pull)
    pulls.forget("a")
    pulls.forget("a")
    assert list(pulls) == [other_pull]


def test_held_pulls_are_counted_by_group():
    pulls = HeldPulls()
    for number, group in enumerate(("readers", "readers", "audit")):
        item = pull(number)
        item.request.fields["consumerGroup"] = group
        pulls.hold(item)
    pulls.hold(pull("x", ("T", 1)))
    assert pulls.by_group() == {("T", 0): {"readers": 2, "audit": 1}, ("T", 1): {"": 1}}


def bodies(answer_body: bytes) -> list[bytes]:
    actual_bodies, position = [], 0
    while position < len(answer_body):
        unit = decode(answer_body, position, 0)
        actual_bodies.append(unit.body)
        position += unit.size
    return actual_bodies


def test_a_pull_is_answered_with_the_units_as_stored(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            for body in (b"one", b"two", b"three"):
                await client.send("Orders", body)
            client.server.broker.store.wait_dispatched()
            answer = await client.pull("Orders", 1)
            assert answer.code == 0
            assert bodies(bytes(answer.body)) == [b"two", b"three"]
            assert (answer.fields["nextBeginOffset"], answer.fields["maxOffset"]) == ("3", "3")

    run_scenario(scenario)


def test_a_pull_by_tag_gets_only_its_tags(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            for body, tag in ((b"one", "paid"), (b"two", "open"), (b"three", "paid")):
                await client.send("Orders", body, properties=f"TAGS\x01{tag}\x02")
            client.server.broker.store.wait_dispatched()
            answer = await client.pull("Orders", 0, subscription="paid || late")
            assert bodies(bytes(answer.body)) == [b"one", b"three"]

    run_scenario(scenario)


GO_HASHES = {"paid": 3433164, "标签": -1853217173}
"""What RocketMQ's Go client has for these tags: it goes over bytes, where Java goes over UTF-16."""


def test_tags_are_compared_by_the_clients_hashes(tmp_path: Path) -> None:
    """The Go client sends its own tag hashes in heartbeats. A real broker compares these, so a Go group gets no
    messages of a non-ASCII tag. Our broker computed the hash itself and delivered such messages.
    """

    def beat(code_set: list[int], expression: str, **options: object) -> bytes:
        expected = {
            "topic": "Orders",
            "subString": expression,
            "tagsSet": ["paid", "标签"],
            "codeSet": code_set,
            "subVersion": 0,
            "expressionType": "TAG",
            "classFilterMode": False,
            **options,
        }
        consumer = {
            "groupName": "readers",
            "consumeType": "CONSUME_PASSIVELY",
            "messageModel": "CLUSTERING",
            "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
            "subscriptionDataSet": [expected],
        }
        return json.dumps({"clientID": "one", "consumerDataSet": [consumer], "producerDataSet": []}).encode()

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            for body, tag in ((b"one", "paid"), (b"two", "标签"), (b"three", "paid"), (b"four", "open")):
                await client.send("Orders", body, properties=f"TAGS\x01{tag}\x02")
            client.server.broker.store.wait_dispatched()

            async def pulled(heartbeat: bytes) -> list[bytes]:
                await client.ask(35, clientID="one", consumerGroup="readers")
                assert (await client.ask(34, heartbeat)).code == 0
                return bodies(bytes((await client.pull("Orders", 0, sysFlag=0, subscription=None)).body))

            assert await pulled(beat(list(GO_HASHES.values()), "paid || 标签")) == [b"one", b"three"]
            assert await pulled(beat([jhash("标签")], "paid || 标签")) == [b"two"]
            assert await pulled(beat([], "*")) == [b"one", b"two", b"three", b"four"]
            assert await pulled(beat([], "paid", classFilterMode=True)) == [b"one", b"two", b"three", b"four"]
            connections = await client.ask(203, consumerGroup="readers")
            table = json.loads(bytes(connections.body))["subscriptionTable"]
            assert (table["Orders"]["tagsSet"], table["Orders"]["codeSet"]) == (["paid", "标签"], [])

    run_scenario(scenario)


def test_a_held_pull_is_answered_by_the_next_message(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await client.send("Orders", b"one")
            client.server.broker.store.wait_dispatched()
            task = asyncio.create_task(client.pull("Orders", 1, sysFlag=6, suspendTimeoutMillis=30_000))
            while not len(client.server.broker.held):
                await asyncio.sleep(0.005)
            await client.send("Orders", b"two")
            assert bodies(bytes((await task).body)) == [b"two"]
            assert not len(client.server.broker.held)

    run_scenario(scenario)


def test_a_held_pull_of_a_connection_that_ended_is_forgotten(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await client.send("Orders", b"one")
            client.server.broker.store.wait_dispatched()
            task = asyncio.create_task(client.pull("Orders", 1, sysFlag=6, suspendTimeoutMillis=30_000))
            while not len(client.server.broker.held):
                await asyncio.sleep(0.005)
            client.close()
            assert isinstance((await asyncio.gather(task, return_exceptions=True))[0], ConnectionError)
            while len(client.server.broker.held):
                await asyncio.sleep(0.005)

    run_scenario(scenario)


def test_held_pulls_of_a_congested_client_wait_until_it_reads(tmp_path: Path) -> None:
    """A client held a hundred pulls at one queue and read no answers. One message was written a hundred times into its
    connection's buffer.
    """

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await client.send("Orders", b"one")
            broker = client.server.broker
            broker.store.wait_dispatched()
            deaf = BrokerClient(client.server)
            await deaf.open()
            tasks = [
                asyncio.create_task(deaf.pull("Orders", 1, sysFlag=6, suspendTimeoutMillis=60_000)) for _ in range(100)
            ]
            while len(broker.held) < 100:
                await asyncio.sleep(0.005)
            deaf._connection._transport.pause_reading()
            body = bytes(1 << 20)
            await client.send("Orders", body)
            while len(broker.held) == 100:
                await asyncio.sleep(0.005)
            assert (await client.pull("Orders", 1)).code == 0
            assert client.server._server.memory.total < 8 << 20
            assert len(broker.held) > 50
            deaf._connection._transport.resume_reading()
            answers = await asyncio.gather(*tasks)
            assert all(bodies(bytes(answer.body)) == [body] for answer in answers)
            deaf.close()

    run_scenario(scenario)


def test_a_pull_without_permission_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await client.send("Orders", b"one")
            assert (await client.pull("Nowhere", 0)).code == 17
            assert (await client.pull("Orders", 0, queue_id=9)).code == 29
            assert (await client.pull("Orders", 0, sysFlag=0)).code == 24

    run_scenario(scenario)


def test_beyond_the_end_the_offset_has_moved(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await client.send("Orders", b"one")
            client.server.broker.store.wait_dispatched()
            answer = await client.pull("Orders", 7)
            assert (answer.code, answer.fields["nextBeginOffset"]) == (21, "1")

    run_scenario(scenario)


def test_before_5_a_message_reports_an_illegal_offset(tmp_path: Path) -> None:
    async def scenario() -> None:
        with MessageStore(tmp_path, release="4.9") as store, bind("127.0.0.1", 0) as position:
            async with ListeningBroker(store, listening_socket=position) as server:
                client = BrokerClient(server)
                await client.open()
                await client.send("Orders", b"one")
                store.wait_dispatched()
                assert (await client.pull("Orders", 7)).code == 21
                (event,) = units(client, "OFFSET_MOVED_EVENT")
                queue = {"brokerName": "broker-a", "queueId": 0, "topic": "Orders"}
                assert json.loads(event.body) == {
                    "consumerGroup": "readers",
                    "messageQueue": queue,
                    "offsetNew": 1,
                    "offsetRequest": 7,
                }
                assert event.properties_raw == b"KEYS\x01readers\x02DELAY\x010\x02TAGS\x01readers"
                client.close()

    run_scenario(scenario)


def test_a_pull_without_permission_is_refused_with_the_message_of_5(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await client.send("Orders", b"one")
            client.server.broker.store.wait_dispatched()
            fields = (await client.pull("Orders", 0)).fields
            assert (fields["groupSysFlag"], fields["topicSysFlag"]) == ("0", "0")
            closed = {"topic": "Closed", "readQueueNums": 1, "writeQueueNums": 1, "perm": 2}
            assert (await client.ask(17, **closed)).code == 0
            refused = await client.pull("Closed", 0)
            assert (refused.code, refused.fields) == (16, {"forbiddenType": "3"})
            odd = await client.pull("Orders", 0, expressionType="ODD")
            assert (odd.code, odd.remark) == (1, "The broker does not support consumer to filter message by ODD")
            absent = await client.pull("Orders", 0, sysFlag=0)
            assert (absent.code, absent.remark) == (24, "the consumer's group info not exist" + see(releases.NEWEST))

    run_scenario(scenario)
