"""The lab's store served: a name server and a broker over it, on the loopback, by a thread of their own; an HA port
where slaves follow its log; more brokers of the lab, each over a store of its own, register at the same name server.

Any client speaks to it as to a broker. What is asked is counted by code; frames are kept whole only while somebody
records them (:class:`engine.remoting.tap.Ring`).
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import re
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from engine.broker.config import PORT, BrokerConfig, read_config
from engine.broker.server import ListeningBroker
from engine.broker.serving import serving_open
from engine.broker.topics import plain_topic, wrong_name
from engine.config import MessageStoreConfig
from engine.errors import CannotRead, UsageError
from engine.lab.samples import ServeSettings
from engine.message_store import MessageStore
from engine.namesrv.config import PORT as NAMESRV_PORT
from engine.namesrv.server import LOOPBACK, ListeningNameServer
from engine.remoting.codes import ResponseCode, request_name
from engine.remoting.connection import bind, port_of
from engine.remoting.exchanges import Exchange, Exchanges, FrameEvent
from engine.remoting.frame import release_of
from engine.remoting.recording import encode_events
from engine.remoting.tap import FrameTap, Ring
from engine.replication.source import HaServer
from engine.sentences import sentence

TIMEOUT_S = 10.0
"""Seconds that the thread may take to answer, to begin or to end."""
PIECE = 1 << 20
"""Bytes of frames that are handed out at a time."""
MAX_PORT = 65_535
LATENCIES = 512
"""Answers of each code whose times are kept."""
BEGINNING = 60.0
"""Seconds that a further broker may take to open its store."""
MAX_QUEUES = 1024
"""Queues of a topic at one broker."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
T = TypeVar("T")
_FINE = frozenset({ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND, ResponseCode.QUERY_NOT_FOUND})


@dataclass(frozen=True, slots=True)
class LastEntry:
    """Position that the last send of a code wrote to, or that its last pull was answered from; offsets as in the
    store.
    """

    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int


@dataclass(frozen=True, slots=True)
class CodeCount:
    """Requests of one code since serving began: ``p50`` and ``p99`` are ms of the last answers, None without any; a
    pull that was held counts as ``held_count`` and not in those. ``last_entry`` is where its last one led to.
    """

    code: int
    name: str
    count: int
    p50: float | None = None
    p99: float | None = None
    held_count: int = 0
    not_ok: int = 0
    last_entry: LastEntry | None = None


@dataclass(frozen=True, slots=True)
class ServedClient:
    """A client as its heartbeats tell it: the groups that it sends and consumes for, and its pulls that are held."""

    client_id: str
    peer: str
    language: str
    release: str
    producers: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()
    held_pulls: int = 0
    broker: str = ""
    """The name of the broker that it is connected to."""


@dataclass(frozen=True, slots=True)
class ServedBroker:
    """A broker of the lab, and the folder of its store; ``is_own_store``: it is the lab's own store."""

    name: str
    address: str
    folder: Path
    is_own_store: bool = False


@dataclass(frozen=True, slots=True)
class ServingState:
    """State of the server. ``clock_s`` is seconds of a monotonic clock: rates are differences of two states.

    ``vip`` is empty if that port does not answer, ``no_vip`` says why; ``without_effect`` are keys of ``config``
    that change nothing here.
    """

    broker: str
    namesrv: str
    name: str
    started_ms: int
    took_s: float
    clock_s: float
    connections: int = 0
    held_pulls: int = 0
    codes: tuple[CodeCount, ...] = ()
    clients: tuple[ServedClient, ...] = ()
    ha: str = ""
    slaves: int = 0
    vip: str = ""
    no_vip: str = ""
    config: str = ""
    without_effect: tuple[str, ...] = ()
    brokers: tuple[ServedBroker, ...] = ()


@dataclass(slots=True)
class _FurtherBroker:
    """An added broker; ``ends`` closes it and its store."""

    server: ListeningBroker
    folder: Path
    ends: contextlib.AsyncExitStack


@dataclass(slots=True)
class _Code:
    count: int = 0
    held_count: int = 0
    not_ok: int = 0
    times: deque[float] = field(default_factory=lambda: deque(maxlen=LATENCIES))
    last_exchange: Exchange | None = None


