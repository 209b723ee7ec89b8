"""Our push consumer beside our broker: every message once, in order on request, and again after a failure."""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from brokers import run_scenario
from served_broker import ServedBroker, served, wait_until

from engine.client.consumer import Consumer, ConsumeStatus
from engine.client.consuming import BROADCASTING, FROM_FIRST, ConsumerConfig
from engine.client.events import Consumed, Delivered, SentBack
from engine.client.messages import Message, reply_to
from engine.client.producer import Producer

FROM_FIRST_CONFIG = ConsumerConfig(start=FROM_FIRST)


class RecordingListener:
    """A listener that records its messages. ``result_of`` decides its answer for each message."""

    def __init__(self, result_of=lambda _: None) -> None:
        self.messages: list = []
        self.result_of = result_of

    async def __call__(self, messages, context):
        self.messages += messages
        self.context = context
        return self.result_of(messages[0])

    @property
    def bodies(self) -> list[bytes]:
        return [message.body for message in self.messages]


def consuming(tmp_path: Path, scenario, broker=None) -> None:
    """Run ``scenario(producer, served)``."""

    async def with_client() -> None:
        async with served(tmp_path / "store", broker) as beside, Producer("senders", beside.namesrv) as producer:
            await scenario(producer, beside)

    run_scenario(with_client)


def reader(
    beside: ServedBroker, listener, config: ConsumerConfig = FROM_FIRST_CONFIG, group: str = "readers", **options
) -> Consumer:
    consumer = Consumer(group, listener, beside.namesrv, config, **options)
    consumer.subscribe("Orders")
    return consumer


