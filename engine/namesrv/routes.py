"""The name server's tables: brokers with their last registration, and the queues of every topic.

No socket, and the clock is a parameter. Java: ``RouteInfoManager``.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

MASTER = 0
"""``brokerId`` of a master."""
DEFAULT_TIMEOUT_MS = 120_000
"""A broker that sends nothing for this time is dropped."""
READ, WRITE = 4, 2
"""Permissions of a topic: to be read, and to be sent to."""
ALL = 7
ORDER_TOPIC_CONFIG = "ORDER_TOPIC_CONFIG"
"""Namespace of the key-value table for ordered topics."""


@dataclass(frozen=True, slots=True)
class DataVersion:
    """The version of a broker's topics."""

    state_version: int = 0
    timestamp: int = 0
    counter: int = 0

    @classmethod
    def of(cls, fields: Any) -> DataVersion:
        """Read RocketMQ's JSON; absent fields are 0."""
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
        """Return RocketMQ's ``QueueData``."""
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
        """Return RocketMQ's ``BrokerData``."""
        broker_data: dict[str, Any] = {
            "brokerAddrs": dict(self.addresses),
            "brokerName": self.name,
            "cluster": self.cluster,
            "enableActingMaster": self.acting_master,
        }
        return broker_data if self.zone is None else {**broker_data, "zoneName": self.zone}


@dataclass(slots=True)
class LiveBroker:
    """A broker that was heard within its timeout: time of its last message, version of its topics, its connection."""

    last_heard_ms: int
    timeout_ms: int
    version: DataVersion
    connection: Hashable
    ha_address: str


@dataclass(frozen=True, slots=True)
class Registration:
    """A broker's registration; ``topics`` is None if the body had none."""

    cluster: str
    broker: str
    address: str
    broker_id: int
    ha_address: str
    version: DataVersion
    topics: Mapping[str, Queues] | None
    filter_servers: tuple[str, ...] = ()
    timeout_ms: int | None = None
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
    """A change of the tables, for an observer; ``word`` is the kind of change."""

    word: str
    broker: str
    address: str


