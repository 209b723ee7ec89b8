"""Who is connected: producers and consumers by group, what groups subscribe to (docs/protocol/broker.md#clients,
docs/protocol/behaviour.md#notices).

Java: ``ProducerManager``, ``ConsumerManager``, ``ConsumerGroupInfo``. Passive: whoever changes it tells the members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from engine.remoting.connection import Connection
from engine.remoting.subscriptions import Subscription

CLUSTERING, BROADCASTING = "CLUSTERING", "BROADCASTING"


@dataclass(slots=True)
class Member:
    """A client of a group behind one connection. ``seen`` is when it last said so (ms since the epoch)."""

    client_id: str
    language: str
    version: int
    seen: int


@dataclass(slots=True)
class ConsumerGroup:
    """A group that consumes now."""

    name: str
    kind: str = "CONSUME_PASSIVELY"
    model: str = CLUSTERING
    start: str = "CONSUME_FROM_LAST_OFFSET"
    members: dict[Connection, Member] = field(default_factory=dict)
    subscriptions: dict[str, Subscription] = field(default_factory=dict)

    @property
    def client_ids(self) -> list[str]:
        """Each client once, as they came."""
        return list(dict.fromkeys(member.client_id for member in self.members.values()))


class Clients:
    """The tables. No client is told anything from here."""

    def __init__(self) -> None:
        self.consumers: dict[str, ConsumerGroup] = {}
        self.producers: dict[str, dict[Connection, Member]] = {}
        self.emptied: Callable[[str], None] = lambda _: None
        """Told of a group that has no member any more."""

    def subscription(self, group: str, topic: str) -> Subscription | None:
        """What a group wants of a topic, as heartbeats said it."""
        found = self.consumers.get(group)
        return None if found is None else found.subscriptions.get(topic)

    def producer_of(self, group: str) -> Connection | None:
        """A connection over which a group's producer can be asked: one that reads what it is sent."""
        return next((one for one in self.producers.get(group, ()) if not one.is_congested), None)

    def producer(self, client_id: str) -> Connection | None:
        """The connection of a producer by the id that it gave itself."""
        for members in self.producers.values():
            for connection, member in members.items():
                if member.client_id == client_id:
                    return connection
        return None

    def add_producer(self, group: str, connection: Connection, member: Member) -> None:
        """A producer is there, or there still."""
        self.producers.setdefault(group, {})[connection] = member

    def add_consumer(self, wanted: ConsumerGroup, connection: Connection, member: Member) -> bool:
        """A consumer is there, or there still, and its group subscribes to this; whether members are to be told."""
        group = self.consumers.setdefault(wanted.name, ConsumerGroup(wanted.name))
        group.kind, group.model, group.start = wanted.kind, wanted.model, wanted.start
        known = group.members.get(connection)
        new = known is None or known.client_id != member.client_id
        group.members[connection] = member
        before = set(group.subscriptions)
        for topic, one in wanted.subscriptions.items():
            old = group.subscriptions.get(topic)
            if old is None or one.version > old.version:
                group.subscriptions[topic] = one
        for topic in before - wanted.subscriptions.keys():
            del group.subscriptions[topic]
        return new or before != set(group.subscriptions)

    def remove_producer(self, group: str, connection: Connection) -> None:
        """A producer has gone from a group."""
        members = self.producers.get(group, {})
        members.pop(connection, None)
        if not members:
            self.producers.pop(group, None)

    def remove_consumer(self, group: str, connection: Connection) -> ConsumerGroup | None:
        """A consumer has gone from a group: those that stay, to be told; None where nothing changed for anybody."""
        found = self.consumers.get(group)
        if found is None or found.members.pop(connection, None) is None:
            return None
        if not found.members:
            del self.consumers[group]
            self.emptied(group)
            return None
        return found

    def disconnected(self, connection: Connection) -> list[ConsumerGroup]:
        """A connection has ended: the groups that it leaves behind with members, to be told."""
        for group in [name for name, members in self.producers.items() if connection in members]:
            self.remove_producer(group, connection)
        groups = [name for name, group in self.consumers.items() if connection in group.members]
        return [left for name in groups if (left := self.remove_consumer(name, connection)) is not None]

    def silent(self, before: int) -> list[Connection]:
        """Connections all of whose clients were last heard before a time (ms)."""
        last: dict[Connection, int] = {}
        tables: list[Mapping[Connection, Member]] = [*self.producers.values()]
        tables += [group.members for group in self.consumers.values()]
        for members in tables:
            for connection, member in members.items():
                last[connection] = max(last.get(connection, 0), member.seen)
        return [connection for connection, seen in last.items() if seen < before]
