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
    made = PopConsumer("poppers", listener, beside.namesrv, config)
    made.subscribe("Orders", expression)
    return made


def test_members_get_each_message_once_though_nobody_owns_a_queue(tmp_path: Path) -> None:
    async def what(producer: Producer, beside: ServedBroker) -> None:
        first: list = []
        second: list = []
        one, other = reader(beside, lambda got, _: first.extend(got)), reader(beside, lambda got, _: second.extend(got))
        ring = one.events.ring()
        async with one, other:
            await until(lambda: len(first) + len(second) == 30)
            for number in range(30, 40):
                await producer.send(Message("Orders", b"%d" % number))
            await until(lambda: len(first) + len(second) == 40)
            await until(lambda: not any(one._open.values()) and not any(other._open.values()))
        assert Counter(message.body for message in first + second) == {b"%d" % number: 1 for number in range(40)}
        assert all(message.queue.topic == "Orders" for message in first)
        kinds = Counter(type(event) for event in ring.take())
        assert kinds[Delivered] == kinds[Acknowledged] == len(first)
        assert kinds[PullAnswered] > 0

    popping(tmp_path, what)


def test_tags_are_chosen_and_pops_may_be_held_back(tmp_path: Path) -> None:
    async def what(_: Producer, beside: ServedBroker) -> None:
        seen: list = []
        one = reader(beside, lambda got, _: seen.extend(got), expression="a")
        one.pause()
        async with one:
            await asyncio.sleep(0.2)
            assert seen == []
            one.slow_down(0.001)
            one.resume()
            await until(lambda: len(seen) == 15)
            with pytest.raises(WrongMessage, match="before it starts"):
                one.subscribe("Invoices")
        assert {message.tags for message in seen} == {"a"}

    popping(tmp_path, what)


def test_what_fails_or_is_left_by_a_kill_comes_again(tmp_path: Path) -> None:
    async def what(_: Producer, beside: ServedBroker) -> None:
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

        one = reader(beside, listener)
        ring = one.events.ring()
        async with one:
            await until(lambda: len(times) == 30 and times[b"7"] == 2, 60)
        assert times == {b"%d" % number: 2 if number == 7 else 1 for number in range(30)}
        assert sum(isinstance(event, SentBack) for event in ring.take()) == 1

    popping(tmp_path, what)


def shares(members: list[PopConsumer], queues: Sequence[MessageQueue]) -> bool:
    """Whether each member pops its own queues and those of the next one."""
    ids = sorted(one.client_id for one in members)
    own = {one: set(Averagely().allocate(one, queues, ids)) for one in ids}
    return all(
        set(one.popped_queues) == own[one.client_id] | own[ids[(ids.index(one.client_id) + 1) % len(ids)]]
        for one in members
    )


def test_a_broker_shares_out_among_those_who_ask_it(tmp_path: Path) -> None:
    """Set to pop, all members pop everything; with shares each pops its own queue and the next member's; set to pull,
    nobody pops.
    """

    async def what(producer: Producer, beside: ServedBroker) -> None:
        client, seen = producer.instance, Counter()
        wanted = PopConfig(start=FROM_FIRST, hold=0.2, shared_by_broker=True)

        def listener(messages, _context) -> None:
            seen.update(message.body for message in messages)

        members = [reader(beside, listener, wanted) for _ in range(4)]
        ring = members[0].events.ring()
        await members[0].start()
        assert members[0].popped_queues == ()
        assert await query_assignment(client, "poppers", "Orders") == []
        await members[0].set_request_mode("Orders", POP)
        await until(lambda: len(seen) == 30)
        assert members[0].popped_queues == (MessageQueue("Orders", "broker-a", -1),)
        assert set(seen.values()) == {1}
        for one in members[1:]:
            await one.start()
        await set_request_mode(client, "poppers", "Orders", POP, share_queues=1)
        every = (await client.fresh_route("Orders")).subscribe_queues
        for one in members:
            one._news.set()
        await until(lambda: shares(members, every))
        for number in range(30, 50):
            await producer.send(Message("Orders", b"%d" % number))
        await until(lambda: len(seen) == 50)
        await members[0].stop()
        await until(lambda: shares(members[1:], every))
        for one in members[1:]:
            await one.stop()
        assert set(seen.values()) == {1}
        told = [event for event in ring.take() if isinstance(event, Rebalanced)]
        assert [len(event.given_up) for event in told][:2] == [0, 1]

    popping(tmp_path, what)


