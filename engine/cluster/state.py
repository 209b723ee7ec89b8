"""A cluster at one time, as values: brokers, queues, groups, who is connected and who owns what.

Pure. What was asked and not told is no absence: it is named in :attr:`ClusterState.refusals`, and what a broker told
before stands with the time at which it told it.
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
    """Queue offsets of the first message and behind the last one, and when that one was stored (ms, 0: never)."""

    min_offset: int
    max_offset: int
    last_stored: int


@dataclass(frozen=True, slots=True)
class Client:
    """A client behind one connection. ``version`` is the number that it sends (docs/protocol/frames.md#versions)."""

    client_id: str
    address: str
    language: str
    version: int


@dataclass(frozen=True, slots=True)
class Group:
    """A group that consumes, on one broker or on all. ``owned`` says which queues each client holds; a client that
    could not be asked is not in it.
    """

    name: str
    kind: str = ""
    model: str = ""
    start: str = ""
    clients: tuple[Client, ...] = ()
    subscriptions: Mapping[str, str] = field(default_factory=dict)
    owned: Mapping[str, frozenset[Queue]] = field(default_factory=dict)

    def owners(self, queue: Queue) -> tuple[str, ...]:
        """Ids of the clients that hold a queue: none, one, or more while they disagree."""
        return tuple(client_id for client_id, queues in self.owned.items() if queue in queues)

    @property
    def asked_all(self) -> bool:
        """True if every client said what it owns, so that a queue without owner has none."""
        return all(client.client_id in self.owned for client in self.clients)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that was not answered as asked: the address, the request, the answer's code (−1: none came) and the
    words.
    """

    address: str
    request: str
    about: str
    code: int
    words: str


@dataclass(frozen=True, slots=True)
class BrokerPart:
    """State of one broker at ``at`` (ms since the epoch); 0: nothing yet. ``words`` say why it is not newer."""

    name: str
    cluster: str
    broker_id: int
    address: str
    at: int = 0
    release: str = ""
    words: str = ""
    queues: Mapping[Queue, QueueEnds] = field(default_factory=dict)
    offsets: Mapping[str, Mapping[Queue, int]] = field(default_factory=dict)
    """Of each group, what it reads next."""
    groups: Mapping[str, Group] = field(default_factory=dict)
    """Those that consume now."""
    producers: Mapping[str, tuple[Client, ...]] = field(default_factory=dict)
    held: Mapping[Queue, Mapping[str, int]] | None = None
    """How many pulls of each group are held at a queue; None: it does not tell, as no broker of RocketMQ's own does."""

    @property
    def is_master(self) -> bool:
        return self.broker_id == 0


@dataclass(frozen=True)
class ClusterState:
    """The whole, at ``at`` (ms since the epoch). ``name_servers``: of each address what is wrong, "" for nothing."""

    at: int
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
        """Pulls that are held at a queue, those of one group where it is named; None: its broker does not tell."""
        part = self._master_of.get(queue.broker)
        if part is None or part.held is None:
            return None
        groups = part.held.get(queue, {})
        return groups.get(group, 0) if group else sum(groups.values())

    @cached_property
    def _master_of(self) -> dict[str, BrokerPart]:
        return {part.name: part for part in self.masters}

    @cached_property
    def groups(self) -> dict[str, Group]:
        """Groups that consume now, by name: what their brokers say of them, joined."""
        groups: dict[str, Group] = {}
        for part in self.masters:
            for name, group in part.groups.items():
                groups[name] = _joined(groups[name], group) if name in groups else group
        return dict(sorted(groups.items()))

    @cached_property
    def producers(self) -> dict[str, tuple[Client, ...]]:
        """Who sends, by group; each client once."""
        clients_by_group: dict[str, dict[str, Client]] = {}
        for part in self.masters:
            for name, clients in part.producers.items():
                clients_by_group.setdefault(name, {}).update({client.client_id: client for client in clients})
        return {name: tuple(clients.values()) for name, clients in sorted(clients_by_group.items())}

    def offsets(self, group: str) -> dict[Queue, int]:
        """What a group reads next in each queue in which it has committed."""
        return {queue: offset for part in self.masters for queue, offset in part.offsets.get(group, {}).items()}

    def behind(self, group: str) -> dict[Queue, int]:
        """Messages that a group has not consumed, by queue; never below 0 (an offset beyond the end is a finding)."""
        ends = self.queues
        return {
            queue: max(ends[queue].max_offset - offset, 0)
            for queue, offset in self.offsets(group).items()
            if queue in ends
        }

    def rates(self, previous: ClusterState) -> dict[Queue, float]:
        """Messages a second that came into each queue since ``previous``; of queues alone that were read anew."""
        return {
            queue: max(ends.max_offset - old.queues[queue].max_offset, 0) / seconds
            for old, part, seconds in self._read_anew(previous)
            for queue, ends in part.queues.items()
            if queue in old.queues
        }

    def consumed(self, previous: ClusterState) -> dict[str, dict[Queue, float]]:
        """Messages a second by which each group's offset went on since ``previous``, by queue; 0 where it went back.
        Groups commit every few seconds only (5 by default): states nearer to each other than that tell little.
        """
        rates_by_group: dict[str, dict[Queue, float]] = {}
        for old, part, seconds in self._read_anew(previous):
            for group, offsets in part.offsets.items():
                then = old.offsets.get(group, {})
                rates = {
                    queue: max(offset - then[queue], 0) / seconds for queue, offset in offsets.items() if queue in then
                }
                rates_by_group.setdefault(group, {}).update(rates)
        return rates_by_group

    def sharing(self, previous: ClusterState) -> ClusterState:
        """Return this reading with every equal part replaced by ``previous``'s own object, so that readings kept
        side by side cost only what changed.
        """
        old = {(part.name, part.broker_id): part for part in previous.brokers}
        parts = tuple(_sharing(part, old.get((part.name, part.broker_id))) for part in self.brokers)
        return ClusterState(
            self.at, _same(previous.name_servers, self.name_servers), parts, _same(previous.refusals, self.refusals)
        )

    def forget(self) -> None:
        """Let what was joined from its brokers go; it is joined anew where somebody asks for it."""
        for name in ("queues", "groups", "producers", "_master_of"):
            self.__dict__.pop(name, None)

    def _read_anew(self, previous: ClusterState) -> Iterator[tuple[BrokerPart, BrokerPart, float]]:
        """Masters as they were before and are now, and the seconds between, where they were read since."""
        parts = {(old_part.name, old_part.broker_id): old_part for old_part in previous.brokers}
        for part in self.masters:
            old = parts.get((part.name, part.broker_id))
            if old is not None and 0 < old.at < part.at:
                yield old, part, (part.at - old.at) / 1000


def _joined(group: Group, other_group: Group) -> Group:
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
        held=_same(old.held, part.held),
    )
