"""Lite pull consumers share queues and read ahead; pull consumers do exactly what the caller requests."""

from __future__ import annotations

from pathlib import Path

import pytest
from brokers import run_scenario
from served_broker import ServedBroker, served, wait_until

from engine.client.consuming import FROM_FIRST, ConsumerConfig
from engine.client.errors import NoRoute, NotRunning, WrongMessage
from engine.client.events import Delivered, QueueAcquired
from engine.client.messages import Message
from engine.client.producer import Producer
from engine.client.pulling import LitePullConsumer, PullConsumer
from engine.client.routes import MessageQueue

QUEUES = [MessageQueue("Orders", "broker-a", number) for number in range(4)]


def pulling(tmp_path: Path, scenario) -> None:
    """Run ``scenario(producer, served)`` with ten messages in each of four queues."""

    async def with_client() -> None:
        async with served(tmp_path / "store") as beside, Producer("senders", beside.namesrv) as producer:
            for queue in QUEUES:
                for number in range(10):
                    await producer.send(Message("Orders", b"%d" % number, tags="ab"[number % 2]), queue=queue)
            beside.units("Orders")
            await scenario(producer, beside)

    run_scenario(with_client)


def lite(beside: ServedBroker, **config) -> LitePullConsumer:
    return LitePullConsumer("readers", beside.namesrv, ConsumerConfig(start=FROM_FIRST, **config))


async def polled(consumer: LitePullConsumer, count: int) -> list:
    results: list = []
    while len(results) < count:
        results += await consumer.poll(20)
    return results


def test_polls_give_each_message_once_over_all_members(tmp_path: Path) -> None:
    async def scenario(_: Producer, beside: ServedBroker) -> None:
        first_member, second_member = lite(beside), lite(beside)
        for consumer in (first_member, second_member):
            consumer.subscribe("Orders")
        with pytest.raises(NotRunning):
            await first_member.poll()
        ring = first_member.events.ring()
        async with first_member, second_member:
            await wait_until(lambda: len(first_member.owned) == len(second_member.owned) == 2)
            messages = await polled(first_member, 20) + await polled(second_member, 20)
            places = {(message.queue.queue_id, message.queue_offset) for message in messages}
            assert len(places) == 40
            assert await first_member.poll(0.01) == []
            await first_member.commit()
            queue = first_member.owned[0]
            assert await first_member.committed(queue) == first_member.position(queue) == 10
        events = ring.take()
        assert sum(isinstance(event, Delivered) for event in events) == 20
        assert any(isinstance(event, QueueAcquired) for event in events)

    pulling(tmp_path, scenario)


def test_a_later_poll_commits_the_messages_of_the_one_before(tmp_path: Path) -> None:
    async def scenario(_: Producer, beside: ServedBroker) -> None:
        tables = beside.server.broker.store.tables
        item = lite(beside, commit_interval=0.0)
        item.subscribe("Orders")
        async with item:
            await polled(item, 40)
            assert sum(max(tables.consumer_offset("readers", "Orders", number), 0) for number in range(4)) < 40
            await item.poll(0.01)
            await wait_until(
                lambda: [tables.consumer_offset("readers", "Orders", number) for number in range(4)] == [10] * 4
            )

    pulling(tmp_path, scenario)


def test_a_loop_over_a_consumer_gets_each_message_until_it_is_stopped(tmp_path: Path) -> None:
    async def scenario(_: Producer, beside: ServedBroker) -> None:
        consumer = lite(beside)
        consumer.subscribe("Orders")
        await consumer.start()
        bodies: list[tuple[int, bytes]] = []
        async for message in consumer:
            bodies.append((message.queue.queue_id, message.body))
            if len(bodies) == 40:
                await consumer.stop()
        assert sorted(bodies) == sorted((queue.queue_id, b"%d" % number) for queue in QUEUES for number in range(10))

    pulling(tmp_path, scenario)


