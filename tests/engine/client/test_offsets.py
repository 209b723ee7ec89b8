"""Offsets on brokers, and in the file that Java's broadcasting clients write."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from brokers import run_scenario
from served_broker import served

from engine.client.errors import BrokerRefused
from engine.client.events import Committed
from engine.client.instance import ClientInstance
from engine.client.messages import Message
from engine.client.offsets import BrokerOffsets, FileOffsets, rendered
from engine.client.producer import Producer
from engine.client.routes import MessageQueue
from engine.errors import CannotRead

QUEUE, QUEUE_1 = MessageQueue("Orders", "broker-a", 0), MessageQueue("Orders", "broker-a", 1)


def test_brokers_keep_offsets(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with served(tmp_path / "store") as beside, Producer("senders", beside.namesrv) as producer:
            await producer.send(Message("Orders", b"x"), queue=QUEUE)
            ring = producer.events.ring()
            offsets = BrokerOffsets(producer.instance, "readers")
            await offsets.load()
            offsets.update(QUEUE, 5)
            offsets.update(QUEUE, 3, only_up=True)
            assert offsets.known(QUEUE) == 5
            nowhere = MessageQueue("Nothing", "broker-a", 0)
            offsets.update(nowhere, 1)
            await offsets.persist([nowhere])
            with pytest.raises(BrokerRefused):
                await offsets.persist([nowhere], one_way=False)
            with pytest.raises(BrokerRefused, match="Group readers not exist!"):
                await offsets.persist([QUEUE], one_way=False)
            beside.server.broker.store.tables.create_group("readers")
            ring.take()
            await offsets.persist([QUEUE, QUEUE_1], one_way=False)
            assert [(event.queue, event.offset) for event in ring.take() if isinstance(event, Committed)] == [
                (QUEUE, 5)
            ]
            offsets.forget(QUEUE)
            assert offsets.known(QUEUE) is None
            assert await offsets.read(QUEUE) == 5
            assert offsets.known(QUEUE) == 5

    run_scenario(scenario)


@pytest.mark.parametrize("name", ["broker-orders", "broker-orders-4.9.7"])
def test_java_s_file_is_read_and_written(tmp_path: Path, golden, name: str) -> None:
    (theirs,) = Path(golden(name, "client-offsets")).rglob("offsets.json")
    client = ClientInstance("127.0.0.1:1", client_id=theirs.parent.parent.name)
    offsets = FileOffsets(client, theirs.parent.name, theirs.parent.parent.parent)
    assert offsets.path == theirs

    async def scenario() -> None:
        await offsets.load()

    run_scenario(scenario)
    queues = [MessageQueue("ShipmentEvents", "broker-a", number) for number in (1, 0, 3, 2)]
    table = {queue: offsets.known(queue) for queue in queues}
    assert rendered(table) == theirs.read_text()


def test_a_damaged_file_falls_back_to_its_copy(tmp_path: Path) -> None:
    client = ClientInstance("127.0.0.1:1", client_id="me")

    async def scenario() -> None:
        writer = FileOffsets(client, "g", tmp_path)
        await writer.load()
        assert await writer.read(QUEUE) is None
        writer.update(QUEUE, 1)
        await writer.persist([QUEUE])
        writer.update(QUEUE, 2)
        writer.update(QUEUE_1, 9)
        writer.update(QUEUE_1, 8, only_up=True)
        await writer.persist([QUEUE, QUEUE_1])
        writer.forget(QUEUE)
        reader = FileOffsets(client, "g", tmp_path)
        await reader.load()
        assert (reader.known(QUEUE), reader.known(QUEUE_1)) == (2, 9)
        reader.path.write_text("{")
        fallback_reader = FileOffsets(client, "g", tmp_path)
        await fallback_reader.load()
        assert (fallback_reader.known(QUEUE), fallback_reader.known(QUEUE_1)) == (1, None)
        reader.path.with_name("offsets.json.bak").write_text("{")
        with pytest.raises(CannotRead):
            await fallback_reader.load()

    asyncio.run(scenario())


def test_a_folder_that_cannot_be_written_is_noted_or_raised(tmp_path: Path) -> None:
    (tmp_path / "me").write_text("a file where a folder belongs")
    offsets = FileOffsets(ClientInstance("127.0.0.1:1", client_id="me"), "g", tmp_path)
    offsets.update(QUEUE, 1)

    async def scenario() -> None:
        await offsets.persist([QUEUE])
        with pytest.raises(OSError, match="me"):
            await offsets.persist([QUEUE], one_way=False)

    asyncio.run(scenario())
