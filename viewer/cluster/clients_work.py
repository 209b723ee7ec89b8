"""Producers and consumers of one's own, in a process of their own: added, slowed, paused, stopped, killed. No Qt.

Down the pipe come tuples: ``("add", ClientSpec)``, ``("slow", number, seconds)``, ``("pause" | "resume" | "stop" |
"kill", number)``, ``("forget", name servers, topics, groups)``, ``("end",)``. Up go ``Told`` values and, several times
a second, ``Seen`` with what clients did.
A lesson's brokers are of them too (:mod:`viewer.cluster.lesson_broker`).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
import tempfile
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.client.allocation import AllocationStrategy, Averagely, AveragelyByCircle
from engine.client.consumer import ConsumeContext, Consumer
from engine.client.consuming import CLUSTERING, FROM_FIRST, ConsumerConfig
from engine.client.events import Delivered, Event, EventRing, EventStream, Rebalanced, Sent
from engine.client.instance import FAILURES, ClientInstance
from engine.client.messages import Message, ReceivedMessage
from engine.client.producer import Producer, ProducerConfig, TransactionState
from engine.client.routes import MASTER
from engine.cluster.state import Queue
from engine.errors import StoreError, cause_of
from engine.remoting.frame import Command
from engine.scratch import Scratch, hold_new
from viewer.cluster.deliveries import Handed, Shared

if TYPE_CHECKING:
    from viewer.cluster.lesson_broker import LessonBroker

FLUSH_EVERY = 0.25
"""Seconds between two reports."""
RING = 50_000
STALL = 1.0
"""Seconds that some messages take."""
DELETE_TOPIC_IN_BROKER, DELETE_TOPIC_IN_NAMESRV, DELETE_SUBSCRIPTIONGROUP = 215, 216, 207
AGAIN = 1.0
"""Seconds until a producer tries again after a failure."""
STRATEGIES: dict[str, type[AllocationStrategy]] = {"AVG": Averagely, "AVG_BY_CIRCLE": AveragelyByCircle}


@dataclass(frozen=True, slots=True)
class Options:
    """What a client is told beside its pace. The defaults are those of one that is added by hand."""

    strategy: str = "AVG"
    """Of a consumer, a name of :data:`STRATEGIES`."""
    model: str = CLUSTERING
    refuses: int = 0
    """A consumer does not take each so many-th message; 0: it takes all."""
    stalls: int = 0
    """A consumer takes :data:`STALL` for each so many-th message; 0: for none."""
    most_again: int = -1
    """``maxReconsumeTimes``; −1: 16."""
    most: int = 0
    """Messages that a producer sends in all; 0: without end."""
    avoids: bool = False
    """``sendLatencyFaultEnable``."""
    commits: int = 0
    """A producer sends in transactions: each so many-th is committed, nobody ends the others; 0: no transactions."""
    name: str = ""
    """The client's own id; "" for one that is made."""
    settings: str = ""
    """Lines of a broker's ``broker.conf``."""
    slow: float = 0.0
    """Seconds that each flush of a broker's log takes longer."""
    told: bool = False
    """Whether each event of its group is reported whole."""


USUAL = Options()


