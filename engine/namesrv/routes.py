"""The name server's tables: brokers, what each last said of itself, and the queues of every topic.

Passive: no socket, and the clock is given. Java: ``RouteInfoManager``.

The body with which a broker registers: plain JSON, or packed (docs/protocol/name-server.md#registration). Java:
``RegisterBrokerBody``.
"""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from engine.codec.json_dialect import parse
from engine.remoting.codes import WrongRequest

MASTER = 0
"""``brokerId`` of a master."""
TIMEOUT = 120_000
"""Milliseconds without a word after which a broker is dropped."""
WRITE = 2
"""Permission to send."""
ALL = 7
ORDER_TOPIC_CONFIG = "ORDER_TOPIC_CONFIG"
"""Namespace of the orders of queues."""


@dataclass(frozen=True, slots=True)
class DataVersion:
    """Which state of its topics a broker has told."""

    state_version: int = 0
    timestamp: int = 0
    counter: int = 0

    @classmethod
    def of(cls, told: Any) -> DataVersion:
        """From RocketMQ's JSON; what is absent is 0."""
        if not isinstance(told, Mapping):
            return cls()
        numbers = [told.get(name) for name in ("stateVersion", "timestamp", "counter")]
        return cls(
            *(int(one) if isinstance(one, int | str) and str(one).lstrip("-").isdigit() else 0 for one in numbers)
        )

    def record(self) -> dict[str, int]:
        return {"counter": self.counter, "stateVersion": self.state_version, "timestamp": self.timestamp}


@dataclass(frozen=True, slots=True)
class Queues:
    """What one broker holds of a topic."""

    read: int
    write: int
    permission: int
    sys_flag: int = 0

    def record(self, broker: str) -> dict[str, Any]:
        """RocketMQ's ``QueueData``."""
        return {
            "brokerName": broker,
            "perm": self.permission,
            "readQueueNums": self.read,
            "topicSysFlag": self.sys_flag,
            "writeQueueNums": self.write,
        }


@dataclass(slots=True)
class Broker:
    """A broker's name, with the addresses under which its master and slaves are reached."""

    name: str
    cluster: str
    addresses: dict[int, str] = field(default_factory=dict)
    acting_master: bool = False
    zone: str | None = None

    def record(self) -> dict[str, Any]:
        """RocketMQ's ``BrokerData``."""
        told: dict[str, Any] = {
            "brokerAddrs": dict(self.addresses),
            "brokerName": self.name,
            "cluster": self.cluster,
            "enableActingMaster": self.acting_master,
        }
        return told if self.zone is None else {**told, "zoneName": self.zone}


@dataclass(slots=True)
class Alive:
    """What a broker last said of itself, when, and over which connection."""

    heard: int
    timeout: int
    version: DataVersion
    connection: Hashable
    ha_address: str


@dataclass(frozen=True, slots=True)
class Registration:
    """What a broker tells of itself; ``topics`` None where the body had none."""

    cluster: str
    broker: str
    address: str
    broker_id: int
    ha_address: str
    version: DataVersion
    topics: Mapping[str, Queues] | None
    filter_servers: tuple[str, ...] = ()
    timeout: int | None = None
    acting_master: bool | None = None
    """None: a broker of before 5.0, which does not say."""
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class Registered:
    """What a slave is told of its master; empty for a master."""

    master_address: str = ""
    ha_address: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """Something that the tables did by themselves or were told to: ``word`` names it, for whoever watches."""

    word: str
    broker: str
    address: str


