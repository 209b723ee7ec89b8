"""Content of the cluster picture as values: brokers with topics and queues, groups, clients. No Qt.

Built from one :class:`~engine.cluster.state.ClusterState` and the rates since earlier ones. Unknown values are None
and shown as ``…``: never 0, and never "no owner".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from engine.cluster.state import BrokerPart, Client, ClusterState, Group, Queue, QueueEnds
from engine.system_names import DLQ_PREFIX, RETRY_PREFIX, is_system_group

SMALL_LAG, LARGE_LAG = 10, 1000
"""Lag from which a queue has a light, and a full, warning colour."""
LINE_ENTRIES = 10_000
"""Number of entries, up to the newest, that a queue's line represents."""
MIN_SHOWN_LAG = 50
"""Lag from which a queue's line shows the unconsumed part."""
SMALL_QUEUES, SMALL_CLIENTS = 24, 12
"""Maximum number of queues and clients that are drawn individually; above, a topic is a row of cells."""
SEVERITIES_WORST_FIRST = ("error", "warn", "")
"""The worst first."""
INTERNAL_PRODUCER_GROUP = "CLIENT_INNER_PRODUCER"
"""Group of the internal producer that every Java client has."""


@dataclass(frozen=True, slots=True)
class Badge:
    """A client's short name and the number of its colour; −1: no colour is free, or the client has left."""

    name: str
    place: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Messages a second: stored in each queue, and consumed from it by each group."""

    in_rates: Mapping[Queue, float] = field(default_factory=dict)
    out_rates: Mapping[str, Mapping[Queue, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue as one group sees it; ``group`` is "" if nobody consumes its topic."""

    queue: Queue
    ends: QueueEnds
    group: str = ""
    next_offset: int | None = None
    lag: int | None = None
    owners: tuple[str, ...] = ()
    orphan: bool = False
    """True if every client of the group reported what it owns, and none owns this queue."""
    in_rate: float | None = None
    out_rate: float | None = None
    other_offsets: tuple[int, ...] = ()
    """Next offsets of the other groups."""
    worst: int | None = None
    """Lag of the slowest of all its groups."""
    held_pulls: int | None = None
    """Pulls of its group that the broker holds until a message comes; None: the broker does not report them."""

    @property
    def trouble(self) -> str:
        """Return "error" for no owner, "warn" for a large lag or two owners."""
        if self.orphan:
            return "error"
        return "warn" if len(self.owners) > 1 or (self.worst or 0) >= LARGE_LAG else ""


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic over all brokers; ``groups`` are those that consume it now, the shown one first."""

    name: str
    queues: tuple[QueueRow, ...]
    groups: tuple[str, ...]
    in_rate: float | None
    out_rate: float | None
    worst: int | None
    trouble: str

    @property
    def orphans(self) -> int:
        return sum(queue.orphan for queue in self.queues)


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """A broker: its master, its slaves, and the topics whose queues it has."""

    name: str
    master: BrokerPart | None
    slaves: tuple[BrokerPart, ...]
    topics: tuple[tuple[str, tuple[QueueRow, ...]], ...]
    in_rate: float | None


@dataclass(frozen=True, slots=True)
class ClientRow:
    """A consumer in a group. ``owned`` is None if it did not report."""

    client: Client
    group: str
    badge: Badge
    owned: tuple[Queue, ...] | None
    lag: int | None = None
    out_rate: float | None = None
    has_left: bool = False


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group that consumes now."""

    group: Group
    clients: tuple[ClientRow, ...]
    queues: tuple[QueueRow, ...]
    lag: int | None
    out_rate: float | None
    trouble: str

    @property
    def name(self) -> str:
        return self.group.name

    @property
    def broadcast(self) -> bool:
        """Return True if each client gets every message; offsets are in the clients' own files."""
        return self.group.model == "BROADCASTING"

    @property
    def idle(self) -> int:
        """Number of clients that own nothing."""
        return sum(client.owned == () and not client.has_left for client in self.clients)

    @property
    def orphans(self) -> int:
        """Number of queues without an owner."""
        return sum(queue.orphan for queue in self.queues)


