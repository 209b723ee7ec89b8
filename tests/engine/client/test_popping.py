"""Our pop consumer beside our broker: no client owns a queue, and unacknowledged messages are delivered again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from brokers import run_scenario
from served_broker import ServedBroker, served, wait_until

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

FROM_FIRST_CONFIG = PopConfig(start=FROM_FIRST, hold=1.0)


def popping(tmp_path: Path, scenario) -> None:
    async def with_client() -> None:
        async with served(tmp_path / "store") as beside, Producer("senders", beside.namesrv) as producer:
            for number in range(30):
                await producer.send(Message("Orders", b"%d" % number, tags="ab"[number % 2]))
            beside.units("Orders")
            await scenario(producer, beside)

    run_scenario(with_client)


def reader(beside: ServedBroker, listener, config: PopConfig = FROM_FIRST_CONFIG, expression: str = "*") -> PopConsumer:
    consumer = PopConsumer("poppers", listener, beside.namesrv, config)
    consumer.subscribe("Orders", expression)
    return consumer


def test_members_get_each_message_once_without_owning_queues(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        first_messages: list = []
        second_messages: list = []
        first_member, second_member = (
            reader(beside, lambda got, _: first_messages.extend(got)),
            reader(beside, lambda got, _: second_messages.extend(got)),
        )
        ring = first_member.events.ring()
        async with first_member, second_member:
            await wait_until(lambda: len(first_messages) + len(second_messages) == 30)
            for number in range(30, 40):
                await producer.send(Message("Orders", b"%d" % number))
            await wait_until(lambda: len(first_messages) + len(second_messages) == 40)
            await wait_until(lambda: not any(first_member._open.values()) and not any(second_member._open.values()))
        assert Counter(message.body for message in first_messages + second_messages) == {
            b"%d" % number: 1 for number in range(40)
        }
        assert all(message.queue.topic == "Orders" for message in first_messages)
        kinds = Counter(type(event) for event in ring.take())
        assert kinds[Delivered] == kinds[Acknowledged] == len(first_messages)
        assert kinds[PullAnswered] > 0

    popping(tmp_path, scenario)


def test_tags_select_messages_and_pops_can_be_paused(tmp_path: Path) -> None:
    async def scenario(_: Producer, beside: ServedBroker) -> None:
        observed: list = []
        item = reader(beside, lambda got, _: observed.extend(got), expression="a")
        item.pause()
        async with item:
            await asyncio.sleep(0.2)
            assert observed == []
            item.slow_down(0.001)
            item.resume()
            await wait_until(lambda: len(observed) == 15)
            with pytest.raises(WrongMessage, match="before it starts"):
                item.subscribe("Invoices")
        assert {message.tags for message in observed} == {"a"}

    popping(tmp_path, scenario)


def test_failed_messages_and_those_of_a_killed_member_are_delivered_again(tmp_path: Path) -> None:
    async def scenario(_: Producer, beside: ServedBroker) -> None:
        stuck_messages: list = []

        async def never_finish(messages, _context) -> None:
            stuck_messages.extend(messages)
            await asyncio.sleep(3600)

        killed = reader(beside, never_finish, PopConfig(start=FROM_FIRST, hold=0.5, invisible=5.0, threads=3))
        await killed.start()
        await wait_until(lambda: len(stuck_messages) == 3)
        await killed.kill()
        attempts: Counter = Counter()

        def listener(messages, context) -> bool:
            (message,) = messages
            attempts[message.body] += 1
            context.delay_level = 1
            return message.body != b"7" or attempts[b"7"] > 1

        consumer = reader(beside, listener)
        ring = consumer.events.ring()
        async with consumer:
            await wait_until(lambda: len(attempts) == 30 and attempts[b"7"] == 2, 60)
        assert attempts == {b"%d" % number: 2 if number == 7 else 1 for number in range(30)}
        assert sum(isinstance(event, SentBack) for event in ring.take()) == 1

    popping(tmp_path, scenario)


def shares(members: list[PopConsumer], queues: Sequence[MessageQueue]) -> bool:
    """Return True if each member pops its own queues and those of the next member."""
    ids = sorted(client.client_id for client in members)
    allocated = {client_id: set(Averagely().allocate(client_id, queues, ids)) for client_id in ids}
    return all(
        set(member.popped_queues)
        == allocated[member.client_id] | allocated[ids[(ids.index(member.client_id) + 1) % len(ids)]]
        for member in members
    )


def test_the_brokers_request_mode_decides_who_pops(tmp_path: Path) -> None:
    """In pop mode all members pop every queue. With shares each member pops its own queue and the next member's. In
    pull mode no member pops.
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
        await wait_until(lambda: len(counts) == 30)
        assert members[0].popped_queues == (MessageQueue("Orders", "broker-a", -1),)
        assert set(counts.values()) == {1}
        for member in members[1:]:
            await member.start()
        await set_request_mode(client, "poppers", "Orders", POP, share_queues=1)
        every = (await client.fresh_route("Orders")).subscribe_queues
        for member in members:
            member._news.set()
        await wait_until(lambda: shares(members, every))
        for number in range(30, 50):
            await producer.send(Message("Orders", b"%d" % number))
        await wait_until(lambda: len(counts) == 50)
        await members[0].stop()
        await wait_until(lambda: shares(members[1:], every))
        for member in members[1:]:
            await member.stop()
        assert set(counts.values()) == {1}
        events = [event for event in ring.take() if isinstance(event, Rebalanced)]
        assert [len(event.released) for event in events][:2] == [0, 1]

    popping(tmp_path, scenario)