class Routes:
    """All tables of one name server."""

    def __init__(self, *, drop_topics: bool = False) -> None:
        self.drop_topics = drop_topics
        """Whether topics go that a later registration no longer has (``deleteTopicWithBrokerRegistration``)."""
        self.brokers: dict[str, Broker] = {}
        self.clusters: dict[str, set[str]] = {}
        self.topics: dict[str, dict[str, Queues]] = {}
        self.alive: dict[tuple[str, str], Alive] = {}
        """By (cluster, address)."""
        self.filter_servers: dict[tuple[str, str], tuple[str, ...]] = {}

    def register(self, told: Registration, now: int, connection: Hashable) -> Registered | None:
        """Take what a broker tells, at ``now`` (ms); None where it is refused.

        Refused is one topic alone of a broker that nobody knows: a change must follow a whole registration. Its name
        stays all the same, without an address.
        """
        self.clusters.setdefault(told.cluster, set()).add(told.broker)
        broker = self.brokers.get(told.broker)
        first = broker is None
        if broker is None:
            broker = self.brokers[told.broker] = Broker(told.broker, told.cluster)
        broker.acting_master, broker.zone = bool(told.acting_master), told.zone
        for number in [one for one, address in broker.addresses.items() if address == told.address]:
            if number != told.broker_id:  # a slave that became the master, or the other way round
                del broker.addresses[number]
        if self._is_older(broker, told):
            self.alive.pop((told.cluster, told.address), None)
            return Registered()
        if told.broker_id not in broker.addresses and told.topics is not None and len(told.topics) == 1:
            return None
        first = first or told.broker_id not in broker.addresses
        broker.addresses[told.broker_id] = told.address
        self._take_topics(broker, told, first=first)
        timeout = TIMEOUT if told.timeout is None else told.timeout
        key = (told.cluster, told.address)
        self.alive[key] = Alive(now, timeout, told.version, connection, told.ha_address)
        self.filter_servers.pop(key, None)
        if told.filter_servers:
            self.filter_servers[key] = told.filter_servers
        return self._master_of(broker, told)

    def _is_older(self, broker: Broker, told: Registration) -> bool:
        """Whether another address of the same id has told of a later state."""
        before = broker.addresses.get(told.broker_id)
        if before is None or before == told.address:
            return False
        known = self.alive.get((told.cluster, before))
        return known is not None and known.version.state_version > told.version.state_version

    def _take_topics(self, broker: Broker, told: Registration, *, first: bool) -> None:
        is_master = told.broker_id == MASTER
        stands_in = not is_master and told.acting_master is not None and told.broker_id == min(broker.addresses)
        if told.topics is None or not (is_master or stands_in):
            return
        if self.drop_topics:
            for topic in [one for one, by in self.topics.items() if broker.name in by and one not in told.topics]:
                self._drop_queues(topic, broker.name)
        known = self.alive.get((told.cluster, told.address))
        changed = known is None or known.version != told.version
        for topic, queues in told.topics.items():
            if first or changed or broker.name not in self.topics.get(topic, ()):
                without = stands_in and broker.acting_master
                permission = queues.permission & ~WRITE if without else queues.permission
                self.topics.setdefault(topic, {})[broker.name] = replace(queues, permission=permission)

    def _master_of(self, broker: Broker, told: Registration) -> Registered:
        master = broker.addresses.get(MASTER)
        known = self.alive.get((told.cluster, master)) if master is not None else None
        if told.broker_id == MASTER or master is None or known is None:
            return Registered()
        return Registered(master, known.ha_address)

    def heartbeat(self, cluster: str, address: str, now: int, timeout: int | None = None) -> None:
        """A broker says that it lives; one that nobody knows is passed over."""
        known = self.alive.get((cluster, address))
        if known is not None:
            known.heard = now
            known.timeout = known.timeout if timeout is None else timeout

    def unregister(self, cluster: str, broker: str, address: str) -> Change | None:
        """A broker goes; None where it was not known."""
        there = self.alive.pop((cluster, address), None) is not None
        self.filter_servers.pop((cluster, address), None)
        known = self.brokers.get(broker)
        if known is not None:
            for number in [one for one, at in known.addresses.items() if at == address]:
                del known.addresses[number]
                there = True
            self._forget_empty(known)
        return Change("gone", broker, address) if there else None

    def _forget_empty(self, broker: Broker) -> None:
        if broker.addresses:
            return
        self.brokers.pop(broker.name, None)
        names = self.clusters.get(broker.cluster, set())
        names.discard(broker.name)
        if not names:
            self.clusters.pop(broker.cluster, None)
        for topic in [one for one, by in self.topics.items() if broker.name in by]:
            self._drop_queues(topic, broker.name)

    def _drop_queues(self, topic: str, broker: str) -> None:
        by = self.topics[topic]
        by.pop(broker, None)
        if not by:
            del self.topics[topic]

    def expire(self, now: int) -> list[tuple[Change, Hashable]]:
        """Drop brokers that were silent too long; what went, with the connection of each."""
        late = [(key, one) for key, one in self.alive.items() if one.heard + one.timeout < now]
        return [(change, one.connection) for key, one in late if (change := self._dropped(*key)) is not None]

    def disconnected(self, connection: Hashable) -> list[Change]:
        """A connection has ended: brokers that registered over it go at once."""
        keys = [key for key, one in self.alive.items() if one.connection == connection]
        return [change for key in keys if (change := self._dropped(*key)) is not None]

    def _dropped(self, cluster: str, address: str) -> Change | None:
        name = next((one.name for one in self.brokers.values() if address in one.addresses.values()), "")
        return self.unregister(cluster, name, address)

    def version_of(self, cluster: str, address: str) -> DataVersion | None:
        """What a broker last told of; None where it is not known."""
        known = self.alive.get((cluster, address))
        return None if known is None else known.version

    def set_write(self, broker: str, *, allowed: bool) -> int:
        """Take from a broker's topics the permission to send, or give it back; how many topics."""
        touched = 0
        for by in self.topics.values():
            if (queues := by.get(broker)) is not None:
                permission = (4 | WRITE) if allowed else queues.permission & ~WRITE
                by[broker] = replace(queues, permission=permission)
                touched += 1
        return touched

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Forget a topic, or its queues in one cluster."""
        if cluster is None:
            self.topics.pop(topic, None)
            return
        for broker in self.clusters.get(cluster, ()):
            if broker in self.topics.get(topic, ()):
                self._drop_queues(topic, broker)

    def route(self, topic: str) -> dict[str, Any] | None:
        """RocketMQ's ``TopicRouteData``; None where no broker that is there holds the topic."""
        by = self.topics.get(topic)
        if not by:
            return None
        brokers = [self.brokers[name] for name in by if name in self.brokers]
        if not brokers:
            return None
        servers = {
            address: list(self.filter_servers[one.cluster, address])
            for one in brokers
            for address in one.addresses.values()
            if (one.cluster, address) in self.filter_servers
        }
        return {
            "brokerDatas": [one.record() for one in brokers],
            "filterServerTable": servers,
            "queueDatas": [queues.record(name) for name, queues in by.items()],
        }

    def cluster_info(self) -> dict[str, Any]:
        """RocketMQ's ``ClusterInfo``."""
        return {
            "brokerAddrTable": {name: broker.record() for name, broker in self.brokers.items()},
            "clusterAddrTable": {cluster: sorted(names) for cluster, names in self.clusters.items()},
        }

    def topics_of(self, cluster: str) -> list[str]:
        """Topics that a broker of the cluster holds."""
        names = self.clusters.get(cluster, set())
        return [topic for topic, by in self.topics.items() if names & by.keys()]