@dataclass(frozen=True, slots=True)
class ProducerRow:
    """A producer client: its groups and connected brokers. No administrator's request tells its topics."""

    client: Client
    groups: tuple[str, ...]
    brokers: tuple[str, ...]
    badge: Badge
    has_left: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything shown, in drawing order."""

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
        """Number of present consumers, counted once in each group."""
        return sum(not client.has_left for group in self.groups for client in group.clients)

    @property
    def senders(self) -> int:
        """Number of present producers."""
        return sum(not producer.has_left for producer in self.producers)

    @property
    def large(self) -> bool:
        """Return True if there is too much to draw each queue and client."""
        return self.queues > SMALL_QUEUES or self.clients + len(self.producers) > SMALL_CLIENTS

    @property
    def troubles(self) -> tuple[int, int]:
        """Number of topics and groups with (errors, warnings)."""
        kinds = [*(item.trouble for item in self.topics), *(item.trouble for item in self.groups)]
        return kinds.count("error"), kinds.count("warn")


def consumers_of(state: ClusterState) -> dict[str, tuple[str, ...]]:
    """Return for each topic the groups that consume it now, clustering groups first."""
    by_topic: dict[str, list[Group]] = {}
    for group in state.groups.values():
        for topic in group.subscriptions:
            by_topic.setdefault(topic, []).append(group)
    return {
        topic: tuple(
            consumer_group.name
            for consumer_group in sorted(
                groups, key=lambda consumer_group: (consumer_group.model == "BROADCASTING", consumer_group.name)
            )
        )
        for topic, groups in by_topic.items()
    }


def user_queues(state: ClusterState) -> list[Queue]:
    """Return the queues of users' topics, in Java's order.

    Retry and dead letter topics are left out, and those that a broker declares under its own name and its
    cluster's.
    """
    broker_topics = {part.name for part in state.brokers} | {part.cluster for part in state.brokers}
    broker_topics |= {f"{part.cluster}_REPLY_TOPIC" for part in state.brokers}
    return [
        queue
        for queue in state.queues
        if queue.topic not in broker_topics and not queue.topic.startswith((RETRY_PREFIX, DLQ_PREFIX))
    ]


class Index:
    """Lookup tables over a state: queues by topic, offsets and owners by group; each row is built once."""

    def __init__(self, state: ClusterState, figures: Figures) -> None:
        self.state, self.figures = state, figures
        self.queues: dict[str, list[Queue]] = {}
        for queue in user_queues(state):
            self.queues.setdefault(queue.topic, []).append(queue)
        self.consumers = consumers_of(state)
        self.offsets = {name: state.offsets(name) for name in state.groups}
        self.owners = {name: _owners(group) for name, group in state.groups.items()}
        self._rows: dict[tuple[Queue, tuple[str, ...]], QueueRow] = {}

    def row(self, queue: Queue, groups: tuple[str, ...]) -> QueueRow:
        """Return the row of a queue as the first of ``groups`` sees it."""
        queue_row = self._rows.get((queue, groups))
        if queue_row is None:
            queue_row = self._rows[queue, groups] = self._row(queue, groups)
        return queue_row

    def _row(self, queue: Queue, groups: tuple[str, ...]) -> QueueRow:
        ends, in_rate = self.state.queues[queue], self.figures.in_rates.get(queue)
        if not groups:
            return QueueRow(queue, ends, in_rate=in_rate, held_pulls=self.state.held_at(queue))
        name, end = groups[0], ends.max_offset
        group, next_offset = self.state.groups[name], self.offsets[name].get(queue)
        other_offsets: tuple[int, ...] = ()
        min_next_offset = next_offset
        if len(groups) > 1:
            offsets_of_others = (self.offsets[other_group].get(queue) for other_group in groups[1:])
            other_offsets = tuple(offset for offset in offsets_of_others if offset is not None)
            min_next_offset = min(
                (offset for offset in (next_offset, *other_offsets) if offset is not None), default=None
            )
        is_clustering = group.model != "BROADCASTING"
        owners = self.owners[name].get(queue, ()) if is_clustering else ()
        return QueueRow(
            queue,
            ends,
            name,
            next_offset,
            None if next_offset is None else max(end - next_offset, 0),
            owners,
            is_clustering and not owners and bool(group.clients) and group.has_all_answers,
            in_rate,
            self.figures.out_rates.get(name, {}).get(queue),
            other_offsets,
            None if min_next_offset is None else max(end - min_next_offset, 0),
            self.state.held_at(queue, name),
        )


def _owners(group: Group) -> dict[Queue, tuple[str, ...]]:
    owners_by_queue: dict[Queue, tuple[str, ...]] = {}
    for client_id, queues in group.owned.items():
        for queue in queues:
            owners_by_queue[queue] = (*owners_by_queue[queue], client_id) if queue in owners_by_queue else (client_id,)
    return owners_by_queue


def topic_rows(index: Index, shown: str = "") -> tuple[TopicRow, ...]:
    """Return every topic, those in trouble first, then by rate; ``shown`` is the group that comes first."""
    rows = []
    for name, members in index.queues.items():
        groups = index.consumers.get(name, ())
        if shown in groups:
            groups = (shown, *(group_name for group_name in groups if group_name != shown))
        queue_rows = tuple(index.row(queue, groups) for queue in members)
        lags = [row.worst for row in queue_rows if row.worst is not None]
        rows.append(
            TopicRow(
                name,
                queue_rows,
                groups,
                sum_known(row.in_rate for row in queue_rows),
                sum_known(row.out_rate for row in queue_rows),
                max(lags) if lags else None,
                worst_trouble(row.trouble for row in queue_rows),
            )
        )
    return tuple(
        sorted(
            rows,
            key=lambda row: (
                SEVERITIES_WORST_FIRST.index(row.trouble),
                -(row.worst or 0) if row.trouble else 0,
                -(row.in_rate or 0),
                row.name,
            ),
        )
    )


def group_rows(
    index: Index, badges: Mapping[str, Badge], departed: Mapping[str, tuple[ClientRow, ...]]
) -> tuple[GroupRow, ...]:
    """Return the groups that consume now; ``departed`` are clients that left a moment ago."""
    rows = []
    for name, group in index.state.groups.items():
        out_rates, own_group = index.figures.out_rates.get(name, {}), (name,)
        queues = tuple(
            index.row(queue, own_group)
            for topic in sorted(group.subscriptions)
            for queue in index.queues.get(topic, ())
        )
        lags = {row.queue: row.lag for row in queues}
        clients = []
        for client in group.clients:
            reported = group.owned.get(client.client_id)
            owned = None if reported is None else tuple(sorted(queue for queue in reported if queue in lags))
            clients.append(
                ClientRow(
                    client,
                    name,
                    badges.get(client.client_id, Badge("?", -1)),
                    owned,
                    None if owned is None else sum_if_all_known(lags.get(queue) for queue in owned),
                    None if owned is None else sum_known(out_rates.get(queue) for queue in owned),
                )
            )
        members = (*clients, *departed.get(name, ()))
        group_lag = sum_if_all_known(row.lag for row in queues)
        rows.append(
            GroupRow(
                group,
                members,
                queues,
                group_lag,
                sum_known(row.out_rate for row in queues),
                worst_trouble(row.trouble for row in queues),
            )
        )
    return tuple(
        sorted(
            rows,
            key=lambda row: (
                SEVERITIES_WORST_FIRST.index(row.trouble),
                -(row.lag or 0) if row.trouble else 0,
                row.broadcast,
                row.name,
            ),
        )
    )


def broker_rows(state: ClusterState, topics: tuple[TopicRow, ...]) -> tuple[BrokerRow, ...]:
    """Return the brokers by name, each with its queues by topic."""
    names = dict.fromkeys(part.name for part in state.brokers)
    rows = []
    for name in sorted(names):
        parts = [part for part in state.brokers if part.name == name]
        broker_topics = tuple(
            (topic.name, own_queues)
            for topic in sorted(topics, key=lambda topic: topic.name)
            if (own_queues := tuple(row for row in topic.queues if row.queue.broker == name))
        )
        rows.append(
            BrokerRow(
                name,
                next((part for part in parts if part.is_master), None),
                tuple(part for part in parts if not part.is_master),
                broker_topics,
                sum_known(row.in_rate for _, own_queues in broker_topics for row in own_queues),
            )
        )
    return tuple(rows)


def producer_rows(
    state: ClusterState, badges: Mapping[str, Badge], departed: tuple[ProducerRow, ...] = ()
) -> tuple[ProducerRow, ...]:
    """Return the producer clients by group, without the internal producers of consumers."""
    by_client: dict[str, tuple[Client, dict[str, None], dict[str, None]]] = {}
    for part in state.masters:
        for name, clients in part.producers.items():
            for client in () if name == INTERNAL_PRODUCER_GROUP or is_system_group(name) else clients:
                _, groups, brokers = by_client.setdefault(client.client_id, (client, {}, {}))
                groups[name] = brokers[part.name] = None
    rows = [
        ProducerRow(client, tuple(groups), tuple(brokers), badges.get(client.client_id, Badge("?", -1)))
        for client, groups, brokers in by_client.values()
    ]
    return tuple(sorted([*rows, *departed], key=lambda row: (row.groups, row.client.client_id)))


def sum_known(values: Iterable[float | None]) -> float | None:
    """Return the sum of the known values; None if none is known."""
    known_values = [value for value in values if value is not None]
    return sum(known_values) if known_values else None


def sum_if_all_known(values: Iterable[int | None]) -> int | None:
    """Return the sum if every value is known, else None: an unknown part is not 0."""
    all_values = list(values)
    known_values = [value for value in all_values if value is not None]
    return sum(known_values) if len(known_values) == len(all_values) else None


def worst_trouble(troubles: Iterable[str]) -> str:
    """Return the worst of several troubles."""
    present = set(troubles)
    return next((trouble for trouble in SEVERITIES_WORST_FIRST if trouble in present), "")


def queue_lines(picture: Picture) -> list[QueueRow]:
    """Return each queue once for each group that consumes it, and once if none does."""
    by_queue: dict[Queue, list[QueueRow]] = {}
    for group in picture.groups:
        for row in group.queues:
            by_queue.setdefault(row.queue, []).append(row)
    return [line for topic in picture.topics for row in topic.queues for line in by_queue.get(row.queue, [row])]
