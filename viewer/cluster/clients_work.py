"""Producers and consumers of one's own, in a process of their own: added, slowed, paused, stopped, killed. No Qt.

Down the pipe come tuples: ``("add", ClientSpec)``, ``("slow", number, seconds)``, ``("pause" | "resume" | "stop" |
"kill", number)``, ``("end",)``. Up go ``Told`` values and, several times a second, ``Seen`` with what clients did.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from engine.client.consumer import ConsumeContext, Consumer
from engine.client.consuming import FROM_FIRST, ConsumerConfig
from engine.client.events import Delivered, Event, EventRing, EventStream, Rebalanced, Sent
from engine.client.instance import FAILURES
from engine.client.messages import Message, ReceivedMessage
from engine.client.producer import Producer
from engine.cluster.state import Queue
from viewer.cluster.deliveries import Handed, Shared

FLUSH_EVERY = 0.25
"""Seconds between two reports."""
RING = 50_000
AGAIN = 1.0
"""Seconds until a producer tries again after a failure."""


@dataclass(frozen=True, slots=True)
class ClientSpec:
    """A client that is wanted: ``rate`` messages a second of a producer, ``delay`` seconds a message of a consumer."""

    number: int
    kind: str
    addresses: tuple[str, ...]
    group: str
    topic: str
    rate: float = 100.0
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Told:
    """How a client stands: starting, running, failed, stopped or killed; ``words`` say why it failed."""

    number: int
    standing: str
    client_id: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What clients did since the last report: messages handed out, topics shared out anew, messages sent by client id;
    ``dropped`` events were too many to be kept.
    """

    handed: tuple[Handed, ...] = ()
    shared: tuple[Shared, ...] = ()
    sent: dict[str, int] = field(default_factory=dict)
    dropped: int = 0


class OwnClient:
    """One of them, within the process."""

    def __init__(self, spec: ClientSpec, events: EventStream) -> None:
        self.spec = spec
        self.events = events
        self.words = ""
        self._part: Producer | Consumer | None = None
        self._sending: asyncio.Task[None] | None = None

    @property
    def client_id(self) -> str:
        return self._part.client_id if self._part is not None else ""

    async def start(self) -> None:
        """Raises what clients raise where nobody answers."""
        spec, names = self.spec, ";".join(self.spec.addresses)
        if spec.kind == "producer":
            producer = Producer(spec.group, names, events=self.events)
            self._part = producer
            await producer.start()
            self._sending = asyncio.create_task(self._send(producer))
            return
        consumer = Consumer(spec.group, _take, names, ConsumerConfig(start=FROM_FIRST), events=self.events)
        consumer.subscribe(spec.topic)
        self._part = consumer
        if spec.delay:
            consumer.slow_down(spec.delay)
        await consumer.start()

    async def _send(self, producer: Producer) -> None:
        """At the rate that was asked for, as far as the broker lets it."""
        due = time.monotonic()
        for number in itertools.count():
            body = b"%d" % number
            try:
                await producer.send(Message(self.spec.topic, body, keys=f"{self.spec.number}-{number}"))
                self.words = ""
            except FAILURES as error:
                self.words = str(error) or type(error).__name__
                await asyncio.sleep(AGAIN)
            due = max(due + 1 / max(self.spec.rate, 0.01), time.monotonic() - 1)
            await asyncio.sleep(max(due - time.monotonic(), 0))

    def slow(self, seconds: float) -> None:
        """Each message takes so much longer."""
        if self._part is not None:
            self._part.slow_down(seconds)

    def pause(self, *, on: bool) -> None:
        """Nothing is sent or consumed for a while."""
        if self._part is not None:
            (self._part.pause if on else self._part.resume)()

    async def end(self, *, kill: bool) -> None:
        """With a goodbye, or as a process that is killed."""
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
        if self._part is not None:
            with contextlib.suppress(*FAILURES):
                await (self._part.kill() if kill else self._part.stop())


