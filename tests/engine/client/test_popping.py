"""Our consumer that pops, beside our broker: nothing is anybody's own, what is not acknowledged comes again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from brokers import run
from served_broker import ServedBroker, served, until

from engine.broker.serving import serving_store
from engine.callbacks import system_clock
from engine.client.broker_api import POP, POP_CK, query_assignment, set_request_mode
from engine.client.consuming import FROM_FIRST, FROM_TIME
from engine.client.errors import WrongMessage
from engine.client.events import Acknowledged, Delivered, PullAnswered, Rebalanced, SentBack
from engine.client.messages import Message
from engine.client.popping import PopConfig, PopConsumer
from engine.client.producer import Producer
from engine.client.rebalance import Averagely
from engine.client.routes import MessageQueue
from engine.codec.pop import Handle
from engine.namesrv.server import ListeningNameServer

FIRST = PopConfig(start=FROM_FIRST, hold=1.0)


def popping(tmp_path: Path, what) -> None:
    async def both() -> None:
        async with served(tmp_path / "store") as beside, Producer("senders", beside.namesrv) as producer:
            for number in range(30):
                await producer.send(Message("Orders", b"%d" % number, tags="ab"[number % 2]))
            beside.units("Orders")
            await what(producer, beside)

    run(both)


def reader(beside: ServedBroker, listener, config: PopConfig = FIRST, expression: str = "*") -> PopConsumer:
    consumer = PopConsumer("poppers", listener, beside.namesrv, config)
    consumer.subscribe("Orders", expression)
    return consumer


def test_members_get_each_message_once_though_nobody_owns_a_queue(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        first: list = []
        second: list = []
        item, other = (
            reader(beside, lambda got, _: first.extend(got)),
            reader(beside, lambda got, _: second.extend(got)),
        )
        ring = item.events.ring()
        async with item, other:
            await until(lambda: len(first) + len(second) == 30)
            for number in range(30, 40):
                await producer.send(Message("Orders", b"%d" % number))
            await until(lambda: len(first) + len(second) == 40)
            await until(lambda: not any(item._open.values()) and not any(other._open.values()))
        assert Counter(message.body for message in first + second) == {b"%d" % number: 1 for number in range(40)}
        assert all(message.queue.topic == "Orders" for message in first)
        kinds = Counter(type(event) for event in ring.take())
        assert kinds[Delivered] == kinds[Acknowledged] == len(first)
        assert kinds[PullAnswered] > 0

    popping(tmp_path, scenario)


def test_tags_are_chosen_and_pops_may_be_held_back(tmp_path: Path) -> None:
    async def scenario(_: Producer, beside: ServedBroker) -> None:
        observed: list = []
        item = reader(beside, lambda got, _: observed.extend(got), expression="a")
        item.pause()
        async with item:
            await asyncio.sleep(0.2)
            assert observed == []
            item.slow_down(0.001)
            item.resume()
            await until(lambda: len(observed) == 15)
            with pytest.raises(WrongMessage, match="before it starts"):
                item.subscribe("Invoices")
        assert {message.tags for message in observed} == {"a"}

    popping(tmp_path, scenario)


def test_what_fails_or_is_left_by_a_kill_comes_again(tmp_path: Path) -> None:
    async def scenario(_: Producer, beside: ServedBroker) -> None:
        held: list = []

        async def never(messages, _context) -> None:
            held.extend(messages)
            await asyncio.sleep(3600)

        killed = reader(beside, never, PopConfig(start=FROM_FIRST, hold=0.5, invisible=5.0, threads=3))
        await killed.start()
        await until(lambda: len(held) == 3)
        await killed.kill()
        times: Counter = Counter()

        def listener(messages, context) -> bool:
            (message,) = messages
            times[message.body] += 1
            context.delay_level = 1
            return message.body != b"7" or times[b"7"] > 1

        item = reader(beside, listener)
        ring = item.events.ring()
        async with item:
            await until(lambda: len(times) == 30 and times[b"7"] == 2, 60)
        assert times == {b"%d" % number: 2 if number == 7 else 1 for number in range(30)}
        assert sum(isinstance(event, SentBack) for event in ring.take()) == 1

    popping(tmp_path, scenario)


def shares(members: list[PopConsumer], queues: Sequence[MessageQueue]) -> bool:
    """Whether each member pops its own queues and those of the next one."""
    ids = sorted(client.client_id for client in members)
    own = {item: set(Averagely().allocate(item, queues, ids)) for item in ids}
    return all(
        set(member.popped_queues) == own[member.client_id] | own[ids[(ids.index(member.client_id) + 1) % len(ids)]]
        for member in members
    )


def test_a_broker_shares_out_among_those_who_ask_it(tmp_path: Path) -> None:
    """Set to pop, all members pop everything; with shares each pops its own queue and the next member's; set to pull,
    nobody pops.
    """

    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        client, counts = producer.instance, Counter()
        expected = PopConfig(start=FROM_FIRST, hold=0.2, shared_by_broker=True)

        def listener(messages, _context) -> None:
            counts.update(message.body for message in messages)

        members = [reader(beside, listener, expected) for _ in range(4)]
        ring = members[0].events.ring()
        await members[0].start()
        assert members[0].popped_queues == ()
        assert await query_assignment(client, "poppers", "Orders") == []
        await members[0].set_request_mode("Orders", POP)
        await until(lambda: len(counts) == 30)
        assert members[0].popped_queues == (MessageQueue("Orders", "broker-a", -1),)
        assert set(counts.values()) == {1}
        for member in members[1:]:
            await member.start()
        await set_request_mode(client, "poppers", "Orders", POP, share_queues=1)
        every = (await client.fresh_route("Orders")).subscribe_queues
        for member in members:
            member._news.set()
        await until(lambda: shares(members, every))
        for number in range(30, 50):
            await producer.send(Message("Orders", b"%d" % number))
        await until(lambda: len(counts) == 50)
        await members[0].stop()
        await until(lambda: shares(members[1:], every))
        for member in members[1:]:
            await member.stop()
        assert set(counts.values()) == {1}
        events = [event for event in ring.take() if isinstance(event, Rebalanced)]
        assert [len(event.given_up) for event in events][:2] == [0, 1]

    popping(tmp_path, scenario)


def test_in_order_what_failed_comes_first_and_the_rest_behind_it(tmp_path: Path) -> None:
    """Two members pop every queue in batches of four; some messages fail once or twice. Each queue's messages are done
    with in their order, each once, and a queue is never in two hands.
    """

    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        done: dict[int, list[int]] = {}
        tries: Counter = Counter()
        busy: Counter = Counter()
        crowded: list = []

        async def listener(messages, _context) -> bool:
            (message,) = messages
            queue, position = message.queue.queue_id, message.queue_offset
            busy[queue] += 1
            if busy[queue] > 1:
                crowded.append(message)
            assert message.reconsume_times >= tries[queue, position]  # it also counts what came and was not begun
            tries[queue, position] += 1
            await asyncio.sleep(0)
            busy[queue] -= 1
            if position % 5 == 2 and tries[queue, position] <= 1 + queue % 2:
                return False
            done.setdefault(queue, []).append(position)
            return True

        config = PopConfig(start=FROM_FIRST, hold=1.0, orderly=True, pull_batch=4, suspend=0.05)
        item, other = reader(beside, listener, config), reader(beside, listener, config)
        async with item, other:
            await until(lambda: sum(map(len, done.values())) == 30)
            for number in range(30, 42):
                await producer.send(Message("Orders", b"%d" % number))
            await until(lambda: sum(map(len, done.values())) == 42)
            await until(lambda: not any(item._open.values()) and not any(other._open.values()))
        assert crowded == []
        assert all(offsets == list(range(len(offsets))) for offsets in done.values())
        failed = {key: count for key, count in tries.items() if count > 1}
        assert failed.keys() == {key for key in tries if key[1] % 5 == 2}

    popping(tmp_path, scenario)


def test_in_order_a_killed_member_s_messages_come_again_in_order(tmp_path: Path) -> None:
    async def scenario(_: Producer, beside: ServedBroker) -> None:
        held: list = []

        async def never(messages, _context) -> None:
            held.extend(messages)
            await asyncio.sleep(3600)

        config = PopConfig(start=FROM_FIRST, hold=0.5, orderly=True, invisible=2.0)
        killed = reader(beside, never, config)
        await killed.start()
        queues = {unit.queue_id for unit in beside.units("Orders")}
        await until(lambda: {message.queue.queue_id for message in held} == queues)
        await killed.kill()
        assert [message.queue_offset for message in held] == [0] * len(queues)
        done: dict[int, list[int]] = {}

        def listener(messages, _context) -> None:
            done.setdefault(messages[0].queue.queue_id, []).append(messages[0].queue_offset)

        async with reader(beside, listener, PopConfig(start=FROM_FIRST, hold=0.5, orderly=True)):
            await until(lambda: sum(map(len, done.values())) == 30)
        assert all(offsets == list(range(len(offsets))) for offsets in done.values())

    popping(tmp_path, scenario)


def test_in_order_what_is_worked_at_or_waits_is_nobody_else_s_for_as_long_as_it_takes(tmp_path: Path) -> None:
    """A listener took longer than the invisible time: the queue's batch came to another member meanwhile, out of turn
    with what the first one was at. Its time is renewed now, also while it waits for a worker.
    """

    async def scenario(_: Producer, beside: ServedBroker) -> None:
        begun: list[tuple[int, int]] = []
        done: dict[int, list[int]] = {}
        removed: list[int] = []

        async def slow(messages, _context) -> None:
            (message,) = messages
            begun.append((message.queue.queue_id, message.queue_offset))
            if len(begun) == 1:
                due = Handle.parse(message.properties[POP_CK]).due
                await until(lambda: system_clock() > due, 60)
                removed.append(due)
                assert Handle.parse(message.properties[POP_CK]).due > due, "it has more time"
            done.setdefault(message.queue.queue_id, []).append(message.queue_offset)

        item = reader(beside, slow, PopConfig(start=FROM_FIRST, hold=0.5, orderly=True, invisible=3.0, threads=1))
        other = reader(beside, slow, PopConfig(start=FROM_FIRST, hold=0.5, orderly=True))
        async with item:
            await until(lambda: len(begun) == 1)
            await until(lambda: sum(item._open.values()) == 30)
            async with other:
                await until(lambda: sum(map(len, done.values())) == 30, 60)
            assert removed
        assert item._renewing == set()
        assert Counter(begun).most_common(1)[0][1] == 1, "each came once"
        assert all(offsets == list(range(len(offsets))) for offsets in done.values())

    popping(tmp_path, scenario)


@pytest.mark.parametrize(
    "wrong", [{"start": FROM_TIME}, {"pull_batch": 33}, {"threads": 0}, {"strategy": "CONSISTENT_HASH"}]
)
def test_settings_that_make_no_sense_are_refused(wrong: dict) -> None:
    with pytest.raises(WrongMessage):
        PopConfig(**wrong)


@pytest.mark.parametrize("orderly", [False, True])
def test_a_stop_lets_listeners_at_work_end_and_acknowledges_them(tmp_path: Path, *, orderly: bool) -> None:
    """A clean stop cut listeners off in the middle; their messages came again after a minute."""

    async def scenario(_: Producer, beside: ServedBroker) -> None:
        begun: list[bytes] = []
        ended: list[bytes] = []

        async def listener(messages, _context) -> None:
            begun.append(messages[0].body)
            await asyncio.sleep(0.5)
            ended.append(messages[0].body)

        config = PopConfig(start=FROM_FIRST, hold=1.0, threads=4, orderly=orderly)
        slow = reader(beside, listener, config)
        ring = slow.events.ring()
        await slow.start()
        await until(lambda: begun)
        await slow.stop()
        assert ended == begun
        assert len(begun) < 30
        assert Counter(type(event) for event in ring.take())[Acknowledged] == len(ended)

    popping(tmp_path, scenario)


@pytest.mark.parametrize("orderly", [False, True])
def test_pops_go_on_when_a_broker_that_was_away_is_back(tmp_path: Path, *, orderly: bool) -> None:
    """A look at the name servers while the broker was away left nothing to pop until the next one, 20 s later. In-order
    groups at a real broker that was killed stood still for that long.
    """

    async def scenario() -> None:
        bodies: list[bytes] = []
        async with ListeningNameServer(port=0) as names:
            async with serving_store(tmp_path / "store", name_servers=[names.address], port=0) as server:
                port = int(server.address.rpartition(":")[2])
                async with Producer("senders", names.address) as producer:
                    await producer.send(Message("Orders", b"before"))
                config = PopConfig(start=FROM_FIRST, hold=1.0, orderly=orderly, rebalance_interval=3600)
                consumer = PopConsumer("poppers", lambda got, _: bodies.append(got[0].body), names.address, config)
                consumer.subscribe("Orders")
                await consumer.start()
                await until(lambda: bodies == [b"before"])
            consumer._news.set()
            await until(lambda: not consumer._news.is_set())
            await asyncio.sleep(0.3)
            async with serving_store(tmp_path / "store", name_servers=[names.address], port=port):
                async with Producer("senders", names.address) as producer:
                    await producer.send(Message("Orders", b"after"))
                await until(lambda: b"after" in bodies, 30)
                await consumer.stop()

    run(scenario)
