"""Our own clients in their process: they send and consume at our broker, and are slowed, paused, stopped and killed."""

from __future__ import annotations

import asyncio
import multiprocessing
import tempfile
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from engine.broker.serving import Addresses, serving_beside
from engine.client.consumer import ConsumeContext, Consumer
from engine.client.events import Delivered, EventStream, Rebalanced, Sent, Started
from engine.client.instance import ClientInstance
from engine.client.messages import Message, ReceivedMessage
from engine.client.producer import Producer
from engine.client.routes import MessageQueue
from engine.cluster.reader import ClusterReader
from engine.cluster.state import Queue
from viewer.cluster.clients_process import (
    ClientActivity,
    ClientSpec,
    ClientStatus,
    Options,
    ScriptedListener,
    UndecidedTransactions,
    activity_of,
    forget,
    serve,
)

SECONDS = 60


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Addresses]:
    with serving_beside(tmp_path) as addresses:
        yield addresses


class Process:
    """Runs the process's main in a thread and collects its messages."""

    def __init__(self) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        self._thread = threading.Thread(target=run, args=(theirs,))
        self._thread.start()
        self.statuses: list[ClientStatus] = []
        self.delivered = 0
        self.sent = 0
        self.rebalanced = 0

    def until(self, condition, expectation: str) -> None:
        end = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < end, f"timed out waiting until {expectation}: {self.statuses}"
            if self.pipe.poll(0.1):
                value = self.pipe.recv()
                if isinstance(value, ClientStatus):
                    self.statuses.append(value)
                else:
                    assert isinstance(value, ClientActivity)
                    self.delivered += len(value.deliveries)
                    self.rebalanced += len(value.rebalances)
                    self.sent += sum(value.sent.values())

    def status(self, number: int) -> str:
        return next((item.status for item in reversed(self.statuses) if item.number == number), "")

    def end(self) -> None:
        self.pipe.send(("end",))
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()
        self.pipe.close()


def run(pipe: Connection) -> None:
    """Run :func:`serve` in a thread, which gets no signals."""
    from viewer.cluster.clients_process import Clients

    asyncio.run(Clients(pipe).serve())


def test_clients_send_consume_and_end_in_every_way(served: Addresses) -> None:
    assert serve.__doc__
    process = Process()
    names = (served.namesrv,)
    process.pipe.send(("add", ClientSpec(1, "producer", names, "senders", "Orders", rate=200)))
    process.until(lambda: process.status(1) == "running", "it runs")
    process.until(lambda: process.sent > 5, "it sends")
    process.pipe.send(("add", ClientSpec(2, "consumer", names, "readers", "Orders")))
    process.until(lambda: process.delivered > 5, "it consumes")
    assert process.rebalanced > 0
    for command in (("slow", 2, 0.01), ("pause", 2), ("resume", 2), ("pause", 1), ("resume", 1), ("slow", 9, 1.0)):
        process.pipe.send(command)
    process.pipe.send(("add", ClientSpec(3, "consumer", names, "readers", "Orders", delay=0.001)))
    process.until(lambda: process.status(3) == "running", "another one")
    process.pipe.send(("kill", 2))
    process.until(lambda: process.status(2) == "killed", "it is killed")
    process.pipe.send(("stop", 1))
    process.until(lambda: process.status(1) == "stopped", "it says goodbye")
    assert len({client.client_id for client in process.statuses if client.client_id}) == 3
    process.end()


def test_a_missing_server_is_reported() -> None:
    process = Process()
    process.pipe.send(("add", ClientSpec(1, "producer", ("127.0.0.1:1",), "senders", "Orders")))
    process.until(lambda: process.status(1) == "failed", "it failed")
    assert process.statuses[-1].error
    process.pipe.send(("add", ClientSpec(2, "consumer", ("127.0.0.1:1",), "no group!", "Orders")))
    process.until(lambda: process.status(2) == "failed", "that is no group")
    process.end()


