"""Who waits for a message: asked again in order, and never longer than he said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from brokers import asking_broker, run, units
from pops import GROUP, pop, popped, sent

from engine.broker import pop_message as module
from engine.broker.config import BrokerConfig
from engine.broker.pop_message import HeldPop, Key, PopHolds
from engine.codec.pop import CheckPoint
from engine.remoting.codes import Refused
from engine.remoting.connection import Connection
from engine.remoting.frame import Command

KEY = Key("Orders", "popping", -1)


class Peer(Connection):
    """A connection that keeps what is sent over it."""

    def __init__(self) -> None:
        super().__init__(lambda _request, _connection: None)
        self.got: list[Command] = []

    def send(self, command: Command) -> None:
        self.got.append(command)


def table(most: int = 10, most_at: int = 10) -> PopHolds:
    return PopHolds(lambda: 1_000, lambda: (most, most_at))


def held_pop(peer: Peer, code: int, until: int = 60_000, again: Callable[[], Command | None] | None = None) -> HeldPop:
    return HeldPop(Command(200050), peer, KEY, until, again or (lambda: Command(code)))


def test_whose_time_ends_first_is_asked_first() -> None:
    async def scenario() -> None:
        holds, peer = table(), Peer()
        for code, until in ((1, 70_000), (2, 60_000), (3, 60_000)):
            holds.hold(held_pop(peer, code, until), {})
        assert (len(holds), holds.count(KEY), holds.keys) == (3, 3, [KEY])
        while holds.wake_first(KEY):
            pass
        assert [item.code for item in peer.got] == [2, 3, 1]
        assert (len(holds), holds.keys) == (0, [])

    run(scenario)


def test_who_finds_nothing_may_wait_on() -> None:
    async def scenario() -> None:
        holds, peer = table(), Peer()

        def again() -> None:
            holds.hold(item, {})

        item = held_pop(peer, 0, again=again)
        holds.hold(item, {})
        assert holds.wake_first(KEY)
        assert (len(holds), peer.got) == (1, [])
        holds.release(item)
        assert not holds.release(item)

    run(scenario)


def test_who_does_not_read_is_handed_nothing_and_others_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client whose pops waited read none of its answers. Each message that came was handed to it, and was invisible
    for everybody else.
    """
    monkeypatch.setattr(module, "CONGESTED_S", 0.01)

    async def scenario() -> None:
        holds, deaf, peer = table(), Peer(), Peer()
        holds.hold(held_pop(deaf, 1), {("Orders", 0): 5})
        deaf.is_congested = True
        assert not holds.wake_first(KEY)
        assert not list(holds.grown(lambda _queue: 6))
        holds.hold(held_pop(peer, 2), {})
        assert [pop.connection for pop, *_ in holds.grown(lambda _queue: 6)] == [peer]
        assert holds.wake_first(KEY)
        assert ([item.code for item in peer.got], deaf.got) == ([2], [])
        holds.wake(holds._held[KEY].waiting[0])
        assert (deaf.got, len(holds)) == ([], 1)
        deaf.is_congested = False
        while len(holds):
            await asyncio.sleep(0.005)
        assert [one.code for one in deaf.got] == [1]

    run(scenario)


def test_a_refusal_is_an_answer() -> None:
    async def scenario() -> None:
        holds, peer = table(), Peer()

        def again() -> Command:
            raise Refused(17, "no such topic", {"popTime": "0"})

        holds.hold(held_pop(peer, 0, again=again), {})
        holds.wake_first(KEY)
        (answer,) = peer.got
        assert (answer.code, answer.remark, answer.fields) == (17, "no such topic", {"popTime": "0"})

    run(scenario)


def test_only_queues_that_have_grown_wake() -> None:
    async def scenario() -> None:
        holds, peer = table(), Peer()
        item = held_pop(peer, 0)
        holds.hold(item, {("Orders", 0): 5, ("Orders", 1): 7})
        ends = {("Orders", 0): 5, ("Orders", 1): 9}
        assert list(holds.grown(ends.__getitem__)) == [(item, ("Orders", 1), 7, 9)]
        assert list(holds.grown(ends.__getitem__)) == []
        holds.release(item)

    run(scenario)


def test_there_is_room_for_so_many() -> None:
    async def scenario() -> None:
        holds, peer = table(most=2, most_at=0), Peer()
        assert not holds.is_full(KEY)
        holds.hold(held_pop(peer, 0), {})
        assert holds.is_full(KEY)
        assert not holds.is_full(Key("Other", "popping", -1))
        holds.hold(HeldPop(Command(200050), peer, Key("Other", "popping", -1), 60_000, lambda: None), {})
        assert holds.is_full(Key("Third", "popping", -1))
        holds.forget(peer)
        assert len(holds) == 0

    run(scenario)


