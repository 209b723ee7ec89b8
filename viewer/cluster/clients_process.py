"""The user's own producers and consumers, in their own process: added, slowed, paused, stopped, killed. No Qt.

Commands come through the pipe as tuples: ``("add", ClientSpec)``, ``("slow", number, seconds)``, ``("pause" |
"resume" | "stop" | "kill", number)``, ``("forget", name servers, topics, groups, access files)``,
``("end",)``. Replies are ``ClientStatus`` values and, several times a second, ``ClientActivity``. Brokers of lessons
run here too (:mod:`viewer.cluster.lesson_broker`).
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

from engine.client.consumer import ConsumeContext, Consumer
from engine.client.consuming import CLUSTERING, FROM_FIRST, ConsumerConfig
from engine.client.events import Delivered, Event, EventRing, EventStream, Rebalanced, Sent
from engine.client.instance import FAILURES, ClientInstance
from engine.client.messages import Message, ReceivedMessage
from engine.client.producer import Producer, ProducerConfig, TransactionState
from engine.client.rebalance import AllocationStrategy, Averagely, AveragelyByCircle
from engine.client.routes import MASTER
from engine.cluster.state import Queue
from engine.errors import StoreError, cause_of
from engine.files.temporary_folders import TemporaryFolder, hold_new
from engine.remoting.codes import RequestCode
from engine.remoting.frame import Command
from viewer.cluster.access import NO_FILES, AccessFiles
from viewer.cluster.deliveries import Delivery, RebalanceEvent

if TYPE_CHECKING:
    from viewer.cluster.lesson_broker import LessonBroker

REPORT_INTERVAL_S = 0.25
"""Seconds between two reports."""
MAX_EVENTS = 50_000
STALL_S = 1.0
"""Seconds that a stalled message takes."""
RETRY_DELAY_S = 1.0
"""Seconds until a producer retries after a failure."""
STRATEGIES: dict[str, type[AllocationStrategy]] = {"AVG": Averagely, "AVG_BY_CIRCLE": AveragelyByCircle}


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a client apart from its rate. The defaults are those of a client that the user adds by hand."""

    strategy: str = "AVG"
    """Allocation strategy of a consumer, a name in :data:`STRATEGIES`."""
    message_model: str = CLUSTERING
    reject_every: int = 0
    """A consumer rejects each n-th message; 0: none."""
    stall_every: int = 0
    """A consumer takes :data:`STALL_S` for each n-th message; 0: for none."""
    max_reconsume: int = -1
    """``maxReconsumeTimes``; −1: 16."""
    message_count: int = 0
    """Number of messages that a producer sends; 0: without end."""
    avoid_slow_brokers: bool = False
    """``sendLatencyFaultEnable``."""
    commit_every: int = 0
    """A producer sends in transactions and commits each n-th, the others stay undecided; 0: no transactions."""
    client_id: str = ""
    """Client id; "" for a generated one."""
    broker_settings: str = ""
    """Lines of a broker's ``broker.conf``."""
    flush_delay_s: float = 0.0
    """Extra seconds for each flush of a broker's log."""
    reports_events: bool = False
    """Report every event of its group in full."""


DEFAULT_OPTIONS = Options()


@dataclass(frozen=True, slots=True)
class ClientSpec:
    """A client to start: ``rate`` messages a second of a producer, ``delay`` seconds a message of a consumer.

    For a broker, ``group`` is its name and ``topic`` its topics, separated by blanks.
    """

    number: int
    kind: str
    addresses: tuple[str, ...]
    group: str
    topic: str
    rate: float = 100.0
    delay: float = 0.0
    options: Options = DEFAULT_OPTIONS
    access: AccessFiles = NO_FILES


