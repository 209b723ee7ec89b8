"""The state of a cluster at one time: brokers, queues, groups, clients and the owners of queues. No I/O.

A request that was not answered is listed in :attr:`ClusterState.refusals`; the broker's earlier state stays, with its
time. So missing data is never shown as absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, TypeVar


class Queue(NamedTuple):
    """A queue of the cluster; the order is that of Java's ``MessageQueue``."""

    topic: str
    broker: str
    queue_id: int


@dataclass(frozen=True, slots=True)
class QueueEnds:
    """Queue offsets of the first message and after the last one, and the store time of the last one (ms, 0: none)."""

    min_offset: int
    max_offset: int
    last_stored: int


@dataclass(frozen=True, slots=True)
class Client:
    """A connected client. ``version`` is the number that it sends (docs/protocol/frames.md#versions)."""

    client_id: str
    address: str
    language: str
    version: int


@dataclass(frozen=True, slots=True)
class Group:
    """A consumer group, on one broker or on all. ``owned``: the queues of each client, without clients that did not
    answer.
    """

    name: str
    kind: str = ""
    model: str = ""
    start: str = ""
    clients: tuple[Client, ...] = ()
    subscriptions: Mapping[str, str] = field(default_factory=dict)
    owned: Mapping[str, frozenset[Queue]] = field(default_factory=dict)

    def owners(self, queue: Queue) -> tuple[str, ...]:
        """Return the ids of the clients that own a queue: none, one, or several while they disagree."""
        return tuple(client_id for client_id, queues in self.owned.items() if queue in queues)

    @property
    def has_all_answers(self) -> bool:
        """True if every client reported its queues: a queue without a known owner then really has none."""
        return all(client.client_id in self.owned for client in self.clients)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that failed: the address, the request, the answer's code (−1: no answer) and the error text."""

    address: str
    request: str
    about: str
    code: int
    words: str


@dataclass(frozen=True, slots=True)
class BrokerPart:
    """State of one broker as read at ``time_ms`` (0: not read yet). ``words`` is the reason why it is not newer."""

    name: str
    cluster: str
    broker_id: int
    address: str
    time_ms: int = 0
    release: str = ""
    words: str = ""
    queues: Mapping[Queue, QueueEnds] = field(default_factory=dict)
    offsets: Mapping[str, Mapping[Queue, int]] = field(default_factory=dict)
    """By group: the offset of the next message to consume."""
    groups: Mapping[str, Group] = field(default_factory=dict)
    """Groups with connected clients."""
    producers: Mapping[str, tuple[Client, ...]] = field(default_factory=dict)
    held_pulls: Mapping[Queue, Mapping[str, int]] | None = None
    """Number of held pulls by queue and group. None: the broker does not report it, as no broker of RocketMQ does."""

    @property
    def is_master(self) -> bool:
        return self.broker_id == 0