@dataclass(frozen=True, slots=True)
class ClientSpec:
    """A client that is wanted: ``rate`` messages a second of a producer, ``delay`` seconds a message of a consumer.

    Of a broker, ``group`` is its name and ``topic`` names its topics with blanks between.
    """

    number: int
    kind: str
    addresses: tuple[str, ...]
    group: str
    topic: str
    rate: float = 100.0
    delay: float = 0.0
    options: Options = USUAL


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
    ``dropped`` events were too many to be kept. ``whole`` are the events of groups that are reported whole.
    """

    handed: tuple[Handed, ...] = ()
    shared: tuple[Shared, ...] = ()
    sent: dict[str, int] = field(default_factory=dict)
    dropped: int = 0
    whole: tuple[Event, ...] = ()


class OwnClient:
    """One of them, within the process; ``folder`` is its place for files."""

    def __init__(self, spec: ClientSpec, events: EventStream, folder: Path) -> None:
        self.spec = spec
        self.events = events
        self.words = ""
        self._folder = folder
        self._part: Producer | Consumer | None = None
        self._broker: LessonBroker | None = None
        self._sending: asyncio.Task[None] | None = None

    @property
    def client_id(self) -> str:
        """Of a broker its name."""
        return self._part.client_id if self._part is not None else self._broker.name if self._broker is not None else ""

    async def start(self) -> None:
        """Raises what clients raise where nobody answers, what a store raises that cannot be made."""
        spec, names, options = self.spec, ";".join(self.spec.addresses), self.spec.options
        if spec.kind == "broker":
            place = self._folder / f"broker-{spec.number}"
            from viewer.cluster.lesson_broker import LessonBroker  # a whole broker: the window, too, imports this file

            made = LessonBroker(spec.group, names, spec.topic.split(), options.settings, options.slow, place)
            await made.start()
            self._broker = made
            return
        instance = ClientInstance(names, client_id=options.name or None, events=self.events)
        if spec.kind == "producer":
            producer = Producer(
                spec.group,
                config=ProducerConfig(avoid_slow=options.avoids),
                instance=instance,
                listener=Undecided(options.commits) if options.commits else None,
            )
            self._part = producer
            await producer.start()
            self._sending = asyncio.create_task(self._send(producer))
            return
        config = ConsumerConfig(
            model=options.model,
            start=FROM_FIRST,
            max_reconsume=options.most_again,
            offsets_folder=self._folder / "offsets",
        )
        consumer = Consumer(
            spec.group,
            Taking(options.refuses, options.stalls),
            config=config,
            strategy=STRATEGIES[options.strategy](),
            instance=instance,
        )
        consumer.subscribe(spec.topic)
        self._part = consumer
        if spec.delay:
            consumer.slow_down(spec.delay)
        await consumer.start()

    async def _send(self, producer: Producer) -> None:
        """At the rate that was asked for, as far as the broker lets it."""
        due = time.monotonic()
        most = self.spec.options.most
        for number in itertools.count():
            if most and number == most:
                return
            message = Message(self.spec.topic, b"%d" % number, keys=f"{self.spec.number}-{number}")
            await self._send_one(producer, message, until_sent=bool(most))
            due = max(due + 1 / max(self.spec.rate, 0.01), time.monotonic() - 1)
            await asyncio.sleep(max(due - time.monotonic(), 0))

    async def _send_one(self, producer: Producer, message: Message, *, until_sent: bool) -> None:
        """Once; where a number of messages is wanted, until it is stored."""
        while True:
            try:
                if self.spec.options.commits:
                    await producer.send_in_transaction(message)
                else:
                    await producer.send(message)
                self.words = ""
                return
            except FAILURES as error:
                self.words = cause_of(error, type(error).__name__)
                await asyncio.sleep(AGAIN)
            if not until_sent:
                return

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
        if self._broker is not None:
            with contextlib.suppress(*FAILURES, StoreError):
                await self._broker.stop()


class Taking:
    """A listener that is content with everything, or with all but each ``refuses``-th message of a producer; each
    ``stalls``-th takes it a while.
    """

    def __init__(self, refuses: int = 0, stalls: int = 0) -> None:
        self._refuses = refuses
        self._stalls = stalls

    async def __call__(self, messages: Sequence[ReceivedMessage], _context: ConsumeContext) -> bool:
        if self._stalls and any(not int(one.body) % self._stalls for one in messages):
            await asyncio.sleep(STALL)
        return not self._refuses or all(int(one.body) % self._refuses for one in messages)


class Undecided:
    """The sender's side of transactions that are not all ended: each ``commits``-th is committed, of the others nobody
    ever knows.
    """

    def __init__(self, commits: int) -> None:
        self._commits = commits

    def execute(self, message: Message, _argument: object) -> TransactionState:
        """The half message is stored."""
        return TransactionState.UNKNOWN if int(message.body) % self._commits else TransactionState.COMMIT

    def check(self, _message: ReceivedMessage) -> TransactionState:
        """A broker asks."""
        return TransactionState.UNKNOWN


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
        self._whole: set[str] = set()
        self._scratch: Scratch | None = None
        self._chores: set[asyncio.Task[None]] = set()

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
        await asyncio.gather(reporting, *self._chores, return_exceptions=True)
        brokers = [one for one in self._clients.values() if one.spec.kind == "broker"]
        for some in ([one for one in self._clients.values() if one not in brokers], brokers):
            await asyncio.gather(*(one.end(kill=False) for one in some), return_exceptions=True)
        if self._scratch is not None:
            self._scratch.give_up()

    async def _do(self, what: str, *args: Any) -> None:
        if what == "add":
            await self._add(args[0])
            return
        if what == "forget":
            task = asyncio.create_task(forget(*args))
            self._chores.add(task)
            task.add_done_callback(self._chores.discard)
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
        if self._scratch is None:
            self._scratch = hold_new(Path(tempfile.gettempdir()), "storescope-clients-")
        if spec.options.told:
            self._whole.add(spec.group)
        client = OwnClient(spec, self._events, self._scratch.path)
        try:
            await client.start()
        except (*FAILURES, StoreError, ValueError) as error:
            await client.end(kill=True)
            self._tell(Told(spec.number, "failed", client.client_id, cause_of(error, type(error).__name__)))
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
        seen = seen_of(self._ring.take(), self._ring.dropped - self._dropped, self._whole)
        self._dropped = self._ring.dropped
        if seen is not None:
            self._send(seen)
        for number, client in self._clients.items():
            known = self._standing[number]
            if client.words != known.words:
                self._tell(Told(number, "running", client.client_id, client.words))


async def forget(addresses: Sequence[str], topics: Sequence[str], groups: Sequence[str]) -> None:
    """Delete topics and groups that were made for a lesson, as mqadmin's ``deleteTopic`` and ``deleteSubGroup`` do:
    from the brokers of the first topic, then from the name servers. What does not answer keeps them.
    """
    asking = ClientInstance(";".join(addresses))
    with contextlib.suppress(*FAILURES):
        route = await asking.fresh_route(topics[0])
        brokers = [one[MASTER] for one in route.brokers.values() if MASTER in one] if route is not None else []
        for address in brokers:
            for topic in topics:
                await asking.ask(address, Command(DELETE_TOPIC_IN_BROKER, {"topic": topic}))
            for group in groups:
                fields = {"groupName": group, "cleanOffset": "true"}
                await asking.ask(address, Command(DELETE_SUBSCRIPTIONGROUP, fields))
        for address in asking.name_servers:
            for topic in topics:
                await asking.ask(address, Command(DELETE_TOPIC_IN_NAMESRV, {"topic": topic}))
    await asking.kill()


def seen_of(events: Sequence[Event], dropped: int = 0, whole: Collection[str] = ()) -> Seen | None:
    """Events as a report, those of the groups in ``whole`` as they are too; None for none."""
    handed: list[Handed] = []
    shared: list[Shared] = []
    sent: dict[str, int] = {}
    for one in events:
        if isinstance(one, Delivered):
            handed.append(Handed(one.at, one.client_id, one.group, Queue(*one.queue), one.queue_offset))
        elif isinstance(one, Rebalanced):
            shared.append(
                Shared(
                    one.at,
                    one.client_id,
                    one.group,
                    one.topic,
                    one.client_ids,
                    tuple(Queue(*q) for q in one.owned),
                    tuple(Queue(*q) for q in one.taken),
                    tuple(Queue(*q) for q in one.given_up),
                    one.reason,
                )
            )
        elif isinstance(one, Sent):
            sent[one.client_id] = sent.get(one.client_id, 0) + one.count
    kept = tuple(one for one in events if one.group in whole)
    if not (handed or shared or sent or dropped or kept):
        return None
    return Seen(tuple(handed), tuple(shared), sent, dropped, kept)
