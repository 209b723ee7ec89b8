"""What the picture of a cluster shows, as values: brokers with topics and queues, groups, clients; no Qt.

Made of one :class:`~engine.cluster.state.ClusterState` and the rates since earlier ones. What nobody told is None here
and is shown as ``…``: never 0, and never "no owner".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from engine.cluster.state import BrokerPart, Client, ClusterState, Group, Queue, QueueEnds
from engine.rules.system_names import DLQ, RETRY, is_system_group

SOME, MANY = 10, 1000
"""Messages behind from which a queue is lightly, and fully, in the colour of trouble."""
LAST = 10_000
"""Entries that a queue's line stands for: the last ones, the same number for all."""
LATE = 50
"""Messages behind from which a queue's line shows what is not consumed."""
SMALL_QUEUES, SMALL_CLIENTS = 24, 12
"""Up to so many queues and clients in sight the picture draws each; above, a topic is a row of cells."""
TROUBLES = ("error", "warn", "")
"""The worst first."""
OWN_SENDER = "CLIENT_INNER_PRODUCER"
"""The group under which every Java client can send, whether or not it does."""


@dataclass(frozen=True, slots=True)
class Badge:
    """A client's short name, and its place among the eight colours; −1: none is left, or it is gone."""

    name: str
    place: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Messages a second: what came into each queue, and what each group consumed of it."""

    came: Mapping[Queue, float] = field(default_factory=dict)
    went: Mapping[str, Mapping[Queue, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue as one group sees it; ``group`` is "" where nobody consumes its topic."""

    queue: Queue
    ends: QueueEnds
    group: str = ""
    next_offset: int | None = None
    behind: int | None = None
    owners: tuple[str, ...] = ()
    orphan: bool = False
    """Every client of the group told what it owns, and nobody owns it."""
    came: float | None = None
    went: float | None = None
    others: tuple[int, ...] = ()
    """Where the other groups read next."""
    worst: int | None = None
    """Messages that the slowest of all its groups is behind."""
    held: int | None = None
    """Pulls of its group that its broker holds until something comes; None: the broker does not tell."""

    @property
    def trouble(self) -> str:
        """error: nobody owns it; warn: much is not consumed, or two own it."""
        if self.orphan:
            return "error"
        return "warn" if len(self.owners) > 1 or (self.worst or 0) >= MANY else ""


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic over all brokers; ``groups`` are those that consume it now, the one shown first."""

    name: str
    queues: tuple[QueueRow, ...]
    groups: tuple[str, ...]
    came: float | None
    went: float | None
    worst: int | None
    trouble: str

    @property
    def orphans(self) -> int:
        return sum(queue.orphan for queue in self.queues)


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """A broker: its master, its slaves, and the topics of which it holds queues."""

    name: str
    master: BrokerPart | None
    slaves: tuple[BrokerPart, ...]
    topics: tuple[tuple[str, tuple[QueueRow, ...]], ...]
    came: float | None


@dataclass(frozen=True, slots=True)
class ClientRow:
    """A consumer within a group. ``owned`` is None where it did not tell; ``left``: it was there a moment ago."""

    client: Client
    group: str
    badge: Badge
    owned: tuple[Queue, ...] | None
    behind: int | None = None
    went: float | None = None
    left: bool = False


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group that consumes now."""

    group: Group
    clients: tuple[ClientRow, ...]
    queues: tuple[QueueRow, ...]
    behind: int | None
    went: float | None
    trouble: str

    @property
    def name(self) -> str:
        return self.group.name

    @property
    def broadcast(self) -> bool:
        """Each of its clients gets every message; offsets stand in the clients' own files."""
        return self.group.model == "BROADCASTING"

    @property
    def idle(self) -> int:
        """Clients that own nothing."""
        return sum(client.owned == () and not client.left for client in self.clients)

    @property
    def orphans(self) -> int:
        """Queues that nobody owns."""
        return sum(queue.orphan for queue in self.queues)


