"""The name server's tables: brokers with their last registration, and the queues of every topic.

No socket, and the clock is a parameter. Java: ``RouteInfoManager``.

Also parses the body with which a broker registers: plain JSON, or packed
(docs/protocol/name-server.md#registration). Java: ``RegisterBrokerBody``.
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
    """The version of a broker's topics."""

    state_version: int = 0
    timestamp: int = 0
    counter: int = 0

    @classmethod
    def of(cls, fields: Any) -> DataVersion:
        """From RocketMQ's JSON; what is absent is 0."""
        if not isinstance(fields, Mapping):
            return cls()
        numbers = [fields.get(name) for name in ("stateVersion", "timestamp", "counter")]
        return cls(
            *(
                int(number) if isinstance(number, int | str) and str(number).lstrip("-").isdigit() else 0
                for number in numbers
            )
        )

    def record(self) -> dict[str, int]:
        return {"counter": self.counter, "stateVersion": self.state_version, "timestamp": self.timestamp}


@dataclass(frozen=True, slots=True)
class Queues:
    """Number of queues and permissions of a topic on one broker."""

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
        broker_data: dict[str, Any] = {
            "brokerAddrs": dict(self.addresses),
            "brokerName": self.name,
            "cluster": self.cluster,
            "enableActingMaster": self.acting_master,
        }
        return broker_data if self.zone is None else {**broker_data, "zoneName": self.zone}


@dataclass(slots=True)
class LiveBroker:
    """A live broker: its last message's time (``last_heard_ms``), its timeout (ms), its version, its connection."""

    last_heard_ms: int
    timeout: int
    version: DataVersion
    connection: Hashable
    ha_address: str


@dataclass(frozen=True, slots=True)
class Registration:
    """A broker's registration; ``topics`` is None where the body had none."""

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
    mappings: Mapping[str, Mapping[Any, Any]] = field(default_factory=dict)
    """The broker's part of each static topic, as it is sent (Java: ``TopicQueueMappingInfo``)."""