LARGEST = 64 << 20
"""Bytes that a packed body unpacks to at most."""

Body = tuple[DataVersion, dict[str, Queues], tuple[str, ...]]
"""What the broker's topics are a state of, its topics, its filter servers."""


def read_body(body: bytes | memoryview, *, compressed: bool) -> Body:
    """The body of a registration. Raises :class:`WrongRequest`, whose sentence is the answer."""
    if not body:
        return DataVersion(), {}, ()
    return _packed(bytes(body)) if compressed else _plain(bytes(body))


def check_crc(body: bytes | memoryview, told: int) -> None:
    """Raises :class:`WrongRequest` where the body is not the one that was sent; 0 asks for nothing."""
    if told != 0 and zlib.crc32(body) & 0x7FFFFFFF != told:
        raise WrongRequest("crc32 not match")


def _json(text: bytes | str) -> Any:
    read = parse(text)
    if read.fault is not None:
        raise WrongRequest(f"the body is no JSON: {read.fault.words}")
    return read.value


def _plain(body: bytes) -> Body:
    told = _json(body)
    if not isinstance(told, Mapping):
        raise WrongRequest("the body is no object")
    wrapper = told.get("topicConfigSerializeWrapper")
    if not isinstance(wrapper, Mapping):
        wrapper = told  # as brokers of before 3.0.11 send it
    table = wrapper.get("topicConfigTable")
    topics = {str(name): _queues(one) for name, one in table.items() if isinstance(one, Mapping)} if table else {}
    servers = told.get("filterServerList")
    return DataVersion.of(wrapper.get("dataVersion")), topics, tuple(map(str, servers)) if servers else ()


def _queues(config: Mapping[Any, Any]) -> Queues:
    """From a ``TopicConfig``; what is absent is as in Java's."""
    told = [config.get(name, usual) for name, usual in _USUAL]
    return Queues(*(one if isinstance(one, int) else usual for one, (_, usual) in zip(told, _USUAL, strict=True)))


_USUAL = (("readQueueNums", 16), ("writeQueueNums", 16), ("perm", 6), ("topicSysFlag", 0))


def _packed(body: bytes) -> Body:
    unpacking = zlib.decompressobj()
    try:
        data = unpacking.decompress(body, LARGEST)
    except zlib.error as error:
        raise WrongRequest(f"the body cannot be unpacked: {error}") from error
    if unpacking.unconsumed_tail:
        raise WrongRequest(f"the body unpacks to more than {LARGEST:,} bytes")
    pieces = _Pieces(data)
    version = DataVersion.of(_json(pieces.text()))
    topics = dict(_topic(pieces.text()) for _ in range(pieces.number()))
    servers = _json(pieces.text())
    return version, topics, tuple(map(str, servers or ()))


class _Pieces:
    """Numbers of 32 bits, and texts with their lengths, one behind the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self) -> int:
        if self._at + 4 > len(self._data):
            raise WrongRequest(f"the body ends at {len(self._data):,}, within a number")
        self._at += 4
        return int.from_bytes(self._data[self._at - 4 : self._at], "big", signed=True)

    def text(self) -> str:
        length = self.number()
        end = self._at + length
        if length < 0 or end > len(self._data):
            raise WrongRequest(f"a text of the body has {length:,} bytes, and {len(self._data) - self._at:,} are there")
        self._at, start = end, self._at
        return self._data[start:end].decode("utf-8", "replace")


def _topic(text: str) -> tuple[str, Queues]:
    """``name readQueueNums writeQueueNums perm filterType [attributes]``."""
    words = text.split(" ")
    try:
        name, read, write, permission = words[0], int(words[1]), int(words[2]), int(words[3])
    except (IndexError, ValueError):
        raise WrongRequest(f"a topic of the body cannot be read: {text[:80]!r}") from None
    return name, Queues(read, write, permission)