@dataclass(frozen=True, slots=True)
class ProducerRow:
    """A client that sends: its groups, and the brokers that it is connected to. To which topics it sends, no
    administrator's request tells.
    """

    client: Client
    groups: tuple[str, ...]
    brokers: tuple[str, ...]
    badge: Badge
    left: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """All of it, in the order in which it is drawn."""

    state: ClusterState | None = None
    brokers: tuple[BrokerRow, ...] = ()
    topics: tuple[TopicRow, ...] = ()
    groups: tuple[GroupRow, ...] = ()
    producers: tuple[ProducerRow, ...] = ()

    @property
    def queues(self) -> int:
        return sum(len(topic.queues) for topic in self.topics)

    @property
    def clients(self) -> int:
        """Consumers that are there, each counted once a group."""
        return sum(not client.left for group in self.groups for client in group.clients)

    @property
    def senders(self) -> int:
        """Producers that are there."""
        return sum(not producer.left for producer in self.producers)

    @property
    def large(self) -> bool:
        """Too much to draw each queue and client."""
        return self.queues > SMALL_QUEUES or self.clients + len(self.producers) > SMALL_CLIENTS

    @property
    def troubles(self) -> tuple[int, int]:
        """Topics and groups (errors, warnings)."""
        kinds = [*(one.trouble for one in self.topics), *(one.trouble for one in self.groups)]
        return kinds.count("error"), kinds.count("warn")


def consumers_of(state: ClusterState) -> dict[str, tuple[str, ...]]:
    """Of each topic, the groups that consume it now: those that share its queues first."""
    found: dict[str, list[Group]] = {}
    for group in state.groups.values():
        for topic in group.subscriptions:
            found.setdefault(topic, []).append(group)
    return {
        topic: tuple(one.name for one in sorted(groups, key=lambda one: (one.model == "BROADCASTING", one.name)))
        for topic, groups in found.items()
    }


def of_users(state: ClusterState) -> list[Queue]:
    """Queues of the topics that users made, in Java's order: no retries and dead letters, and none of the topics that a
    broker declares under its own name and its cluster's.
    """
    own = {part.name for part in state.brokers} | {part.cluster for part in state.brokers}
    own |= {f"{part.cluster}_REPLY_TOPIC" for part in state.brokers}
    return [queue for queue in state.queues if queue.topic not in own and not queue.topic.startswith((RETRY, DLQ))]


class Index:
    """A state as rows are made of it: queues by topic, offsets and owners by group; each row is made once."""

    def __init__(self, state: ClusterState, figures: Figures) -> None:
        self.state, self.figures = state, figures
        self.queues: dict[str, list[Queue]] = {}
        for queue in of_users(state):
            self.queues.setdefault(queue.topic, []).append(queue)
        self.consumers = consumers_of(state)
        self.offsets = {name: state.offsets(name) for name in state.groups}
        self.owners = {name: _owners(group) for name, group in state.groups.items()}
        self._made: dict[tuple[Queue, tuple[str, ...]], QueueRow] = {}

    def row(self, queue: Queue, groups: tuple[str, ...]) -> QueueRow:
        """A queue as the first of ``groups`` sees it."""
        found = self._made.get((queue, groups))
        if found is None:
            found = self._made[queue, groups] = self._row(queue, groups)
        return found

    def _row(self, queue: Queue, groups: tuple[str, ...]) -> QueueRow:
        ends, came = self.state.queues[queue], self.figures.came.get(queue)
        if not groups:
            return QueueRow(queue, ends, came=came, held=self.state.held_at(queue))
        name, end = groups[0], ends.max_offset
        group, at = self.state.groups[name], self.offsets[name].get(queue)
        others: tuple[int, ...] = ()
        lowest = at
        if len(groups) > 1:
            told = (self.offsets[other].get(queue) for other in groups[1:])
            others = tuple(there for there in told if there is not None)
            lowest = min((there for there in (at, *others) if there is not None), default=None)
        shared = group.model != "BROADCASTING"
        owners = self.owners[name].get(queue, ()) if shared else ()
        return QueueRow(
            queue,
            ends,
            name,
            at,
            None if at is None else max(end - at, 0),
            owners,
            shared and not owners and bool(group.clients) and group.asked_all,
            came,
            self.figures.went.get(name, {}).get(queue),
            others,
            None if lowest is None else max(end - lowest, 0),
            self.state.held_at(queue, name),
        )


def _owners(group: Group) -> dict[Queue, tuple[str, ...]]:
    found: dict[Queue, tuple[str, ...]] = {}
    for client_id, queues in group.owned.items():
        for queue in queues:
            found[queue] = (*found[queue], client_id) if queue in found else (client_id,)
    return found