def test_a_hold_ends_a_little_before_its_time() -> None:
    holds = table()
    assert [holds.is_late(until) for until in (1_049, 1_050)] == [True, False]


def test_at_the_end_everybody_is_asked_once_more() -> None:
    async def scenario() -> None:
        holds, peer = table(), Peer()
        holds.hold(held_pop(peer, 210), {})
        holds.end()
        assert holds.ended
        assert [item.code for item in peer.got] == [210]

    run(scenario)


def test_messages_are_handed_out_once_and_remembered(tmp_path: Path) -> None:
    """The three texts, and a checkpoint in the timer topic that says the same."""

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one", b"two")
            answer = await pop(client)
            assert (answer.code, answer.remark) == (0, "FOUND")
            assert [unit.body for unit in popped(answer)] == [b"one", b"two"]
            fields = answer.fields
            assert (fields["startOffsetInfo"], fields["msgOffsetInfo"]) == ("0 0 0", "0 0 0,1")
            assert (fields["invisibleTime"], fields["reviveQid"], fields["restNum"]) == ("60000", "0", "0")
            (waiting,) = units(client, "rmq_sys_wheel_timer")
            pop_time = int(fields["popTime"])
            point = CheckPoint("Orders", GROUP, 0, 0, pop_time, 60_000, "broker-a", (0, 1))
            assert waiting.body == point.body()
            assert waiting.properties["UNIQ_KEY"] == f"Orders@0@0@{GROUP}@{pop_time}@broker-a@ck"
            assert waiting.properties["REAL_TOPIC"] == "rmq_sys_REVIVE_LOG_DefaultCluster"
            assert waiting.properties["TIMER_DELIVER_MS"] == str(pop_time + 59_000)
            assert json.loads(waiting.body)["reviveTime"] == pop_time + 60_000
            assert client.server.broker.store.tables.consumer_offset(GROUP, "Orders", 0) == 2
            repeated = await pop(client)
            assert (repeated.code, repeated.remark, repeated.fields["startOffsetInfo"]) == (
                210,
                "NO_MESSAGE_IN_QUEUE",
                "",
            )
            assert repeated.fields["reviveQid"] == "1"

    run(scenario)


def test_what_a_filter_passes_over_is_passed_over_for_good(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"paid", properties="TAGS\x01paid\x02")
            await sent(client, b"sent", properties="TAGS\x01sent\x02")
            answer = await pop(client, exp="sent || lost", expType="TAG")
            assert (answer.fields["startOffsetInfo"], answer.fields["msgOffsetInfo"]) == ("0 0 0", "0 0 1")
            await sent(client, b"paid too", properties="TAGS\x01paid\x02")
            assert (await pop(client, exp="sent")).code == 210
            assert client.server.broker.store.tables.consumer_offset(GROUP, "Orders", 0) == 3
            await sent(client, b"gift", properties="amount\x0112\x02")
            sql = await pop(client, exp="amount > 11", expType="SQL92")
            assert [unit.body for unit in popped(sql)] == [b"gift"]

    run(scenario)


