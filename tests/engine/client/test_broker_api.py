"""Requests of clients to brokers: offsets by number and time, pulls, locks, one message by its id."""

from __future__ import annotations

from pathlib import Path

import pytest
from brokers import run_scenario
from served_broker import ServedBroker, served

from engine.client import broker_api
from engine.client.broker_api import POP, POP_CK, acknowledge, change_invisible, pop, query_assignment, set_request_mode
from engine.client.errors import BrokerRefused, ClientError, NoRoute, WrongMessage
from engine.client.instance import ClientInstance
from engine.client.messages import Message
from engine.client.producer import Producer
from engine.client.routes import MessageQueue
from engine.remoting.subscriptions import SQL92, Subscription

QUEUE = MessageQueue("Orders", "broker-a", 1)


def run_with_instance(tmp_path: Path, scenario) -> None:
    async def with_client() -> None:
        async with served(tmp_path / "store") as beside, Producer("senders", beside.namesrv) as producer:
            for number in range(3):
                await producer.send(Message("Orders", b"%d" % number, tags="abc"[number]), queue=QUEUE)
            beside.units("Orders")
            await scenario(producer.instance, beside)

    run_scenario(with_client)


def test_offsets_are_returned(tmp_path: Path) -> None:
    async def scenario(instance: ClientInstance, beside) -> None:
        assert await broker_api.max_offset(instance, QUEUE) == 3
        assert await broker_api.min_offset(instance, QUEUE) == 0
        second = beside.units("Orders", 1)[1]
        assert await broker_api.search_offset(instance, QUEUE, second.store_timestamp) in (0, 1)
        assert await broker_api.search_offset(instance, QUEUE, second.store_timestamp + 100_000) == 3
        assert await broker_api.consumer_ids(instance, "nobody", "Orders") == []
        with pytest.raises(NoRoute):
            await broker_api.consumer_ids(instance, "nobody", "Nothing")
        with pytest.raises(NoRoute):
            await broker_api.max_offset(instance, MessageQueue("Orders", "broker-z", 0))

    run_with_instance(tmp_path, scenario)


def test_pulls_filter_tags_and_return_the_next_offset(tmp_path: Path) -> None:
    async def scenario(instance: ClientInstance, _) -> None:
        result = await broker_api.pull(instance, "readers", QUEUE, Subscription.of("Orders", "a || c"), 0)
        assert (result.status, result.next_offset, result.min_offset, result.max_offset) == ("FOUND", 3, 0, 3)
        assert [message.body for message in result.messages] == [b"0", b"2"]
        assert result.messages[0].properties["MAX_OFFSET"] == "3"
        result = await broker_api.pull(instance, "readers", QUEUE, Subscription("Orders"), 3)
        assert (result.status, result.messages) == ("NO_NEW_MSG", [])
        result = await broker_api.pull(instance, "readers", QUEUE, Subscription("Orders"), 77)
        assert (result.status, result.next_offset) == ("OFFSET_ILLEGAL", 3)
        result = await broker_api.pull(instance, "readers", QUEUE, Subscription.of("Orders", "none"), 0)
        assert result.status == "NO_MATCHED_MSG"
        with pytest.raises(BrokerRefused):
            await broker_api.pull(instance, "readers", QUEUE, Subscription("Orders"), 0, sys_flag=0)
        instance.versions[instance.address("broker-a")] = 100
        with pytest.raises(ClientError, match="too old"):
            await broker_api.pull(instance, "readers", QUEUE, Subscription.of("Orders", "a>1", 0, SQL92), 0)

    run_with_instance(tmp_path, scenario)


def test_one_message_is_viewed_and_sent_back(tmp_path: Path) -> None:
    async def scenario(instance: ClientInstance, beside) -> None:
        unit = beside.units("Orders", 1)[2]
        results = await broker_api.view_message(instance, QUEUE, unit.offset_msg_id)
        assert results.body == b"2"
        with pytest.raises(ClientError, match="not an offset message id"):
            await broker_api.view_message(instance, QUEUE, "x")
        await broker_api.send_back(instance, "readers", results, 1, 16)
        assert len(beside.units("SCHEDULE_TOPIC_XXXX", 0)) == 1

    run_with_instance(tmp_path, scenario)


def test_one_client_at_a_time_has_a_lock(tmp_path: Path) -> None:
    async def scenario(instance: ClientInstance, beside) -> None:
        second_instance = ClientInstance(beside.namesrv)
        await second_instance.route("Orders")
        assert await broker_api.lock(instance, "readers", [QUEUE]) == {QUEUE}
        assert await broker_api.lock(second_instance, "readers", [QUEUE]) == set()
        await broker_api.unlock(instance, "readers", [QUEUE])
        assert await broker_api.max_offset(instance, QUEUE) == 3  # on the same connection, so behind it
        assert await broker_api.lock(second_instance, "readers", [QUEUE]) == {QUEUE}
        await second_instance.kill()

    run_with_instance(tmp_path, scenario)


