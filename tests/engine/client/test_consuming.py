"""Behaviour of all consumers: sharing queues, start positions, flow control, pause, seek and reset."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from brokers import run_scenario
from real_cluster import free_port
from served_broker import ServedBroker, served, wait_until

from engine.broker.config import BrokerConfig
from engine.broker.serving import serving_store
from engine.callbacks import system_clock
from engine.client.consumer import Consumer
from engine.client.consuming import FROM_FIRST, FROM_LAST, FROM_TIME, ConsumerConfig
from engine.client.errors import BrokerRefused, ClientError, WrongMessage
from engine.client.events import (
    Committed,
    OffsetReset,
    Paced,
    PullAnswered,
    PullDelayed,
    PullSent,
    QueueAcquired,
    QueueReleased,
    Rebalanced,
    Started,
    Stopped,
)
from engine.client.messages import Message
from engine.client.producer import Producer, ProducerConfig
from engine.client.rebalance import AveragelyByCircle
from engine.client.routes import MessageQueue
from engine.namesrv.server import ListeningNameServer
from engine.remoting.frame import ONE_WAY, Command
from engine.remoting.subscriptions import SQL92

FROM_FIRST_CONFIG = ConsumerConfig(start=FROM_FIRST)


def consuming(tmp_path: Path, scenario, broker: BrokerConfig | None = None) -> None:
    """Run ``scenario(producer, served)``."""

    async def with_client() -> None:
        async with served(tmp_path / "store", broker) as beside, Producer("senders", beside.namesrv) as producer:
            await scenario(producer, beside)

    run_scenario(with_client)


def reader(
    beside: ServedBroker, received: list, config: ConsumerConfig = FROM_FIRST_CONFIG, group: str = "readers", **options
) -> Consumer:
    consumer = Consumer(group, lambda messages, _: received.extend(messages), beside.namesrv, config, **options)
    consumer.subscribe("Orders")
    return consumer


def orders(queue_id: int) -> MessageQueue:
    return MessageQueue("Orders", "broker-a", queue_id)


def owned(consumer: Consumer) -> list[int]:
    return sorted(queue.queue_id for queue in consumer.owned if queue.topic == "Orders")


def test_members_always_share_queues_without_gap_or_overlap(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        await producer.send(Message("Orders", b"first"))
        observed: list = []
        first_consumer, second_consumer, third_consumer = (reader(beside, observed) for _ in range(3))
        rings = [consumer.events.ring() for consumer in (first_consumer, second_consumer)]

        def shared(*consumers: Consumer) -> bool:
            return sorted(number for entry in consumers for number in owned(entry)) == [0, 1, 2, 3] and all(
                map(owned, consumers)
            )

        async with first_consumer:
            await wait_until(lambda: shared(first_consumer))
            async with second_consumer:
                await wait_until(lambda: shared(first_consumer, second_consumer))
                await third_consumer.start()
                await wait_until(lambda: shared(first_consumer, second_consumer, third_consumer))
                await third_consumer.kill()
                await wait_until(lambda: shared(first_consumer, second_consumer))
                # a killed consumer has not committed its offsets, so its messages may be delivered again
                for number in range(40):
                    await producer.send(Message("Orders", b"%d" % number))
                await wait_until(lambda: len({(entry.queue_id, entry.queue_offset) for entry in observed}) == 41)
            await wait_until(lambda: shared(first_consumer))
        steps = [entry for entry in rings[0].take() if isinstance(entry, Rebalanced) and entry.topic == "Orders"]
        assert {1, 2} <= {len(step.client_ids) for step in steps} <= {1, 2, 3}
        for rebalance in steps:
            assert len(rebalance.queues) == 4
            assert first_consumer.client_id in rebalance.client_ids
        kinds = Counter(type(entry) for entry in rings[1].take())
        for kind in (Started, Stopped, Rebalanced, QueueAcquired, QueueReleased, PullSent, PullAnswered, Committed):
            assert kinds[kind] > 0, kind

    consuming(tmp_path, scenario)


def test_another_strategy_is_used(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        await producer.send(Message("Orders", b"x"))
        async with (
            reader(beside, [], strategy=AveragelyByCircle()) as first_consumer,
            reader(beside, [], strategy=AveragelyByCircle()) as second_consumer,
        ):
            await wait_until(lambda: sorted([owned(first_consumer), owned(second_consumer)]) == [[0, 2], [1, 3]])

    consuming(tmp_path, scenario)


def test_a_topic_is_read_again_from_a_time_on(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        await producer.send(Message("Orders", b"old"), queue=orders(0))
        await asyncio.sleep(0.02)
        middle = system_clock()
        await producer.send(Message("Orders", b"new"), queue=orders(0))
        observed: list = []
        async with reader(beside, observed) as item:
            await wait_until(lambda: len(observed) == 2)
            await item.reset_to("Orders", middle)
            await wait_until(lambda: len(observed) == 3)
        assert [message.body for message in observed] == [b"old", b"new", b"new"]

    consuming(tmp_path, scenario)


@pytest.mark.parametrize(("start", "offset"), [(FROM_FIRST, 0), (FROM_LAST, 3), (FROM_TIME, 2)])
def test_without_an_offset_the_start_decides(tmp_path: Path, monkeypatch, start: str, offset: int) -> None:
    """A broker answers 0 for a young queue. Here it reports no offset, as for an old one."""

    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        from engine.broker import processors
        from engine.remoting.codes import Refused, ResponseCode

        def none(*_):
            raise Refused(ResponseCode.QUERY_NOT_FOUND, "Not found")

        monkeypatch.setitem(processors.HANDLERS, 14, none)
        for number in range(3):
            if number == 2:
                await asyncio.sleep(0.02)
                middle = system_clock()
            await producer.send(Message("Orders", b"%d" % number), queue=orders(0))
        beside.units("Orders")
        item = reader(beside, [], ConsumerConfig(start=start, start_time=middle))
        ring = item.events.ring()
        async with item:
            await wait_until(lambda: owned(item) == [0, 1, 2, 3])
            received = {event.queue: event.offset for event in ring.take() if isinstance(event, QueueAcquired)}
            assert received[orders(0)] == offset
            await wait_until(lambda: len(item.owned) == 5)

    consuming(tmp_path, scenario)


def test_a_queue_is_read_again_from_a_sought_offset(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        for number in range(5):
            await producer.send(Message("Orders", b"%d" % number), queue=orders(1))
        observed: list = []
        async with reader(beside, observed) as item:
            await wait_until(lambda: len(observed) == 5)
            await item.seek(orders(1), 3)
            await wait_until(lambda: len(observed) == 7)
            assert [message.body for message in observed[5:]] == [b"3", b"4"]
            with pytest.raises(WrongMessage, match="not read"):
                await item.seek(MessageQueue("Orders", "broker-z", 0), 0)

    consuming(tmp_path, scenario)


def test_an_administrator_resets_the_group(tmp_path: Path) -> None:
    """A broker of 5.3 moves the offset itself. One of 4.9 notifies each member (request 220)."""

    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        for number in range(5):
            await producer.send(Message("Orders", b"%d" % number), queue=orders(1))
        observed: list = []
        client = reader(beside, observed)
        ring = client.events.ring()
        async with client:
            await wait_until(lambda: len(observed) == 5)
            await client.commit()
            fields = {"topic": "Orders", "group": "readers", "timestamp": 0, "isForce": True}
            await producer.instance.call(beside.server.address, 222, fields)
            await producer.send(Message("Orders", b"5"), queue=orders(1))  # this message wakes the held pull
            await wait_until(lambda: len(observed) == 11)
            answer = await producer.instance.call(beside.server.address, 223, {"topic": "Orders", "group": "readers"})
            assert client.client_id.encode() in bytes(answer.body)
            (member,) = beside.server.broker.clients.consumers["readers"].members
            body = b'{"offsetTable":{{"brokerName":"broker-a","queueId":1,"topic":"Orders"}:4}}'
            member.send(Command(220, {"topic": "Orders", "group": "readers", "timestamp": "0"}, body, flag=ONE_WAY))
            await wait_until(lambda: len(observed) == 13)
        resets = [event.offset for event in ring.take() if isinstance(event, OffsetReset)]
        assert resets == [0, 4]

    consuming(tmp_path, scenario)


def test_an_offset_beyond_the_end_is_moved_by_the_broker(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        await producer.send(Message("Orders", b"x"), queue=orders(0))
        beside.server.broker.store.tables.commit_consumer_offset("readers", "Orders", 0, 1000)
        observed: list = []
        async with reader(beside, observed) as item:
            await wait_until(lambda: (item.offsets.known(orders(0)) or 1000) < 1000)
            await wait_until(lambda: 0 in owned(item))
            await producer.send(Message("Orders", b"y"), queue=orders(0))
            await wait_until(lambda: any(message.body == b"y" for message in observed))

    consuming(tmp_path, scenario)


def test_a_paused_consumer_pulls_nothing(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        observed: list = []
        off = reader(beside, observed)
        off.pause()
        ring = off.events.ring()
        async with off:
            await producer.send(Message("Orders", b"x"))
            await wait_until(lambda: len(owned(off)) == 4)
            events = ring.take()
            await wait_until(
                lambda: events.extend(ring.take()) or any(isinstance(item, PullDelayed) for item in events)
            )
            await asyncio.sleep(0.1)
            assert observed == []
            off.resume()
            await wait_until(lambda: observed)
        events += ring.take()
        assert {event.reason for event in events if isinstance(event, PullDelayed)} == {"paused"}
        assert [event.paused for event in events if isinstance(event, Paced)] == [False]

    consuming(tmp_path, scenario)


def test_the_number_of_held_messages_is_bounded(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        may_consume = asyncio.Event()
        consumed_messages: list = []

        async def listener(messages, _context) -> None:
            await may_consume.wait()
            consumed_messages.extend(messages)

        await producer.send([Message("Orders", b"x" * 100) for _ in range(200)])
        consumer = Consumer("readers", listener, beside.namesrv, ConsumerConfig(start=FROM_FIRST, most_held=50))
        consumer.subscribe("Orders")
        ring = consumer.events.ring()
        async with consumer:
            await wait_until(lambda: any(isinstance(event, PullDelayed) for event in ring.take()))
            (filled,) = [queue for queue in consumer.process_queues if queue.count]
            assert 50 < filled.count <= 50 + 32
            assert filled.size == filled.count * 100
            may_consume.set()
            await wait_until(lambda: len(consumed_messages) == 200)

    consuming(tmp_path, scenario)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (ConsumerConfig(most_held=0), "messages are held"),
        (ConsumerConfig(most_bytes=1), "bytes are held"),
        (ConsumerConfig(widest_span=0), "span"),
        (ConsumerConfig(orderly=True), "lock"),
    ],
)
def test_every_limit_has_a_reason(config: ConsumerConfig, words: str) -> None:
    from engine.client.messages import read_messages
    from engine.client.process_queue import ProcessQueue
    from engine.codec.encode import Message as Stored
    from engine.codec.encode import encode_unit

    queue = ProcessQueue(orders(0))
    raw = b"".join(
        encode_unit(Stored("Orders", b"xx", 0, {}), queue_offset=position, physical_offset=0, store_timestamp=0)
        for position in (0, 1)
    )
    queue.put(read_messages(raw, orders(0)))
    assert words in Consumer("readers", lambda *_: None, "127.0.0.1:1", config)._held_back(queue)


def test_sql_selects_by_properties_and_an_invalid_expression_is_refused(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        for number in range(4):
            await producer.send(Message("Orders", b"%d" % number, properties={"n": str(number)}))
        actual_messages: list = []
        consumer = Consumer(
            "readers", lambda messages, _: actual_messages.extend(messages), beside.namesrv, FROM_FIRST_CONFIG
        )
        consumer.subscribe("Orders", "n > 1", SQL92)
        async with consumer:
            await wait_until(lambda: len(actual_messages) == 2)
        assert sorted(message.body for message in actual_messages) == [b"2", b"3"]
        wrong = Consumer("others", lambda *_: None, beside.namesrv, FROM_FIRST_CONFIG)
        wrong.subscribe("Orders", "n >", SQL92)
        with pytest.raises(BrokerRefused):
            await wrong.start()

    consuming(tmp_path, scenario, BrokerConfig(property_filter=True))


def test_subscriptions_change_while_it_runs(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        for topic in ("Orders", "Invoices"):
            await producer.send(Message(topic, topic.encode()))
        observed: list = []
        async with reader(beside, observed) as item:
            await wait_until(lambda: observed)
            item.subscribe("Invoices")
            await wait_until(lambda: len(observed) == 2)
            item.unsubscribe("Orders")
            await wait_until(lambda: not owned(item))

    consuming(tmp_path, scenario)


@pytest.mark.parametrize(
    "wrong", [{"model": "ALL"}, {"start": "NOW"}, {"threads": 0}, {"batch": 2000}, {"pull_batch": 0}]
)
def test_invalid_settings_are_refused(wrong: dict) -> None:
    with pytest.raises(WrongMessage):
        ConsumerConfig(**wrong)
    with pytest.raises(WrongMessage):
        Consumer("readers", lambda *_: None, "127.0.0.1:1").subscribe("Orders", "*", "JSON")


def test_consumers_reconnect_to_a_restarted_broker(tmp_path: Path) -> None:
    """A restarted broker has no connections, locks or members. Messages still arrive, and in order."""

    async def scenario() -> None:
        port = free_port()
        plain: list = []
        ordered: list = []
        async with ListeningNameServer(port=0) as names:

            def serving():
                return serving_store(tmp_path / "store", QUICK_BROKER, name_servers=[names.address], port=port)

            async with Producer("senders", names.address, ProducerConfig(send_timeout=20.0, retries=30)) as producer:
                plain_consumer = Consumer("plain", lambda got, _: plain.extend(got), names.address, FROM_FIRST_CONFIG)
                orderly_consumer = Consumer(
                    "ordered",
                    lambda got, _: ordered.extend(got),
                    names.address,
                    ConsumerConfig(start=FROM_FIRST, orderly=True),
                )
                for consumer in (plain_consumer, orderly_consumer):
                    consumer.subscribe("Orders")
                async with serving():
                    await producer.send(Message("Orders", b"0"))
                    await plain_consumer.start()
                    await orderly_consumer.start()
                    await wait_until(lambda: len(plain) == len(ordered) == 1)
                    await plain_consumer.commit()
                    await orderly_consumer.commit()
                async with serving():
                    for number in range(1, 9):
                        await send_until_accepted(producer, Message("Orders", b"%d" % number))
                    await wait_until(lambda: len({message.body for message in plain}) == 9, 60)
                    await wait_until(lambda: len({message.body for message in ordered}) == 9, 60)
                    await plain_consumer.stop()
                    await orderly_consumer.stop()

    run_scenario(scenario)


QUICK_BROKER = BrokerConfig(registration_ms=10_000)


async def send_until_accepted(producer: Producer, message: Message) -> None:
    """Repeat the send until the broker is back and has a route."""
    async with asyncio.timeout(60):
        while True:
            try:
                await producer.send(message)
            except ClientError:
                await asyncio.sleep(0.1)
            else:
                return
