"""Common parts of the producers and consumers of one client: connections, routes, heartbeats, and requests of brokers.

Java: ``MQClientInstance``, ``MQClientAPIImpl``, ``ClientRemotingProcessor``. All of it runs in one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import os
import random
import ssl
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any, Self

from engine.callbacks import system_clock
from engine.client.errors import AnswerNotUnderstood, BrokerRefused, ClientError, NoRoute, NotRunning
from engine.client.events import EventStream, Paced, Started, Stopped
from engine.client.messages import check_group
from engine.client.repeated_warnings import warn
from engine.client.routes import MASTER, MessageQueue, TopicRoute, read_route
from engine.errors import cause_of
from engine.remoting.answers import reading
from engine.remoting.client_account import ClientAccount
from engine.remoting.codes import RequestCode, ResponseCode
from engine.remoting.connection import Connection, connect, not_supported
from engine.remoting.frame import ONE_WAY, Command, answer_to
from engine.remoting.signing import sign
from engine.sentences import sentence

LANGUAGE = "PYTHON"
ROUTE_REFRESH = HEARTBEAT = 30.0
"""Seconds between two looks at all routes, and between two heartbeats."""
TIMEOUT_S = 3.0
"""Seconds to wait for a name server, or for the answer to a heartbeat."""
FAILURES = (OSError, TimeoutError, ClientError)
"""Errors of requests to other hosts."""
_log = logging.getLogger(__name__)
_names = itertools.count(time.time_ns())


class ClientInstance:
    """A client of a cluster.

    ``namesrv`` are addresses with ``;`` between, or those of the environment's ``NAMESRV_ADDR``. Parts that share it
    have one client id. Without ``client_id`` it is made as in Java, ``ip@process#number``. ``account`` signs each
    request: an access key, its secret, and the security token of a temporary account. With ``tls`` all connections use
    TLS.
    """

    def __init__(
        self,
        namesrv: str,
        *,
        client_id: str | None = None,
        events: EventStream | None = None,
        account: ClientAccount | tuple[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        namesrv = namesrv or os.environ.get("NAMESRV_ADDR", "")
        self.name_servers = [address.strip() for address in namesrv.split(";") if address.strip()]
        if not self.name_servers:
            raise ClientError(
                "no name server address: expected HOST:PORT, more of them with ; between, here or in NAMESRV_ADDR"
            )
        random.shuffle(self.name_servers)
        self.client_id = client_id or f"127.0.0.1@{os.getpid()}#{next(_names)}"
        self.events = events or EventStream()
        self.replies: dict[str, asyncio.Future[Command]] = {}
        """Requests of producers that wait for a reply, by correlation id."""
        self._account = account
        self._tls = tls
        self._parts: list[ClientPart] = []
        self._connections: dict[str, Connection] = {}
        self._gates: dict[str, asyncio.Lock] = {}
        self._routes: dict[str, TopicRoute] = {}
        self._wanted: dict[str, asyncio.Task[TopicRoute | None]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._loops: list[asyncio.Task[None]] = []
        self._current = 0
        self._ended = False
        self.versions: dict[str, int] = {}
        """Ordinal of each broker's release by its address, from its answers to heartbeats."""

    # Parts, beginning and end

    async def join(self, part: ClientPart) -> None:
        """Add a part; the first one starts the background loops.

        Raises :class:`ClientError` where another part has the same group.
        """
        if self._ended:
            raise NotRunning("this client has ended; make a new one")
        if any(
            other_part.group == part.group and other_part.is_consumer == part.is_consumer for other_part in self._parts
        ):
            kind = "consumer" if part.is_consumer else "producer"
            raise ClientError(
                sentence(
                    "The {kind} group[{group}] has been created before in this client", kind=kind, group=part.group
                )
            )
        self._parts.append(part)
        if not self._loops:
            self._loops = [
                asyncio.create_task(self.repeat(ROUTE_REFRESH, self._refresh_all)),
                asyncio.create_task(self.repeat(HEARTBEAT, self.heartbeat)),
            ]

    async def leave(self, part: ClientPart) -> None:
        """Unregister a part; the last one closes all connections."""
        if part not in self._parts:
            return
        self._parts.remove(part)
        fields = {"clientID": self.client_id, "consumerGroup" if part.is_consumer else "producerGroup": part.group}
        addresses = {address for address, _ in self._known_brokers() if address in self._connections}
        await asyncio.gather(*(self._goodbye(address, fields) for address in addresses))
        if not self._parts:
            await self._end()

    async def _goodbye(self, address: str, fields: dict[str, str]) -> None:
        with contextlib.suppress(*FAILURES):
            await self.ask(address, Command(RequestCode.UNREGISTER_CLIENT, dict(fields)))

    async def kill(self) -> None:
        """End without unregistering, as a killed process: brokers only see connections that end."""
        self._parts.clear()
        await self._end()

    async def _end(self) -> None:
        self._ended = True
        ending = [*self._loops, *self._tasks]
        for task in ending:
            if task is not asyncio.current_task():
                task.cancel()
        for waiting in self.replies.values():
            waiting.cancel()
        await asyncio.gather(*(task for task in ending if task is not asyncio.current_task()), return_exceptions=True)
        for connection in self._connections.values():
            connection.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await asyncio.gather(*(connection.closed.wait() for connection in self._connections.values()))
        self._connections.clear()

    async def repeat(self, seconds: float, step: Callable[[], Awaitable[object]]) -> None:
        """Call ``step`` again and again, with ``seconds`` between; failures of other hosts are logged."""
        while True:
            await asyncio.sleep(seconds)
            try:
                await step()
            except FAILURES as error:
                warn(_log, cause_of(error), "%s: %s", getattr(step, "__name__", step), cause_of(error))
            except Exception:  # noqa: BLE001  a mistake of ours ends no heartbeat
                _log.exception("%s", getattr(step, "__name__", step))

    def soon(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run ``work`` in the background, at most until this client ends."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            if isinstance(error, FAILURES):
                warn(_log, cause_of(error), "%s", cause_of(error))
            else:
                _log.error("a client's task failed", exc_info=error)

    @property
    def uses_tls(self) -> bool:
        """True if all connections use TLS."""
        return self._tls is not None

    @property
    def has_account(self) -> bool:
        """True if all requests are signed."""
        return self._account is not None

    # Requests

    async def connection(self, address: str) -> Connection:
        """Return the connection to an address; connect where there is none. Raises ``OSError``, ``TimeoutError``."""
        connection = self._connections.get(address)
        if connection is not None and not connection.closed.is_set():
            return connection
        self._still_runs()
        async with self._gates.setdefault(address, asyncio.Lock()):
            connection = self._connections.get(address)
            if connection is None or connection.closed.is_set():
                host, _, port = address.rpartition(":")
                if not port.isdecimal():
                    raise ConnectionError(
                        sentence("{address!r} is not an address: expected HOST:PORT", address=address)
                    )
                connection = await connect(host.strip("[]"), int(port), self._asked, tls=self._tls)
                self._connections[address] = connection
                try:
                    self._still_runs()
                except NotRunning:
                    connection.close()
                    raise
        return connection

    def _still_runs(self) -> None:
        if self._ended:
            raise NotRunning("this client has ended")

    async def ask(self, address: str, request: Command, timeout_s: float = TIMEOUT_S) -> Command:
        """Return the answer of a server, whatever its code; ``timeout_s`` counts from when the request is written.

        Raises ``OSError``, ``TimeoutError``.
        """
        self._stamp(request)
        connection = self._connections.get(address)
        if connection is None or connection.closed.is_set():
            async with asyncio.timeout(timeout_s):
                connection = await self.connection(address)
        if connection.must_wait_to_write:
            await connection.room_to_write(max(timeout_s, TIMEOUT_S))
        return await connection.ask(request, timeout_s)

    async def call(
        self, address: str, code: int, fields: Mapping[str, object], body: bytes = b"", timeout_s: float = TIMEOUT_S
    ) -> Command:
        """Send a request that must succeed, and return the answer.

        Raises :class:`BrokerRefused`, ``OSError``, ``TimeoutError``.
        """
        answer = await self.ask(address, Command(code, fields_as_text(fields), body), timeout_s)
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerRefused(answer.code, answer.remark, address)
        return answer

    async def tell(self, address: str, code: int, fields: Mapping[str, object], body: bytes = b"") -> None:
        """Send a one-way request, which is not answered. Raises ``OSError``, ``TimeoutError``."""
        self.write(await self.connection(address), Command(code, fields_as_text(fields), body))

    def write(self, connection: Connection, request: Command) -> None:
        """Send a one-way request over a connection."""
        self._stamp(request)
        request.flag |= ONE_WAY
        connection.send(request)

    def _stamp(self, request: Command) -> None:
        """Set the language, and sign the request for the account."""
        request.language = LANGUAGE
        if self._account is not None:
            sign(request, *self._account)

    # Routes

    def known_route(self, topic: str) -> TopicRoute | None:
        """Return a topic's route if it was asked for before."""
        return self._routes.get(topic)

    async def route(self, topic: str) -> TopicRoute | None:
        """Return a topic's route, and ask for it where it is not known; None if name servers know no such topic."""
        known_route = self._routes.get(topic)
        return known_route if known_route is not None else await self.fresh_route(topic)

    async def fresh_route(self, topic: str) -> TopicRoute | None:
        """Ask the name servers for the current route. Raises the last failure if none answers."""
        asking = self._wanted.get(topic)
        if asking is None:
            asking = self._wanted[topic] = self.soon(self._ask_route(topic))
            asking.add_done_callback(lambda _: self._wanted.pop(topic, None))
        return await asyncio.shield(asking)

    async def _ask_route(self, topic: str) -> TopicRoute | None:
        fields = {"topic": topic, "acceptStandardJsonOnly": "true"}
        last_error: Exception | None = None
        for step in range(len(self.name_servers)):
            number = (self._current + step) % len(self.name_servers)
            try:
                answer = await self.ask(
                    self.name_servers[number], Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, dict(fields))
                )
            except (OSError, TimeoutError) as error:
                last_error = error
                continue
            self._current = number
            if answer.code == ResponseCode.TOPIC_NOT_EXIST:
                return None
            if answer.code != ResponseCode.SUCCESS:
                raise BrokerRefused(answer.code, answer.remark, self.name_servers[number])
            with reading(RequestCode.GET_ROUTEINFO_BY_TOPIC, self.name_servers[number], AnswerNotUnderstood):
                route = read_route(topic, bytes(answer.body))
            old_brokers = self._known_brokers()
            self._routes[topic] = route
            if self._parts and not self._known_brokers() <= old_brokers:
                self.soon(self.heartbeat())
            return route
        cause = sentence("no name server is configured") if last_error is None else cause_of(last_error)
        servers = "; ".join(self.name_servers)
        raise NoRoute(
            sentence("no name server answers ({servers}): {cause}", servers=servers, cause=cause)
        ) from last_error

    async def _refresh_all(self) -> None:
        topics = {topic for part in self._parts for topic in part.topics()}
        results = await asyncio.gather(*(self.fresh_route(topic) for topic in topics), return_exceptions=True)
        for result in results:
            if isinstance(result, FAILURES):
                raise result

    def _known_brokers(self) -> set[tuple[str, int]]:
        """Return (address, broker id) of all brokers of all routes."""
        return {
            (address, number)
            for route in self._routes.values()
            for addresses in route.brokers.values()
            for number, address in addresses.items()
        }

    def address(self, broker: str, broker_id: int = MASTER) -> str:
        """Return a broker's address; for another id than its master's any of that name. Raises :class:`NoRoute`."""
        for route in self._routes.values():
            if (address := route.address(broker, broker_id)) is not None:
                return address
        raise NoRoute(sentence("The broker[{broker}] not exist", broker=broker))

    def broker_of(self, queue: MessageQueue) -> str:
        """Return the broker of a queue; of a logical queue the one that leads it."""
        route = self._routes.get(queue.topic)
        return queue.broker if route is None else route.leaders.get(queue, queue.broker)

    def queue_address(self, queue: MessageQueue, broker_id: int = MASTER) -> str:
        """Return the address of a queue's broker. Raises :class:`NoRoute`."""
        return self.address(self.broker_of(queue), broker_id)

    # Heartbeats

    async def heartbeat(self) -> None:
        """Send a heartbeat to all brokers; those that do not answer get the next one."""
        if not self._parts:
            return
        consumers = [dict(part.heartbeat()) for part in self._parts if part.is_consumer]
        fields = {
            "clientID": self.client_id,
            "consumerDataSet": consumers,
            "heartbeatFingerprint": 0,
            "producerDataSet": [dict(part.heartbeat()) for part in self._parts if not part.is_consumer],
            "withoutSub": False,
        }
        body = json.dumps(fields, separators=(",", ":")).encode()
        addresses = [address for address, number in self._known_brokers() if consumers or number == MASTER]
        await asyncio.gather(*(self._beat(address, body) for address in addresses))

    async def _beat(self, address: str, body: bytes) -> None:
        try:
            answer = await self.call(address, RequestCode.HEART_BEAT, {}, body)
        except FAILURES as error:
            warn(_log, cause_of(error), "heartbeat to %s: %s", address, cause_of(error))
        else:
            self.versions[address] = answer.version

    # Requests of brokers

    def _asked(self, request: Command, connection: Connection) -> Command | None:
        if request.code == RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT:
            return self._replied(request)
        if request.code == RequestCode.CHECK_TRANSACTION_STATE:
            answer = None
            for part in self._parts:
                if not part.is_consumer:
                    part.asked(request, connection)
        else:
            group = request.fields.get("consumerGroup") or request.fields.get("group")
            consumer = next(
                (candidate for candidate in self._parts if candidate.is_consumer and candidate.group == group), None
            )
            if consumer is None:
                if request.code in _CONSUMER_REQUESTS:
                    words = f"The Consumer Group <{group}> not exist in the consumer <{self.client_id}>"
                    return answer_to(request, ResponseCode.SYSTEM_ERROR, remark=words)
                return not_supported(request)
            answer = consumer.asked(request, connection)
        if not isinstance(answer, Coroutine):
            return answer
        self.soon(self._answer_later(request, connection, answer))
        return None

    async def _answer_later(
        self, request: Command, connection: Connection, answer_task: Coroutine[Any, Any, Command]
    ) -> None:
        answer = await answer_task
        if not request.is_one_way:
            connection.send(answer)

    def _replied(self, request: Command) -> Command:
        """Pass on a reply to a producer's request (PUSH_REPLY_MESSAGE_TO_CLIENT).

        A reply that nobody waits for any more is accepted, too.
        """
        text = request.fields.get("properties", "")
        reply_properties = {
            name: value for name, _, value in (pair.partition("\x01") for pair in text.split("\x02")) if name
        }
        waiting = self.replies.pop(reply_properties.get("CORRELATION_ID", ""), None)
        if waiting is not None and not waiting.done():
            waiting.set_result(request)
        return answer_to(request)