async def _take(_messages: Sequence[ReceivedMessage], _context: ConsumeContext) -> None:
    """A listener that is content with everything."""


def serve(pipe: Connection) -> None:
    """The process's main, until the window says end or goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(Clients(pipe).serve())


class Clients:
    """All clients of one window."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._events = EventStream()
        self._ring: EventRing = self._events.ring(RING)
        self._clients: dict[int, OwnClient] = {}
        self._standing: dict[int, Told] = {}
        self._dropped = 0

    async def serve(self) -> None:
        """Do what is asked, and report."""
        loop = asyncio.get_running_loop()
        asked: asyncio.Queue[tuple[Any, ...]] = asyncio.Queue()

        def listen() -> None:
            while True:
                try:
                    command = self._pipe.recv()
                except (EOFError, OSError):
                    command = ("end",)
                loop.call_soon_threadsafe(asked.put_nowait, command)
                if command[0] == "end":
                    return

        threading.Thread(target=listen, name="asked", daemon=True).start()
        reporting = asyncio.create_task(self._report_forever())
        while True:
            command = await asked.get()
            if command[0] == "end":
                break
            await self._do(*command)
        reporting.cancel()
        await asyncio.gather(reporting, *(one.end(kill=False) for one in self._clients.values()),
                             return_exceptions=True)  # fmt: skip

    async def _do(self, what: str, *args: Any) -> None:
        if what == "add":
            await self._add(args[0])
            return
        client = self._clients.get(args[0])
        if client is None:
            return
        if what == "slow":
            client.slow(args[1])
        elif what in {"pause", "resume"}:
            client.pause(on=what == "pause")
        else:
            del self._clients[args[0]]
            await client.end(kill=what == "kill")
            self._tell(Told(args[0], "killed" if what == "kill" else "stopped", client.client_id))

    async def _add(self, spec: ClientSpec) -> None:
        client = OwnClient(spec, self._events)
        try:
            await client.start()
        except (*FAILURES, ValueError) as error:
            await client.end(kill=True)
            self._tell(Told(spec.number, "failed", client.client_id, str(error) or type(error).__name__))
            return
        self._clients[spec.number] = client
        self._tell(Told(spec.number, "running", client.client_id))

    def _tell(self, told: Told) -> None:
        self._standing[told.number] = told
        self._send(told)

    def _send(self, value: Told | Seen) -> None:
        with contextlib.suppress(OSError):
            self._pipe.send(value)

    async def _report_forever(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_EVERY)
            self.report()

    def report(self) -> None:
        """Send what was seen since the last time, and what changed with producers that fail."""
        seen = seen_of(self._ring.take(), self._ring.dropped - self._dropped)
        self._dropped = self._ring.dropped
        if seen is not None:
            self._send(seen)
        for number, client in self._clients.items():
            known = self._standing[number]
            if client.words != known.words:
                self._tell(Told(number, "running", client.client_id, client.words))


def seen_of(events: Sequence[Event], dropped: int = 0) -> Seen | None:
    """Events as a report; None for none."""
    handed: list[Handed] = []
    shared: list[Shared] = []
    sent: dict[str, int] = {}
    for one in events:
        if isinstance(one, Delivered):
            handed.append(Handed(one.at, one.client_id, one.group, Queue(*one.queue), one.queue_offset))
        elif isinstance(one, Rebalanced):
            shared.append(Shared(
                one.at, one.client_id, one.group, one.topic, one.client_ids, tuple(Queue(*q) for q in one.owned),
                tuple(Queue(*q) for q in one.taken), tuple(Queue(*q) for q in one.given_up), one.reason,
            ))  # fmt: skip
        elif isinstance(one, Sent):
            sent[one.client_id] = sent.get(one.client_id, 0) + one.count
    if not (handed or shared or sent or dropped):
        return None
    return Seen(tuple(handed), tuple(shared), sent, dropped)