@dataclass(frozen=True, slots=True)
class ClientStatus:
    """Status of a client: starting, running, failed, stopped or killed; ``error`` says why it failed."""

    number: int
    status: str
    client_id: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class ClientActivity:
    """Activity of the clients since the last report: deliveries, rebalances, messages sent by client id.

    ``dropped`` events did not fit into the buffer. ``events`` are all events of the groups that are reported in
    full.
    """

    deliveries: tuple[Delivery, ...] = ()
    rebalances: tuple[RebalanceEvent, ...] = ()
    sent: dict[str, int] = field(default_factory=dict)
    dropped: int = 0
    events: tuple[Event, ...] = ()


class OwnClient:
    """A client or broker within the process; ``folder`` is for its files."""

    def __init__(self, spec: ClientSpec, events: EventStream, folder: Path) -> None:
        self.spec = spec
        self.events = events
        self.error = ""
        self._folder = folder
        self._client: Producer | Consumer | None = None
        self._broker: LessonBroker | None = None
        self._sending: asyncio.Task[None] | None = None

    @property
    def client_id(self) -> str:
        """Id of the client; name of a broker."""
        return (
            self._client.client_id
            if self._client is not None
            else self._broker.name
            if self._broker is not None
            else ""
        )

    async def start(self) -> None:
        """Start it.

        Raises one of ``FAILURES`` if no server answers, ``StoreError`` if a broker's store cannot be made.
        """
        spec, name_servers, options = self.spec, ";".join(self.spec.addresses), self.spec.options
        if spec.kind == "broker":
            broker_folder = self._folder / f"broker-{spec.number}"
            # Imported only here: it loads a whole broker, and the window imports this module too.
            from viewer.cluster.lesson_broker import LessonBroker

            broker = LessonBroker(
                spec.group,
                name_servers,
                spec.topic.split(),
                options.broker_settings,
                options.flush_delay_s,
                broker_folder,
            )
            await broker.start()
            self._broker = broker
            return
        instance = ClientInstance(
            name_servers,
            client_id=options.client_id or None,
            events=self.events,
            account=spec.access.read_account(),
            tls=spec.access.read_tls(),
        )
        if spec.kind == "producer":
            producer = Producer(
                spec.group,
                config=ProducerConfig(avoid_slow=options.avoid_slow_brokers),
                instance=instance,
                listener=UndecidedTransactions(options.commit_every) if options.commit_every else None,
            )
            self._client = producer
            await producer.start()
            self._sending = asyncio.create_task(self._send(producer))
            return
        config = ConsumerConfig(
            model=options.message_model,
            start=FROM_FIRST,
            max_reconsume=options.max_reconsume,
            offsets_folder=self._folder / "offsets",
        )
        consumer = Consumer(
            spec.group,
            ScriptedListener(options.reject_every, options.stall_every),
            config=config,
            strategy=STRATEGIES[options.strategy](),
            instance=instance,
        )
        consumer.subscribe(spec.topic)
        self._client = consumer
        if spec.delay:
            consumer.slow_down(spec.delay)
        await consumer.start()

    async def _send(self, producer: Producer) -> None:
        """Send at the requested rate, as far as the broker allows it."""
        due_time = time.monotonic()
        message_count = self.spec.options.message_count
        for number in itertools.count():
            if message_count and number == message_count:
                return
            message = Message(self.spec.topic, b"%d" % number, keys=f"{self.spec.number}-{number}")
            await self._send_one(producer, message, until_sent=bool(message_count))
            due_time = max(due_time + 1 / max(self.spec.rate, 0.01), time.monotonic() - 1)
            await asyncio.sleep(max(due_time - time.monotonic(), 0))

    async def _send_one(self, producer: Producer, message: Message, *, until_sent: bool) -> None:
        """Send once; with a fixed number of messages, repeat until the message is stored."""
        while True:
            try:
                if self.spec.options.commit_every:
                    await producer.send_in_transaction(message)
                else:
                    await producer.send(message)
                self.error = ""
                return
            except FAILURES as error:
                self.error = cause_of(error, type(error).__name__)
                await asyncio.sleep(RETRY_DELAY_S)
            if not until_sent:
                return

    def slow(self, seconds: float) -> None:
        """Make each message take ``seconds`` longer."""
        if self._client is not None:
            self._client.slow_down(seconds)

    def pause(self, *, on: bool) -> None:
        """Pause or resume sending or consuming."""
        if self._client is not None:
            (self._client.pause if on else self._client.resume)()

    async def end(self, *, kill: bool) -> None:
        """Stop after unregistering, or with ``kill`` end like a killed process."""
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
        if self._client is not None:
            with contextlib.suppress(*FAILURES):
                await (self._client.kill() if kill else self._client.stop())
        if self._broker is not None:
            with contextlib.suppress(*FAILURES, StoreError):
                await self._broker.stop()


