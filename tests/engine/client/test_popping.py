"""Our consumer that pops, beside our broker: nothing is anybody's own, what is not acknowledged comes again."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from brokers import run
from clients_beside import Served, served, until

from engine.client.consuming import FROM_FIRST, FROM_TIME
from engine.client.errors import BrokerRefused, WrongMessage
from engine.client.events import Acknowledged, Delivered, PullAnswered, SentBack
from engine.client.messages import Message
from engine.client.popping import POP_CK, PopConfig, PopConsumer, acknowledge, change_invisible, pop
from engine.client.producer import Producer
from engine.remoting.subscriptions import Subscription

FIRST = PopConfig(start=FROM_FIRST, hold=1.0)


def popping(tmp_path: Path, what) -> None:
    async def both() -> None:
        async with served(tmp_path / "store") as beside, Producer("senders", beside.namesrv) as producer:
            for number in range(30):
                await producer.send(Message("Orders", b"%d" % number, tags="ab"[number % 2]))
            beside.units("Orders")
            await what(producer, beside)

    run(both)


def reader(beside: Served, listener, config: PopConfig = FIRST, expression: str = "*") -> PopConsumer:
    made = PopConsumer("poppers", listener, beside.namesrv, config)
    made.subscribe("Orders", expression)
    return made


def test_members_get_each_message_once_though_nobody_owns_a_queue(tmp_path: Path) -> None:
    async def what(producer: Producer, beside: Served) -> None:
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
    async def what(_: Producer, beside: Served) -> None:
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
    async def what(_: Producer, beside: Served) -> None:
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
            await until(lambda: len(times) == 30 and times[b"7"] == 2, 50)
        assert times == {b"%d" % number: 2 if number == 7 else 1 for number in range(30)}
        assert sum(isinstance(event, SentBack) for event in ring.take()) == 1

    popping(tmp_path, what)


def test_one_pop_by_hand(tmp_path: Path) -> None:
    async def what(producer: Producer, _: Served) -> None:
        client, wanted = producer.instance, Subscription("Orders")
        result = await pop(client, "poppers", "broker-a", wanted, most=4, from_first=True)
        assert (result.status, len(result.messages)) == ("FOUND", 4)
        first = result.messages[0]
        words = first.properties[POP_CK].split(" ")
        assert words[4:] == ["0", "broker-a", str(first.queue_id), str(first.queue_offset)]
        for one in result.messages[1:]:
            await acknowledge(client, "poppers", one)
        before = first.properties[POP_CK]
        await change_invisible(client, "poppers", first, 30.0)
        assert first.properties[POP_CK] != before
        await acknowledge(client, "poppers", first)
        empty = await pop(client, "others", "broker-a", Subscription.of("Orders", "none"), from_first=True)
        assert (empty.status, empty.messages) == ("NO_NEW_MSG", [])
        with pytest.raises(BrokerRefused):
            await pop(client, "poppers", "broker-a", wanted, most=33)
        first.properties.pop(POP_CK)
        with pytest.raises(WrongMessage, match="not popped"):
            await acknowledge(client, "poppers", first)

    popping(tmp_path, what)


@pytest.mark.parametrize("wrong", [{"start": FROM_TIME}, {"pull_batch": 33}, {"threads": 0}])
def test_settings_that_make_no_sense_are_refused(wrong: dict) -> None:
    with pytest.raises(WrongMessage):
        PopConfig(**wrong)
