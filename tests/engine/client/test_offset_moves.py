"""A plan names the messages that come again or never, and the brokers set exactly its offsets."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from brokers import run_scenario
from offset_rounds import OffsetRounds
from served_broker import served, wait_until

from engine.client.admin import Admin
from engine.client.consumer import Consumer
from engine.client.consuming import FROM_FIRST, ConsumerConfig
from engine.client.errors import ClientError, NoRoute
from engine.client.instance import ClientInstance
from engine.client.messages import Message, ReceivedMessage
from engine.client.offset_moves import GroupOffsets, OffsetMove
from engine.client.producer import Producer
from engine.client.routes import MessageQueue
from engine.inspection.derived_config import derived_config, quiet
from engine.inspection.snapshot import open_store
from engine.message_store import MessageStore
from engine.releases import Release

Send = Callable[[int], Awaitable[None]]
QUEUE = MessageQueue("Orders", "broker-a", 0)
ROUNDS = int(os.environ.get("STORESCOPE_OFFSET_ROUNDS", "3"))


@pytest.mark.parametrize(
    ("old", "new", "again", "never"),
    [
        (50, 20, (20, 50), None),
        (20, 50, None, (20, 50)),
        (50, 50, None, None),
        (5, 50, None, (10, 50)),
        (50, 5, (10, 50), None),
        (5, 8, None, None),
        (8, 5, None, None),
        (150, 20, (20, 100), None),
        (20, 150, None, (20, 100)),
        (150, 120, None, None),
        (120, 150, None, None),
        (None, 20, None, None),
    ],
)
def test_only_messages_that_the_queue_has_are_counted(old, new, again, never) -> None:
    move = OffsetMove(QUEUE, old, new, 10, 100)
    assert list(move.again) == list(range(*again or (0,)))
    assert list(move.never) == list(range(*never or (0,)))
    assert move.changes == (old != new)


@pytest.mark.golden
@pytest.mark.parametrize(("release", "seed"), [("5.5", 1), ("4.9", 2)])
def test_what_a_plan_says_is_what_comes(golden, tmp_path: Path, release: Release, seed: int) -> None:
    """``STORESCOPE_OFFSET_ROUNDS=40`` makes 200 and more predictions; each is compared message by message."""
    shutil.copytree(golden("first-files-deleted-5.3.3"), tmp_path / "store")
    with open_store(tmp_path / "store") as snapshot:
        config = quiet(derived_config(snapshot))
    at_once = {
        f"max_transfer_{unit}_on_message_in_{place}" for unit in ("count", "bytes") for place in ("memory", "disk")
    }
    config = replace(config, **dict.fromkeys(at_once, 1 << 20))
    with MessageStore(tmp_path / "store", config) as store:
        store.tables.create_topic("TopicA", 4)

    async def scenario() -> None:
        async with served(tmp_path / "store", store_config=config, release=release) as beside:
            await run_rounds(beside.namesrv, "TopicA", seed)

    run_scenario(scenario)


async def run_rounds(namesrv: str, topic: str, seed: int, rounds: int = ROUNDS) -> OffsetRounds:
    instance = ClientInstance(namesrv)
    try:
        campaign = OffsetRounds(instance, topic, random.Random(seed))
        await campaign.begin()
        for _ in range(rounds):
            await campaign.round()
        assert campaign.predictions >= 2 * rounds
        return campaign
    finally:
        await instance.kill()


def with_consumer(tmp_path: Path, release: Release, scenario) -> None:
    """Run ``scenario(offsets, received, send)`` while a consumer of the group billing has read 10 messages."""

    async def run() -> None:
        async with served(tmp_path / "store", release=release) as beside:
            async with Admin(beside.namesrv) as admin:
                await admin.create_topic("Orders", 2)
            received: list[ReceivedMessage] = []
            config = ConsumerConfig(start=FROM_FIRST)
            consumer = Consumer("billing", lambda messages, _: received.extend(messages), beside.namesrv, config)
            consumer.subscribe("Orders")
            async with Producer("senders", beside.namesrv) as producer, consumer:

                async def send(count: int) -> None:
                    for queue_id in (0, 1) * count:
                        await producer.send(
                            Message("Orders", b"tea"), queue=MessageQueue("Orders", "broker-a", queue_id)
                        )

                await send(5)
                await wait_until(lambda: len(received) == 10)
                await consumer.commit()
                received.clear()
                await scenario(GroupOffsets(consumer.instance), received, send)

    run_scenario(run)


def places(received: list[ReceivedMessage]) -> list[tuple[int, int]]:
    return sorted((message.queue.queue_id, message.queue_offset) for message in received)


@pytest.mark.parametrize("release", ["5.5", "4.9"])
def test_a_connected_consumer_gets_the_messages_that_the_plan_names(tmp_path: Path, release: Release) -> None:
    async def scenario(offsets: GroupOffsets, received: list[ReceivedMessage], send: Send) -> None:
        queues = await offsets.queues("Orders")
        assert len(await offsets.members("billing", queues)) == 1
        plan = await offsets.plan("billing", await offsets.at_time(queues, 0))
        assert [(move.old, move.new, len(move.again)) for move in plan] == [(5, 0, 5)] * 2
        assert await offsets.apply("billing", plan, 0) == {}
        await send(1)  # a broker of 5.x answers a pull that it holds when a message comes
        await wait_until(lambda: len(received) == 12)
        await asyncio.sleep(0.1)
        assert places(received) == [(queue_id, offset) for queue_id in (0, 1) for offset in range(6)]

    with_consumer(tmp_path, release, scenario)


def test_single_offsets_of_connected_consumers_are_set_since_5(tmp_path: Path) -> None:
    async def scenario(offsets: GroupOffsets, received: list[ReceivedMessage], send: Send) -> None:
        plan = await offsets.plan("billing", {MessageQueue("Orders", "broker-a", 1): 3})
        assert await offsets.apply("billing", plan) == {}
        await send(1)
        await wait_until(lambda: len(received) == 4)
        await asyncio.sleep(0.1)
        assert places(received) == [(0, 5), (1, 3), (1, 4), (1, 5)]

    with_consumer(tmp_path, "5.5", scenario)


def test_before_5_single_offsets_need_a_group_without_consumers(tmp_path: Path) -> None:
    async def scenario(offsets: GroupOffsets, received: list[ReceivedMessage], _: Send) -> None:
        plan = await offsets.plan("billing", {MessageQueue("Orders", "broker-a", 1): 3})
        with pytest.raises(ClientError, match="end them first"):
            await offsets.apply("billing", plan)
        assert (await offsets.committed("billing", [plan[0].queue]))[plan[0].queue] == 5
        assert received == []

    with_consumer(tmp_path, "4.9", scenario)


def test_what_a_broker_refuses_is_said_for_each_queue(tmp_path: Path) -> None:
    async def scenario(offsets: GroupOffsets, _: list[ReceivedMessage], _send: Send) -> None:
        plan = await offsets.plan("nobody", {MessageQueue("Orders", "broker-a", 1): 3})
        assert [(move.old, move.again) for move in plan] == [(None, range(0))]
        failures = await offsets.apply("nobody", plan)
        assert "does not exist" in failures[plan[0].queue]
        plan = await offsets.plan("billing", {MessageQueue("Orders", "broker-a", 1): 99})
        assert "not in consume queue range" in (await offsets.apply("billing", plan))[plan[0].queue]
        with pytest.raises(NoRoute):
            await offsets.queues("Nowhere")

    with_consumer(tmp_path, "5.5", scenario)
