"""Read the state of a cluster: brokers from name servers; topics, groups, offsets and clients from brokers.

Sends only administration requests that change nothing, and reports each to ``on_response``. Java:
``DefaultMQAdminExtImpl``.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeVar

from engine.callbacks import Clock, system_clock
from engine.cluster import answers
from engine.cluster.state import BrokerPart, Client, ClusterState, Group, Queue, Refusal
from engine.errors import cause_of
from engine.remoting.answers import UnexpectedAnswer, reading
from engine.remoting.client_account import ClientAccount
from engine.remoting.codes import RequestCode, ResponseCode, request_name
from engine.remoting.connection import Connection, connect, not_supported
from engine.remoting.frame import Command
from engine.remoting.signing import sign
from engine.sentences import sentence
from engine.system_names import is_system_group, is_system_topic

TIMEOUT_S = 3.0
"""Seconds to wait for an answer."""
_MAX_PENDING_REQUESTS = 16
"""Maximum number of pending requests to one broker."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """A request with the code of its answer, −1 for none, and the time that it took (ms)."""

    address: str
    code: int
    name: str
    fields: Mapping[str, str]
    answer: int
    ms: float


class _NoAnswer(Exception):
    """No answer, or a refusal, which is recorded."""


class ClusterReader:
    """Use with ``async with``: each :meth:`read` asks everything once, over connections that stay open."""

    def __init__(
        self,
        name_servers: Sequence[str],
        on_response: Callable[[AnsweredRequest], None] = lambda _: None,
        now: Clock = system_clock,
        *,
        account: ClientAccount | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._name_servers = tuple(name_servers)
        self._account = account
        self._tls = tls
        self.on_response = on_response
        self._now = now
        self._connections: dict[str, Connection] = {}
        self._parts: dict[tuple[str, int], BrokerPart] = {}
        self._refusals: list[Refusal] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._connections.values():
            connection.close()
        await asyncio.gather(*(open_connection.closed.wait() for open_connection in self._connections.values()))
        self._connections.clear()

    async def read(self) -> ClusterState:
        """Read the cluster now. A broker that does not answer keeps its last state, with the reason."""
        self._refusals = []
        name_servers, registered = await self._brokers()
        if registered is None:
            parts = [replace(part, words=sentence("no name server answers")) for part in self._parts.values()]
        else:
            registered_keys = {(part.name, part.broker_id) for part in registered}
            unregistered = [part for key, part in self._parts.items() if key not in registered_keys]
            parts = list(await asyncio.gather(*(self._part(part) for part in registered)))
            parts += [replace(part, words=sentence("no longer registered")) for part in unregistered]
        self._parts = {(part.name, part.broker_id): part for part in parts}
        parts.sort(key=lambda part: (part.name, part.broker_id))
        return ClusterState(self._now(), name_servers, tuple(parts), tuple(self._refusals))

    async def _brokers(self) -> tuple[dict[str, str], list[BrokerPart] | None]:
        """Return the error of each name server ("" for none), and the brokers of the first one without an error."""
        errors_by_server, registered = {}, None
        for address in self._name_servers:
            try:
                parts = await self._read(address, RequestCode.GET_BROKER_CLUSTER_INFO, answers.brokers)
            except _NoAnswer:
                errors_by_server[address] = self._refusals[-1].words
            except UnexpectedAnswer as error:
                errors_by_server[address] = str(error)
            else:
                errors_by_server[address] = ""
                registered = parts if registered is None else registered
        return errors_by_server, registered

    async def _part(self, broker: BrokerPart) -> BrokerPart:
        """Ask one broker again; return its old state if it does not answer."""
        previous = self._parts.get((broker.name, broker.broker_id), broker)
        try:
            figures = await self._read(
                broker.address, RequestCode.GET_BROKER_RUNTIME_INFO, answers.runtime, heldPulls="true"
            )
            release = figures.get("brokerVersionDesc", "")
            held_pulls = answers.held_pulls(figures, broker.name)
            if not broker.is_master:
                return replace(broker, time_ms=self._now(), release=release, held_pulls=held_pulls)
            names = await self._read(broker.address, RequestCode.GET_ALL_TOPIC_CONFIG, answers.topic_names)
            offsets = await self._read(
                broker.address,
                RequestCode.GET_ALL_CONSUMER_OFFSET,
                lambda body: answers.group_offsets(body, broker.name),
            )
        except (_NoAnswer, UnexpectedAnswer) as error:
            return replace(previous, address=broker.address, words=str(error))
        semaphore = asyncio.Semaphore(_MAX_PENDING_REQUESTS)
        tables = await asyncio.gather(
            *(
                self._try(semaphore, broker, RequestCode.GET_TOPIC_STATS_INFO, answers.queue_ends, topic=name)
                for name in names
                if not is_system_topic(name)
            )
        )
        queues = {queue: ends for table in tables if table is not None for queue, ends in table.items()}
        producers = await self._try(semaphore, broker, RequestCode.GET_ALL_PRODUCER_INFO, answers.producers)
        declared = (
            await self._try(semaphore, broker, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, answers.group_names) or []
        )
        names = sorted(name for name in {*declared, *offsets} if not is_system_group(name))
        groups = await asyncio.gather(*(self._group(semaphore, broker, name) for name in names))
        return replace(
            broker,
            time_ms=self._now(),
            release=release,
            queues=queues,
            offsets=offsets,
            producers=producers or {},
            groups={group.name: group for group in groups if group is not None},
            held_pulls=held_pulls,
        )

    async def _group(self, semaphore: asyncio.Semaphore, broker: BrokerPart, name: str) -> Group | None:
        """Return a group with the queues of each client; None if no client of it is connected to the broker."""

        def read(body: bytes) -> Group:
            return answers.consumer_group(body, name)

        group = await self._try(
            semaphore,
            broker,
            RequestCode.GET_CONSUMER_CONNECTION_LIST,
            read,
            expected_code=ResponseCode.CONSUMER_NOT_ONLINE,
            consumerGroup=name,
        )
        if group is None:
            return None
        owned_queues = await asyncio.gather(*(self._owned(semaphore, broker, name, client) for client in group.clients))
        owned = {
            client.client_id: queues
            for client, queues in zip(group.clients, owned_queues, strict=True)
            if queues is not None
        }
        return replace(group, owned=owned)

    async def _owned(
        self, semaphore: asyncio.Semaphore, broker: BrokerPart, group: str, client: Client
    ) -> frozenset[Queue] | None:
        return await self._try(
            semaphore,
            broker,
            RequestCode.GET_CONSUMER_RUNNING_INFO,
            answers.owned_queues,
            consumerGroup=group,
            clientId=client.client_id,
            jstackEnable="false",
        )

    async def _try(
        self,
        semaphore: asyncio.Semaphore,
        broker: BrokerPart,
        code: int,
        read: Callable[[bytes], T],
        expected_code: int | None = None,
        **fields: str,
    ) -> T | None:
        """Return the parsed body; None for a refusal, which is recorded unless its code is ``expected_code``."""
        async with semaphore:
            try:
                return await self._read(broker.address, code, read, expected_code, **fields)
            except _NoAnswer:
                return None
            except UnexpectedAnswer as error:
                self._refuse(broker.address, code, fields, 0, str(error))
                return None

    async def _read(
        self, address: str, code: int, read: Callable[[bytes], T], expected_code: int | None = None, **fields: str
    ) -> T:
        """Return the parsed body. Raises :class:`_NoAnswer`, :class:`UnexpectedAnswer`."""
        body = await self._ask(address, code, expected_code, **fields)
        with reading(code):
            return read(body)

    async def _ask(self, address: str, code: int, expected_code: int | None = None, **fields: str) -> bytes:
        """Return the body of an answer. Raises :class:`_NoAnswer`; a refusal is recorded unless its code is
        ``expected_code``.
        """
        start_s, answer = time.monotonic(), None
        try:
            request = Command(code, dict(fields))
            if self._account is not None:
                sign(request, *self._account)
            answer = await (await self._connection(address)).ask(request, TIMEOUT_S)
        except (OSError, TimeoutError) as error:
            self._refuse(address, code, fields, -1, cause_of(error))
        answer_code = -1 if answer is None else answer.code
        self.on_response(
            AnsweredRequest(address, code, request_name(code), fields, answer_code, (time.monotonic() - start_s) * 1000)
        )
        if answer is None or answer.code != ResponseCode.SUCCESS:
            words = "no answer" if answer is None else answer.remark or f"code {answer.code}"
            if answer is not None and answer.code != expected_code:
                self._refuse(address, code, fields, answer.code, words)
            raise _NoAnswer(words)
        return bytes(answer.body)

    def _refuse(self, address: str, code: int, fields: Mapping[str, str], answer: int, words: str) -> None:
        about = " ".join(value for name, value in fields.items() if name not in {"jstackEnable", "heldPulls"})
        self._refusals.append(Refusal(address, request_name(code), about, answer, words))

    async def _connection(self, address: str) -> Connection:
        """Return the connection to an address; reconnect if it has ended. Raises ``OSError``, ``TimeoutError``."""
        connection = self._connections.get(address)
        if connection is None or connection.closed.is_set():
            host, _, port = address.rpartition(":")
            if not port.isdigit():
                raise ConnectionError(sentence("{address}: expected HOST:PORT", address=address))
            connection = self._connections[address] = await connect(
                host.strip("[]"), int(port), _serves_nothing, tls=self._tls
            )
        return connection


def _serves_nothing(request: Command, _connection: Connection) -> Command:
    return not_supported(request)
