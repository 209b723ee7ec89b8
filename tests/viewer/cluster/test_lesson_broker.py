"""A lesson's broker: registered with its own topics only, slow if configured, and removed afterwards."""

from __future__ import annotations

import asyncio
import time

import pytest

from engine.client.events import EventStream, Sent
from engine.client.messages import Message
from engine.client.producer import Producer
from engine.cluster.reader import ClusterReader
from engine.errors import CannotRead, UsageError
from engine.namesrv.server import ListeningNameServer
from viewer.cluster.lesson_broker import LessonBroker, SlowDisk


def test_a_lesson_broker_serves_slowly_and_leaves_no_files(tmp_path):
    async def walk() -> None:
        async with ListeningNameServer(port=0) as names, ClusterReader([names.address]) as reader:
            settings = "flushDiskType=SYNC_FLUSH\nmessageDelayLevel=1s 1s"
            broker = LessonBroker("slow-1", names.address, ["T"], settings, 0.05, tmp_path / "b")
            await broker.start()
            assert [broker_state.name for broker_state in (await reader.read()).brokers] == ["slow-1"]
            events = EventStream()
            ring = events.ring()
            async with Producer("senders", names.address, events=events) as producer:
                for number in range(3):
                    await producer.send(Message("T", b"%d" % number))
            sent = [event for event in ring.take() if isinstance(event, Sent)]
            assert [event.queue.broker for event in sent] == ["slow-1"] * 3
            assert min(event.ms for event in sent) >= 50
            await broker.stop()
            await broker.stop()
            assert [event.words for event in (await reader.read()).brokers] == ["no longer registered"]
            assert list(tmp_path.iterdir()) == []

    asyncio.run(walk())


def test_impossible_settings_are_reported(tmp_path):
    async def walk() -> None:
        async with ListeningNameServer(port=0) as names:
            wrong = LessonBroker("b", names.address, ["T"], "flushDiskType=NEVER", 0, tmp_path / "b")
            with pytest.raises(UsageError, match="flushDiskType"):
                await wrong.start()
        assert list(tmp_path.iterdir()) == []

    asyncio.run(walk())


def test_the_wait_for_name_servers_is_limited(tmp_path, monkeypatch):
    monkeypatch.setattr("viewer.cluster.lesson_broker.REGISTER_TIMEOUT_S", 0.1)

    async def nobody(*_: object) -> bool:
        return False

    monkeypatch.setattr(LessonBroker, "_is_in_route", nobody)

    async def walk() -> None:
        async with ListeningNameServer(port=0) as names:
            broker = LessonBroker("b", names.address, ["T"], "", 0, tmp_path / "b")
            with pytest.raises(CannotRead, match="no name server knows the topic T of b"):
                await broker.start()

    asyncio.run(walk())


def test_only_the_log_of_a_slow_disk_is_slow(tmp_path):
    disk = SlowDisk(0.05)
    log, queue = disk.open(tmp_path / "commitlog" / ("0" * 20), 100), disk.open(tmp_path / "queue" / "0", 100)
    for file, slow in ((log, True), (queue, False)):
        begun = time.monotonic()
        file.write(0, b"x")
        file.flush(0, 1)
        assert not slow or time.monotonic() - begun >= 0.05
        file.close()
    assert type(log) is not type(queue)
