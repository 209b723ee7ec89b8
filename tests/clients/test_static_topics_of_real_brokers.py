"""Our clients and a static topic of two real brokers, before and after a logical queue moves to the other one."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
import real_cluster
from served_stores import served

from engine.client.consumer import Consumer, ConsumeStatus
from engine.client.consuming import FROM_FIRST, ConsumerConfig
from engine.client.messages import Message
from engine.client.producer import Producer
from engine.client.pulling import PullConsumer
from engine.client.routes import MessageQueue
from engine.codec.queue_mappings import MappedRange, TopicMapping
from engine.remoting.codes import RequestCode
from engine.remoting.connection import Connection, connect
from engine.remoting.frame import Command

pytestmark = [pytest.mark.peer, pytest.mark.clients_full, pytest.mark.timeout(600)]

RELEASE = "5.5.1"
QUEUES = [MessageQueue("T", "__syslo__global__", number) for number in range(2)]
OF_A, OF_B = MappedRange(0, 0, "broker-a", 0), MappedRange(0, 0, "broker-b", 0)
MOVED = (MappedRange(0, 0, "broker-a", 0, end_offset=3), MappedRange(1, 1, "broker-b", 1000))
REGISTERED_S = 3.0


async def declare(address: str, name: str, queues: Mapping[int, tuple[MappedRange, ...]], epoch: int, count: int):
    host, _, port = address.rpartition(":")
    connection = await connect(host, int(port), lambda *_: None)
    mapping = TopicMapping("T", name, 2, epoch, queues)
    fields = {
        "topic": "T",
        "defaultTopic": "TBW102",
        "readQueueNums": str(count),
        "writeQueueNums": str(count),
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
        "force": "true",
    }
    body = json.dumps(mapping.record()).encode()
    answer = await connection.ask(Command(RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC, fields, body=body), 30)
    assert answer.code == 0, answer.remark
    connection.close()


async def consumed(names: str, group: str, count: int, *, orderly: bool) -> list[tuple[int, int, bytes]]:
    """Return logical queue, offset and body of ``count`` messages that a new group gets."""
    received: list[tuple[int, int, bytes]] = []
    all_came = asyncio.Event()

    def listen(messages, _context):
        received.extend((message.queue.queue_id, message.queue_offset, message.body) for message in messages)
        if len(received) >= count:
            all_came.set()
        return ConsumeStatus.SUCCESS

    consumer = Consumer(group, listen, names, ConsumerConfig(start=FROM_FIRST, orderly=orderly))
    consumer.subscribe("T")
    await consumer.start()
    await asyncio.wait_for(all_came.wait(), 60)
    await consumer.stop()
    return sorted(received)


def test_messages_go_to_the_leader_of_their_logical_queue_and_come_from_it(tmp_path: Path) -> None:
    async def scenario(first: str, second: str, names: str) -> None:
        for address, name in ((first, "broker-a"), (second, "broker-b")):
            await declare(address, name, {0: (OF_A,), 1: (OF_B,)}, 1, 1)
        await asyncio.sleep(REGISTERED_S)
        async with Producer("senders", names) as producer:
            assert await producer.queues("T") == tuple(QUEUES)
            results = [await producer.send(Message("T", b"%d" % number)) for number in range(6)]
            assert {(result.queue, result.queue_offset) for result in results} == {
                (queue, offset) for queue in QUEUES for offset in range(3)
            }
            batch = await producer.send([Message("T", b"b"), Message("T", b"c")], queue=QUEUES[1])
            assert (batch.queue, batch.queue_offset) == (QUEUES[1], 3)
        await declare(second, "broker-b", {0: MOVED, 1: (OF_B,)}, 2, 2)
        await declare(first, "broker-a", {0: MOVED, 1: (OF_B,)}, 2, 1)
        await asyncio.sleep(REGISTERED_S)
        async with Producer("later-senders", names) as producer:
            result = await producer.send(Message("T", b"after"), queue=QUEUES[0])
            assert (result.queue, result.queue_offset) == (QUEUES[0], 1000)
        for orderly in (False, True):
            received = await consumed(names, f"readers-{orderly}", 9, orderly=orderly)
            assert [place[:2] for place in received] == [
                *((0, offset) for offset in (0, 1, 2, 1000)),
                *((1, offset) for offset in range(5)),
            ]
        puller = PullConsumer("readers-False", names)
        await puller.start()
        assert [await puller.fetch_offset(queue) for queue in QUEUES] == [1001, 5]
        await puller.stop()

    port, names_port, second_port = (real_cluster.free_port() for _ in range(3))
    names = f"127.0.0.1:{names_port}"
    options = ("--namesrv-port", names_port, "--port", port, "--name", "broker-a", "--small")
    with real_cluster.real(tmp_path / "a", *options, release=RELEASE) as first:
        options = ("--namesrv", names, "--port", second_port, "--name", "broker-b", "--small")
        with real_cluster.real(tmp_path / "b", *options, release=RELEASE) as second:
            asyncio.run(scenario(first["broker"], second["broker"], names))


CROSSED = {0: (MappedRange(0, 1, "broker-a", 0),), 1: (MappedRange(0, 0, "broker-a", 0),)}
"""Logical queue 0 is the broker's queue 1, and the reverse."""
OF_BROKER = MappedRange(0, 0, "broker-a", 0)


