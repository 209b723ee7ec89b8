"""Asks a cluster, read-only: name servers for its brokers, brokers for what they hold and who is connected.

Administrators' requests alone, each told to whoever keeps a log of them. Java: ``DefaultMQAdminExtImpl``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeVar

from engine.cluster import answers
from engine.cluster.state import BrokerPart, Client, ClusterState, Group, Queue, Refusal
from engine.errors import cause_of
from engine.remoting.answers import UnexpectedAnswer, reading
from engine.remoting.codes import Answer, request_name
from engine.remoting.connection import Connection, connect, not_supported
from engine.remoting.frame import Command
from engine.rules.system_names import is_system_group, is_system_topic

PATIENCE = 3.0
"""Seconds that an answer is waited for."""
_AT_ONCE = 16
"""Requests under way on one connection."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was made: of whom, what, and what came of it; ``code`` −1: no answer."""

    address: str
    code: int
    name: str
    fields: Mapping[str, str]
    answer: int
    ms: float


class _NoAnswer(Exception):
    """An answer that was not one; the refusal is noted."""


class ClusterReader:
    """``async with``: :meth:`read` asks everything once; connections stay between."""

    def __init__(
        self,
        name_servers: Sequence[str],
        told: Callable[[Asked], None] = lambda _: None,
        now: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._name_servers = tuple(name_servers)
        self._told = told
        self._now = now
        self._connections: dict[str, Connection] = {}
        self._parts: dict[tuple[str, int], BrokerPart] = {}
        self._refusals: list[Refusal] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._connections.values():
            connection.close()
        await asyncio.gather(*(one.closed.wait() for one in self._connections.values()))
        self._connections.clear()

    async def read(self) -> ClusterState:
        """The cluster now. What does not answer stands as it last did, with words; nothing is raised for it."""
        self._refusals = []
        name_servers, found = await self._brokers()
        if found is None:
            parts = [replace(one, words="no name server answers") for one in self._parts.values()]
        else:
            known = {(one.name, one.broker_id) for one in found}
            gone = [one for key, one in self._parts.items() if key not in known]
            parts = list(await asyncio.gather(*(self._part(one) for one in found)))
            parts += [replace(one, words="no longer registered") for one in gone]
        self._parts = {(one.name, one.broker_id): one for one in parts}
        parts.sort(key=lambda one: (one.name, one.broker_id))
        return ClusterState(self._now(), name_servers, tuple(parts), tuple(self._refusals))

    async def _brokers(self) -> tuple[dict[str, str], list[BrokerPart] | None]:
        """What is wrong with each name server, and the brokers that the first good one knows."""
        wrong, found = {}, None
        for address in self._name_servers:
            try:
                told = await self._read(address, 106, answers.brokers)
            except _NoAnswer:
                wrong[address] = self._refusals[-1].words
            except UnexpectedAnswer as error:
                wrong[address] = str(error)
            else:
                wrong[address] = ""
                found = told if found is None else found
        return wrong, found

    async def _part(self, broker: BrokerPart) -> BrokerPart:
        """One broker, asked anew; as it was before where it does not answer."""
        before = self._parts.get((broker.name, broker.broker_id), broker)
        try:
            figures = await self._read(broker.address, 28, answers.runtime, heldPulls="true")
            release = figures.get("brokerVersionDesc", "")
            held = answers.held(figures, broker.name)
            if not broker.is_master:
                return replace(broker, at=self._now(), release=release, held=held)
            names = await self._read(broker.address, 21, answers.topic_names)
            offsets = await self._read(broker.address, 43, lambda body: answers.group_offsets(body, broker.name))
        except (_NoAnswer, UnexpectedAnswer) as error:
            return replace(before, address=broker.address, words=str(error))
        gate = asyncio.Semaphore(_AT_ONCE)
        tables = await asyncio.gather(
            *(self._try(gate, broker, 202, answers.queue_ends, topic=one) for one in names if not is_system_topic(one))
        )
        queues = {queue: ends for table in tables if table is not None for queue, ends in table.items()}
        producers = await self._try(gate, broker, 328, answers.producers)
        declared = await self._try(gate, broker, 201, answers.group_names) or []
        names = sorted(one for one in {*declared, *offsets} if not is_system_group(one))
        groups = await asyncio.gather(*(self._group(gate, broker, one) for one in names))
        return replace(
            broker,
            at=self._now(),
            release=release,
            queues=queues,
            offsets=offsets,
            producers=producers or {},
            groups={one.name: one for one in groups if one is not None},
            held=held,
        )

    async def _group(self, gate: asyncio.Semaphore, broker: BrokerPart, name: str) -> Group | None:
        """A group that consumes there, with what each of its clients owns; None where none of them is connected."""

        def read(body: bytes) -> Group:
            return answers.consuming(body, name)

        group = await self._try(gate, broker, 203, read, fine=Answer.CONSUMER_NOT_ONLINE, consumerGroup=name)
        if group is None:
            return None
        told = await asyncio.gather(*(self._owned(gate, broker, name, one) for one in group.clients))
        owned = {one.client_id: queues for one, queues in zip(group.clients, told, strict=True) if queues is not None}
        return replace(group, owned=owned)

    async def _owned(
        self, gate: asyncio.Semaphore, broker: BrokerPart, group: str, client: Client
    ) -> frozenset[Queue] | None:
        return await self._try(
            gate, broker, 307, answers.owned, consumerGroup=group, clientId=client.client_id, jstackEnable="false"
        )

    async def _try(
        self,
        gate: asyncio.Semaphore,
        broker: BrokerPart,
        code: int,
        read: Callable[[bytes], T],
        fine: int | None = None,
        **fields: str,
    ) -> T | None:
        """What a body says; None where it is refused, which is noted unless the code is ``fine``."""
        async with gate:
            try:
                return await self._read(broker.address, code, read, fine, **fields)
            except _NoAnswer:
                return None
            except UnexpectedAnswer as error:
                self._refuse(broker.address, code, fields, 0, str(error))
                return None

    async def _read(
        self, address: str, code: int, read: Callable[[bytes], T], fine: int | None = None, **fields: str
    ) -> T:
        """What a body says. Raises :class:`_NoAnswer`, :class:`UnexpectedAnswer`."""
        body = await self._ask(address, code, fine, **fields)
        with reading(code):
            return read(body)

    async def _ask(self, address: str, code: int, fine: int | None = None, **fields: str) -> bytes:
        """The body of an answer. Raises :class:`_NoAnswer`, noted unless the answer's code is ``fine``."""
        begun, answer = time.monotonic(), None
        try:
            answer = await (await self._connection(address)).ask(Command(code, dict(fields)), PATIENCE)
        except (OSError, TimeoutError) as error:
            self._refuse(address, code, fields, -1, cause_of(error))
        told = -1 if answer is None else answer.code
        self._told(Asked(address, code, request_name(code), fields, told, (time.monotonic() - begun) * 1000))
        if answer is None or answer.code != Answer.SUCCESS:
            words = "no answer" if answer is None else answer.remark or f"code {answer.code}"
            if answer is not None and answer.code != fine:
                self._refuse(address, code, fields, answer.code, words)
            raise _NoAnswer(words)
        return bytes(answer.body)

    def _refuse(self, address: str, code: int, fields: Mapping[str, str], answer: int, words: str) -> None:
        about = " ".join(value for name, value in fields.items() if name not in {"jstackEnable", "heldPulls"})
        self._refusals.append(Refusal(address, request_name(code), about, answer, words))

    async def _connection(self, address: str) -> Connection:
        """The connection to an address, made anew where it has ended. Raises ``OSError``, ``TimeoutError``."""
        known = self._connections.get(address)
        if known is None or known.closed.is_set():
            host, _, port = address.rpartition(":")
            if not port.isdigit():
                raise ConnectionError(f"{address}: expected HOST:PORT")
            known = self._connections[address] = await connect(host.strip("[]"), int(port), _serves_nothing)
        return known


def _serves_nothing(request: Command, _connection: Connection) -> Command:
    return not_supported(request)