class Routes:
    """All tables of one name server."""

    def __init__(self, *, drop_topics: bool = False) -> None:
        self.drop_topics = drop_topics
        """True if a registration removes topics that it no longer has (``deleteTopicWithBrokerRegistration``)."""
        self.brokers: dict[str, Broker] = {}
        self.clusters: dict[str, set[str]] = {}
        self.topics: dict[str, dict[str, Queues]] = {}
        self.live_brokers: dict[tuple[str, str], LiveBroker] = {}
        """By (cluster, address)."""
        self.filter_servers: dict[tuple[str, str], tuple[str, ...]] = {}
        self.mappings: dict[str, dict[str, Mapping[Any, Any]]] = {}
        """Parts of static topics by topic and broker name. They stay when a broker or a topic goes, as in RocketMQ."""

    def register(self, registration: Registration, now: int, connection: Hashable) -> MasterAddresses | None:
        """Apply a broker's registration at ``now`` (ms); return None if it is refused.

        A registration of a single topic is refused if the broker is unknown: changes must follow a complete
        registration. The broker's name stays in the tables all the same, without an address.
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
        self._update_topics(broker, registration, is_new=is_new)
        timeout_ms = DEFAULT_TIMEOUT_MS if registration.timeout_ms is None else registration.timeout_ms
        key = (registration.cluster, registration.address)
        self.live_brokers[key] = LiveBroker(now, timeout_ms, registration.version, connection, registration.ha_address)
        self.filter_servers.pop(key, None)
        if registration.filter_servers:
            self.filter_servers[key] = registration.filter_servers
        return self._master_of(broker, registration)

    def _is_older(self, broker: Broker, registration: Registration) -> bool:
        """Return True if another address of the same broker id registered a later version."""
        registered_address = broker.addresses.get(registration.broker_id)
        if registered_address is None or registered_address == registration.address:
            return False
        live_broker = self.live_brokers.get((registration.cluster, registered_address))
        return live_broker is not None and live_broker.version.state_version > registration.version.state_version

    def _update_topics(self, broker: Broker, registration: Registration, *, is_new: bool) -> None:
        is_master = registration.broker_id == MASTER
        acts_as_master = (
            not is_master and registration.acting_master is not None and registration.broker_id == min(broker.addresses)
        )
        if registration.topics is None or not (is_master or acts_as_master):
            return
        if self.drop_topics and not registration.mappings:
            for topic in [
                name
                for name, queues_by_broker in self.topics.items()
                if broker.name in queues_by_broker and name not in registration.topics
            ]:
                self._drop_queues(topic, broker.name)
        live_broker = self.live_brokers.get((registration.cluster, registration.address))
        is_changed = live_broker is None or live_broker.version != registration.version
        for topic, queues in registration.topics.items():
            if is_new or is_changed or broker.name not in self.topics.get(topic, ()):
                is_read_only = acts_as_master and broker.acting_master
                permission = queues.permission & ~WRITE if is_read_only else queues.permission
                self.topics.setdefault(topic, {})[broker.name] = replace(queues, permission=permission)
        if is_new or is_changed:
            for topic, info in registration.mappings.items():
                self.mappings.setdefault(topic, {})[str(info.get("bname"))] = info

    def _master_of(self, broker: Broker, registration: Registration) -> MasterAddresses:
        master = broker.addresses.get(MASTER)
        live_master = self.live_brokers.get((registration.cluster, master)) if master is not None else None
        if registration.broker_id == MASTER or master is None or live_master is None:
            return MasterAddresses()
        return MasterAddresses(master, live_master.ha_address)

    def heartbeat(self, cluster: str, address: str, now: int, timeout_ms: int | None = None) -> None:
        """Note that a broker is alive; an unknown one is ignored."""
        live_broker = self.live_brokers.get((cluster, address))
        if live_broker is not None:
            live_broker.last_heard_ms = now
            live_broker.timeout_ms = live_broker.timeout_ms if timeout_ms is None else timeout_ms

    def unregister(self, cluster: str, broker: str, address: str) -> Change | None:
        """Remove a broker; return None if it was not known."""
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
        for topic in [name for name, queues_by_broker in self.topics.items() if broker.name in queues_by_broker]:
            self._drop_queues(topic, broker.name)

    def _drop_queues(self, topic: str, broker: str) -> None:
        queues_by_broker = self.topics[topic]
        queues_by_broker.pop(broker, None)
        if not queues_by_broker:
            del self.topics[topic]

    def expire(self, now: int) -> list[tuple[Change, Hashable]]:
        """Drop brokers that were silent too long; return the changes, each with its connection."""
        late = [
            (key, live_broker)
            for key, live_broker in self.live_brokers.items()
            if live_broker.last_heard_ms + live_broker.timeout_ms < now
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
        """Return the version that a broker last sent; None if it is not known."""
        live_broker = self.live_brokers.get((cluster, address))
        return None if live_broker is None else live_broker.version

    def set_write(self, broker: str, *, allowed: bool) -> int:
        """Take the permission to send from a broker's topics, or give it back; return the number of topics."""
        changed_count = 0
        for queues_by_broker in self.topics.values():
            if (queues := queues_by_broker.get(broker)) is not None:
                permission = (READ | WRITE) if allowed else queues.permission & ~WRITE
                queues_by_broker[broker] = replace(queues, permission=permission)
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
        """Return RocketMQ's ``TopicRouteData``; None if no known broker holds the topic."""
        queues_by_broker = self.topics.get(topic)
        if not queues_by_broker:
            return None
        brokers = [self.brokers[name] for name in queues_by_broker if name in self.brokers]
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
            "queueDatas": [queues.record(name) for name, queues in queues_by_broker.items()],
            **({} if mappings is None else {"topicQueueMappingByBroker": mappings}),
        }

    def cluster_info(self) -> dict[str, Any]:
        """Return RocketMQ's ``ClusterInfo``."""
        return {
            "brokerAddrTable": {name: broker.record() for name, broker in self.brokers.items()},
            "clusterAddrTable": {cluster: sorted(names) for cluster, names in self.clusters.items()},
        }

    def topics_of(self, cluster: str) -> list[str]:
        """Return the topics of the cluster's brokers."""
        names = self.clusters.get(cluster, set())
        return [topic for topic, queues_by_broker in self.topics.items() if names & queues_by_broker.keys()]