def test_orderly_a_failed_message_is_retried_before_the_following_ones(tmp_path: Path) -> None:
    """Two members pop every queue in batches of four, and some messages fail once or twice. Each queue's messages are
    processed in order, each once, and never by two members at a time.
    """

    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        consumed_offsets: dict[int, list[int]] = {}
        tries: Counter = Counter()
        busy: Counter = Counter()
        crowded: list = []

        async def listener(messages, _context) -> bool:
            (message,) = messages
            queue, position = message.queue.queue_id, message.queue_offset
            busy[queue] += 1
            if busy[queue] > 1:
                crowded.append(message)
            assert (
                message.reconsume_times >= tries[queue, position]
            )  # the count includes deliveries that were not started
            tries[queue, position] += 1
            await asyncio.sleep(0)
            busy[queue] -= 1
            if position % 5 == 2 and tries[queue, position] <= 1 + queue % 2:
                return False
            consumed_offsets.setdefault(queue, []).append(position)
            return True

        config = PopConfig(start=FROM_FIRST, hold=1.0, orderly=True, pull_batch=4, suspend=0.05)
        first_member, second_member = reader(beside, listener, config), reader(beside, listener, config)
        async with first_member, second_member:
            await wait_until(lambda: sum(map(len, consumed_offsets.values())) == 30)
            for number in range(30, 42):
                await producer.send(Message("Orders", b"%d" % number))
            await wait_until(lambda: sum(map(len, consumed_offsets.values())) == 42)
            await wait_until(lambda: not any(first_member._open.values()) and not any(second_member._open.values()))
        assert crowded == []
        assert all(offsets == list(range(len(offsets))) for offsets in consumed_offsets.values())
        failed = {key: count for key, count in tries.items() if count > 1}
        assert failed.keys() == {key for key in tries if key[1] % 5 == 2}

    popping(tmp_path, scenario)


def test_orderly_the_messages_of_a_killed_member_are_delivered_again_in_order(tmp_path: Path) -> None:
    async def scenario(_: Producer, beside: ServedBroker) -> None:
        stuck_messages: list = []

        async def never_finish(messages, _context) -> None:
            stuck_messages.extend(messages)
            await asyncio.sleep(3600)

        config = PopConfig(start=FROM_FIRST, hold=0.5, orderly=True, invisible=2.0)
        killed = reader(beside, never_finish, config)
        await killed.start()
        queues = {unit.queue_id for unit in beside.units("Orders")}
        await wait_until(lambda: {message.queue.queue_id for message in stuck_messages} == queues)
        await killed.kill()
        assert [message.queue_offset for message in stuck_messages] == [0] * len(queues)
        consumed_offsets: dict[int, list[int]] = {}

        def listener(messages, _context) -> None:
            consumed_offsets.setdefault(messages[0].queue.queue_id, []).append(messages[0].queue_offset)

        async with reader(beside, listener, PopConfig(start=FROM_FIRST, hold=0.5, orderly=True)):
            await wait_until(lambda: sum(map(len, consumed_offsets.values())) == 30)
        assert all(offsets == list(range(len(offsets))) for offsets in consumed_offsets.values())

    popping(tmp_path, scenario)