def topic_rows(index: Index, shown: str = "") -> tuple[TopicRow, ...]:
    """Every topic, what is in trouble first, then by rate; ``shown`` is the group that goes before others."""
    rows = []
    for name, members in index.queues.items():
        groups = index.consumers.get(name, ())
        if shown in groups:
            groups = (shown, *(one for one in groups if one != shown))
        made = tuple(index.row(queue, groups) for queue in members)
        late = [row.worst for row in made if row.worst is not None]
        rows.append(
            TopicRow(
                name,
                made,
                groups,
                summed(row.came for row in made),
                summed(row.went for row in made),
                max(late) if late else None,
                worst_of(row.trouble for row in made),
            )
        )
    return tuple(
        sorted(
            rows,
            key=lambda row: (
                TROUBLES.index(row.trouble),
                -(row.worst or 0) if row.trouble else 0,
                -(row.came or 0),
                row.name,
            ),
        )
    )


def group_rows(
    index: Index, badges: Mapping[str, Badge], gone: Mapping[str, tuple[ClientRow, ...]]
) -> tuple[GroupRow, ...]:
    """Groups that consume now; ``gone`` are clients that left a moment ago."""
    rows = []
    for name, group in index.state.groups.items():
        went, alone = index.figures.went.get(name, {}), (name,)
        queues = tuple(
            index.row(queue, alone) for topic in sorted(group.subscriptions) for queue in index.queues.get(topic, ())
        )
        late = {row.queue: row.behind for row in queues}
        clients = []
        for one in group.clients:
            told = group.owned.get(one.client_id)
            owned = None if told is None else tuple(sorted(queue for queue in told if queue in late))
            clients.append(
                ClientRow(
                    one,
                    name,
                    badges.get(one.client_id, Badge("?", -1)),
                    owned,
                    None if owned is None else known(late.get(queue) for queue in owned),
                    None if owned is None else summed(went.get(queue) for queue in owned),
                )
            )
        members = (*clients, *gone.get(name, ()))
        behind = known(row.behind for row in queues)
        rows.append(
            GroupRow(
                group,
                members,
                queues,
                behind,
                summed(row.went for row in queues),
                worst_of(row.trouble for row in queues),
            )
        )
    return tuple(
        sorted(
            rows,
            key=lambda row: (
                TROUBLES.index(row.trouble),
                -(row.behind or 0) if row.trouble else 0,
                row.broadcast,
                row.name,
            ),
        )
    )


def broker_rows(state: ClusterState, topics: tuple[TopicRow, ...]) -> tuple[BrokerRow, ...]:
    """Brokers by name, each with its queues by topic."""
    names = dict.fromkeys(part.name for part in state.brokers)
    rows = []
    for name in sorted(names):
        parts = [part for part in state.brokers if part.name == name]
        held = tuple(
            (topic.name, mine)
            for topic in sorted(topics, key=lambda topic: topic.name)
            if (mine := tuple(row for row in topic.queues if row.queue.broker == name))
        )
        rows.append(
            BrokerRow(
                name,
                next((part for part in parts if part.is_master), None),
                tuple(part for part in parts if not part.is_master),
                held,
                summed(row.came for _, mine in held for row in mine),
            )
        )
    return tuple(rows)


def producer_rows(
    state: ClusterState, badges: Mapping[str, Badge], gone: tuple[ProducerRow, ...] = ()
) -> tuple[ProducerRow, ...]:
    """Clients that send, by group; a consumer's own sender of retries is none."""
    found: dict[str, tuple[Client, dict[str, None], dict[str, None]]] = {}
    for part in state.masters:
        for name, clients in part.producers.items():
            for one in () if name == OWN_SENDER or is_system_group(name) else clients:
                _, groups, brokers = found.setdefault(one.client_id, (one, {}, {}))
                groups[name] = brokers[part.name] = None
    rows = [
        ProducerRow(one, tuple(groups), tuple(brokers), badges.get(one.client_id, Badge("?", -1)))
        for one, groups, brokers in found.values()
    ]
    return tuple(sorted([*rows, *gone], key=lambda row: (row.groups, row.client.client_id)))


def summed(values: Iterable[float | None]) -> float | None:
    """The sum of what is known; None where nothing is."""
    there = [value for value in values if value is not None]
    return sum(there) if there else None


def known(values: Iterable[int | None]) -> int | None:
    """The sum where every part is known; None otherwise: a part that nobody told is not 0."""
    there = list(values)
    told = [value for value in there if value is not None]
    return sum(told) if len(told) == len(there) else None


def worst_of(troubles: Iterable[str]) -> str:
    """The worst of several troubles."""
    found = set(troubles)
    return next((one for one in TROUBLES if one in found), "")