@dataclass(frozen=True)
class ClusterState:
    """State of the cluster at ``time_ms``. ``name_servers``: what is wrong with each address ("" for nothing)."""

    time_ms: int
    name_servers: Mapping[str, str]
    brokers: tuple[BrokerPart, ...]
    refusals: tuple[Refusal, ...] = ()

    @property
    def masters(self) -> Iterator[BrokerPart]:
        return (part for part in self.brokers if part.is_master)

    @cached_property
    def queues(self) -> dict[Queue, QueueEnds]:
        """All queues, in Java's order."""
        all_ends = {queue: ends for part in self.masters for queue, ends in part.queues.items()}
        return dict(sorted(all_ends.items()))

    def held_at(self, queue: Queue, group: str = "") -> int | None:
        """Return the number of pulls held at a queue, of one group or of all. None: its broker does not report it."""
        part = self._master_of.get(queue.broker)
        if part is None or part.held_pulls is None:
            return None
        groups = part.held_pulls.get(queue, {})
        return groups.get(group, 0) if group else sum(groups.values())

    @cached_property
    def _master_of(self) -> dict[str, BrokerPart]:
        return {part.name: part for part in self.masters}

    @cached_property
    def groups(self) -> dict[str, Group]:
        """Groups with connected clients by name, merged from all brokers."""
        groups: dict[str, Group] = {}
        for part in self.masters:
            for name, group in part.groups.items():
                groups[name] = _merged(groups[name], group) if name in groups else group
        return dict(sorted(groups.items()))

    @cached_property
    def producers(self) -> dict[str, tuple[Client, ...]]:
        """Producers by group; each client once."""
        clients_by_group: dict[str, dict[str, Client]] = {}
        for part in self.masters:
            for name, clients in part.producers.items():
                clients_by_group.setdefault(name, {}).update({client.client_id: client for client in clients})
        return {name: tuple(clients.values()) for name, clients in sorted(clients_by_group.items())}

    def offsets(self, group: str) -> dict[Queue, int]:
        """Return the next offset of a group in each queue for which it has committed one."""
        return {queue: offset for part in self.masters for queue, offset in part.offsets.get(group, {}).items()}

    def behind(self, group: str) -> dict[Queue, int]:
        """Return the messages that a group has not consumed, by queue; at least 0 (an offset beyond the end is a
        finding).
        """
        ends = self.queues
        return {
            queue: max(ends[queue].max_offset - offset, 0)
            for queue, offset in self.offsets(group).items()
            if queue in ends
        }

    def rates(self, previous: ClusterState) -> dict[Queue, float]:
        """Return messages a second added to each queue since ``previous``, for queues that were read since."""
        return {
            queue: max(ends.max_offset - old.queues[queue].max_offset, 0) / seconds
            for old, part, seconds in self._newer_masters(previous)
            for queue, ends in part.queues.items()
            if queue in old.queues
        }

    def consumed(self, previous: ClusterState) -> dict[str, dict[Queue, float]]:
        """Messages a second by which each group's offset went on since ``previous``, by queue; 0 if it went back.
        Groups commit every few seconds only (5 by default): states nearer to each other than that tell little.
        """
        rates_by_group: dict[str, dict[Queue, float]] = {}
        for old, part, seconds in self._newer_masters(previous):
            for group, offsets in part.offsets.items():
                then = old.offsets.get(group, {})
                rates = {
                    queue: max(offset - then[queue], 0) / seconds for queue, offset in offsets.items() if queue in then
                }
                rates_by_group.setdefault(group, {}).update(rates)
        return rates_by_group

    def sharing(self, previous: ClusterState) -> ClusterState:
        """Return this state with every equal part replaced by ``previous``'s own object.

        A history of states then needs memory only for what changed.
        """
        old = {(part.name, part.broker_id): part for part in previous.brokers}
        parts = tuple(_sharing(part, old.get((part.name, part.broker_id))) for part in self.brokers)
        return ClusterState(
            self.time_ms,
            _same(previous.name_servers, self.name_servers),
            parts,
            _same(previous.refusals, self.refusals),
        )

    def forget(self) -> None:
        """Drop the cached merges of the brokers' data. They are computed again on access."""
        for name in ("queues", "groups", "producers", "_master_of"):
            self.__dict__.pop(name, None)

    def _newer_masters(self, previous: ClusterState) -> Iterator[tuple[BrokerPart, BrokerPart, float]]:
        """Yield old and new state and the seconds between, for each master that was read since ``previous``."""
        parts = {(old_part.name, old_part.broker_id): old_part for old_part in previous.brokers}
        for part in self.masters:
            old = parts.get((part.name, part.broker_id))
            if old is not None and 0 < old.time_ms < part.time_ms:
                yield old, part, (part.time_ms - old.time_ms) / 1000


def _merged(group: Group, other_group: Group) -> Group:
    clients = {client.client_id: client for client in (*group.clients, *other_group.clients)}
    owned = {
        name: group.owned.get(name, frozenset()) | other_group.owned.get(name, frozenset())
        for name in (*group.owned, *other_group.owned)
    }
    return Group(
        group.name,
        group.kind,
        group.model,
        group.start,
        tuple(clients.values()),
        {**group.subscriptions, **other_group.subscriptions},
        owned,
    )


T = TypeVar("T")


def _same(old: T, new: T) -> T:
    return old if old == new else new


def _sharing(part: BrokerPart, old: BrokerPart | None) -> BrokerPart:
    if old is None:
        return part
    old_queues = {queue: (queue, ends) for queue, ends in old.queues.items()}
    queues = {}
    for queue, ends in part.queues.items():
        name, then = old_queues.get(queue, (queue, ends))
        queues[name] = _same(then, ends)
    offsets = {}
    for group, table in part.offsets.items():
        then_at = old.offsets.get(group, {})
        offsets[group] = (
            then_at
            if then_at == table
            else {old_queues[queue][0] if queue in old_queues else queue: offset for queue, offset in table.items()}
        )
    groups = {name: _same(old.groups.get(name, new_group), new_group) for name, new_group in part.groups.items()}
    return replace(
        part,
        name=old.name,
        cluster=_same(old.cluster, part.cluster),
        address=_same(old.address, part.address),
        release=_same(old.release, part.release),
        words=_same(old.words, part.words),
        queues=_same(old.queues, queues),
        offsets=_same(old.offsets, offsets),
        groups=_same(old.groups, groups),
        producers=_same(old.producers, part.producers),
        held_pulls=_same(old.held_pulls, part.held_pulls),
    )