_CONSUMER_REQUESTS = frozenset(
    {
        RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
        RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
        RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT,
        RequestCode.GET_CONSUMER_RUNNING_INFO,
        RequestCode.CONSUME_MESSAGE_DIRECTLY,
    }
)


def fields_as_text(fields: Mapping[str, object]) -> dict[str, str]:
    """Return header fields as text; None values are left out."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in fields.items()
        if value is not None
    }


class ConsumeControl:
    """Slows a client down: a pause, and additional seconds for each message."""

    def __init__(self) -> None:
        self._goes = asyncio.Event()
        self._goes.set()
        self.delay = 0.0
        """Additional seconds for each message."""

    @property
    def paused(self) -> bool:
        """True between :meth:`pause` and :meth:`resume`."""
        return not self._goes.is_set()

    def pause(self) -> None:
        """Stop until :meth:`resume`."""
        self._goes.clear()

    def resume(self) -> None:
        """Go on."""
        self._goes.set()

    async def wait(self) -> None:
        """Wait until the client may go on."""
        if not self._goes.is_set():
            await self._goes.wait()
        if self.delay:
            await asyncio.sleep(self.delay)


class ClientPart(ABC):
    """A producer or a consumer of a client: ``async with``, or :meth:`start` and :meth:`stop`.

    ``instance`` shares connections and id with other parts of one client; a caller that passes one ends it by stopping
    all its parts.

    ``instance`` shares connections and id with other parts of one client; who brings one ends it by stopping its parts.
    """

    is_consumer = True

    def __init__(self, group: str, namesrv: str, instance: ClientInstance | None, events: EventStream | None) -> None:
        check_group(group)
        self.group = group
        self.instance = instance or ClientInstance(namesrv, events=events)
        self.events = self.instance.events
        self.control = ConsumeControl()
        self._running = False

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def client_id(self) -> str:
        """The id under which brokers know this client; all parts of an instance share it."""
        return self.instance.client_id

    @abstractmethod
    async def start(self) -> None:
        """Register with brokers, and begin. Raises :class:`ClientError`."""

    @abstractmethod
    async def stop(self) -> None:
        """Stop, and unregister."""

    @abstractmethod
    def topics(self) -> Iterable[str]:
        """Return the topics whose routes are refreshed."""

    @abstractmethod
    def heartbeat(self) -> Mapping[str, Any]:
        """Return its row of a heartbeat."""

    @abstractmethod
    def asked(self, request: Command, connection: Connection, /) -> Command | Coroutine[Any, Any, Command] | None:
        """Return the answer to a broker's request to this group; None if there is none."""

    def pause(self) -> None:
        """Stop sending, or fetching, until :meth:`resume` (Java: ``suspend``).

        Messages that a consumer holds are still consumed.
        """
        self.control.pause()
        self._paced()

    def resume(self) -> None:
        """Go on."""
        self.control.resume()
        self._paced()

    def slow_down(self, seconds: float) -> None:
        """Make each message take that many seconds longer; 0: full speed."""
        self.control.delay = seconds
        self._paced()

    def _paced(self) -> None:
        if self.events.has_subscribers:
            self.events.emit(Paced(system_clock(), self.client_id, self.group, self.control.paused, self.control.delay))

    def _began(self) -> None:
        if self.events.has_subscribers:
            self.events.emit(Started(system_clock(), self.client_id, self.group))

    def _ended(self, *, unregistered: bool) -> None:
        if self.events.has_subscribers:
            self.events.emit(Stopped(system_clock(), self.client_id, self.group, unregistered))