class LabServing:
    """A name server and a broker over an open store, and brokers that are added, until :meth:`stop`. Raises
    ``CannotRead`` if a port is taken or the configuration cannot be read, and :class:`UsageError` if it asks for
    what cannot be met.
    """

    def __init__(self, store: MessageStore, settings: ServeSettings | None = None) -> None:
        self._store = store
        self._settings = settings or ServeSettings()
        self._config, self._port, self._ha_port, self._without_effect = _asked(self._settings, store.config)
        names = self._settings.namesrv_port
        self._names_port = NAMESRV_PORT if names is None else names
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Event | None = None
        self._server: ListeningBroker | None = None
        self._further: dict[str, _FurtherBroker] = {}
        self._exchanges = Exchanges()
        self._codes: dict[int, _Code] = {}
        self._ring: Ring | None = None
        self._gone = 0
        """Frames of recordings before this one: numbers go on."""
        self._lock = threading.Lock()
        self._first = ServingState("", "", "", 0, 0.0, 0.0)
        startup: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        began = time.monotonic()
        self._thread = threading.Thread(
            target=lambda: self._run(startup, began), name="storescope-lab-serving", daemon=True
        )
        self._thread.start()
        error = startup.get()
        if error is not None:
            self._thread.join()
            raise error

    def _run(self, startup: queue.SimpleQueue[BaseException | None], began: float) -> None:
        try:
            asyncio.run(self._serve(startup, began))
        except BaseException as error:  # noqa: BLE001  raised in the waiting caller
            startup.put(error)

    async def _serve(self, startup: queue.SimpleQueue[BaseException | None], began: float) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        async with contextlib.AsyncExitStack() as opened:
            bound = opened.enter_context(bind(LOOPBACK, self._port))
            ha = opened.enter_context(bind(LOOPBACK, self._ha_of(bound), "the HA port"))
            vip, no_vip = self._vip_of(bound, opened)
            names = ListeningNameServer(None, LOOPBACK, self._names_port, tap=FrameTap("namesrv", self._seen))
            await opened.enter_async_context(names)
            source = await opened.enter_async_context(HaServer(self._store, ha))
            listening = ListeningBroker(
                self._store,
                self._config,
                name_servers=[names.address],
                listening_socket=bound,
                vip=vip,
                ha=f"{LOOPBACK}:{port_of(ha)}",
                tap=FrameTap("broker", self._seen),
            )
            broker = listening.broker
            broker.slaves.acknowledged, broker.slaves.hurry = source.acknowledged, source.hurry
            source.changed = broker.slaves.answer_covered
            broker.followers = lambda: source.slaves
            self._server = server = await opened.enter_async_context(listening)
            self._first = ServingState(
                server.address,
                names.address,
                broker.config.broker_name,
                round(time.time() * 1000),
                time.monotonic() - began,
                time.monotonic(),
                ha=broker.ha_address,
                vip="" if vip is None else f"{LOOPBACK}:{port_of(vip)}",
                no_vip=no_vip,
                config=str(self._settings.config or ""),
                without_effect=self._without_effect,
            )
            startup.put(None)
            try:
                await self._ended.wait()
            finally:
                self._server = None
                for further_broker in self._further.values():
                    await further_broker.ends.aclose()
                self._further.clear()

    def _ha_of(self, bound: socket.socket) -> int:
        """Return the HA port as ``storescope serve`` chooses it: the configured one, else the broker's own plus one;
        a free one beside a free port.
        """
        if self._ha_port is not None:
            return self._ha_port
        beside = port_of(bound) + 1
        return 0 if self._port == 0 or beside > MAX_PORT else beside

    def _vip_of(self, bound: socket.socket, opened: contextlib.AsyncExitStack) -> tuple[socket.socket | None, str]:
        """Return the second port of RocketMQ's brokers if it is wanted and free; else the reason why there is none."""
        if not self._settings.vip:
            return None, ""
        try:
            return opened.enter_context(bind(LOOPBACK, port_of(bound) - 2)), ""
        except (CannotRead, OverflowError) as error:
            return None, str(error)

    def _seen(self, frame: FrameEvent) -> None:
        """Count one frame. Called in the serving thread."""
        with self._lock:
            if self._ring is not None:
                self._ring.take(frame)
        for exchange in self._exchanges.take(frame):
            if exchange.broken:
                continue
            code_count = self._codes.get(exchange.code)
            if code_count is None:
                code_count = self._codes[exchange.code] = _Code()
            if exchange.answer is None:
                code_count.count += not exchange.ended
                continue
            if exchange.held:
                code_count.held_count += 1
            elif exchange.ms is not None:
                code_count.times.append(exchange.ms)
            code_count.not_ok += exchange.answer_code not in _FINE
            if exchange.written_at is not None or exchange.first_unit is not None:
                code_count.last_exchange = exchange

    def stored_messages(self) -> int:
        """The number of messages that the broker stored for clients since it began to serve."""
        server = self._server
        return sum(flow.messages for flow in list(server.broker.stats.put.values())) if server is not None else 0

    def state(self) -> ServingState:
        """Return the present state. Raises :class:`UsageError` if serving has ended."""
        return self._do(self._told)

    def _do(self, work: Callable[..., Coroutine[Any, Any, T]], *args: object, timeout_s: float = TIMEOUT_S) -> T:
        """Have the serving thread do ``work``. Raises what that raises, and :class:`UsageError` once it has ended."""
        loop = self._loop
        if loop is None or self._server is None:
            raise UsageError(sentence("nothing is served"))
        return asyncio.run_coroutine_threadsafe(work(*args), loop).result(timeout_s)

    def _brokers(self) -> dict[str, ListeningBroker]:
        """Return all brokers by name; the first is that of the lab's own store."""
        first_broker = {self._first.name: self._server} if self._server is not None else {}
        return {**first_broker, **{name: further_broker.server for name, further_broker in self._further.items()}}

    async def _told(self) -> ServingState:
        brokers = self._brokers()
        clients: dict[tuple[str, str], ServedClient] = {}
        for name, server in brokers.items():
            clients |= self._clients(name, server)
        return replace(
            self._first,
            clock_s=time.monotonic(),
            connections=sum(item.connections for item in brokers.values()),
            held_pulls=sum(len(item.broker.held) for item in brokers.values()),
            slaves=self._slaves(),
            codes=tuple(_counted(code, item) for code, item in self._codes.items()),
            clients=tuple(clients.values()),
            brokers=tuple(self._served(name, item) for name, item in brokers.items()),
        )

    def _slaves(self) -> int:
        """Return how many slaves follow the log of the lab's own store."""
        return len(self._server.broker.followers()) if self._server is not None else 0

    def _served(self, name: str, server: ListeningBroker) -> ServedBroker:
        further = self._further.get(name)
        folder = self._store.paths.root if further is None else further.folder
        return ServedBroker(name, server.address, folder, further is None)

    @staticmethod
    def _clients(broker_name: str, server: ListeningBroker) -> dict[tuple[str, str], ServedClient]:
        """Return the clients connected to one of the brokers."""
        broker = server.broker
        pulls_by_peer: dict[str, int] = {}
        for pull in broker.held:
            pulls_by_peer[pull.connection.peer] = pulls_by_peer.get(pull.connection.peer, 0) + 1
        clients: dict[tuple[str, str], ServedClient] = {}
        tables = [(name, True, members) for name, members in broker.clients.producers.items()]
        tables += [(name, False, group.members) for name, group in broker.clients.consumers.items()]
        for name, sends, members in tables:
            for connection, member in members.items():
                key = member.client_id, connection.peer
                client = clients.get(key) or ServedClient(
                    member.client_id,
                    connection.peer,
                    member.language,
                    release_of(member.version),
                    held_pulls=pulls_by_peer.get(connection.peer, 0),
                    broker=broker_name,
                )
                clients[key] = (
                    replace(client, producers=(*client.producers, name))
                    if sends
                    else replace(client, consumers=(*client.consumers, name))
                )
        return clients

    # ---- what is done to it

    def add_broker(self, name: str, folder: Path) -> ServedBroker:
        """Start another broker over the store in ``folder`` (made if absent, with the settings of the lab's own), at
        a free port and the same name server. Raises :class:`UsageError` if the name is taken or is no name, and
        what :class:`MessageStore` raises.
        """
        return self._do(self._add_broker, name, Path(folder), timeout_s=BEGINNING)

    async def _add_broker(self, name: str, folder: Path) -> ServedBroker:
        if not _NAME.fullmatch(name):
            raise UsageError(
                sentence("{name!r} is not a valid broker name: use letters, digits, - and _, at most 64", name=name)
            )
        if name in self._brokers():
            raise UsageError(sentence("there is a broker {name} already", name=name))
        store = self._store
        config = replace(store.config.without_paths(), broker_role="ASYNC_MASTER")

        def opened(shown: str) -> MessageStore:
            return MessageStore(folder, config, release=store.release, store_host=shown)

        ends = contextlib.AsyncExitStack()
        serving = serving_open(
            opened,
            BrokerConfig(broker_name=name),
            name_servers=[self._first.namesrv],
            port=0,
            tap=FrameTap("broker", self._seen),
        )
        server = await ends.enter_async_context(serving)
        self._further[name] = _FurtherBroker(server, folder, ends)
        return self._served(name, server)

    def end_broker(self, name: str) -> None:
        """End a broker that was added: it leaves the name server, its store is closed and stays. Raises
        :class:`UsageError` if there is none of that name, or it is that of the lab's own store.
        """
        self._do(self._end_broker, name, timeout_s=BEGINNING)

    async def _end_broker(self, name: str) -> None:
        further = self._further.pop(name, None)
        if further is None:
            raise UsageError(sentence("{name} is not a broker that was added here", name=name))
        await further.ends.aclose()

    def set_queues(self, name: str, topic: str, queues: int) -> int:
        """Have a topic ``queues`` queues at a broker, declared there where it is not; 0 takes a topic away. How many it
        had before.

        Raises :class:`UsageError` where queues would go that hold messages, and for what is no topic or no number.
        """
        return self._do(self._set_queues, name, topic, queues)

    async def _set_queues(self, name: str, topic: str, queues: int) -> int:
        server = self._brokers().get(name)
        if server is None:
            raise UsageError(sentence("the lab has no broker {name}", name=name))
        broker = server.broker
        wrong = wrong_name(topic, broker.store.release)
        if wrong is not None or topic in broker.topics.own_names():
            raise UsageError(wrong or sentence("{topic} is a topic of the broker's own", topic=topic))
        if not 0 <= queues <= MAX_QUEUES:
            raise UsageError(sentence("expected 0 to {most:,} queues, found {n:,}", most=MAX_QUEUES, n=queues))
        topic_config = broker.topics.get(topic)
        old_count = topic_config.write_queue_nums if topic_config is not None else 0
        if queues < old_count:
            broker.store.services.step("reput")  # a message that no queue has yet is one that a queue holds
        queues_with_messages = [
            queue_id for queue_id in range(queues, old_count) if broker.store.max_offset_in_queue(topic, queue_id) > 0
        ]
        if queues_with_messages:
            raise UsageError(
                sentence(
                    "queue {n} of {topic} at {name} has messages: it cannot be removed",
                    n=queues_with_messages[0],
                    topic=topic,
                    name=name,
                )
            )
        if topic_config is not None and not queues:
            broker.store.delete_topics([topic])
            broker.topics.changed([])
        elif queues:
            declared = topic_config or plain_topic(topic, queues)
            broker.topics.declare(replace(declared, read_queue_nums=queues, write_queue_nums=queues))
        return old_count

    def cut_client(self, client_id: str, name: str = "") -> int:
        """End the connections of a client, to one broker or to all; how many. It comes again by itself."""
        return self._do(self._cut_client, client_id, name)

    async def _cut_client(self, client_id: str, name: str) -> int:
        connections = {
            connection
            for broker_name, server in self._brokers().items()
            if name in ("", broker_name)
            for members in (
                *server.broker.clients.producers.values(),
                *(group.members for group in server.broker.clients.consumers.values()),
            )
            for connection, member in members.items()
            if member.client_id == client_id
        }
        for connection in connections:
            connection.close()
        return len(connections)

    def record(self, on: bool) -> None:
        """Keep the frames that come from now on, or none any more."""
        with self._lock:
            if self._ring is not None:
                self._gone += self._ring.dropped + len(self._ring.events_from(0, 1 << 62)[1])
            self._ring = Ring() if on else None

    def frames(self, first_number: int) -> tuple[int, int, bytes]:
        """Return about a MiB of frames from ``first_number`` on: the number of the first, the one behind the last, and
        the frames as a recording holds them.
        """
        with self._lock:
            ring = self._ring
            if ring is None:
                return first_number, first_number, b""
            start_number, frames = ring.events_from(max(0, first_number - self._gone), PIECE)
        return start_number + self._gone, start_number + self._gone + len(frames), encode_events(frames)

    def cut(self) -> None:
        """Close every connection; clients connect again by themselves."""
        loop = self._loop
        if loop is not None:
            for server in self._brokers().values():
                loop.call_soon_threadsafe(server.cut)

    def stop(self) -> None:
        """Stop accepting, and end; the store stays open. A second call does nothing."""
        loop, ended = self._loop, self._ended
        if loop is not None and ended is not None and self._thread.is_alive():
            loop.call_soon_threadsafe(ended.set)
            self._thread.join(TIMEOUT_S + BEGINNING * bool(self._further))