def test_orderly_messages_in_work_or_waiting_stay_invisible_as_long_as_needed(tmp_path: Path) -> None:
    """A listener took longer than the invisible time. The queue's batch was then delivered to another member, out of
    order with the first one's work. Now the time is renewed, also for messages that wait for a worker.
    """

    async def scenario(_: Producer, beside: ServedBroker) -> None:
        begun: list[tuple[int, int]] = []
        consumed_offsets: dict[int, list[int]] = {}
        passed_due_times: list[int] = []

        async def slow(messages, _context) -> None:
            (message,) = messages
            begun.append((message.queue.queue_id, message.queue_offset))
            if len(begun) == 1:
                due = Handle.parse(message.properties[POP_CK]).due
                await wait_until(lambda: system_clock() > due, 60)
                passed_due_times.append(due)
                assert Handle.parse(message.properties[POP_CK]).due > due, "it has more time"
            consumed_offsets.setdefault(message.queue.queue_id, []).append(message.queue_offset)

        first_member = reader(
            beside, slow, PopConfig(start=FROM_FIRST, hold=0.5, orderly=True, invisible=3.0, threads=1)
        )
        second_member = reader(beside, slow, PopConfig(start=FROM_FIRST, hold=0.5, orderly=True))
        async with first_member:
            await wait_until(lambda: len(begun) == 1)
            await wait_until(lambda: sum(first_member._open.values()) == 30)
            async with second_member:
                await wait_until(lambda: sum(map(len, consumed_offsets.values())) == 30, 60)
            assert passed_due_times
        assert first_member._renewing == set()
        assert Counter(begun).most_common(1)[0][1] == 1, "each came once"
        assert all(offsets == list(range(len(offsets))) for offsets in consumed_offsets.values())

    popping(tmp_path, scenario)


@pytest.mark.parametrize(
    "wrong", [{"start": FROM_TIME}, {"pull_batch": 33}, {"threads": 0}, {"strategy": "CONSISTENT_HASH"}]
)
def test_invalid_settings_are_refused(wrong: dict) -> None:
    with pytest.raises(WrongMessage):
        PopConfig(**wrong)


@pytest.mark.parametrize("orderly", [False, True])
def test_a_stop_lets_running_listeners_finish_and_acknowledges_them(tmp_path: Path, *, orderly: bool) -> None:
    """A clean stop interrupted running listeners, and their messages were delivered again after a minute."""

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
        await wait_until(lambda: begun)
        await slow.stop()
        assert ended == begun
        assert len(begun) < 30
        assert Counter(type(event) for event in ring.take())[Acknowledged] == len(ended)

    popping(tmp_path, scenario)


@pytest.mark.parametrize("orderly", [False, True])
def test_pops_continue_when_a_broker_returns(tmp_path: Path, *, orderly: bool) -> None:
    """A route update while the broker was away left no queue to pop until the next update, 20 s later. Orderly groups
    at a real broker that was killed paused for that long.
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
                await wait_until(lambda: bodies == [b"before"])
            consumer._news.set()
            await wait_until(lambda: not consumer._news.is_set())
            await asyncio.sleep(0.3)
            async with serving_store(tmp_path / "store", name_servers=[names.address], port=port):
                async with Producer("senders", names.address) as producer:
                    await producer.send(Message("Orders", b"after"))
                await wait_until(lambda: b"after" in bodies, 30)
                await consumer.stop()

    run_scenario(scenario)