def test_offsets_are_committed_either_way(tmp_path: Path) -> None:
    async def scenario(instance: ClientInstance, _) -> None:
        assert await broker_api.query_offset(instance, "readers", QUEUE) in (None, 0)
        await broker_api.pull(instance, "readers", QUEUE, Subscription("Orders"), 0)
        await broker_api.commit_offset(instance, "readers", QUEUE, 2)
        assert await broker_api.query_offset(instance, "readers", QUEUE) == 2
        await broker_api.commit_offset(instance, "readers", QUEUE, 1, one_way=False)
        assert await broker_api.query_offset(instance, "readers", QUEUE) == 1

    run_with_instance(tmp_path, scenario)


def popping(tmp_path: Path, scenario) -> None:
    async def with_client() -> None:
        async with served(tmp_path / "store") as beside, Producer("senders", beside.namesrv) as producer:
            for number in range(30):
                await producer.send(Message("Orders", b"%d" % number))
            beside.units("Orders")
            await scenario(producer, beside)

    run_scenario(with_client)


def test_one_pop_by_hand(tmp_path: Path) -> None:
    async def scenario(producer: Producer, _: ServedBroker) -> None:
        client, expected = producer.instance, Subscription("Orders")
        result = await pop(client, "poppers", "broker-a", expected, max_messages=4, from_first=True)
        assert (result.status, len(result.messages)) == ("FOUND", 4)
        message_0 = result.messages[0]
        words = message_0.properties[POP_CK].split(" ")
        assert words[4:] == ["0", "broker-a", str(message_0.queue_id), str(message_0.queue_offset)]
        for message in result.messages[1:]:
            await acknowledge(client, "poppers", message)
        handle_before = message_0.properties[POP_CK]
        await change_invisible(client, "poppers", message_0, 30.0)
        assert message_0.properties[POP_CK] != handle_before
        await acknowledge(client, "poppers", message_0)
        empty = await pop(client, "others", "broker-a", Subscription.of("Orders", "none"), from_first=True)
        assert (empty.status, empty.messages) == ("NO_NEW_MSG", [])
        with pytest.raises(BrokerRefused):
            await pop(client, "poppers", "broker-a", expected, max_messages=33)
        message_0.properties.pop(POP_CK)
        with pytest.raises(WrongMessage, match="not popped"):
            await acknowledge(client, "poppers", message_0)

    popping(tmp_path, scenario)


def test_temporary_failures_are_retried_and_refusals_are_reported(tmp_path: Path) -> None:
    async def scenario(producer: Producer, _: ServedBroker) -> None:
        client = producer.instance
        assert await query_assignment(client, "nobody", "Orders") is None
        with pytest.raises(NoRoute):
            await query_assignment(client, "nobody", "Nothing")
        with pytest.raises(WrongMessage, match="expected POP or PULL"):
            await set_request_mode(client, "poppers", "Orders", "PUSH")
        with pytest.raises(NoRoute):
            await set_request_mode(client, "poppers", "Nothing", POP)

    popping(tmp_path, scenario)


def test_the_same_attempt_gets_the_same_messages(tmp_path: Path) -> None:
    async def scenario(producer: Producer, _: ServedBroker) -> None:
        client, expected = producer.instance, Subscription("Orders")
        extra = {"queue_id": 0, "max_messages": 2, "from_first": True, "orderly": True}
        first_pop = await pop(client, "poppers", "broker-a", expected, attempt="a1", **extra)
        assert [message.reconsume_times for message in first_pop.messages] == [0, 0]
        assert [message.properties[POP_CK].split(" ")[3] for message in first_pop.messages] == ["999", "999"]
        assert (await pop(client, "poppers", "broker-a", expected, attempt="a2", **extra)).messages == []
        repeated_pop = await pop(client, "poppers", "broker-a", expected, attempt="a1", **extra)
        assert [message.queue_offset for message in repeated_pop.messages] == [
            message.queue_offset for message in first_pop.messages
        ]
        for unit in repeated_pop.messages:
            await change_invisible(client, "poppers", unit, 0.0)
        later_pop = await pop(client, "poppers", "broker-a", expected, attempt="a3", **extra, hold=1.0)
        assert [message.reconsume_times for message in later_pop.messages] == [1, 1]
        acknowledged = later_pop.messages[0]
        await acknowledge(client, "poppers", acknowledged)
        handle = acknowledged.properties[POP_CK]
        await change_invisible(client, "poppers", acknowledged, 30.0)
        assert acknowledged.properties[POP_CK] == handle, "an acknowledged message has nothing to change"

    popping(tmp_path, scenario)
