"""Pops hand out each message once, with a checkpoint; those without messages wait."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from brokers import asking_broker, run_scenario, units
from pops import GROUP, pop, popped, queues_popped, send_priorities, sent

from engine.broker.config import BrokerConfig
from engine.codec.pop import CheckPoint


def test_messages_are_handed_out_once_and_remembered(tmp_path: Path) -> None:
    """The answer's three texts, and the checkpoint in the timer topic, name the same messages."""

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

    run_scenario(scenario)


def test_messages_that_a_filter_skips_stay_skipped(tmp_path: Path) -> None:
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

    run_scenario(scenario)


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
            timed_out = await pop(client, pollTime=120)
            assert (timed_out.code, timed_out.remark) == (210, "NO_MESSAGE_IN_QUEUE")

    run_scenario(scenario)


def test_a_pop_over_the_limit_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path, BrokerConfig(pop_holds=1)) as client:
            await sent(client, b"one")
            await pop(client)
            waiting = asyncio.create_task(pop(client, pollTime=500))
            while not len(client.server.broker.pops):
                await asyncio.sleep(0.001)
            assert (await pop(client, pollTime=500)).code == 209
            assert (await waiting).code == 210

    run_scenario(scenario)


def test_a_stopping_broker_answers_held_pops(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one")
            await pop(client)
            waiting = asyncio.create_task(pop(client, pollTime=30_000))
            while not len(client.server.broker.pops):
                await asyncio.sleep(0.001)
            client.server.broker.pops.end()
            assert (await waiting).code == 210

    run_scenario(scenario)


def test_refusals_have_rocketmqs_codes_and_messages(tmp_path: Path) -> None:
    """Each refusal carries the four number fields, all zero."""

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

    run_scenario(scenario)


def test_a_slave_hands_nothing_out(tmp_path: Path) -> None:
    """A slave cannot store a checkpoint, so the popped messages would be forgotten."""

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one")
            store = client.server.broker.store
            master, store.config = store.config, replace(store.config, broker_role="SLAVE")
            answer = await pop(client)
            store.config = master
            assert (answer.code, answer.remark) == (16, "the broker[127.0.0.1] pop message is forbidden")

    run_scenario(scenario)


def test_a_group_begins_at_the_requested_position(tmp_path: Path) -> None:
    """A group begins after the last message or at the first. A young queue is read from its beginning unless the broker
    is configured otherwise.
    """

    async def scenario() -> None:
        config = BrokerConfig(pop_young_queues_whole=False)
        async with asking_broker(tmp_path, config) as client:
            await sent(client, b"one", b"two", b"three")
            answer = await pop(client, initMode=1)
            assert [unit.body for unit in popped(answer)] == [b"three"]
            client.server.broker.config = BrokerConfig()
            answer = await pop(client, initMode=1, consumerGroup="young")
            assert len(popped(answer)) == 3

    run_scenario(scenario)


def test_a_reset_offset_applies_to_the_next_pop(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one", b"two")
            await pop(client)
            done = await client.ask(222, topic="Orders", group=GROUP, timestamp=-1, isForce=True, offset=1, queueId=0)
            assert done.code == 0
            assert [unit.body for unit in popped(await pop(client))] == [b"two"]

    run_scenario(scenario)


def test_a_reset_counts_messages_that_are_not_dispatched_yet(tmp_path: Path) -> None:
    """A reset right after the sends was refused, or the next pop began at the first message. A test of RocketMQ's own
    found it.
    """

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"popped")
            await pop(client)
            services = client.server.broker.store.services
            services.pause("reput")
            for body in (b"skipped", b"skipped", b"next"):
                await client.send("Orders", body, queueId=0)
            done = await client.ask(222, topic="Orders", group=GROUP, timestamp=0, isForce=True, offset=3, queueId=0)
            assert (done.code, done.remark) == (0, None)
            assert [unit.body for unit in popped(await pop(client))] == [b"next"]
            await client.send("Orders", b"last", queueId=0)
            at_end = await client.ask(222, topic="Orders", group=GROUP, timestamp=-1, isForce=True, queueId=0)
            assert b":5" in at_end.body
            services.resume("reput")

    run_scenario(scenario)


@pytest.mark.parametrize("order", [False, True])
def test_a_pop_gets_messages_that_are_not_dispatched_yet(tmp_path: Path, order: bool) -> None:
    """A pop right after ten sends got nine messages. A test of RocketMQ's own found it."""

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"first")
            services = client.server.broker.store.services
            services.pause("reput")
            await client.send("Orders", b"second", queueId=0)
            assert [unit.body for unit in popped(await pop(client, queueId=0, order=order))] == [b"first", b"second"]
            services.resume("reput")

    run_scenario(scenario)


def test_an_orderly_pop_blocks_its_queue(tmp_path: Path) -> None:
    """The same attempt gets the same messages. Another attempt waits until all are visible again (vector 6.6)."""

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"0", b"1", b"2", b"3")
            popped = await pop(client, order=True, attemptId="att-1", maxMsgNums=3, invisibleTime=60_000)
            assert popped.fields["reviveQid"] == "999"
            assert (popped.fields["startOffsetInfo"], popped.fields["msgOffsetInfo"]) == ("0 0 0", "0 0 0,1,2")
            assert popped.fields["orderCountInfo"] == "0 0 0"
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

    run_scenario(scenario)


def test_pops_of_a_priority_topic_read_the_highest_queue_first(tmp_path: Path) -> None:
    """``priorityOrderAsc=false`` turns the order; a group with ``priority.factor`` 0 has none."""

    async def scenario() -> None:
        async with asking_broker(tmp_path, release="5.5") as client:
            await send_priorities(client)
            assert await queues_popped(client, "high") == [3, 3, 2, 2, 1, 1, 0, 0]
            broker = client.server.broker
            broker.config = replace(broker.config, priority_ascending=False)
            assert await queues_popped(client, "low") == [0, 0, 1, 1, 2, 2, 3, 3]
            row = {"groupName": "any", "attributes": {"+priority.factor": "0"}}
            assert (await client.ask(200, json.dumps(row).encode())).code == 0
            assert sorted(await queues_popped(client, "any")) == [0, 0, 1, 1, 2, 2, 3, 3]

    run_scenario(scenario)
