"""What clients ask of brokers: offsets by number and time, pulls, locks, one message by its id."""

from __future__ import annotations

from pathlib import Path

import pytest
from brokers import run
from clients_beside import served

from engine.client import questions
from engine.client.errors import BrokerRefused, ClientError, NoRoute
from engine.client.instance import ClientInstance
from engine.client.messages import Message
from engine.client.producer import Producer
from engine.client.routes import MessageQueue
from engine.remoting.subscriptions import SQL92, Subscription

QUEUE = MessageQueue("Orders", "broker-a", 1)


def asking(tmp_path: Path, what) -> None:
    async def both() -> None:
        async with served(tmp_path / "store") as beside, Producer("senders", beside.namesrv) as producer:
            for number in range(3):
                await producer.send(Message("Orders", b"%d" % number, tags="abc"[number]), queue=QUEUE)
            beside.units("Orders")
            await what(producer.instance, beside)

    run(both)


def test_offsets_are_told(tmp_path: Path) -> None:
    async def what(instance: ClientInstance, beside) -> None:
        assert await questions.max_offset(instance, QUEUE) == 3
        assert await questions.min_offset(instance, QUEUE) == 0
        second = beside.units("Orders", 1)[1]
        assert await questions.search_offset(instance, QUEUE, second.store_timestamp) in (0, 1)
        assert await questions.search_offset(instance, QUEUE, second.store_timestamp + 100_000) == 3
        assert await questions.consumer_ids(instance, "nobody", "Orders") == []
        with pytest.raises(NoRoute):
            await questions.consumer_ids(instance, "nobody", "Nothing")
        with pytest.raises(NoRoute):
            await questions.max_offset(instance, MessageQueue("Orders", "broker-z", 0))

    asking(tmp_path, what)


def test_pulls_filter_tags_and_say_where_to_go_on(tmp_path: Path) -> None:
    async def what(instance: ClientInstance, _) -> None:
        result = await questions.pull(instance, "readers", QUEUE, Subscription.of("Orders", "a || c"), 0)
        assert (result.status, result.next_offset, result.min_offset, result.max_offset) == ("FOUND", 3, 0, 3)
        assert [one.body for one in result.messages] == [b"0", b"2"]
        assert result.messages[0].properties["MAX_OFFSET"] == "3"
        result = await questions.pull(instance, "readers", QUEUE, Subscription("Orders"), 3)
        assert (result.status, result.messages) == ("NO_NEW_MSG", [])
        result = await questions.pull(instance, "readers", QUEUE, Subscription("Orders"), 77)
        assert (result.status, result.next_offset) == ("OFFSET_ILLEGAL", 3)
        result = await questions.pull(instance, "readers", QUEUE, Subscription.of("Orders", "none"), 0)
        assert result.status == "NO_MATCHED_MSG"
        with pytest.raises(BrokerRefused):
            await questions.pull(instance, "readers", QUEUE, Subscription("Orders"), 0, sys_flag=0)
        instance.versions[instance.address("broker-a")] = 100
        with pytest.raises(ClientError, match="too old"):
            await questions.pull(instance, "readers", QUEUE, Subscription.of("Orders", "a>1", 0, SQL92), 0)

    asking(tmp_path, what)


def test_one_message_is_viewed_and_sent_back(tmp_path: Path) -> None:
    async def what(instance: ClientInstance, beside) -> None:
        unit = beside.units("Orders", 1)[2]
        found = await questions.view_message(instance, QUEUE, unit.offset_msg_id)
        assert found.body == b"2"
        with pytest.raises(ClientError, match="not an offset message id"):
            await questions.view_message(instance, QUEUE, "x")
        await questions.send_back(instance, "readers", found, 1, 16)
        assert len(beside.units("SCHEDULE_TOPIC_XXXX", 0)) == 1

    asking(tmp_path, what)


def test_one_client_at_a_time_has_a_lock(tmp_path: Path) -> None:
    async def what(instance: ClientInstance, beside) -> None:
        other = ClientInstance(beside.namesrv)
        await other.route("Orders")
        assert await questions.lock(instance, "readers", [QUEUE]) == {QUEUE}
        assert await questions.lock(other, "readers", [QUEUE]) == set()
        await questions.unlock(instance, "readers", [QUEUE])
        assert await questions.max_offset(instance, QUEUE) == 3  # on the same connection, so behind it
        assert await questions.lock(other, "readers", [QUEUE]) == {QUEUE}
        await other.kill()

    asking(tmp_path, what)


def test_offsets_are_committed_either_way(tmp_path: Path) -> None:
    async def what(instance: ClientInstance, _) -> None:
        assert await questions.query_offset(instance, "readers", QUEUE) in (None, 0)
        await questions.pull(instance, "readers", QUEUE, Subscription("Orders"), 0)
        await questions.commit_offset(instance, "readers", QUEUE, 2)
        assert await questions.query_offset(instance, "readers", QUEUE) == 2
        await questions.commit_offset(instance, "readers", QUEUE, 1, one_way=False)
        assert await questions.query_offset(instance, "readers", QUEUE) == 1

    asking(tmp_path, what)
