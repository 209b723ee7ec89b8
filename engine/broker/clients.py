"""Connected clients: producers and consumers by group, and the subscriptions of groups
(docs/protocol/broker.md#clients, docs/protocol/behaviour.md#notices).

Java: ``ProducerManager``, ``ConsumerManager``, ``ConsumerGroupInfo``. Passive: the caller that changes it
notifies the members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from engine.remoting.connection import Connection
from engine.remoting.subscriptions import Subscription

CLUSTERING, BROADCASTING = "CLUSTERING", "BROADCASTING"


@dataclass(slots=True)
class Member:
    """A client of a group behind one connection. ``heartbeat_ms``: its last heartbeat (ms since the epoch)."""

    client_id: str
    language: str
    version: int
    heartbeat_ms: int


@dataclass(slots=True)
class ConsumerGroup:
    """A consumer group that has members now."""

    name: str
    kind: str = "CONSUME_PASSIVELY"
    model: str = CLUSTERING
    start: str = "CONSUME_FROM_LAST_OFFSET"
    members: dict[Connection, Member] = field(default_factory=dict)
    subscriptions: dict[str, Subscription] = field(default_factory=dict)

    @property
    def client_ids(self) -> list[str]:
        """Return each client id once, in the order of arrival."""
        return list(dict.fromkeys(member.client_id for member in self.members.values()))


class Clients:
    """Tables of the connected clients. Nothing is sent from here."""

    def __init__(self) -> None:
        self.consumers: dict[str, ConsumerGroup] = {}
        self.producers: dict[str, dict[Connection, Member]] = {}
        self.emptied: Callable[[str], None] = lambda _: None
        """Called with a group that has no member any more."""

    def subscription(self, group: str, topic: str) -> Subscription | None:
        """Return a group's subscription to a topic, from its heartbeats."""
        consumer_group = self.consumers.get(group)
        return None if consumer_group is None else consumer_group.subscriptions.get(topic)

    def producer_of(self, group: str) -> Connection | None:
        """Return a connection to a producer of the group that reads what it is sent; None if there is none."""
        return next((connection for connection in self.producers.get(group, ()) if not connection.is_congested), None)

    def producer(self, client_id: str) -> Connection | None:
        """Return the connection of a producer by its client id."""
        for members in self.producers.values():
            for connection, member in members.items():
                if member.client_id == client_id:
                    return connection
        return None

    def add_producer(self, group: str, connection: Connection, member: Member) -> None:
        """Record a producer, or its next heartbeat."""
        self.producers.setdefault(group, {})[connection] = member

    def add_consumer(self, reported: ConsumerGroup, connection: Connection, member: Member) -> bool:
        """Record a consumer and the subscriptions of its group. Return True if the members must be notified."""
        group = self.consumers.setdefault(reported.name, ConsumerGroup(reported.name))
        group.kind, group.model, group.start = reported.kind, reported.model, reported.start
        known_member = group.members.get(connection)
        new = known_member is None or known_member.client_id != member.client_id
        group.members[connection] = member
        old_topics = set(group.subscriptions)
        for topic, subscription in reported.subscriptions.items():
            old = group.subscriptions.get(topic)
            if old is None or subscription.version > old.version:
                group.subscriptions[topic] = subscription
        for topic in old_topics - reported.subscriptions.keys():
            del group.subscriptions[topic]
        return new or old_topics != set(group.subscriptions)

    def remove_producer(self, group: str, connection: Connection) -> None:
        """Remove a producer from a group."""
        members = self.producers.get(group, {})
        members.pop(connection, None)
        if not members:
            self.producers.pop(group, None)

    def remove_consumer(self, group: str, connection: Connection) -> ConsumerGroup | None:
        """Remove a consumer from a group. Return the group if its remaining members must be notified, else None."""
        consumer_group = self.consumers.get(group)
        if consumer_group is None or consumer_group.members.pop(connection, None) is None:
            return None
        if not consumer_group.members:
            del self.consumers[group]
            self.emptied(group)
            return None
        return consumer_group

    def disconnected(self, connection: Connection) -> list[ConsumerGroup]:
        """Forget a closed connection. Return its groups that still have members, which must be notified."""
        for group in [name for name, members in self.producers.items() if connection in members]:
            self.remove_producer(group, connection)
        groups = [name for name, group in self.consumers.items() if connection in group.members]
        return [remaining for name in groups if (remaining := self.remove_consumer(name, connection)) is not None]

    def silent(self, cutoff_ms: int) -> list[Connection]:
        """Return the connections all of whose clients were last heard before ``cutoff_ms``."""
        last_heartbeats: dict[Connection, int] = {}
        tables: list[Mapping[Connection, Member]] = [*self.producers.values()]
        tables += [group.members for group in self.consumers.values()]
        for members in tables:
            for connection, member in members.items():
                last_heartbeats[connection] = max(last_heartbeats.get(connection, 0), member.heartbeat_ms)
        return [connection for connection, heartbeat_ms in last_heartbeats.items() if heartbeat_ms < cutoff_ms]