@dataclass(frozen=True, slots=True)
class MasterAddresses:
    """The answer to a slave about its master; empty for a master."""

    master_address: str = ""
    ha_address: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the tables, for an observer: ``word`` names it."""

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
        self.live_brokers: dict[tuple[str, str], LiveBroker] = {}
        """By (cluster, address)."""
        self.filter_servers: dict[tuple[str, str], tuple[str, ...]] = {}
        self.mappings: dict[str, dict[str, Mapping[Any, Any]]] = {}
        """Parts of static topics by topic and broker name. They stay when a broker or a topic goes, as in RocketMQ."""

    def register(self, registration: Registration, now: int, connection: Hashable) -> MasterAddresses | None:
        """Apply a broker's registration at ``now`` (ms); return None where it is refused.

        Refused is one topic alone of a broker that nobody knows: a change must follow a whole registration. Its name
        stays all the same, without an address.
        """
        self.clusters.setdefault(registration.cluster, set()).add(registration.broker)
        broker = self.brokers.get(registration.broker)
        is_new = broker is None
        if broker is None:
            broker = self.brokers[registration.broker] = Broker(registration.broker, registration.cluster)
        broker.acting_master, broker.zone = bool(registration.acting_master), registration.zone
        for number in [broker_id for broker_id, address in broker.addresses.items() if address == registration.address]:
            if number != registration.broker_id:  # a slave that became the master, or the other way round
                del broker.addresses[number]
        if self._is_older(broker, registration):
            self.live_brokers.pop((registration.cluster, registration.address), None)
            return MasterAddresses()
        if (
            registration.broker_id not in broker.addresses
            and registration.topics is not None
            and len(registration.topics) == 1
        ):
            return None
        is_new = is_new or registration.broker_id not in broker.addresses
        broker.addresses[registration.broker_id] = registration.address
        self._take_topics(broker, registration, is_new=is_new)
        timeout = TIMEOUT if registration.timeout is None else registration.timeout
        key = (registration.cluster, registration.address)
        self.live_brokers[key] = LiveBroker(now, timeout, registration.version, connection, registration.ha_address)
        self.filter_servers.pop(key, None)
        if registration.filter_servers:
            self.filter_servers[key] = registration.filter_servers
        return self._master_of(broker, registration)

    def _is_older(self, broker: Broker, registration: Registration) -> bool:
        """Return whether another address of the same broker id registered a later version."""
        registered_address = broker.addresses.get(registration.broker_id)
        if registered_address is None or registered_address == registration.address:
            return False
        live_broker = self.live_brokers.get((registration.cluster, registered_address))
        return live_broker is not None and live_broker.version.state_version > registration.version.state_version

    def _take_topics(self, broker: Broker, registration: Registration, *, is_new: bool) -> None:
        is_master = registration.broker_id == MASTER
        stands_in = (
            not is_master and registration.acting_master is not None and registration.broker_id == min(broker.addresses)
        )
        if registration.topics is None or not (is_master or stands_in):
            return
        if self.drop_topics and not registration.mappings:
            for topic in [
                name for name, by in self.topics.items() if broker.name in by and name not in registration.topics
            ]:
                self._drop_queues(topic, broker.name)
        live_broker = self.live_brokers.get((registration.cluster, registration.address))
        changed = live_broker is None or live_broker.version != registration.version
        for topic, queues in registration.topics.items():
            if is_new or changed or broker.name not in self.topics.get(topic, ()):
                without = stands_in and broker.acting_master
                permission = queues.permission & ~WRITE if without else queues.permission
                self.topics.setdefault(topic, {})[broker.name] = replace(queues, permission=permission)
        if is_new or changed:
            for topic, info in registration.mappings.items():
                self.mappings.setdefault(topic, {})[str(info.get("bname"))] = info

    def _master_of(self, broker: Broker, registration: Registration) -> MasterAddresses:
        master = broker.addresses.get(MASTER)
        live_master = self.live_brokers.get((registration.cluster, master)) if master is not None else None
        if registration.broker_id == MASTER or master is None or live_master is None:
            return MasterAddresses()
        return MasterAddresses(master, live_master.ha_address)

    def heartbeat(self, cluster: str, address: str, now: int, timeout: int | None = None) -> None:
        """Note that a broker is alive; an unknown one is ignored."""
        live_broker = self.live_brokers.get((cluster, address))
        if live_broker is not None:
            live_broker.last_heard_ms = now
            live_broker.timeout = live_broker.timeout if timeout is None else timeout

    def unregister(self, cluster: str, broker: str, address: str) -> Change | None:
        """Remove a broker; return None where it was not known."""
        was_known = self.live_brokers.pop((cluster, address), None) is not None
        self.filter_servers.pop((cluster, address), None)
        broker_row = self.brokers.get(broker)
        if broker_row is not None:
            for number in [
                broker_id for broker_id, broker_address in broker_row.addresses.items() if broker_address == address
            ]:
                del broker_row.addresses[number]
                was_known = True
            self._forget_empty(broker_row)
        return Change("gone", broker, address) if was_known else None

    def _forget_empty(self, broker: Broker) -> None:
        if broker.addresses:
            return
        self.brokers.pop(broker.name, None)
        names = self.clusters.get(broker.cluster, set())
        names.discard(broker.name)
        if not names:
            self.clusters.pop(broker.cluster, None)
        for topic in [name for name, by in self.topics.items() if broker.name in by]:
            self._drop_queues(topic, broker.name)

    def _drop_queues(self, topic: str, broker: str) -> None:
        by = self.topics[topic]
        by.pop(broker, None)
        if not by:
            del self.topics[topic]

    def expire(self, now: int) -> list[tuple[Change, Hashable]]:
        """Drop brokers that were silent too long; return the changes, each with its connection."""
        late = [
            (key, live_broker)
            for key, live_broker in self.live_brokers.items()
            if live_broker.last_heard_ms + live_broker.timeout < now
        ]
        return [
            (change, live_broker.connection) for key, live_broker in late if (change := self._drop(*key)) is not None
        ]

    def disconnected(self, connection: Hashable) -> list[Change]:
        """Remove the brokers that registered over a connection, which has ended."""
        keys = [key for key, live_broker in self.live_brokers.items() if live_broker.connection == connection]
        return [change for key in keys if (change := self._drop(*key)) is not None]

    def _drop(self, cluster: str, address: str) -> Change | None:
        name = next((broker.name for broker in self.brokers.values() if address in broker.addresses.values()), "")
        return self.unregister(cluster, name, address)

    def version_of(self, cluster: str, address: str) -> DataVersion | None:
        """Return the version that a broker last sent; None where it is not known."""
        live_broker = self.live_brokers.get((cluster, address))
        return None if live_broker is None else live_broker.version

    def set_write(self, broker: str, *, allowed: bool) -> int:
        """Take the permission to send from a broker's topics, or give it back; return the number of topics."""
        changed_count = 0
        for by in self.topics.values():
            if (queues := by.get(broker)) is not None:
                permission = (4 | WRITE) if allowed else queues.permission & ~WRITE
                by[broker] = replace(queues, permission=permission)
                changed_count += 1
        return changed_count

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Forget a topic, or its queues in one cluster."""
        if cluster is None:
            self.topics.pop(topic, None)
            return
        for broker in self.clusters.get(cluster, ()):
            if broker in self.topics.get(topic, ()):
                self._drop_queues(topic, broker)

    def route(self, topic: str) -> dict[str, Any] | None:
        """Return RocketMQ's ``TopicRouteData``; None where no known broker holds the topic."""
        by = self.topics.get(topic)
        if not by:
            return None
        brokers = [self.brokers[name] for name in by if name in self.brokers]
        if not brokers:
            return None
        servers = {
            address: list(self.filter_servers[broker.cluster, address])
            for broker in brokers
            for address in broker.addresses.values()
            if (broker.cluster, address) in self.filter_servers
        }
        mappings = self.mappings.get(topic)
        return {
            "brokerDatas": [broker.record() for broker in brokers],
            "filterServerTable": servers,
            "queueDatas": [queues.record(name) for name, queues in by.items()],
            **({} if mappings is None else {"topicQueueMappingByBroker": mappings}),
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


MAX_BODY_BYTES = 64 << 20
"""Bytes that a packed body unpacks to at most."""

Body = tuple[DataVersion, dict[str, Queues], tuple[str, ...], dict[str, Mapping[Any, Any]]]
"""What the broker's topics are a state of, its topics, its filter servers, its parts of static topics."""


def read_body(body: bytes | memoryview, *, compressed: bool) -> Body:
    """Decode the body of a registration. Raises :class:`WrongRequest`, whose text is the answer."""
    if not body:
        return DataVersion(), {}, (), {}
    return _packed(bytes(body)) if compressed else _plain(bytes(body))


def check_crc(body: bytes | memoryview, expected: int) -> None:
    """Raise :class:`WrongRequest` where the body has another CRC than ``expected``; 0 skips the check."""
    if expected != 0 and zlib.crc32(body) & 0x7FFFFFFF != expected:
        raise WrongRequest("crc32 not match")


def _json(text: bytes | str) -> Any:
    read = parse(text)
    if read.fault is not None:
        raise WrongRequest(f"the body is no JSON: {read.fault.words}")
    return read.value


def _plain(body: bytes) -> Body:
    fields = _json(body)
    if not isinstance(fields, Mapping):
        raise WrongRequest("the body is no object")
    wrapper = fields.get("topicConfigSerializeWrapper")
    if not isinstance(wrapper, Mapping):
        wrapper = fields  # as brokers of before 3.0.11 send it
    table = wrapper.get("topicConfigTable")
    topics = (
        {str(name): _queues(config) for name, config in table.items() if isinstance(config, Mapping)} if table else {}
    )
    servers = fields.get("filterServerList")
    server_names = tuple(map(str, servers)) if servers else ()
    return DataVersion.of(wrapper.get("dataVersion")), topics, server_names, _mappings(wrapper)


def _mappings(wrapper: Mapping[Any, Any]) -> dict[str, Mapping[Any, Any]]:
    """Return the broker's parts of static topics."""
    table = wrapper.get("topicQueueMappingInfoMap")
    rows = table.items() if isinstance(table, Mapping) else ()
    return {str(name): info for name, info in rows if isinstance(info, Mapping)}


def _queues(config: Mapping[Any, Any]) -> Queues:
    """Read a ``TopicConfig``; absent fields have Java's defaults."""
    values = [config.get(name, default) for name, default in _TOPIC_DEFAULTS]
    return Queues(
        *(
            value if isinstance(value, int) else default
            for value, (_, default) in zip(values, _TOPIC_DEFAULTS, strict=True)
        )
    )


_TOPIC_DEFAULTS = (("readQueueNums", 16), ("writeQueueNums", 16), ("perm", 6), ("topicSysFlag", 0))


def _packed(body: bytes) -> Body:
    unpacking = zlib.decompressobj()
    try:
        data = unpacking.decompress(body, MAX_BODY_BYTES)
    except zlib.error as error:
        raise WrongRequest(f"the body cannot be unpacked: {error}") from error
    if unpacking.unconsumed_tail:
        raise WrongRequest(f"the body unpacks to more than {MAX_BODY_BYTES:,} bytes")
    pieces = _Pieces(data)
    version = DataVersion.of(_json(pieces.text()))
    topics = dict(_topic(pieces.text()) for _ in range(pieces.number()))
    servers = _json(pieces.text())
    infos = [_json(pieces.text()) for _ in range(0 if pieces.is_at_end else pieces.number())]
    mappings = {str(info.get("topic")): info for info in infos if isinstance(info, Mapping)}
    return version, topics, tuple(map(str, servers or ())), mappings


class _Pieces:
    """Numbers of 32 bits, and texts with their lengths, one behind the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._position = data, 0

    @property
    def is_at_end(self) -> bool:
        """True behind the last piece; brokers of before 5.0 end here."""
        return self._position == len(self._data)

    def number(self) -> int:
        if self._position + 4 > len(self._data):
            raise WrongRequest(f"the body ends at {len(self._data):,}, within a number")
        self._position += 4
        return int.from_bytes(self._data[self._position - 4 : self._position], "big", signed=True)

    def text(self) -> str:
        length = self.number()
        end = self._position + length
        if length < 0 or end > len(self._data):
            raise WrongRequest(
                f"a text of the body has {length:,} bytes, and {len(self._data) - self._position:,} are there"
            )
        self._position, start = end, self._position
        return self._data[start:end].decode("utf-8", "replace")


def _topic(text: str) -> tuple[str, Queues]:
    """``name readQueueNums writeQueueNums perm filterType [attributes]``."""
    words = text.split(" ")
    try:
        name, read, write, permission = words[0], int(words[1]), int(words[2]), int(words[3])
    except (IndexError, ValueError):
        raise WrongRequest(f"a topic of the body cannot be read: {text[:80]!r}") from None
    return name, Queues(read, write, permission)