def test_assigned_queues_are_read_sought_and_paused(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        item = lite(beside, auto_commit=False)
        item.assign(QUEUES[:1])
        with pytest.raises(WrongMessage, match="mutually exclusive"):
            item.subscribe("Orders")
        async with item:
            assert [message.body for message in await polled(item, 10)] == [b"%d" % number for number in range(10)]
            await item.seek(QUEUES[0], 8)
            assert [message.body for message in await polled(item, 2)] == [b"8", b"9"]
            await item.seek_to_begin(QUEUES[0])
            assert len(await polled(item, 10)) == 10
            await item.seek_to_end(QUEUES[0])
            await producer.send(Message("Orders", b"new"), queue=QUEUES[0])
            assert [message.body for message in await polled(item, 1)] == [b"new"]
            for wrong in (-1, 12):
                with pytest.raises(WrongMessage, match="Seek offset illegal"):
                    await item.seek(QUEUES[0], wrong)
            with pytest.raises(WrongMessage, match="not read"):
                await item.seek(QUEUES[1], 0)
            item.assign(QUEUES[1:2])
            await wait_until(lambda: item.owned == (QUEUES[1],))
            await polled(item, 10)
            item.pause_queues(QUEUES[1])
            await item.seek(QUEUES[1], 0)
            assert await item.poll(0.2) == []
            item.pause_queues(QUEUES[1], paused=False)
            assert len(await polled(item, 10)) == 10
            assert await item.committed(QUEUES[1]) in (0, None)

    pulling(tmp_path, scenario)


def test_invalid_calls_are_refused() -> None:
    with pytest.raises(WrongMessage, match="listeners"):
        LitePullConsumer("readers", "127.0.0.1:1", ConsumerConfig(orderly=True))
    consumer = LitePullConsumer("readers", "127.0.0.1:1")
    consumer.subscribe("Orders")
    assert (consumer.config.pull_batch, consumer.config.hold) == (10, 20.0)
    with pytest.raises(WrongMessage, match="mutually exclusive"):
        consumer.assign(QUEUES)


def test_pulls_read_the_requested_queue_and_offset(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        consumer = PullConsumer("pullers", beside.namesrv)
        with pytest.raises(NotRunning):
            await consumer.pull(QUEUES[0], 0)
        async with consumer:
            assert await consumer.queues("Orders") == tuple(QUEUES)
            result = await consumer.pull(QUEUES[2], 3, max_messages=4)
            assert [message.body for message in result.messages] == [b"3", b"4", b"5", b"6"]
            result = await consumer.pull(QUEUES[2], 0, expression="a")
            assert [message.body for message in result.messages] == [b"0", b"2", b"4", b"6", b"8"]
            assert (await consumer.pull(QUEUES[2], 10)).status == "NO_NEW_MSG"
            waiting = consumer.instance.soon(consumer.pull(QUEUES[2], 10, hold=20))
            await producer.send(Message("Orders", b"new"), queue=QUEUES[2])
            assert [message.body for message in (await waiting).messages] == [b"new"]
            await consumer.commit(QUEUES[2], 5)
            assert await consumer.fetch_offset(QUEUES[2]) == 5
            await consumer.send_back(result.messages[0], 1)
            with pytest.raises(NoRoute):
                await consumer.queues("Nothing")
            with pytest.raises(NoRoute):
                await consumer.fetch_offset(MessageQueue("Nothing", "broker-a", 0))

    pulling(tmp_path, scenario)


def test_a_pull_waits_for_the_route_of_a_topic_that_was_just_created(tmp_path: Path) -> None:
    """A broker answers the first send of a topic before it announces the topic to the name servers."""

    async def scenario(_producer: Producer, beside: ServedBroker) -> None:
        async with PullConsumer("pullers", beside.namesrv) as consumer:
            ask, routes_asked_for = consumer.instance.fresh_route, []

            async def not_yet(topic: str):
                routes_asked_for.append(topic)
                return await ask(topic) if len(routes_asked_for) > 2 else None

            consumer.instance.fresh_route = not_yet
            result = await consumer.pull(QUEUES[2], 3, max_messages=1)
            assert [message.body for message in result.messages] == [b"3"]
            with pytest.raises(NoRoute):
                await consumer.pull(MessageQueue("Nothing", "broker-a", 0), 0)

    pulling(tmp_path, scenario)
