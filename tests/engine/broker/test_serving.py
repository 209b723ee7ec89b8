"""A broker for as long as a block lasts, with an event loop and without one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from engine.broker.serving import Addresses, serving, serving_beside
from engine.errors import StoreError
from engine.message_store import Message, MessageStore
from engine.remoting.connection import connect
from engine.remoting.frame import Command


async def counted(addresses: Addresses) -> tuple[str, int]:
    """The end of queue 0 of Orders, and how the name server answers for that topic."""
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
    with MessageStore(tmp_path / "store") as made:
        made.put_message(Message("Orders", b"one"))
    return tmp_path / "store"


def test_with_an_event_loop(store: Path) -> None:
    async def told() -> None:
        async with serving(store) as addresses:
            assert await counted(addresses) == ("1", 0)

    asyncio.run(told())


def test_without_one(store: Path) -> None:
    for _ in range(2):
        with serving_beside(store) as addresses:
            assert asyncio.run(counted(addresses)) == ("1", 0)


def test_a_store_that_somebody_holds_is_refused(store: Path) -> None:
    with MessageStore(store), pytest.raises(StoreError), serving_beside(store):
        pass