def test_a_pop_waits_for_a_message(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one")
            await pop(client)
            waiting = asyncio.create_task(pop(client, pollTime=10_000, exp="sent"))
            while not len(client.server.broker.pops):
                await asyncio.sleep(0.001)
            await sent(client, b"not mine", properties="TAGS\x01paid\x02")
            assert len(client.server.broker.pops) == 1
            await sent(client, b"mine", properties="TAGS\x01sent\x02")
            assert [unit.body for unit in popped(await waiting)] == [b"mine"]
            held = await pop(client, pollTime=120)
            assert (held.code, held.remark) == (210, "NO_MESSAGE_IN_QUEUE")

    run(scenario)


def test_who_waits_at_one_place_too_many_is_sent_away(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path, BrokerConfig(pop_holds=1)) as client:
            await sent(client, b"one")
            await pop(client)
            waiting = asyncio.create_task(pop(client, pollTime=500))
            while not len(client.server.broker.pops):
                await asyncio.sleep(0.001)
            assert (await pop(client, pollTime=500)).code == 209
            assert (await waiting).code == 210

    run(scenario)


def test_a_broker_that_ends_answers_who_waits(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one")
            await pop(client)
            waiting = asyncio.create_task(pop(client, pollTime=30_000))
            while not len(client.server.broker.pops):
                await asyncio.sleep(0.001)
            client.server.broker.pops.end()
            assert (await waiting).code == 210

    run(scenario)


def test_refusals_are_rocketmqs(tmp_path: Path) -> None:
    """Each with the four numbers, as zeros."""

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one")
            zeros = {"popTime": "0", "invisibleTime": "0", "reviveQid": "0", "restNum": "0"}
            late = await pop(client, bornTime=1)
            assert (late.code, late.fields) == (210, zeros)
            assert late.remark == "the broker[127.0.0.1] pop message is timeout too much"
            assert (await pop(client, maxMsgNums=33)).code == 29
            assert (await pop(client, topic="None")).code == 17
            assert (await pop(client, queueId=9)).code == 29
            wrong = await pop(client, exp="amount >", expType="SQL92")
            assert (wrong.code, wrong.remark) == (23, "parse the consumer's subscription failed")
            client.server.broker.topics.group(GROUP)
            client.server.broker.store.tables.create_group(GROUP, extra_members={"consumeEnable": False})
            assert (await pop(client)).code == 16

    run(scenario)


def test_a_slave_hands_nothing_out(tmp_path: Path) -> None:
    """It could store no checkpoint: nobody would know of the messages."""

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one")
            store = client.server.broker.store
            master, store.config = store.config, replace(store.config, broker_role="SLAVE")
            answer = await pop(client)
            store.config = master
            assert (answer.code, answer.remark) == (16, "the broker[127.0.0.1] pop message is forbidden")

    run(scenario)


def test_a_group_begins_where_it_asks_to(tmp_path: Path) -> None:
    """Behind all but the last message; a young queue is read whole, unless the broker is told otherwise."""

    async def scenario() -> None:
        config = BrokerConfig(pop_young_queues_whole=False)
        async with asking_broker(tmp_path, config) as client:
            await sent(client, b"one", b"two", b"three")
            answer = await pop(client, initMode=1)
            assert [unit.body for unit in popped(answer)] == [b"three"]
            client.server.broker.config = BrokerConfig()
            answer = await pop(client, initMode=1, consumerGroup="young")
            assert len(popped(answer)) == 3

    run(scenario)


def test_an_offset_that_was_set_holds_for_the_next_pop(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one", b"two")
            await pop(client)
            done = await client.ask(222, topic="Orders", group=GROUP, timestamp=-1, isForce=True, offset=1, queueId=0)
            assert done.code == 0
            assert [unit.body for unit in popped(await pop(client))] == [b"two"]

    run(scenario)


def test_an_orderly_pop_blocks_its_queue(tmp_path: Path) -> None:
    """The same attempt gets the same messages; another one waits until all of them are visible again (vector 6.6)."""

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"0", b"1", b"2", b"3")
            first = await pop(client, order=True, attemptId="att-1", maxMsgNums=3, invisibleTime=60_000)
            assert first.fields["reviveQid"] == "999"
            assert (first.fields["startOffsetInfo"], first.fields["msgOffsetInfo"]) == ("0 0 0", "0 0 0,1,2")
            assert first.fields["orderCountInfo"] == "0 0 0"
            repeated = await pop(client, order=True, attemptId="att-1", maxMsgNums=3, invisibleTime=60_000)
            assert repeated.fields["msgOffsetInfo"] == "0 0 0,1,2"
            assert (await pop(client, order=True, attemptId="att-2")).code == 210
            handle = f"0 {repeated.fields['popTime']} 60000 999 0 broker-a 0"
            request_fields = {"consumerGroup": GROUP, "topic": "Orders", "queueId": 0}
            assert (await client.ask(200051, **request_fields, offset=0, extraInfo=f"{handle} 0")).code == 0
            changed = await client.ask(200053, **request_fields, offset=1, extraInfo=f"{handle} 1", invisibleTime=300)
            assert changed.fields["popTime"] == repeated.fields["popTime"]
            assert (await client.ask(200051, **request_fields, offset=2, extraInfo=f"{handle} 2")).code == 0
            freed = await pop(client, order=True, attemptId="att-3", maxMsgNums=3, pollTime=5_000)
            assert (freed.fields["startOffsetInfo"], freed.fields["msgOffsetInfo"]) == ("0 0 1", "0 0 1,2,3")
            assert freed.fields["orderCountInfo"] == "0 qo0%1 1;0 qo0%2 1;0 0 0"
            assert units(client, "rmq_sys_wheel_timer") == []

    run(scenario)
