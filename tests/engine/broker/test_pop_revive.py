"""Popped messages that nobody acknowledged become visible again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from brokers import BrokerClient, asking_broker, run_scenario, units
from pops import GROUP, pop, popped, queues_popped, send_priorities, sent

from engine.broker.config import BrokerConfig
from engine.broker.pop_revive import revive
from engine.callbacks import system_clock
from engine.codec.pop import Ack
from engine.releases import Release
from engine.store.put_message import PutMessageResult, PutMessageStatus
from engine.system_names import REVIVE_GROUP

WHERE = {"consumerGroup": GROUP, "topic": "Orders", "queueId": 0}
RETRY = f"%RETRY%{GROUP}_Orders"
REVIVE = "rmq_sys_REVIVE_LOG_DefaultCluster"


def later(client: BrokerClient, ms: int) -> None:
    """Advance the broker's clock by ``ms``: timers deliver due messages, and popped messages are revived.

    The timer service first takes in all earlier records. Otherwise an acknowledgement that is already late could
    overtake its checkpoint, and the messages would be delivered again.
    """
    broker = client.server.broker
    broker.store.wait_dispatched()
    assert broker.timers is not None
    broker.timers.step()
    clock_before: Callable[[], int] = broker.now
    broker.now = lambda: clock_before() + ms
    settle(client)


def settle(client: BrokerClient) -> None:
    broker = client.server.broker
    assert broker.timers is not None
    for _ in range(3):
        broker.store.wait_dispatched()
        broker.timers.step()
        broker.store.wait_dispatched()
    revive(broker)
    broker.store.wait_dispatched()


def test_open_messages_are_delivered_again_and_acknowledged_ones_are_not(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one", b"two", b"three", properties="TAGS\x01paid\x02KEYS\x01k1\x02")
            answer = await pop(client, invisibleTime=10_000)
            popped_at = answer.fields["popTime"]
            handle = f"0 {popped_at} 10000 0 0 broker-a 0 1"
            assert (await client.ask(200051, **WHERE, offset=1, extraInfo=handle)).code == 0
            later(client, 11_500)
            assert units(client, RETRY) == []
            later(client, 2_000)
            second_units = units(client, RETRY)
            assert [unit.body for unit in second_units] == [b"one", b"three"]
            assert {unit.reconsume_times for unit in second_units} == {1}
            assert {unit.properties["1ST_POP_TIME"] for unit in second_units} == {popped_at}
            assert {unit.tags for unit in second_units} == {"paid"}
            tables = client.server.broker.store.tables
            assert tables.consumer_offset(GROUP, RETRY, 0) == 0
            assert tables.consumer_offset(REVIVE_GROUP, REVIVE, 0) == 0
            topic = client.server.broker.topics.get(RETRY)
            assert topic is not None
            assert (topic.read_queue_nums, topic.perm) == (1, 6)

    run_scenario(scenario)


def test_a_redelivered_message_carries_its_normal_topic(tmp_path: Path) -> None:
    """The unit is stored in the retry topic, and the answer carries the normal topic's name with a handle."""

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one")
            await pop(client, invisibleTime=5_000)
            later(client, 9_000)
            answer = await pop(client, invisibleTime=5_000)
            (unit,) = popped(answer)
            assert (answer.fields["startOffsetInfo"], answer.fields["msgOffsetInfo"]) == ("1 0 0", "1 0 0")
            assert (unit.topic, unit.reconsume_times, unit.queue_offset, unit.body) == ("Orders", 1, 0, b"one")
            fields = answer.fields
            handle = f"0 {fields['popTime']} 5000 {fields['reviveQid']} 1 broker-a 0 0"
            assert unit.properties["POP_CK"] == handle
            request_fields = {**WHERE, "topic": RETRY, "offset": 0}
            assert (await client.ask(200051, **request_fields, extraInfo=handle)).code == 0
            later(client, 9_000)
            assert len(units(client, RETRY)) == 1

    run_scenario(scenario)