def test_in_order_what_failed_comes_first_and_the_rest_behind_it(tmp_path: Path) -> None:
    """Two members pop every queue in batches of four; some messages fail once or twice. Each queue's messages are done
    with in their order, each once, and a queue is never in two hands.
    """

    async def what(producer: Producer, beside: ServedBroker) -> None:
        done: dict[int, list[int]] = {}
        tries: Counter = Counter()
        busy: Counter = Counter()
        crowded: list = []

        async def listener(messages, _context) -> bool:
            (message,) = messages
            queue, at = message.queue.queue_id, message.queue_offset
            busy[queue] += 1
            if busy[queue] > 1:
                crowded.append(message)
            assert message.reconsume_times >= tries[queue, at]  # it also counts what came and was not begun
            tries[queue, at] += 1
            await asyncio.sleep(0)
            busy[queue] -= 1
            if at % 5 == 2 and tries[queue, at] <= 1 + queue % 2:
                return False
            done.setdefault(queue, []).append(at)
            return True

        config = PopConfig(start=FROM_FIRST, hold=1.0, orderly=True, pull_batch=4, suspend=0.05)
        one, other = reader(beside, listener, config), reader(beside, listener, config)
        async with one, other:
            await until(lambda: sum(map(len, done.values())) == 30)
            for number in range(30, 42):
                await producer.send(Message("Orders", b"%d" % number))
            await until(lambda: sum(map(len, done.values())) == 42)
            await until(lambda: not any(one._open.values()) and not any(other._open.values()))
        assert crowded == []
        assert all(offsets == list(range(len(offsets))) for offsets in done.values())
        failed = {key: count for key, count in tries.items() if count > 1}
        assert failed.keys() == {key for key in tries if key[1] % 5 == 2}

    popping(tmp_path, what)


def test_in_order_a_killed_member_s_messages_come_again_in_order(tmp_path: Path) -> None:
    async def what(_: Producer, beside: ServedBroker) -> None:
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

    popping(tmp_path, what)


def test_in_order_what_is_worked_at_or_waits_is_nobody_else_s_for_as_long_as_it_takes(tmp_path: Path) -> None:
    """A listener took longer than the invisible time: the queue's batch came to another member meanwhile, out of turn
    with what the first one was at. Its time is renewed now, also while it waits for a worker.
    """

    async def what(_: Producer, beside: ServedBroker) -> None:
        begun: list[tuple[int, int]] = []
        done: dict[int, list[int]] = {}
        gone: list[int] = []

        async def slow(messages, _context) -> None:
            (message,) = messages
            begun.append((message.queue.queue_id, message.queue_offset))
            if len(begun) == 1:
                due = Handle.parse(message.properties[POP_CK]).due
                await until(lambda: system_clock() > due, 60)
                gone.append(due)
                assert Handle.parse(message.properties[POP_CK]).due > due, "it has more time"
            done.setdefault(message.queue.queue_id, []).append(message.queue_offset)

        one = reader(beside, slow, PopConfig(start=FROM_FIRST, hold=0.5, orderly=True, invisible=3.0, threads=1))
        other = reader(beside, slow, PopConfig(start=FROM_FIRST, hold=0.5, orderly=True))
        async with one:
            await until(lambda: len(begun) == 1)
            await until(lambda: sum(one._open.values()) == 30)
            async with other:
                await until(lambda: sum(map(len, done.values())) == 30, 60)
            assert gone
        assert one._renewing == set()
        assert Counter(begun).most_common(1)[0][1] == 1, "each came once"
        assert all(offsets == list(range(len(offsets))) for offsets in done.values())

    popping(tmp_path, what)


@pytest.mark.parametrize(
    "wrong", [{"start": FROM_TIME}, {"pull_batch": 33}, {"threads": 0}, {"strategy": "CONSISTENT_HASH"}]
)
def test_settings_that_make_no_sense_are_refused(wrong: dict) -> None:
    with pytest.raises(WrongMessage):
        PopConfig(**wrong)


@pytest.mark.parametrize("orderly", [False, True])
def test_a_stop_lets_listeners_at_work_end_and_acknowledges_them(tmp_path: Path, *, orderly: bool) -> None:
    """A clean stop cut listeners off in the middle; their messages came again after a minute."""

    async def what(_: Producer, beside: ServedBroker) -> None:
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

    popping(tmp_path, what)


@pytest.mark.parametrize("orderly", [False, True])
def test_pops_go_on_when_a_broker_that_was_away_is_back(tmp_path: Path, *, orderly: bool) -> None:
    """A look at the name servers while the broker was away left nothing to pop until the next one, 20 s later. In-order
    groups at a real broker that was killed stood still for that long.
    """

    async def what() -> None:
        seen: list[bytes] = []
        async with ListeningNameServer(port=0) as names:
            async with serving_store(tmp_path / "store", name_servers=[names.address], port=0) as server:
                port = int(server.address.rpartition(":")[2])
                async with Producer("senders", names.address) as producer:
                    await producer.send(Message("Orders", b"before"))
                config = PopConfig(start=FROM_FIRST, hold=1.0, orderly=orderly, rebalance_interval=3600)
                consumer = PopConsumer("poppers", lambda got, _: seen.append(got[0].body), names.address, config)
                consumer.subscribe("Orders")
                await consumer.start()
                await until(lambda: seen == [b"before"])
            consumer._news.set()
            await until(lambda: not consumer._news.is_set())
            await asyncio.sleep(0.3)
            async with serving_store(tmp_path / "store", name_servers=[names.address], port=port):
                async with Producer("senders", names.address) as producer:
                    await producer.send(Message("Orders", b"after"))
                await until(lambda: b"after" in seen, 30)
                await consumer.stop()

    run(what)