class _Asker:
    """Asks a broker, and keeps what it answers, without times and addresses."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.answers: list[tuple[object, ...]] = []

    async def ask(self, code: int, **fields: object) -> Command:
        body = fields.pop("body", b"")
        assert isinstance(body, bytes)
        given = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in fields.items()}
        answer = await self._connection.ask(Command(code, given, body=body), 30)
        shown = {name: answer.fields[name] for name in SHOWN_FIELDS if name in answer.fields}
        for name in ("startOffsetInfo", "msgOffsetInfo"):  # a pop of all queues begins with any of them
            shown |= {name: ";".join(sorted(shown[name].split(";")))} if name in shown else {}
        words = re.sub(r"[0-9A-F]{32}|, response.*|\d{5,}|, [^,]*Info=.*", "…", answer.remark or "")
        self.answers.append((code, answer.code, words, shown))
        return answer


SHOWN_FIELDS = (
    "queueId",
    "queueOffset",
    "offset",
    "restNum",
    "startOffsetInfo",
    "msgOffsetInfo",
    "hasMsg",
    "pollingFull",
)


async def ask_about_halves_and_pops(address: str) -> list[tuple[object, ...]]:
    """Declare the crossed topic; send halves, end them, pop, acknowledge and peek, by logical queue ids and others."""
    host, _, port = address.rpartition(":")
    connection = await connect(host, int(port), lambda *_: None)
    asker = _Asker(connection)
    await declare(address, "broker-a", CROSSED, 1, 2)
    group = {"consumerGroup": "poppers", "topic": "T"}

    async def send(queue_id: int, body: bytes, *, is_half: bool = False) -> Command:
        key = f"{queue_id:02}{body.hex():0>30}"[:32].upper()
        marks = f"UNIQ_KEY\x01{key}\x02WAIT\x01true\x02"
        if is_half:
            marks += "TRAN_MSG\x01true\x02PGROUP\x01senders\x02"
        return await asker.ask(
            RequestCode.SEND_MESSAGE,
            producerGroup="senders",
            topic="T",
            defaultTopic="TBW102",
            defaultTopicQueueNums=4,
            queueId=queue_id,
            sysFlag=4 if is_half else 0,
            bornTimestamp=1_700_000_000_000,
            flag=0,
            properties=marks,
            reconsumeTimes=0,
            unitMode=False,
            batch=False,
            body=body,
        )

    async def pop(queue_id: int, count: int = 32, **more: object) -> Command:
        fields = {"maxMsgNums": count, "invisibleTime": 60_000, "pollTime": 0, "bornTime": 0, "initMode": 0}
        return await asker.ask(RequestCode.POP_MESSAGE, **group, queueId=queue_id, **{**fields, "order": False, **more})

    for number in range(3):
        half = await send(0, b"half-%d" % number, is_half=True)
        await send(1, b"plain-%d" % number)
        await asker.ask(
            RequestCode.END_TRANSACTION,
            topic="T",
            producerGroup="senders",
            tranStateTableOffset=half.fields["queueOffset"],
            commitLogOffset=int(half.fields["msgId"][-16:], 16),
            commitOrRollback=(8, 12, 8)[number],
            fromTransactionCheck=False,
            msgId="AA",
            transactionId="",
        )
    await asyncio.sleep(2)
    for queue_id in (0, 1):
        await asker.ask(RequestCode.GET_MAX_OFFSET, topic="T", queueId=queue_id)
        await asker.ask(RequestCode.GET_MAX_OFFSET, topic="T", queueId=queue_id, lo=False)
        await asker.ask(RequestCode.NOTIFICATION, **group, queueId=queue_id, pollTime=0, bornTime=0)
        await asker.ask(RequestCode.PEEK_MESSAGE, **group, queueId=queue_id, maxMsgNums=2)
    first = await pop(0, 1)
    await pop(7)
    await pop(1, lo=False, count=1)
    info = f"0 {first.fields['popTime']} 60000 {first.fields['reviveQid']} 0 broker-a 0 0"
    held = {**group, "extraInfo": info, "offset": 0}
    await asker.ask(RequestCode.ACK_MESSAGE, **held, queueId=0)
    await asker.ask(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, **held, queueId=0, invisibleTime=9_000)
    await asker.ask(RequestCode.ACK_MESSAGE, **held, queueId=7)
    await pop(-1)
    wish = {"topic": "T", "consumerGroup": "poppers", "clientId": "c", "strategyName": "AVG"}
    body = json.dumps({**wish, "messageModel": "BROADCASTING"}).encode()
    answer = await connection.ask(Command(RequestCode.QUERY_ASSIGNMENT, {}, body=body), 30)
    queues = [row["messageQueue"] for row in json.loads(bytes(answer.body)).get("messageQueueAssignments") or []]
    asker.answers.append(tuple(sorted((queue["brokerName"], queue["queueId"]) for queue in queues)))
    connection.close()
    return asker.answers


def test_transactions_and_pops_of_a_static_topic_are_answered_as_by_a_real_broker(tmp_path: Path) -> None:
    """Neither knows of logical queues: a pop names the broker's own queues, and a half message goes to the queue that
    its logical queue leads to.
    """
    port, names_port = real_cluster.free_port(), real_cluster.free_port()
    options = ("--namesrv-port", names_port, "--port", port, "--name", "broker-a", "--small")
    with real_cluster.real(tmp_path / "a", *options, release=RELEASE) as addresses:
        theirs = asyncio.run(ask_about_halves_and_pops(addresses["broker"]))
    conf = tmp_path / "broker.conf"
    conf.write_text("brokerName=broker-a\nbrokerIP1=127.0.0.1\n")
    with served(tmp_path / "ours" / "store", "--config", str(conf), "--release", "5.5") as (_, line):
        ours = asyncio.run(ask_about_halves_and_pops(line["broker"]))
    for number, (answer, expected) in enumerate(zip(ours, theirs, strict=True)):
        assert answer == expected, number