def test_events_become_one_report():
    queue = MessageQueue("T", "a", 0)
    stream = EventStream()
    ring = stream.ring(10)
    for event in (
        Started(1, "c", "g"),
        Sent(2, "p", "s", queue, 0, "id", "k", "SEND_OK", 1, 3, 10, 1.0),
        Delivered(3, "c", "g", queue, 7, "id", "k", 0, 1),
        Rebalanced(4, "c", "g", "T", (queue,), ("c",), (queue,), (queue,), ()),
    ):
        stream.emit(event)
    activity = activity_of(ring.take(), 2)
    assert activity is not None
    assert (activity.sent, activity.dropped) == ({"p": 3}, 2)
    assert activity.deliveries[0].queue == Queue("T", "a", 0)
    assert activity.deliveries[0].offset == 7
    assert activity.rebalances[0].added == (Queue("T", "a", 0),)
    assert activity_of([]) is None


def test_events_of_a_lesson_are_reported_whole():
    queue = MessageQueue("T", "a", 0)
    started, sent = Started(1, "c", "lesson"), Sent(2, "p", "other", queue, 0, "id", "k", "SEND_OK", 1, 1, 10, 1.0)
    activity = activity_of([started, sent], full_groups={"lesson"})
    assert activity is not None
    assert activity.events == (started,)
    assert activity_of([started]) is None


def test_a_listener_rejects_and_stalls_as_configured(monkeypatch):
    monkeypatch.setattr("viewer.cluster.clients_process.STALL_S", 0.01)
    queue = MessageQueue("T", "a", 0)

    def message(number: int) -> ReceivedMessage:
        return ReceivedMessage("T", b"%d" % number, queue, {})

    async def walk() -> None:
        context = ConsumeContext(queue)
        assert [await ScriptedListener()([message(n)], context) for n in range(3)] == [True] * 3
        assert [await ScriptedListener(reject_every=2)([message(n)], context) for n in range(4)] == [
            False,
            True,
            False,
            True,
        ]
        begun = time.monotonic()
        assert await ScriptedListener(stall_every=5)([message(5)], context)
        assert time.monotonic() - begun >= 0.01

    asyncio.run(walk())
    assert [UndecidedTransactions(2).execute(Message("T", b"%d" % n), None).name for n in range(3)] == [
        "COMMIT",
        "UNKNOWN",
        "COMMIT",
    ]
    assert UndecidedTransactions(2).check(message(1)).name == "UNKNOWN"


def test_a_broker_of_a_lesson_comes_and_goes_with_its_clients(served: Addresses) -> None:
    process = Process()
    names = (served.namesrv,)
    process.pipe.send(("add", ClientSpec(1, "broker", names, "own-1", "Own", options=Options(reports_events=True))))
    process.until(lambda: process.status(1) == "running", "it runs")
    few = Options(message_count=5, reports_events=True)
    process.pipe.send(("add", ClientSpec(2, "producer", names, "senders", "Own", rate=500, options=few)))
    process.until(lambda: process.sent == 5, "all are sent")
    wrong = Options(broker_settings="flushDiskType=NEVER")
    process.pipe.send(("add", ClientSpec(3, "broker", names, "own-2", "Own", options=wrong)))
    process.until(lambda: process.status(3) == "failed", "that is no setting")
    assert "flushDiskType" in process.statuses[-1].error
    process.pipe.send(("stop", 1))
    process.until(lambda: process.status(1) == "stopped", "it is gone")
    process.end()
    assert not list(Path(tempfile.gettempdir()).glob("storescope-clients-*/broker-1"))


def test_topics_and_groups_of_a_lesson_are_deleted(served: Addresses) -> None:
    async def walk() -> None:
        names = (served.namesrv,)
        async with Producer("senders", served.namesrv) as producer, ClusterReader(names) as reader:
            await producer.send(Message("Gone", b"x"))
            consumer = Consumer("gone", ScriptedListener(), served.namesrv)
            consumer.subscribe("Gone")
            async with consumer:
                assert "gone" in (await reader.read()).groups
            await forget(names, ("Gone", "%RETRY%gone"), ("gone",))
            state = await reader.read()
            assert not [queue for queue in state.queues if queue.topic in {"Gone", "%RETRY%gone"}]
            assert state.offsets("gone") == {}
        await forget(("127.0.0.1:1",), ("Gone",), ("gone",))
        instance = ClientInstance(served.namesrv)
        assert await instance.fresh_route("Gone") is None
        await instance.kill()

    asyncio.run(walk())
