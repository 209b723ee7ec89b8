"""A broker that runs for the length of a block, with an event loop and without one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from engine.broker.registration import Registration
from engine.broker.serving import Addresses, serving, serving_beside
from engine.errors import StoreError
from engine.message_store import Message, MessageStore
from engine.remoting.connection import connect
from engine.remoting.frame import Command


async def counted(addresses: Addresses) -> tuple[str, int]:
    """Return the end of queue 0 of Orders, and the name server's answer code for that topic."""
    answers = []
    for address, request in (
        (addresses.broker, Command(30, {"topic": "Orders", "queueId": "0"})),
        (addresses.namesrv, Command(105, {"topic": "TBW102"})),
    ):
        host, _, port = address.rpartition(":")
        connection = await connect(host, int(port))
        answers.append(await connection.ask(request))
        connection.close()
    return answers[0].fields["offset"], answers[1].code


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with MessageStore(tmp_path / "store") as message_store:
        message_store.put_message(Message("Orders", b"one"))
    return tmp_path / "store"


def test_a_broker_serves_with_an_event_loop(store: Path) -> None:
    async def scenario() -> None:
        async with serving(store) as addresses:
            assert await counted(addresses) == ("1", 0)

    asyncio.run(scenario())


def test_a_broker_serves_without_an_event_loop(store: Path) -> None:
    for _ in range(2):
        with serving_beside(store) as addresses:
            assert asyncio.run(counted(addresses)) == ("1", 0)


def test_a_locked_store_is_refused(store: Path) -> None:
    with MessageStore(store), pytest.raises(StoreError), serving_beside(store):
        pass


def test_a_declared_topic_is_at_the_name_server_before_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Registration.step

    async def slow(self: Registration) -> None:
        await asyncio.sleep(0.02)
        await step(self)

    monkeypatch.setattr(Registration, "step", slow)

    async def scenario() -> None:
        async with serving(tmp_path / "store") as addresses:
            (names, broker) = [
                await connect(*_host_and_port(position)) for position in (addresses.namesrv, addresses.broker)
            ]
            for number in range(3):
                topic = {
                    "topic": f"Made{number}",
                    "readQueueNums": "3",
                    "writeQueueNums": "3",
                    "perm": "6",
                    "topicFilterType": "SINGLE_TAG",
                    "topicSysFlag": "0",
                    "order": "false",
                    "defaultTopic": "TBW102",
                }
                assert (await broker.ask(Command(17, topic, version=477))).code == 0
                assert (await names.ask(Command(105, {"topic": f"Made{number}"}, version=477))).code == 0
            assert (await broker.ask(Command(215, {"topic": "Made0"}, version=477))).code == 0
            names.close()
            broker.close()

    asyncio.run(scenario())


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)