def _counted(code: int, code_count: _Code) -> CodeCount:
    times = sorted(code_count.times)
    return CodeCount(
        code,
        request_name(code),
        code_count.count,
        _quantile(times, 0.5),
        _quantile(times, 0.99),
        code_count.held_count,
        code_count.not_ok,
        _last(code_count.last_exchange),
    )


def _last(exchange: Exchange | None) -> LastEntry | None:
    if exchange is None or exchange.queue_id is None:
        return None
    first_unit = exchange.first_unit
    queue_offset, physical_offset = (exchange.offset, exchange.written_at) if first_unit is None else first_unit
    if queue_offset is None or physical_offset is None:
        return None
    return LastEntry(exchange.topic, exchange.queue_id, queue_offset, physical_offset)


def _quantile(times: list[float], share: float) -> float | None:
    return times[min(len(times) - 1, int(len(times) * share))] if times else None


def _asked(
    settings: ServeSettings, open_with: MessageStoreConfig
) -> tuple[BrokerConfig, int, int | None, tuple[str, ...]]:
    """The broker's configuration, its port, the HA port where one is named, and keys without effect.

    Raises :class:`CannotRead` and :class:`UsageError`: a lab's broker is a master without access control.
    """
    if settings.config is None:
        return BrokerConfig(), PORT if settings.port is None else settings.port, settings.ha_port, ()
    file = str(settings.config)
    broker, store_config, unknown = read_config(file)
    if store_config.broker_role == "SLAVE":
        raise UsageError(sentence("brokerRole=SLAVE: the lab's broker is a master; `serve` follows one"), file=file)
    for key, is_set in (("aclEnable", broker.acl_enable), ("authenticationEnabled", broker.authentication)):
        if is_set:
            raise UsageError(
                sentence("{key}=true: the lab's broker does not check accounts; `serve --acl` does", key=key), file=file
            )
    without = list(unknown)
    for config_field in fields(MessageStoreConfig):
        java = config_field.metadata.get("java", "")
        if (
            java in store_config.given
            and config_field.name not in _BROKER_ROLE_KEYS
            and getattr(store_config, config_field.name) != getattr(open_with, config_field.name)
        ):
            without.append(java)
    for java, differs in (("brokerIP1", broker.broker_ip != LOOPBACK), ("namesrvAddr", bool(broker.namesrv_addr))):
        if differs:
            without.append(java)
    ha = settings.ha_port
    if ha is None and "haListenPort" in store_config.given:
        ha = store_config.ha_listen_port
    port = broker.listen_port if settings.port is None else settings.port
    broker = replace(broker, broker_id=0, broker_ip=LOOPBACK, namesrv_addr="")
    return broker, port, ha, tuple(dict.fromkeys(without))


_BROKER_ROLE_KEYS = frozenset({"broker_role", "ha_listen_port"})
"""What a file may say of the store that is open: everything else was settled as it was opened."""