class ScriptedListener:
    """Listener that consumes every message, or all but each ``reject_every``-th of a producer.

    Each ``stall_every``-th message takes :data:`STALL_S`.
    """

    def __init__(self, reject_every: int = 0, stall_every: int = 0) -> None:
        self._reject_every = reject_every
        self._stall_every = stall_every

    async def __call__(self, messages: Sequence[ReceivedMessage], _context: ConsumeContext) -> bool:
        if self._stall_every and any(not int(message.body) % self._stall_every for message in messages):
            await asyncio.sleep(STALL_S)
        return not self._reject_every or all(int(message.body) % self._reject_every for message in messages)


class UndecidedTransactions:
    """Transaction listener that commits each ``commit_every``-th message and never decides the others."""

    def __init__(self, commit_every: int) -> None:
        self._commit_every = commit_every

    def execute(self, message: Message, _argument: object) -> TransactionState:
        """Decide right after the half message is stored."""
        return TransactionState.UNKNOWN if int(message.body) % self._commit_every else TransactionState.COMMIT

    def check(self, _message: ReceivedMessage) -> TransactionState:
        """Answer a broker's check."""
        return TransactionState.UNKNOWN


def serve(pipe: Connection) -> None:
    """Run the process until the window ends it or goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(Clients(pipe).serve())


class Clients:
    """All clients of one window."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._events = EventStream()
        self._ring: EventRing = self._events.ring(MAX_EVENTS)
        self._clients: dict[int, OwnClient] = {}
        self._statuses: dict[int, ClientStatus] = {}
        self._dropped = 0
        self._full_groups: set[str] = set()
        self._scratch: TemporaryFolder | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Execute commands and report."""
        loop = asyncio.get_running_loop()
        command_queue: asyncio.Queue[tuple[Any, ...]] = asyncio.Queue()

        def listen() -> None:
            while True:
                try:
                    command = self._pipe.recv()
                except (EOFError, OSError):
                    command = ("end",)
                loop.call_soon_threadsafe(command_queue.put_nowait, command)
                if command[0] == "end":
                    return

        threading.Thread(target=listen, name="clients-commands", daemon=True).start()
        reporting = asyncio.create_task(self._report_forever())
        while True:
            command = await command_queue.get()
            if command[0] == "end":
                break
            await self._execute(*command)
        reporting.cancel()
        await asyncio.gather(reporting, *self._tasks, return_exceptions=True)
        brokers = [client for client in self._clients.values() if client.spec.kind == "broker"]
        for clients in ([client for client in self._clients.values() if client not in brokers], brokers):
            await asyncio.gather(*(client.end(kill=False) for client in clients), return_exceptions=True)
        if self._scratch is not None:
            self._scratch.give_up()

    async def _execute(self, verb: str, *args: Any) -> None:
        if verb == "add":
            await self._add(args[0])
            return
        if verb == "forget":
            task = asyncio.create_task(forget(*args))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        client = self._clients.get(args[0])
        if client is None:
            return
        if verb == "slow":
            client.slow(args[1])
        elif verb in {"pause", "resume"}:
            client.pause(on=verb == "pause")
        else:
            del self._clients[args[0]]
            await client.end(kill=verb == "kill")
            self._report_status(ClientStatus(args[0], "killed" if verb == "kill" else "stopped", client.client_id))

    async def _add(self, spec: ClientSpec) -> None:
        if self._scratch is None:
            self._scratch = hold_new(Path(tempfile.gettempdir()), "storescope-clients-")
        if spec.options.reports_events:
            self._full_groups.add(spec.group)
        client = OwnClient(spec, self._events, self._scratch.path)
        try:
            await client.start()
        except (*FAILURES, StoreError, ValueError) as error:
            await client.end(kill=True)
            self._report_status(
                ClientStatus(spec.number, "failed", client.client_id, cause_of(error, type(error).__name__))
            )
            return
        self._clients[spec.number] = client
        self._report_status(ClientStatus(spec.number, "running", client.client_id))

    def _report_status(self, status: ClientStatus) -> None:
        self._statuses[status.number] = status
        self._send(status)

    def _send(self, value: ClientStatus | ClientActivity) -> None:
        with contextlib.suppress(OSError):
            self._pipe.send(value)

    async def _report_forever(self) -> None:
        while True:
            await asyncio.sleep(REPORT_INTERVAL_S)
            self.report()

    def report(self) -> None:
        """Send the activity since the last report, and status changes of producers that fail."""
        activity = activity_of(self._ring.take(), self._ring.dropped - self._dropped, self._full_groups)
        self._dropped = self._ring.dropped
        if activity is not None:
            self._send(activity)
        for number, client in self._clients.items():
            last_status = self._statuses[number]
            if client.error != last_status.error:
                self._report_status(ClientStatus(number, "running", client.client_id, client.error))


async def forget(
    addresses: Sequence[str], topics: Sequence[str], groups: Sequence[str], access: AccessFiles = NO_FILES
) -> None:
    """Delete topics and groups of a lesson like mqadmin's ``deleteTopic`` and ``deleteSubGroup``.

    First on the brokers of the first topic, then on the name servers. Servers that do not answer keep them.
    """
    instance = ClientInstance(";".join(addresses), account=access.read_account(), tls=access.read_tls())
    with contextlib.suppress(*FAILURES):
        route = await instance.fresh_route(topics[0])
        brokers = (
            [addresses_by_id[MASTER] for addresses_by_id in route.brokers.values() if MASTER in addresses_by_id]
            if route is not None
            else []
        )
        for address in brokers:
            for topic in topics:
                await instance.ask(address, Command(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": topic}))
            for group in groups:
                fields = {"groupName": group, "cleanOffset": "true"}
                await instance.ask(address, Command(RequestCode.DELETE_SUBSCRIPTIONGROUP, fields))
        for address in instance.name_servers:
            for topic in topics:
                await instance.ask(address, Command(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": topic}))
    await instance.kill()


def activity_of(events: Sequence[Event], dropped: int = 0, full_groups: Collection[str] = ()) -> ClientActivity | None:
    """Sum up events as a report, with all events of the groups in ``full_groups``; None if there are none."""
    deliveries: list[Delivery] = []
    rebalances: list[RebalanceEvent] = []
    sent: dict[str, int] = {}
    for event in events:
        if isinstance(event, Delivered):
            deliveries.append(
                Delivery(event.time_ms, event.client_id, event.group, Queue(*event.queue), event.queue_offset)
            )
        elif isinstance(event, Rebalanced):
            rebalances.append(
                RebalanceEvent(
                    event.time_ms,
                    event.client_id,
                    event.group,
                    event.topic,
                    event.client_ids,
                    tuple(Queue(*queue) for queue in event.owned),
                    tuple(Queue(*queue) for queue in event.added),
                    tuple(Queue(*queue) for queue in event.released),
                    event.reason,
                )
            )
        elif isinstance(event, Sent):
            sent[event.client_id] = sent.get(event.client_id, 0) + event.count
    full_events = tuple(event for event in events if event.group in full_groups)
    if not (deliveries or rebalances or sent or dropped or full_events):
        return None
    return ClientActivity(tuple(deliveries), tuple(rebalances), sent, dropped, full_events)
