"""Producers and consumers of static topics: logical queues, each led by one broker, before and after one moves."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from brokers import run_scenario
from static_topic_brokers import FIRST, declare, moved_queue, two_brokers

from engine.client.consumer import Consumer, ConsumeStatus
from engine.client.consuming import FROM_FIRST, ConsumerConfig
from engine.client.errors import ClientError
from engine.client.messages import Message
from engine.client.producer import Producer
from engine.client.pulling import PullConsumer
from engine.client.routes import MessageQueue
from engine.codec.queue_mappings import MappedRange

QUEUES = [MessageQueue("T", "__syslo__global__", number) for number in range(2)]


def test_a_producer_sends_to_the_broker_that_leads_a_logical_queue(tmp_path: Path) -> None:
    """It sent to every broker of the route, and those that do not lead the queue refused with 501."""

    async def scenario() -> None:
        async with two_brokers(tmp_path) as (first, second, names):
            mappings = {0: (FIRST,), 1: (MappedRange(0, 0, "b", 0),)}
            for client in (first, second):
                await declare(client, mappings)
            async with Producer("senders", names) as producer:
                assert await producer.queues("T") == tuple(QUEUES)
                results = [await producer.send(Message("T", b"%d" % number)) for number in range(6)]
                batch = await producer.send([Message("T", b"b"), Message("T", b"c")], queue=QUEUES[1])
                await producer.send_one_way(Message("T", b"o"), queue=QUEUES[0])
            assert sorted((result.queue.queue_id, result.queue_offset) for result in results) == [
                (queue, offset) for queue in range(2) for offset in range(3)
            ]
            assert (batch.queue, batch.queue_offset) == (QUEUES[1], 3)
            counts = [0, 0]
            for number, client in enumerate((first, second)):
                store = client.server.broker.store
                store.wait_dispatched()
                counts[number] = store.max_offset_in_queue("T", 0)
            assert counts[1] == 5
            assert counts[0] in {3, 4}  # a one-way message may be on its way

    run_scenario(scenario)


def test_a_queue_that_has_moved_gets_new_messages_at_its_new_broker(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with moved_queue(tmp_path) as (_first, second, names):
            async with Producer("senders", names) as producer:
                result = await producer.send(Message("T", b"z"), queue=QUEUES[0])
                assert (result.queue, result.queue_offset) == (QUEUES[0], 10_002)
                with pytest.raises(ClientError, match="__syslo__none__"):
                    await producer.send(Message("T", b"z"), queue=QUEUES[1])
            second.server.broker.store.wait_dispatched()
            consumer = PullConsumer("pullers", names)
            await consumer.start()
            pulled = await consumer.pull(QUEUES[0], 0)
            assert [message.body for message in pulled.messages] == [b"x"] * 3
            pulled = await consumer.pull(QUEUES[0], 10_000)
            assert [message.body for message in pulled.messages] == [b"y", b"y", b"z"]
            assert [message.queue_offset for message in pulled.messages] == [10_000, 10_001, 10_002]
            await consumer.commit(QUEUES[0], 10_001)
            assert await consumer.fetch_offset(QUEUES[0]) == 10_001
            await consumer.stop()

    run_scenario(scenario)


@pytest.mark.parametrize("in_order", [False, True])
def test_a_consumer_reads_logical_queues_of_all_brokers(tmp_path: Path, in_order: bool) -> None:
    async def scenario() -> None:
        async with moved_queue(tmp_path) as (_first, _second, names):
            received: list[tuple[int, bytes]] = []
            all_came = asyncio.Event()

            def listen(messages, context):
                received.extend((message.queue_offset, message.body) for message in messages)
                if len(received) == 5:
                    all_came.set()
                return ConsumeStatus.SUCCESS

            consumer = Consumer("readers", listen, names, ConsumerConfig(start=FROM_FIRST, orderly=in_order))
            consumer.subscribe("T")
            await consumer.start()
            await asyncio.wait_for(all_came.wait(), 20)
            await consumer.stop()
            assert sorted(received) == [(0, b"x"), (1, b"x"), (2, b"x"), (10_000, b"y"), (10_001, b"y")]
            pulling = PullConsumer("readers", names)
            await pulling.start()
            assert await pulling.fetch_offset(QUEUES[0]) == 10_002
            await pulling.stop()

    run_scenario(scenario)
