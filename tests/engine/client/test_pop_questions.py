"""What a client that pops asks a broker of ours: messages by hand, more time for them, whose a queue is."""

from __future__ import annotations

from pathlib import Path

import pytest
from brokers import run
from clients_beside import Served, served

from engine.client.errors import BrokerRefused, NoRoute, WrongMessage
from engine.client.messages import Message
from engine.client.pop_questions import (
    POP,
    POP_CK,
    acknowledge,
    change_invisible,
    pop,
    query_assignment,
    set_request_mode,
)
from engine.client.producer import Producer
from engine.remoting.subscriptions import Subscription


def popping(tmp_path: Path, what) -> None:
    async def both() -> None:
        async with served(tmp_path / "store") as beside, Producer("senders", beside.namesrv) as producer:
            for number in range(30):
                await producer.send(Message("Orders", b"%d" % number))
            beside.units("Orders")
            await what(producer, beside)

    run(both)


def test_one_pop_by_hand(tmp_path: Path) -> None:
    async def what(producer: Producer, _: Served) -> None:
        client, wanted = producer.instance, Subscription("Orders")
        result = await pop(client, "poppers", "broker-a", wanted, max_messages=4, from_first=True)
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
            await pop(client, "poppers", "broker-a", wanted, max_messages=33)
        first.properties.pop(POP_CK)
        with pytest.raises(WrongMessage, match="not popped"):
            await acknowledge(client, "poppers", first)

    popping(tmp_path, what)


def test_what_brokers_cannot_say_is_asked_again_and_what_they_refuse_is_told(tmp_path: Path) -> None:
    async def what(producer: Producer, _: Served) -> None:
        client = producer.instance
        assert await query_assignment(client, "nobody", "Orders") is None
        with pytest.raises(NoRoute):
            await query_assignment(client, "nobody", "Nothing")
        with pytest.raises(WrongMessage, match="expected POP or PULL"):
            await set_request_mode(client, "poppers", "Orders", "PUSH")
        with pytest.raises(NoRoute):
            await set_request_mode(client, "poppers", "Nothing", POP)

    popping(tmp_path, what)


def test_the_same_attempt_gets_the_same_messages(tmp_path: Path) -> None:
    async def what(producer: Producer, _: Served) -> None:
        client, wanted = producer.instance, Subscription("Orders")
        more = {"queue_id": 0, "max_messages": 2, "from_first": True, "orderly": True}
        first = await pop(client, "poppers", "broker-a", wanted, attempt="a1", **more)
        assert [one.reconsume_times for one in first.messages] == [0, 0]
        assert [one.properties[POP_CK].split(" ")[3] for one in first.messages] == ["999", "999"]
        assert (await pop(client, "poppers", "broker-a", wanted, attempt="a2", **more)).messages == []
        again = await pop(client, "poppers", "broker-a", wanted, attempt="a1", **more)
        assert [one.queue_offset for one in again.messages] == [one.queue_offset for one in first.messages]
        for one in again.messages:
            await change_invisible(client, "poppers", one, 0.0)
        later = await pop(client, "poppers", "broker-a", wanted, attempt="a3", **more, hold=1.0)
        assert [one.reconsume_times for one in later.messages] == [1, 1]
        done = later.messages[0]
        await acknowledge(client, "poppers", done)
        handle = done.properties[POP_CK]
        await change_invisible(client, "poppers", done, 30.0)
        assert done.properties[POP_CK] == handle, "it is done with: there is nothing to change"

    popping(tmp_path, what)
