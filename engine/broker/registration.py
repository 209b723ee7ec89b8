"""Registration of the broker with its name servers: at the start, after each change, and every half minute
(docs/protocol/name-server.md#registration).

A name server routes clients to the last broker that registered under a name and id, and 4.9 removes a broker by its id
alone. So before each registration and each removal the name server is asked whose route it is: a route that another
address holds is neither replaced nor removed.

Java: ``BrokerOuterAPI``, ``BrokerController.registerBrokerAll``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import zlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.broker.json_bodies import write
from engine.broker.topics import READ
from engine.codec.config_tables import TopicConfig
from engine.errors import cause_of
from engine.remoting.answers import json_object, member_object, member_objects, reading
from engine.remoting.codes import RequestCode, ResponseCode
from engine.remoting.connection import Connection, connect
from engine.remoting.frame import Command
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.broker.broker import Broker


TIMEOUT_S = 6.0
"""Longest wait for a response of a name server."""
FORWARD_TIMEOUT_S = 3.0
"""Longest wait for another broker's response (``forwardTimeout``)."""
DELETION_PAUSE_S = 1.0
"""Pause between a deletion and the registration of everything: one registration serves several deletions."""
_log = logging.getLogger(__name__)


def topic_row(topic: TopicConfig) -> dict[str, Any]:
    """Return a topic as ``TopicConfig`` is written."""
    return {
        "attributes": dict(topic.attributes),
        "order": topic.order,
        "perm": topic.perm,
        "readQueueNums": topic.read_queue_nums,
        "topicFilterType": topic.topic_filter_type,
        "topicName": topic.name,
        "topicSysFlag": topic.topic_sys_flag,
        "writeQueueNums": topic.write_queue_nums,
    }


Routes = dict[str, dict[int, str]]
"""Address by broker name and broker id."""


class RouteInUse(Exception):
    """The route leads to another address."""


def refuse_held(routes: Mapping[str, Mapping[int, str]], name: str, broker_id: int, address: str) -> None:
    """Raise :class:`RouteInUse`, naming both addresses, if the route of ``name`` and ``broker_id`` leads to another
    address.
    """
    holder = routes.get(name, {}).get(broker_id)
    if holder is not None and holder != address:
        raise RouteInUse(
            sentence(
                "its route of {name} (brokerId {id}) leads to {holder}; {address} does not replace it",
                name=name,
                id=str(broker_id),
                holder=holder,
                address=address,
            )
        )


async def ask_routes(connection: Connection) -> Routes:
    """Return the brokers that a name server knows. Raises ``OSError``, ``TimeoutError``, ``ValueError``."""
    answer = await connection.ask(Command(RequestCode.GET_BROKER_CLUSTER_INFO), TIMEOUT_S)
    if answer.code != ResponseCode.SUCCESS:
        raise ValueError(answer.remark or f"code {answer.code}")
    with reading(RequestCode.GET_BROKER_CLUSTER_INFO):
        return _routes(answer.body)


async def ask_routes_at(address: str, tls: ssl.SSLContext | None = None) -> Routes:
    """:func:`ask_routes` over a connection of its own."""
    host, _, port = address.rpartition(":")
    async with asyncio.timeout(TIMEOUT_S):
        connection = await connect(host, int(port), tls=tls)
    try:
        return await ask_routes(connection)
    finally:
        connection.close()


def _routes(body: bytes | memoryview) -> Routes:
    table = member_object(json_object(body), "brokerAddrTable")
    return {
        str(name): {int(number): str(address) for number, address in member_object(table[name], "brokerAddrs").items()}
        for name in table
    }


