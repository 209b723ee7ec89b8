"""Topics and lag from Python, beside our broker and name server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from brokers import run_scenario
from served_broker import ServedBroker, served, wait_until

from engine.broker.config import BrokerConfig
from engine.broker.serving import serving_beside
from engine.client.admin import Admin
from engine.client.blocking import BlockingAdmin, BlockingConsumer, BlockingProducer
from engine.client.consumer import Consumer
from engine.client.consuming import FROM_FIRST, ConsumerConfig
from engine.client.errors import AnswerNotUnderstood, NoRoute, NotRunning, WrongMessage
from engine.client.messages import Message
from engine.client.producer import Producer
from engine.client.routes import MessageQueue
from engine.remoting.frame import Command

NO_TOPICS = BrokerConfig(auto_create_topic=False)


def administrating(tmp_path: Path, scenario) -> None:
    async def with_client() -> None:
        async with served(tmp_path / "store", NO_TOPICS) as beside, Admin(beside.namesrv) as admin:
            await scenario(admin, beside)

    run_scenario(with_client)


def test_a_topic_is_created_used_listed_and_deleted(tmp_path: Path) -> None:
    """Where brokers do not create topics automatically, a Python user needed mqadmin."""

    async def scenario(admin: Admin, beside: ServedBroker) -> None:
        assert await admin.topics() == []
        await admin.create_topic("Orders", 3)
        await admin.create_topic("Archive", 1, writable=False)
        assert await admin.topics() == ["Archive", "Orders"]
        assert "broker-a" in await admin.topics(include_system=True)
        assert await admin.queues("Orders") == tuple(MessageQueue("Orders", "broker-a", number) for number in range(3))
        async with Producer("senders", beside.namesrv) as producer:
            assert (await producer.send(Message("Orders", b"1"))).is_ok
            with pytest.raises(NoRoute):
                await producer.send(Message("Archive", b"1"))
        await admin.create_topic("Orders", 5)
        assert len(await admin.queues("Orders")) == 5
        await admin.delete_topic("Orders")
        await admin.delete_topic("Orders")
        assert (await admin.topics(), await admin.queues("Orders")) == (["Archive"], ())
        assert beside.units("Orders") == []

    administrating(tmp_path, scenario)


def test_the_type_of_a_topics_messages_is_an_attribute(tmp_path: Path) -> None:
    async def scenario(admin: Admin, beside: ServedBroker) -> None:
        await admin.create_topic("Payments", 1, message_type="FIFO")
        topic = beside.server.broker.topics.get("Payments")
        assert topic is not None
        assert topic.attributes == {"message.type": "FIFO"}

    administrating(tmp_path, scenario)


def test_the_lag_of_a_group_by_queue(tmp_path: Path) -> None:
    async def scenario(admin: Admin, beside: ServedBroker) -> None:
        await admin.create_topic("Orders", 2)
        assert await admin.lag("readers") == []
        queues = await admin.queues("Orders")
        async with Producer("senders", beside.namesrv) as producer:
            for number in range(10):
                await producer.send(Message("Orders", b"%d" % number), queue=queues[number % 2])
            beside.units("Orders")
            bodies: list[bytes] = []
            consumer = Consumer(
                "readers",
                lambda messages, _: bodies.append(messages[0].body),
                beside.namesrv,
                ConsumerConfig(start=FROM_FIRST),
            )
            consumer.subscribe("Orders")
            async with consumer:
                await wait_until(lambda: len(bodies) == 10)
                await consumer.commit()
            for _ in range(3):
                await producer.send(Message("Orders", b"more"), queue=queues[0])
        beside.units("Orders")
        rows = {row.queue: row for row in await admin.lag("readers", "Orders")}
        assert {queue: (row.committed, row.end, row.lag) for queue, row in rows.items()} == {
            queues[0]: (5, 8, 3),
            queues[1]: (5, 5, 0),
        }
        assert rows[queues[0]].consumed_at > 1_700_000_000_000
        assert sum(row.lag for row in await admin.lag("readers")) == 3

    administrating(tmp_path, scenario)


def test_errors_are_reported(tmp_path: Path) -> None:
    async def scenario(admin: Admin, beside: ServedBroker) -> None:
        with pytest.raises(WrongMessage, match="queues is 0"):
            await admin.create_topic("Orders", 0)
        with pytest.raises(WrongMessage, match="known are NORMAL, FIFO"):
            await admin.create_topic("Orders", message_type="fifo")
        with pytest.raises(WrongMessage):
            await admin.create_topic("a topic")
        with pytest.raises(NoRoute, match="no master of broker-z"):
            await admin.create_topic("Orders", brokers=["broker-z"])
        ended = Admin(beside.namesrv)
        with pytest.raises(NotRunning):
            await ended.topics()

    administrating(tmp_path, scenario)


def test_an_invalid_answer_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(admin: Admin, _: ServedBroker) -> None:
        async def call(address: str, code: int, *_: object, **__: object) -> Command:
            bodies = {106: b'{"brokerAddrTable":{"a":{"brokerAddrs":{"0":"x:1"}}}}', 208: b'{"offsetTable":{"a":{}}}'}
            return Command(0, {}, body=bodies.get(code, b"[]"))

        monkeypatch.setattr(admin.instance, "call", call)
        with pytest.raises(AnswerNotUnderstood):
            await admin.topics()
        with pytest.raises(AnswerNotUnderstood, match="GET_CONSUME_STATS"):
            await admin.lag("readers")

    administrating(tmp_path, scenario)


def test_blocking_admin_without_an_event_loop(tmp_path: Path) -> None:
    with serving_beside(tmp_path / "store", NO_TOPICS) as addresses, BlockingAdmin(addresses.namesrv) as admin:
        admin.create_topic("Orders", 2)
        with BlockingProducer("senders", addresses.namesrv) as producer:
            queue = admin.queues("Orders")[0]
            for _ in range(4):
                producer.send(Message("Orders", b"1"), queue=queue)
        bodies: list[bytes] = []
        consumer = BlockingConsumer(
            "readers",
            lambda messages, _: bodies.append(messages[0].body),
            addresses.namesrv,
            ConsumerConfig(start=FROM_FIRST),
        )
        consumer.subscribe("Orders")
        with consumer:
            for _ in range(1000):
                if len(bodies) == 4:
                    break
                asyncio.run(asyncio.sleep(0.01))
            consumer.commit()
        assert [(row.committed, row.lag) for row in admin.lag("readers", "Orders")][0] == (4, 0)
        assert admin.topics() == ["Orders"]
        admin.delete_topic("Orders")
        assert admin.topics() == []