def test_each_message_is_delivered_once_and_committed(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        await producer.send([Message("Orders", b"%d" % number) for number in range(70)])
        listener = RecordingListener()
        async with reader(beside, listener):
            await wait_until(lambda: len(listener.messages) == 70)
            for number in range(70, 90):
                await producer.send(Message("Orders", b"%d" % number, tags="t", keys="k", properties={"p": "1"}))
            await wait_until(lambda: len(listener.messages) == 90)
        assert sorted(map(int, listener.bodies)) == list(range(90))
        last_message = listener.messages[-1]
        assert (last_message.tags, last_message.keys, last_message.properties["p"], last_message.queue.broker) == (
            "t",
            "k",
            "1",
            "broker-a",
        )
        offsets = beside.server.broker.store.tables
        consumer_offsets = [offsets.consumer_offset("readers", "Orders", queue) for queue in range(4)]
        assert sum(consumer_offsets) == 90
        second_listener = RecordingListener()
        async with reader(beside, second_listener):
            await producer.send(Message("Orders", b"new"))
            await wait_until(lambda: second_listener.messages)
        assert second_listener.bodies == [b"new"]

    consuming(tmp_path, scenario)


def test_only_subscribed_tags_are_delivered(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        for tag in ("a", "b", "c", "a"):
            await producer.send(Message("Orders", tag.encode(), tags=tag))
        listener = RecordingListener()
        consumer = Consumer("readers", listener, beside.namesrv, FROM_FIRST_CONFIG)
        consumer.subscribe("Orders", "a || c")
        async with consumer:
            await wait_until(lambda: len(listener.messages) == 3)
        assert Counter(listener.bodies) == {b"a": 2, b"c": 1}

    consuming(tmp_path, scenario)


def test_an_unconsumed_message_is_delivered_again_and_becomes_a_dead_letter(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        def result_of(message):
            if message.body == b"bad":
                raise RuntimeError("no tea")
            return message.reconsume_times > 0 or message.body == b"good"

        listener = RecordingListener(result_of)
        consumer = reader(beside, listener, ConsumerConfig(start=FROM_FIRST, max_reconsume=1))
        ring = consumer.events.ring()
        async with consumer:
            for body in (b"good", b"late", b"bad"):
                await producer.send(Message("Orders", body, keys=body.decode()))
            await wait_until(lambda: beside.units("%DLQ%readers", 0), 60)
            await wait_until(lambda: len(listener.messages) == 5)
        assert Counter(listener.bodies) == {b"good": 1, b"late": 2, b"bad": 2}
        (dead,) = beside.units("%DLQ%readers", 0)
        assert dead.body == b"bad"
        late = [delivered for delivered in listener.messages if delivered.body == b"late"]
        assert [(delivered.topic, delivered.reconsume_times) for delivered in late] == [("Orders", 0), ("Orders", 1)]
        assert late[1].queue.topic == "%RETRY%readers"
        assert late[0].msg_id == late[1].msg_id
        sent_back = [event for event in ring.take() if isinstance(event, SentBack)]
        assert len(sent_back) == 3
        assert all(event.by_broker for event in sent_back)

    consuming(tmp_path, scenario)


def test_a_message_that_the_broker_does_not_take_back_is_sent_again(tmp_path: Path, monkeypatch) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        from engine.broker import processors

        monkeypatch.delitem(processors.HANDLERS, 36)
        listener = RecordingListener(lambda message: message.reconsume_times > 0)
        async with reader(beside, listener):
            result = await producer.send(Message("Orders", b"x", tags="t", keys="k"))
            await wait_until(lambda: len(listener.messages) == 2, 60)
        second_message = listener.messages[1]
        assert (second_message.topic, second_message.msg_id, second_message.tags, second_message.keys) == (
            "Orders",
            result.msg_id,
            "t",
            "k",
        )

    consuming(tmp_path, scenario)


def test_in_order_each_queue_is_consumed_message_after_message(tmp_path: Path) -> None:
    """On a busy machine a send or a lock may time out, and a message is delivered again. First deliveries are in
    order.
    """

    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        running: Counter = Counter()
        crowded: list[bytes] = []
        order: dict[int, list[bytes]] = {}
        failed: set[bytes] = set()

        async def listener(messages, context):
            queue = context.queue.queue_id
            (message,) = messages
            running[queue] += 1
            if running[queue] > 1:
                crowded.append(message.body)
            await asyncio.sleep(0.001)
            running[queue] -= 1
            if message.body.endswith(b"7") and message.body not in failed:
                failed.add(message.body)
                context.suspend = 0.01
                return ConsumeStatus.LATER
            order.setdefault(queue, []).append(message.body)
            return ConsumeStatus.SUCCESS

        sent: dict[int, list[bytes]] = {}
        for number in range(60):
            body = b"%d" % number
            result = await producer.send(Message("Orders", body), key=str(number % 5))
            sent.setdefault(result.queue.queue_id, []).append(body)
        async with reader(beside, listener, ConsumerConfig(start=FROM_FIRST, orderly=True)):
            await wait_until(lambda: sum(len(set(bodies)) for bodies in order.values()) == 60)
        assert crowded == []
        assert {queue: list(dict.fromkeys(bodies)) for queue, bodies in order.items()} == sent
        assert len(failed) == 6

    consuming(tmp_path, scenario)


def test_in_order_a_message_that_fails_too_often_is_a_dead_letter(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        listener = RecordingListener(lambda message: message.body != b"bad")
        config = ConsumerConfig(start=FROM_FIRST, orderly=True, max_reconsume=2, suspend=0.01)
        async with reader(beside, listener, config):
            for body in (b"a", b"bad", b"b"):
                await producer.send(Message("Orders", body), key="one")
            await wait_until(lambda: b"b" in listener.bodies)
            await wait_until(lambda: beside.units("%DLQ%readers", 0), 60)
        assert listener.bodies == [b"a", b"bad", b"bad", b"bad", b"b"]

    consuming(tmp_path, scenario)


def test_broadcast_reaches_all_clients_and_offsets_stay_with_the_client(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        config = ConsumerConfig(model=BROADCASTING, start=FROM_FIRST, offsets_folder=tmp_path / "offsets")
        first_listener, second_listener = RecordingListener(), RecordingListener(lambda _: False)
        async with reader(beside, first_listener, config) as consumer, reader(beside, second_listener, config):
            for number in range(12):
                await producer.send(Message("Orders", b"%d" % number))
            await wait_until(lambda: len(first_listener.messages) == len(second_listener.messages) == 12)
            assert len(consumer.owned) == 4
        assert beside.server.broker.store.tables.consumer_offset("readers", "Orders", 0) < 0
        assert len(list((tmp_path / "offsets").rglob("offsets.json"))) == 2

    consuming(tmp_path, scenario)


def test_batches_and_plain_functions_in_threads(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        bodies: list[bytes] = []
        sizes: list[int] = []

        def listener(messages, context) -> None:
            sizes.append(len(messages))
            bodies.extend(message.body for message in messages)
            if len(messages) > 1 and not context.queue.topic.startswith("%"):
                context.done_with = 1

        await producer.send([Message("Orders", b"%d" % number) for number in range(8)])
        beside.units("Orders")
        with ThreadPoolExecutor(4) as pool:
            async with reader(beside, listener, ConsumerConfig(start=FROM_FIRST, batch=8), executor=pool):
                await wait_until(lambda: len(bodies) == 15, 60)
        assert max(sizes) == 8
        assert Counter(bodies)[b"0"] == 1
        assert Counter(bodies)[b"7"] == 2

    consuming(tmp_path, scenario)


def test_a_request_gets_its_reply(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        async with Producer("repliers", beside.namesrv) as replier:

            async def listener(messages, _context) -> None:
                for message in messages:
                    await replier.reply(reply_to(message, b"re: " + message.body))

            async with reader(beside, listener):
                reply = await producer.request(Message("Orders", b"ready?" * 1000), 20)
        assert reply.body == b"re: " + b"ready?" * 1000
        assert reply.properties["MSG_TYPE"] == "reply"

    consuming(tmp_path, scenario)


def test_an_administrator_can_request_consumption_directly(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        listener = RecordingListener(lambda message: message.body != b"bad")
        result = await producer.send(Message("Orders", b"bad"))
        async with reader(beside, listener) as client:
            await wait_until(lambda: listener.messages)
            fields = {
                "consumerGroup": "readers",
                "clientId": client.client_id,
                "msgId": result.offset_msg_id,
                "brokerName": "broker-a",
            }
            answer = await producer.instance.call(beside.server.address, 309, fields)
            assert b'"consumeResult":"CR_LATER"' in bytes(answer.body)
            answer = await producer.instance.call(beside.server.address, 307, {**fields, "jstackEnable": False})
            assert b'"mqTable":{{"brokerName":"broker-a"' in bytes(answer.body)

    consuming(tmp_path, scenario)


def test_slow_listeners_are_counted_and_interrupted_by_a_kill(tmp_path: Path) -> None:
    """Messages without a commit before the kill are delivered again: at least once, never lost."""

    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        await producer.send([Message("Orders", b"%d" % number) for number in range(40)])
        killed_listener = RecordingListener()
        killed = reader(beside, killed_listener, ConsumerConfig(start=FROM_FIRST, threads=1, commit_interval=0.05))
        ring = killed.events.ring()
        killed.slow_down(0.01)
        await killed.start()
        await wait_until(lambda: len(killed_listener.messages) >= 10)
        await killed.kill()
        delivered_count = len(killed_listener.messages)
        await asyncio.sleep(0.05)
        assert len(killed_listener.messages) == delivered_count
        events = ring.take()
        assert sum(isinstance(event, Delivered) for event in events) == delivered_count
        assert delivered_count - 1 <= sum(isinstance(consumed, Consumed) for consumed in events) <= delivered_count
        next_listener = RecordingListener()
        async with reader(beside, next_listener):
            await wait_until(lambda: len({*killed_listener.bodies, *next_listener.bodies}) == 40)
        assert set(killed_listener.bodies) | set(next_listener.bodies) == {b"%d" % number for number in range(40)}

    consuming(tmp_path, scenario)


@pytest.mark.parametrize("orderly", [False, True])
def test_a_stop_lets_running_listeners_finish_and_starts_no_new_ones(tmp_path: Path, *, orderly: bool) -> None:
    """A clean stop interrupted running listeners: they got CancelledError, and all their messages were delivered
    again.
    """

    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        await producer.send([Message("Orders", b"%d" % number) for number in range(40)])
        begun: list[bytes] = []
        ended: list[bytes] = []

        async def listener(messages, _context) -> None:
            begun.extend(message.body for message in messages)
            await asyncio.sleep(0.5)
            ended.extend(message.body for message in messages)

        stopped = reader(beside, listener, ConsumerConfig(start=FROM_FIRST, threads=4, orderly=orderly))
        await stopped.start()
        await wait_until(lambda: begun)
        await stopped.stop()
        assert ended == begun
        assert len(begun) < 40
        next_listener = RecordingListener()
        async with reader(beside, next_listener):
            await wait_until(lambda: len(next_listener.messages) == 40 - len(ended))
            await asyncio.sleep(0.2)
        assert Counter(next_listener.bodies + ended) == Counter(b"%d" % number for number in range(40))

    consuming(tmp_path, scenario)


def test_a_stop_waits_at_most_its_timeout(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        await producer.send(Message("Orders", b"slow"))
        begun, cancelled = asyncio.Event(), asyncio.Event()

        async def listener(_messages, _context) -> None:
            begun.set()
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                cancelled.set()
                raise

        slow = reader(beside, listener)
        await slow.start()
        await begun.wait()
        await slow.stop(timeout=0.1)
        assert cancelled.is_set()
        recording_listener = RecordingListener()
        async with reader(beside, recording_listener):
            await wait_until(lambda: recording_listener.bodies == [b"slow"])

    consuming(tmp_path, scenario)


def test_a_stop_does_not_wait_for_the_pause_of_a_slowed_client(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        await producer.send(Message("Orders", b"1"))
        listener = RecordingListener()
        slowed = reader(beside, listener, ConsumerConfig(start=FROM_FIRST, stop_timeout=3600))
        slowed.slow_down(1800)
        await slowed.start()
        await wait_until(lambda: slowed.process_queues and any(queue.held for queue in slowed.process_queues))
        await asyncio.sleep(0.1)
        await slowed.stop()
        assert listener.bodies == []

    consuming(tmp_path, scenario)