class Registration:
    """Registers the broker with its name servers. ``step`` registers everything with each of them,
    ``register_changed`` only topics that are new or changed: its cost does not grow with the number of all
    topics.
    """

    def __init__(self, broker: Broker, name_servers: Sequence[str], tls: ssl.SSLContext | None = None) -> None:
        self._broker = broker
        self._name_servers = tuple(name_servers)
        self._tls = tls
        self._connections: dict[str, Connection] = {}
        self._connecting: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Callers wait while another one connects: a second connection would never be closed."""
        self._masters: dict[str, str] = {}
        """Addresses of other brokers' masters by name, as name servers last reported them."""
        self._version = 0
        self._asked = asyncio.Event()
        self._changed: set[str] = set()
        """Topics whose current state name servers do not know yet."""
        self._changing = asyncio.Lock()
        self._fully_registered: dict[str, Connection] = {}
        """The connection over which a name server got everything; a new connection needs that first."""
        self.refused: dict[str, str] = {}
        """Reason why a name server does not know this broker, by address."""
        self.registered: set[str] = set()
        """Name servers whose last known route leads to this broker."""
        self.on_change: Callable[[str, str | None], None] | None = None
        """Called when a name server accepts this broker (None), or no longer does, with the reason."""

    @property
    def names_servers(self) -> bool:
        """True if there is any name server."""
        return bool(self._name_servers)

    @property
    def is_due(self) -> bool:
        """True if topics have changed that a name server does not know yet."""
        return self.names_servers and bool(self._changed)

    def ask(self, changed: Sequence[TopicConfig] = ()) -> None:
        """Register soon: these topics have changed; without topics: some were deleted, or something else has
        changed.
        """
        self._changed.update(topic.name for topic in changed)
        self._asked.set()

    async def run(self) -> None:
        """Register until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self.step()
            due = loop.time() + self._broker.config.registration_ms / 1000
            while loop.time() < due:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(due):
                        await self._asked.wait()
                        self._asked.clear()
                        if self._changed:
                            await self.register_changed()
                        else:
                            due = min(due, loop.time() + DELETION_PAUSE_S)

    async def step(self) -> None:
        """Register everything with every name server."""
        self._asked.clear()
        self._changed.clear()
        request = self._request(self._broker.store.tables.topics())
        await asyncio.gather(*(self._register(address, request) for address in self._name_servers))

    async def register_changed(self) -> None:
        """Register the topics that have changed. Requests that come meanwhile are served by one more registration."""
        async with self._changing:
            if not self._changed:
                return
            names, self._changed = self._changed, set()
            topics = self._broker.store.tables.topics()
            request = self._request({name: topics[name] for name in names if name in topics})
            await asyncio.gather(*(self._register_some(address, request) for address in self._name_servers))

    async def _register_some(self, address: str, request: Command) -> None:
        """Register some topics; all of them if the name server may not know the rest, because it is new or refuses a
        part.
        """
        connection = self._fully_registered.get(address)
        is_current = connection is not None and self._connections.get(address) is connection
        if (
            not is_current
            or connection is None
            or connection.closed.is_set()
            or not await self._register(address, request, is_complete=False)
        ):
            await self._register(address, self._request(self._broker.store.tables.topics()))

    def _request(self, topics: Mapping[str, TopicConfig]) -> Command:
        self._version += 1
        body, header = self._body(topics), self._header()
        header["bodyCrc32"] = str(zlib.crc32(body) & 0x7FFFFFFF)
        return Command(RequestCode.REGISTER_BROKER, header, body)

    async def route_of(self, topic: str) -> dict[str, int] | None:
        """Return the brokers of a topic with their number of readable queues, as the first name server that answers
        reports them; None if it does not know the topic, or none answers.
        """
        for address in self._name_servers:
            try:
                answer = await (await self._connection(address)).ask(
                    Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic}), TIMEOUT_S
                )
                if answer.code != ResponseCode.SUCCESS:
                    return None
                with reading(RequestCode.GET_ROUTEINFO_BY_TOPIC):
                    return _queues(answer.body)
            except (OSError, TimeoutError, ValueError) as error:  # or its answer is no route
                self._record_refusal(address, cause_of(error, type(error).__name__))
        return None

    async def leaders_of(self, topic: str) -> dict[int, str]:
        """Return the broker that leads each logical queue of a static topic, as the first name server that answers
        reports them.
        """
        for address in self._name_servers:
            try:
                answer = await (await self._connection(address)).ask(
                    Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic}), TIMEOUT_S
                )
                if answer.code != ResponseCode.SUCCESS:
                    return {}
                with reading(RequestCode.GET_ROUTEINFO_BY_TOPIC):
                    return _leaders(answer.body)
            except (OSError, TimeoutError, ValueError) as error:
                self._record_refusal(address, cause_of(error, type(error).__name__))
        return {}

    async def ask_broker(self, name: str, request: Command) -> Command:
        """Send a request to the master of a broker name. Raises ``OSError`` and ``TimeoutError`` as
        :meth:`Connection.ask`.
        """
        for is_fresh in (False, True):
            address = self._masters.get(name)
            if address is None or is_fresh:
                address = self._masters[name] = await self._master_address(name)
            try:
                connection = await self._connection(address)
                return await connection.ask(replace(request, fields=dict(request.fields)), FORWARD_TIMEOUT_S)
            except ConnectionError:
                if is_fresh:
                    raise
        raise ConnectionError(name)

    async def _master_address(self, name: str) -> str:
        for address in self._name_servers:
            try:
                master = (await ask_routes(await self._connection(address))).get(name, {}).get(0)
            except (OSError, TimeoutError, ValueError) as error:
                self._record_refusal(address, cause_of(error, type(error).__name__))
                continue
            if master is not None:
                return master
        raise ConnectionError(f"cannot find addr for broker {name}")

    async def end(self) -> None:
        """Remove the broker from the tables of every name server whose route is its own, and close the connections."""
        self.on_change = None
        await asyncio.gather(*(self._unregister(address) for address in sorted(self.registered)))
        for connection in self._connections.values():
            connection.close()

    def _header(self) -> dict[str, str]:
        config, broker = self._broker.config, self._broker
        ip, _, port = broker.address.rpartition(":")
        return {
            "brokerName": config.broker_name,
            "brokerAddr": broker.address,
            "clusterName": config.cluster,
            "haServerAddr": broker.ha_address or f"{ip}:{int(port or 0) + 1}",
            "brokerId": str(config.broker_id),
            "compressed": "false",
            "enableActingMaster": "false",
        }

    def _body(self, topics: Mapping[str, TopicConfig]) -> bytes:
        permission = self._broker.config.permission
        rows = {name: {**topic_row(topic), "perm": topic.perm & (permission | 1)} for name, topic in topics.items()}
        version = {"counter": self._version, "stateVersion": 0, "timestamp": self._broker.started}
        wrapper = {"dataVersion": version, "topicConfigTable": rows}
        mappings = self._broker.static_topics.mappings
        infos = {name: mappings[name].info() for name in topics if name in mappings}
        if infos:
            wrapper["topicQueueMappingInfoMap"] = infos
        return write({"filterServerList": [], "topicConfigSerializeWrapper": wrapper})

    async def _register(self, address: str, request: Command, *, is_complete: bool = True) -> bool:
        """Return True if the name server accepted it; ``is_complete``: the request names every topic."""
        try:
            connection = await self._connection(address)
            self._refuse_held(await ask_routes(connection))
            answer = await connection.ask(replace(request, fields=dict(request.fields)), TIMEOUT_S)
        except (OSError, TimeoutError, ValueError, RouteInUse) as error:
            self._record_refusal(address, cause_of(error, type(error).__name__))
            return False
        if answer.code != ResponseCode.SUCCESS:
            self._record_refusal(address, answer.remark or f"code {answer.code}")
        else:
            if is_complete:
                self._fully_registered[address] = connection
            self.refused.pop(address, None)
            self._note_master(answer)
            if address not in self.registered:
                self.registered.add(address)
                self._report(address, None)
        return answer.code == ResponseCode.SUCCESS

    async def _unregister(self, address: str) -> None:
        """Remove nothing if the name server does not tell who owns the route: it drops this broker by itself when
        the connection ends.
        """
        try:
            connection = await self._connection(address)
            self._refuse_held(await ask_routes(connection))
            await connection.ask(Command(RequestCode.UNREGISTER_BROKER, self._header()), TIMEOUT_S)
        except (OSError, TimeoutError, ValueError, RouteInUse) as error:
            self._record_refusal(address, cause_of(error, type(error).__name__))
        self.registered.discard(address)

    def _refuse_held(self, routes: Routes) -> None:
        config = self._broker.config
        refuse_held(routes, config.broker_name, config.broker_id, self._broker.address)

    def _report(self, address: str, reason: str | None) -> None:
        if self.on_change is not None:
            self.on_change(address, reason)

    def _note_master(self, answer: Command) -> None:
        """Remember the master's address on a slave; while the name server knows none, the last one stays."""
        if self._broker.is_slave:
            self._broker.master_address = answer.fields.get("masterAddr") or self._broker.master_address
            self._broker.master_ha_address = answer.fields.get("haServerAddr") or self._broker.master_ha_address

    async def _connection(self, address: str) -> Connection:
        async with self._connecting[address]:
            connection = self._connections.get(address)
            if connection is None or connection.closed.is_set():
                host, _, port = address.rpartition(":")
                connection = self._connections[address] = await connect(host, int(port), tls=self._tls)
            return connection

    def _record_refusal(self, address: str, reason: str) -> None:
        if self.refused.get(address) != reason:
            _log.warning("name server %s: %s", address, reason)
            self.registered.discard(address)
            self.refused[address] = reason
            self._report(address, reason)


def _queues(body: bytes | memoryview) -> dict[str, int]:
    """Return the brokers of a route with their number of readable queues."""
    return {
        str(row["brokerName"]): int(row.get("readQueueNums") or 0)
        for row in member_objects(json_object(body), "queueDatas")
        if int(row.get("perm") or 0) & READ
    }


def _leaders(body: bytes | memoryview) -> dict[int, str]:
    """Return the broker of each logical queue of a route: that of the newest mappings."""
    infos = member_object(json_object(body), "topicQueueMappingByBroker")
    rows = sorted(infos.values(), key=lambda row: int(row.get("epoch") or 0))
    return {
        int(number): str(row["bname"])
        for row in rows
        if int(row.get("epoch") or 0) == int(rows[-1].get("epoch") or 0)
        for number in member_object(row, "currIdMap")
    }