def test_a_third_delivery_stays_in_the_retry_topic(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one")
            for attempt in (1, 2):
                await pop(client, invisibleTime=5_000)
                later(client, 9_000)
                assert [unit.reconsume_times for unit in units(client, RETRY)] == list(range(1, attempt + 1))
            first_pop_times = {unit.properties["1ST_POP_TIME"] for unit in units(client, RETRY)}
            assert len(first_pop_times) == 1

    run_scenario(scenario)


@pytest.mark.parametrize(("release", "group"), [("5.3", None), ("5.4", "popping")])
def test_a_redelivered_message_has_its_group_since_5_4(tmp_path: Path, release: Release, group: str | None) -> None:
    """RocketMQ 5.4 and later store ORIGIN_GROUP with a message that is delivered again. Ours did not."""

    async def scenario() -> None:
        async with asking_broker(tmp_path, release=release) as client:
            await sent(client, b"one")
            await pop(client, invisibleTime=5_000)
            later(client, 9_000)
            (unit,) = units(client, RETRY)
            assert unit.properties.get("ORIGIN_GROUP") == group

    run_scenario(scenario)


@pytest.mark.parametrize(("release", "v2"), [("5.3", True), ("5.4", True), ("5.4", False)])
def test_retry_topics_wake_held_pops(tmp_path: Path, release: Release, *, v2: bool) -> None:
    """Those of the first form do since 5.4, where messages carry their group."""

    async def scenario() -> None:
        config = BrokerConfig(retry_topic_v2=v2, pop_from_retry_v1=False)
        async with asking_broker(tmp_path, config, release=release) as client:
            await sent(client, b"one")
            await pop(client, invisibleTime=1_500)
            waiting = asyncio.create_task(pop(client, pollTime=60_000))
            while not len(client.server.broker.pops):
                await asyncio.sleep(0.001)
            later(client, 5_000)
            answer = await waiting
            assert answer.fields["startOffsetInfo"] == ("2 0 0" if v2 else "1 0 0")
            assert [unit.topic for unit in popped(answer)] == ["Orders"]

    run_scenario(scenario)


def test_a_checkpoint_of_a_deleted_topic_is_skipped(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one")
            await pop(client, invisibleTime=5_000)
            assert (await client.ask(215, topic="Orders")).code == 0
            later(client, 9_000)
            assert client.server.broker.store.tables.consumer_offset(REVIVE_GROUP, REVIVE, 0) == 0
            assert client.server.broker.topics.get(RETRY) is None

    run_scenario(scenario)


def test_a_retry_that_cannot_be_put_is_repeated_later(tmp_path: Path) -> None:
    """A checkpoint for this message is stored; the first retry is ten seconds later."""

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one")
            await pop(client, invisibleTime=5_000)
            store = client.server.broker.store
            put = store.put_message

            def refuses(message):
                if message.topic == RETRY:
                    return PutMessageResult(PutMessageStatus.SERVICE_NOT_AVAILABLE)
                return put(message)

            store.put_message = refuses  # type: ignore[method-assign]
            later(client, 9_000)
            store.put_message = put  # type: ignore[method-assign]
            assert units(client, RETRY) == []
            later(client, 9_000)
            assert [unit.body for unit in units(client, RETRY)] == [b"one"]

    run_scenario(scenario)


def test_a_restarted_broker_continues_the_revival(tmp_path: Path) -> None:
    """After a restart, the revive topic is read again from the last handled checkpoint."""

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one", b"two")
            await pop(client, invisibleTime=5_000, maxMsgNums=1)
            await pop(client, invisibleTime=14_000, maxMsgNums=1)  # before any retry, which one pop in five asks first
            later(client, 9_000)
            stopped_ms = system_clock()
        async with asking_broker(tmp_path) as client:
            later(client, stopped_ms - system_clock() + 25_000)
            bodies = [unit.body for unit in units(client, RETRY)]  # what came back before may come again
            assert list(dict.fromkeys(bodies)) == [b"one", b"two"]

    run_scenario(scenario)


def test_a_batch_acknowledgement_prevents_redelivery(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one", b"two")
            answer = await pop(client, invisibleTime=5_000)
            ack = Ack("Orders", GROUP, 0, 0, int(answer.fields["popTime"]), "broker-a", offsets=(0, 1))
            body = b'{"acks":[{"b":"Aw==","c":"popping","it":5000,"pt":%d,"q":0,"r":"0","rq":0,"so":0,"t":"Orders"}]}'
            assert (await client.ask(200151, body % ack.pop_time)).code == 0
            later(client, 9_000)
            assert units(client, RETRY) == []

    run_scenario(scenario)


@pytest.mark.parametrize(("separate", "queues"), [(True, [3, 3, 2, 2, 1, 1, 0, 0]), (False, [0] * 8)])
def test_messages_return_to_their_queues_of_the_retry_topic(
    tmp_path: Path, queues: list[int], *, separate: bool
) -> None:
    async def scenario() -> None:
        config = BrokerConfig(separate_retry_queues=separate)
        async with asking_broker(tmp_path, config, release="5.5") as client:
            await send_priorities(client)
            await pop(client, maxMsgNums=32, invisibleTime=5_000)
            later(client, 9_000)
            retry_topic = client.server.broker.topics.get(RETRY)
            assert retry_topic is not None
            assert retry_topic.read_queue_nums == (4 if separate else 1)
            assert await queues_popped(client, GROUP) == queues

    run_scenario(scenario)
