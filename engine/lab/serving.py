"""The lab's store served: a name server and a broker over it, on the loopback, by a thread of their own.

Any client speaks to it as to a broker. What is asked is counted by code; frames are kept whole only while somebody
records them (:class:`engine.remoting.tap.Ring`).
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import deque
from dataclasses import dataclass, field, replace

from engine.broker.config import PORT, BrokerConfig
from engine.broker.server import ListeningBroker
from engine.errors import UsageError
from engine.message_store import MessageStore
from engine.namesrv.config import PORT as NAMESRV_PORT
from engine.namesrv.server import LOOPBACK, ListeningNameServer
from engine.remoting.connection import bind
from engine.remoting.exchanges import Exchanges, Seen, request_name
from engine.remoting.frame import release_of
from engine.remoting.recording import packed
from engine.remoting.tap import FrameTap, Ring

PATIENCE = 10.0
"""Seconds that the thread may take to answer, to begin or to end."""
PIECE = 1 << 20
"""Bytes of frames that are handed out at a time."""
LATENCIES = 512
"""Answers of each code whose times are kept."""
_FINE = frozenset({0, 19, 22})


@dataclass(frozen=True, slots=True)
class CodeCount:
    """Requests of one code since serving began: ``p50`` and ``p99`` are ms of the last answers, None without any; a
    pull that was held counts as ``held`` and not in those.
    """

    code: int
    name: str
    count: int
    p50: float | None = None
    p99: float | None = None
    held: int = 0
    not_ok: int = 0


@dataclass(frozen=True, slots=True)
class ServedClient:
    """A client as its heartbeats tell it: the groups that it sends and consumes for, and its pulls that are held."""

    client_id: str
    peer: str
    language: str
    release: str
    producers: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()
    held: int = 0


@dataclass(frozen=True, slots=True)
class ServingState:
    """How serving stands. ``at`` are seconds of a clock that only goes on: rates are differences of two states."""

    broker: str
    namesrv: str
    name: str
    started_ms: int
    took_s: float
    at: float
    connections: int = 0
    held: int = 0
    codes: tuple[CodeCount, ...] = ()
    clients: tuple[ServedClient, ...] = ()


@dataclass(slots=True)
class _Code:
    count: int = 0
    held: int = 0
    not_ok: int = 0
    times: deque[float] = field(default_factory=lambda: deque(maxlen=LATENCIES))


class LabServing:
    """One name server and one broker over an open store, until :meth:`stop`. Raises ``CannotRead`` where a port is
    taken; port 0 takes a free one.
    """

    def __init__(self, store: MessageStore, port: int = PORT, namesrv_port: int = NAMESRV_PORT) -> None:
        self._store = store
        self._ports = port, namesrv_port
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Event | None = None
        self._server: ListeningBroker | None = None
        self._exchanges = Exchanges()
        self._codes: dict[int, _Code] = {}
        self._ring: Ring | None = None
        self._gone = 0
        """Frames of recordings before this one: numbers go on."""
        self._lock = threading.Lock()
        self._first = ServingState("", "", "", 0, 0.0, 0.0)
        told: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        began = time.monotonic()
        self._thread = threading.Thread(
            target=lambda: self._run(told, began), name="storescope-lab-serving", daemon=True
        )
        self._thread.start()
        error = told.get()
        if error is not None:
            self._thread.join()
            raise error

    def _run(self, told: queue.SimpleQueue[BaseException | None], began: float) -> None:
        try:
            asyncio.run(self._serve(told, began))
        except BaseException as error:  # noqa: BLE001  told to whoever waits
            told.put(error)

    async def _serve(self, told: queue.SimpleQueue[BaseException | None], began: float) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        names = ListeningNameServer(
            None, LOOPBACK, self._ports[1], tap=FrameTap("namesrv", self._seen)
        )  # fmt: skip
        with bind(LOOPBACK, self._ports[0]) as bound:
            async with names:
                broker = ListeningBroker(
                    self._store, BrokerConfig(), name_servers=[names.address], at=bound,
                    tap=FrameTap("broker", self._seen),
                )  # fmt: skip
                async with broker as server:
                    self._server = server
                    took, now = time.monotonic() - began, round(time.time() * 1000)
                    name = server.broker.config.broker_name
                    self._first = ServingState(server.address, names.address, name, now, took, time.monotonic())
                    told.put(None)
                    await self._ended.wait()
                    self._server = None

    def _seen(self, seen: Seen) -> None:
        """In the serving thread, with each frame."""
        with self._lock:
            if self._ring is not None:
                self._ring.take(seen)
        for exchange in self._exchanges.take(seen):
            if exchange.broken:
                continue
            known = self._codes.get(exchange.code)
            if known is None:
                known = self._codes[exchange.code] = _Code()
            if exchange.answer is None:
                known.count += not exchange.ended
                continue
            if exchange.held:
                known.held += 1
            elif exchange.ms is not None:
                known.times.append(exchange.ms)
            known.not_ok += exchange.answer_code not in _FINE

    def state(self) -> ServingState:
        """How it stands now. Raises :class:`UsageError` where it has ended."""
        loop = self._loop
        if loop is None or self._server is None:
            raise UsageError("nothing is served")
        return asyncio.run_coroutine_threadsafe(self._told(), loop).result(PATIENCE)

    async def _told(self) -> ServingState:
        server = self._server
        if server is None:
            return self._first
        broker = server.broker
        held: dict[str, int] = {}
        for pull in broker.held:
            held[pull.connection.peer] = held.get(pull.connection.peer, 0) + 1
        clients: dict[tuple[str, str], ServedClient] = {}
        tables = [(name, True, members) for name, members in broker.clients.producers.items()]
        tables += [(name, False, group.members) for name, group in broker.clients.consumers.items()]
        for name, sends, members in tables:
            for connection, member in members.items():
                key = member.client_id, connection.peer
                found = clients.get(key) or ServedClient(
                    member.client_id, connection.peer, member.language, release_of(member.version),
                    held=held.get(connection.peer, 0),
                )  # fmt: skip
                clients[key] = (
                    replace(found, producers=(*found.producers, name))
                    if sends
                    else replace(found, consumers=(*found.consumers, name))
                )
        return replace(
            self._first, at=time.monotonic(), connections=server.connections, held=len(broker.held),
            codes=tuple(_counted(code, one) for code, one in self._codes.items()), clients=tuple(clients.values()),
        )  # fmt: skip

    def record(self, on: bool) -> None:
        """Keep the frames that come from now on, or none any more."""
        with self._lock:
            if self._ring is not None:
                self._gone += self._ring.dropped + len(self._ring.since(0, 1 << 62)[1])
            self._ring = Ring() if on else None

    def frames(self, since: int) -> tuple[int, int, bytes]:
        """Frames from number ``since`` on, about a MiB of them: the number of the first, the one behind the last, and
        the frames as a recording holds them.
        """
        with self._lock:
            ring = self._ring
            if ring is None:
                return since, since, b""
            first, found = ring.since(max(0, since - self._gone), PIECE)
        return first + self._gone, first + self._gone + len(found), packed(found)

    def cut(self) -> None:
        """End every connection; clients come again by themselves."""
        server, loop = self._server, self._loop
        if server is not None and loop is not None:
            loop.call_soon_threadsafe(server.cut)

    def stop(self) -> None:
        """Accept no more, and end; the store stays open. A second call does nothing."""
        loop, ended = self._loop, self._ended
        if loop is not None and ended is not None and self._thread.is_alive():
            loop.call_soon_threadsafe(ended.set)
            self._thread.join(PATIENCE)


def _counted(code: int, one: _Code) -> CodeCount:
    times = sorted(one.times)
    return CodeCount(
        code, request_name(code), one.count, _quantile(times, 0.5), _quantile(times, 0.99), one.held, one.not_ok
    )


def _quantile(times: list[float], share: float) -> float | None:
    return times[min(len(times) - 1, int(len(times) * share))] if times else None
