"""Our clients and a static topic of two real brokers, before and after a logical queue moves to the other one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import real_cluster

from engine.client.consumer import Consumer, ConsumeStatus
from engine.client.consuming import FROM_FIRST, ConsumerConfig
from engine.client.messages import Message
from engine.client.producer import Producer
from engine.client.pulling import PullConsumer
from engine.client.routes import MessageQueue
from engine.codec.queue_mappings import MappedRange, TopicMapping
from engine.remoting.codes import RequestCode
from engine.remoting.connection import connect
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
