"""Model of the Cluster view: name servers, readings, selection, filter. No Qt, no clock of its own.

Readings come through :meth:`ClusterModel.take`; views draw :attr:`ClusterModel.picture`. A client keeps its short
name and colour while it is present; one that leaves keeps its row for some seconds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv6Address
from typing import Literal

from engine.cluster.state import ClusterState, Queue
from viewer.cluster.deliveries import Deliveries
from viewer.cluster.lag_history import LagHistory
from viewer.cluster.rebalance import MAX_MOMENTS, GroupState, moment_of
from viewer.cluster.rows import (
    LARGE_LAG,
    SMALL_CLIENTS,
    Badge,
    ClientRow,
    Figures,
    GroupRow,
    Index,
    Picture,
    ProducerRow,
    QueueRow,
    TopicRow,
    broker_rows,
    group_rows,
    producer_rows,
    topic_rows,
    user_queues,
)

NAME_SERVER_PORT = 9876
"""Default port of a name server."""
COLOUR_COUNT = 8
RATE_WINDOW_MS = 10_000
"""Ms over which rates are computed: groups commit every 5 s, so that shorter windows are too coarse."""
DEPARTED_SHOWN_MS = 10_000
"""Ms that a client stays in the picture after it left."""
MINUTE_MS = 60_000
MAX_READINGS, MAX_READING_QUEUES = 1_800, 60_000
"""Maximum number of stored readings, and of queues in all of them together: larger clusters store fewer readings."""
MAX_MOMENT_QUEUES, MIN_MOMENTS = 1_000_000, 120
"""Maximum number of queues in all moments of the timelines: with some hundred queues, they reach less far back."""
MAX_SHARED_QUEUES = 600
"""Maximum number of queues at which equal parts of successive readings are shared. Larger clusters store few readings,
and comparing them costs time.
"""
INTERVALS_S = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Selectable seconds between two readings."""
PROBLEM_FILTERS = ("behind", "orphan", "idle", "two")
ModelStatus = Literal["off", "connecting", "live", "paused", "failed", "replay"]
SelectionKind = Literal["", "names", "broker", "topic", "queue", "group", "client", "producer"]


class NoAddress(ValueError):
    """The text contains no address of a name server."""


def addresses_in(text: str) -> tuple[str, ...]:
    """Parse ``HOST[:PORT]``, separated by ``;``, ``,`` or blanks, to ``HOST:PORT``. Raises :class:`NoAddress`."""
    parts = text.replace(";", " ").replace(",", " ").split()
    if not parts:
        raise NoAddress(text.strip())
    return tuple(dict.fromkeys(_address(part) for part in parts))


def _address(part: str) -> str:
    bare = part.removeprefix("[").removesuffix("]")
    if part.count(":") > 1 and (bare == part or len(part) - len(bare) == 2):
        host, port = bare, str(NAME_SERVER_PORT)
    else:
        host, colon, port = part.rpartition(":")
        host, port = (host, port) if colon else (part, str(NAME_SERVER_PORT))
        host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise NoAddress(part)
    if ":" not in host:
        return f"{host}:{port}"
    try:
        return f"[{IPv6Address(host)}]:{port}"
    except ValueError:
        raise NoAddress(part) from None


@dataclass(frozen=True, slots=True)
class AdminRequest:
    """An administrator's request and its response code; ``answer`` is −1 for no response."""

    address: str
    code: int
    name: str
    answer: int


@dataclass(frozen=True, slots=True)
class RequestCounts:
    """Number of times a request was made, and the duration of the longest and of the last one (ms)."""

    question: AdminRequest
    times: int
    longest_ms: float
    last_ms: float


@dataclass(frozen=True, slots=True)
class Reading:
    """State of the cluster at one time, and the requests it took, each with its number and longest duration (ms)."""

    state: ClusterState
    requests: tuple[tuple[AdminRequest, int, float], ...] = ()
    took_ms: float = 0.0
    """Duration of the reading, ms."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected item.

    ``name`` is that of a broker, topic, group or client; a client has its ``group`` too, a queue is in ``queue``.
    """

    kind: SelectionKind = ""
    name: str = ""
    group: str = ""
    queue: Queue | None = None


@dataclass(frozen=True, slots=True)
class TimeMark:
    """An event on the timeline: a client joins or leaves, a broker registers or disappears."""

    time_ms: int
    kind: Literal["joins", "left", "registers", "gone"]
    name: str


NOTHING = Selection()
MAX_MARKS = 500


class ClusterModel:
    """State of the Cluster view of one window."""

    def __init__(self) -> None:
        self.address = ""
        self.status: ModelStatus = "off"
        self.fault = ""
        """Why nothing can be read, in the engine's words."""
        self.interval_s = 1.0
        self.text, self.only = "", ""
        self.declared: dict[str, frozenset[str]] = {}
        """Name servers of the clusters that the user declared their own → addresses of their brokers at that time."""
        self.of_lab = False
        """True if the lab of this window serves its only name server."""
        self.lab_brokers: frozenset[str] = frozenset()
        """Addresses of the brokers that the lab of this window serves."""
        self.lesson_brokers: set[str] = set()
        """Names of the brokers of lessons that this program serves."""
        self._forget()

    def _forget(self) -> None:
        """Forget everything about the cluster."""
        self.state: ClusterState | None = None
        self.took_ms = 0.0
        self.requests: dict[AdminRequest, RequestCounts] = {}
        self.in_last = 0
        """Requests of the last reading."""
        self.chosen = NOTHING
        self.picture = Picture()
        """Filtered picture."""
        self.unfiltered = Picture()
        """Picture without the filter."""
        self.minutes: dict[tuple[str, str], deque[tuple[int, float | None]]] = {}
        """A minute of rates, (ms, messages a second), by (group, client), (group, "") and ("", topic)."""
        self.readings: deque[ClusterState] = deque()
        """Stored readings, the newest last."""
        self.shown_time_ms: int | None = None
        """Shown time (ms); None: the newest."""
        self.recording = ""
        """Name of the shown recording, "" if none."""
        self.moments: dict[str, deque[GroupState]] = {}
        """Moments of each group's timeline."""
        self._badges: dict[str, Badge] = {}
        self._all_badges: dict[str, Badge] = {}
        """Badge of each client, the last one also after it left: a name is never reused."""
        self.lag = LagHistory()
        self.deliveries = Deliveries()
        """Deliveries to the user's own consumers."""
        self.killed: set[str] = set()
        """Ids of the user's own clients that were killed."""
        self.lesson_ends: dict[str, int] = {}
        """Group of a lesson → time (ms) at which its figures were taken: later events do not belong to it."""
        self.marks: list[TimeMark] = []
        """Marks of the slider."""
        self._left_at_ms: dict[str, int] = {}
        self._last_clients: dict[tuple[str, str], tuple[int, ClientRow]] = {}
        self._last_producers: dict[str, tuple[int, ProducerRow]] = {}

    # ---- status ------------------------------------------------------------------------------------------------------

    def begin(self, addresses: Sequence[str]) -> None:
        """Switch to another cluster and forget the last one."""
        address = ";".join(addresses)
        if address != self.address or self.recording:
            self._forget()
        self.address, self.status, self.fault = address, "connecting", ""

    def end(self) -> None:
        """Stop reading; the last picture stays, with its time."""
        self.status = "off"

    def pause(self) -> None:
        """Pause reading."""
        self.status = "paused"

    def fail(self, words: str) -> None:
        """Record that nothing can be read."""
        self.status, self.fault = "failed", words

    @property
    def addresses(self) -> tuple[str, ...]:
        """Addresses of the name servers."""
        return tuple(self.address.split(";")) if self.address else ()

    @property
    def stale(self) -> bool:
        """Return True if the picture is not current."""
        return self.state is not None and self.status in {"off", "paused", "failed"}

    @property
    def brokers(self) -> frozenset[str]:
        """Addresses of the brokers in the newest reading, without those of lessons."""
        newest = self.readings[-1].brokers if self.readings else ()
        return frozenset(part.address for part in newest if part.name not in self.lesson_brokers)

    @property
    def is_own(self) -> bool:
        """Return True if the user may act on the cluster: this program serves it, or the user declared it their own.

        An address on this machine is no reason: it can be the near end of a tunnel. For the same reason a
        declaration names the brokers, too: another cluster behind the same address is read-only.
        """
        if not self.address or self.recording or not self.readings:
            return False
        own_brokers = self.lab_brokers if self.of_lab else self.declared.get(self.address)
        return own_brokers is not None and self.brokers <= own_brokers

    @property
    def undeclared_brokers(self) -> list[str]:
        """Addresses of brokers that joined a declared cluster after the declaration; they make it read-only."""
        return sorted(self.brokers - self.declared[self.address]) if self.address in self.declared else []

    def declare(self) -> None:
        """Declare the cluster, with its present brokers, the user's own."""
        self.declared = {**self.declared, self.address: self.brokers}

    def withdraw(self) -> None:
        """Take the declaration back."""
        self.declared = {address: brokers for address, brokers in self.declared.items() if address != self.address}

    @property
    def span(self) -> tuple[int, int]:
        """Time range of the stored readings, ms."""
        return (self.readings[0].time_ms, self.readings[-1].time_ms) if self.readings else (0, 0)

    # ---- what comes --------------------------------------------------------------------------------------------------

    def take(self, reading: Reading) -> list[AdminRequest]:
        """Add a reading; return the requests that were made for the first time."""
        state = reading.state
        faults = {address: words for address, words in state.name_servers.items() if words}
        self.status, self.took_ms = "live", reading.took_ms
        self.fault = (
            "" if len(faults) < len(state.name_servers) else "; ".join(f"{a}: {fault}" for a, fault in faults.items())
        )
        new_requests = self._count_requests(reading)
        if self.fault and not state.brokers:
            self.status = "failed"
            return new_requests
        if self.readings and len(state.queues) <= MAX_SHARED_QUEUES:
            state = state.sharing(self.readings[-1])
        self._store(state)
        self._give_names(state)
        if self.shown_time_ms is None:
            self.state = state
            self._draw()
            self._add_rate_points()
        return new_requests

    def _store(self, state: ClusterState) -> None:
        """Store a reading for going back, and add it to the timeline of each group."""
        self._mark(state)
        self.lag.take(state, max(self.interval_s, 2 * self.took_ms / 1000))  # a slow reading is no gap
        if self.readings:
            self.readings[-1].forget()
        self.readings.append(state)
        max_readings = max(MAX_READING_QUEUES // max(len(state.queues), 1), 2 * RATE_WINDOW_MS // 1000)
        while len(self.readings) > min(MAX_READINGS, max_readings):
            self.readings.popleft()
        by_topic: dict[str, list[Queue]] = {}
        for queue in user_queues(state):
            by_topic.setdefault(queue.topic, []).append(queue)
        answered = {name for part in state.masters if not part.words for name in part.groups}
        for name, group in state.groups.items():
            if group.model == "BROADCASTING" or name not in answered:
                continue  # its broker did not answer: the timeline shows a range without a reading
            group_moments = self.moments.setdefault(name, deque(maxlen=MAX_MOMENTS))
            while len(group_moments) > MIN_MOMENTS and len(group_moments) * len(state.queues) >= MAX_MOMENT_QUEUES:
                group_moments.popleft()
            queues = [queue for topic in sorted(group.subscriptions) for queue in by_topic.get(topic, ())]
            moment = moment_of(state, name, queues, group_moments[-1] if group_moments else None)
            if moment is not None:
                group_moments.append(moment)

    def _mark(self, state: ClusterState) -> None:
        """Add marks for clients and brokers that came or left since the previous reading."""
        if not self.readings:
            return
        previous = self.readings[-1]
        clients_now = {client.client_id for group in state.groups.values() for client in group.clients}
        clients_before = {client.client_id for group in previous.groups.values() for client in group.clients}
        brokers_now = {part.name for part in state.brokers if not part.words}
        brokers_before = {part.name for part in previous.brokers if not part.words}
        changes = [
            ("joins", clients_now - clients_before),
            ("left", clients_before - clients_now),
            ("registers", brokers_now - brokers_before),
            ("gone", brokers_before - brokers_now),
        ]
        for kind, changed_names in changes:
            self.marks += [TimeMark(state.time_ms, kind, client) for client in sorted(changed_names)]  # type: ignore[arg-type]
        del self.marks[:-MAX_MARKS]

    def go_to(self, time_ms: int | None) -> None:
        """Show the last reading at or before a time; None shows the newest and follows new ones."""
        if not self.readings:
            return
        self.shown_time_ms = None if time_ms is None or time_ms >= self.readings[-1].time_ms else time_ms
        if self.state is not None:
            self.state.forget()
        times = [state.time_ms for state in self.readings]
        number = len(times) if self.shown_time_ms is None else bisect_right(times, self.shown_time_ms)
        self.state = self.readings[max(number - 1, 0)]
        self._draw()

    def load(self, address: str, states: Sequence[ClusterState], name: str) -> None:
        """Show a recording from its first reading on; no server is asked."""
        self._forget()
        self.address, self.status, self.fault, self.recording = address, "replay", "", name
        for state in states:
            self._store(state)
            self._give_names(state)
        self.go_to(states[0].time_ms if states else None)

    def _count_requests(self, reading: Reading) -> list[AdminRequest]:
        new_requests = []
        self.in_last = 0
        for question, times, longest in reading.requests:
            counts = self.requests.get(question)
            if counts is None:
                new_requests.append(question)
                counts = RequestCounts(question, 0, 0.0, 0.0)
            self.requests[question] = RequestCounts(
                question, counts.times + times, max(counts.longest_ms, longest), longest
            )
            self.in_last += times
        return new_requests

    def figures(self) -> Figures:
        """Compute the rates over the last seconds."""
        shown = self.state
        if shown is None:
            return Figures()
        earlier = shown
        for state in reversed(self.readings):
            if state.time_ms < shown.time_ms:
                earlier = state
                if shown.time_ms - state.time_ms >= RATE_WINDOW_MS:
                    break
        return Figures(shown.rates(earlier), shown.consumed(earlier)) if earlier is not shown else Figures()

    def _give_names(self, state: ClusterState) -> None:
        """Give short names to new clients; a client that left longer ago loses its name.

        With many clients, the eight colours are given out in each group separately.
        """
        senders = [client for part in state.masters for clients in part.producers.values() for client in clients]
        readers = [client for group in state.groups.values() for client in group.clients]
        consuming = {client.client_id for client in readers}
        present = [
            *((client, "P") for client in senders if client.client_id not in consuming),
            *((client, "C") for client in readers),
        ]
        present_ids = {client.client_id for client, _ in present}
        for client_id in list(self._badges):
            if client_id in present_ids:
                self._left_at_ms.pop(client_id, None)
            elif state.time_ms - self._left_at_ms.setdefault(client_id, state.time_ms) > DEPARTED_SHOWN_MS:
                del self._badges[client_id], self._left_at_ms[client_id]
        if len(present_ids) <= SMALL_CLIENTS:
            for client, letter in present:
                self._give_badge(client.client_id, letter, self._badges)
            return
        for group in state.groups.values():
            for client in group.clients:
                peers = {peer.client_id: self.badge(peer.client_id) for peer in group.clients}
                self._give_badge(client.client_id, "C", peers)
        for client in senders:
            if client.client_id not in self._badges:
                self._badges[client.client_id] = Badge("P", -1)

    def _give_badge(self, client_id: str, letter: str, peers: Mapping[str, Badge]) -> None:
        """Give a short name and a colour that none of its peers has.

        In a large cluster, the peers are the clients of its group.
        """
        if client_id not in self._badges:
            earlier_badge = self._all_badges.get(client_id)
            places = {badge.place for badge in peers.values()}
            reserved = {badge.place for badge in self._all_badges.values()} if peers is self._badges else places
            place = next(
                (candidate for candidate in range(COLOUR_COUNT) if candidate not in places | reserved),
                next((candidate for candidate in range(COLOUR_COUNT) if candidate not in places), -1),
            )
            if earlier_badge is not None and earlier_badge.place not in places:
                place = earlier_badge.place
            used_badges = self._all_badges if peers is self._badges else peers
            name = earlier_badge.name if earlier_badge is not None else _free_name(letter, used_badges)
            self._badges[client_id] = self._all_badges[client_id] = Badge(name, place)

    def badge(self, client_id: str) -> Badge:
        """Return short name and colour of a client, also of one that left."""
        return self._badges.get(client_id) or self._all_badges.get(client_id, Badge("?", -1))

    def name_of(self, client_id: str) -> str:
        """Return the short name of a client, also of one that left long ago."""
        badge = self._all_badges.get(client_id)
        return badge.name if badge is not None else client_id

    # ---- what is in sight --------------------------------------------------------------------------------------------

    def show(self, text: str, only: str = "") -> None:
        """Filter by ``text`` in names, and by one kind of trouble (:data:`PROBLEM_FILTERS`)."""
        self.text, self.only = text.strip(), only
        self._draw()

    def choose(self, chosen: Selection) -> None:
        """Change the selection; of the groups of a topic, the selected one comes first."""
        if chosen != self.chosen:
            self.chosen = chosen
            self._draw()

    @property
    def leading(self) -> str:
        """Selected group, or that of the selected client."""
        return self.chosen.name if self.chosen.kind == "group" else self.chosen.group

    def _draw(self) -> None:
        state = self.state
        if state is None:
            self.picture = self.unfiltered = Picture()
            return
        index = Index(state, self.figures())
        topics = topic_rows(index, self.leading)
        groups = group_rows(index, self._badges, self._departed_by_group(state.time_ms))
        producers = producer_rows(state, self._badges, self._departed_senders(state.time_ms))
        self._store_present(groups, producers, state.time_ms)
        self.unfiltered = Picture(state, broker_rows(state, topics), topics, groups, producers)
        self.picture = self._filtered(self.unfiltered) if self.text or self.only else self.unfiltered

    def _store_present(self, groups: Iterable[GroupRow], producers: Iterable[ProducerRow], time_ms: int) -> None:
        """Store each present client, to show it for some seconds after it leaves."""
        for group in groups:
            for row in group.clients:
                if not row.has_left:
                    self._last_clients[group.name, row.client.client_id] = (time_ms, row)
        for sender in producers:
            if not sender.has_left:
                self._last_producers[sender.client.client_id] = (time_ms, sender)

    def _departed_by_group(self, time_ms: int) -> dict[str, tuple[ClientRow, ...]]:
        assert self.state is not None
        departed: dict[str, tuple[ClientRow, ...]] = {}
        for (name, client_id), (last_seen_ms, row) in list(self._last_clients.items()):
            group = self.state.groups.get(name)
            if group is not None and any(client.client_id == client_id for client in group.clients):
                continue
            if time_ms - last_seen_ms > DEPARTED_SHOWN_MS or group is None:
                del self._last_clients[name, client_id]
            else:
                departed_row = replace(row, has_left=True, owned=(), lag=None, out_rate=None)
                departed[name] = (*departed.get(name, ()), departed_row)
        return departed

    def _departed_senders(self, time_ms: int) -> tuple[ProducerRow, ...]:
        assert self.state is not None
        present_ids = {client.client_id for clients in self.state.producers.values() for client in clients}
        departed = []
        for client_id, (last_seen_ms, row) in list(self._last_producers.items()):
            if client_id in present_ids:
                continue
            if time_ms - last_seen_ms > DEPARTED_SHOWN_MS:
                del self._last_producers[client_id]
            else:
                departed.append(replace(row, has_left=True))
        return tuple(departed)

    def _filtered(self, picture: Picture) -> Picture:
        """Return the topics and groups that match, and the items related to them."""
        text = self.text.lower()
        topics = {row.name for row in picture.topics if _contains(text, row.name) and self._is_topic(row)}
        groups = {row.name for row in picture.groups if self._is_group(row, text)}
        matching_groups = groups if self.only in {"", "idle"} and text else groups if self.only == "idle" else set()
        related = {topic for row in picture.groups if row.name in matching_groups for topic in row.group.subscriptions}
        shown = tuple(row for row in picture.topics if row.name in topics or row.name in related)
        names = {row.name for row in shown}
        kept_groups = {group for row in shown if row.name in topics for group in row.groups} | groups
        senders = tuple(row for row in picture.producers if not self.only and self._is_sender(row, text))
        brokers = tuple(
            replace(row, topics=broker_topics)
            for row in picture.brokers
            if (broker_topics := tuple(topic_entry for topic_entry in row.topics if topic_entry[0] in names))
            or _contains(text, row.name)
        )
        return Picture(
            picture.state, brokers, shown, tuple(row for row in picture.groups if row.name in kept_groups), senders
        )

    def _is_topic(self, row: TopicRow) -> bool:
        match self.only:
            case "behind":
                return (row.worst or 0) >= LARGE_LAG
            case "orphan":
                return row.orphans > 0
            case "two":
                return any(len(queue.owners) > 1 for queue in row.queues)
            case "idle":
                return False
        return bool(self.text)

    def _is_group(self, row: GroupRow, text: str) -> bool:
        match self.only:
            case "behind":
                fits = any((queue.lag or 0) >= LARGE_LAG for queue in row.queues)
            case "orphan":
                fits = row.orphans > 0
            case "two":
                fits = any(len(queue.owners) > 1 for queue in row.queues)
            case "idle":
                fits = row.idle > 0
            case _:
                fits = bool(text)
        names = (
            part
            for client_row in row.clients
            for part in (client_row.client.client_id, client_row.client.address, client_row.badge.name)
        )
        return fits and (_contains(text, row.name) or any(_contains(text, name) for name in names))

    def _is_sender(self, row: ProducerRow, text: str) -> bool:
        return any(
            _contains(text, name) for name in (*row.groups, row.client.client_id, row.client.address, row.badge.name)
        )

    # ---- a minute of rates -------------------------------------------------------------------------------------------

    def _add_rate_points(self) -> None:
        """Add a point to the curves of the side column."""
        assert self.state is not None
        time_ms = self.state.time_ms
        groups = self.unfiltered.groups
        points: dict[tuple[str, str], float | None] = {
            ("", topic.name): topic.in_rate for topic in self.unfiltered.topics
        }
        points |= {(group.name, ""): group.out_rate for group in groups}
        points |= {(group.name, row.client.client_id): row.out_rate for group in groups for row in group.clients}
        for key, rate in points.items():
            self.minutes.setdefault(key, deque()).append((time_ms, rate))
        for key, minute in list(self.minutes.items()):
            while minute and time_ms - minute[0][0] > MINUTE_MS:
                minute.popleft()
            if not minute:
                del self.minutes[key]

    # ---- finding -----------------------------------------------------------------------------------------------------

    def find_queue(self, queue: Queue | None) -> QueueRow | None:
        """Return the row of a queue; None if it no longer exists."""
        return next((row for topic in self.unfiltered.topics for row in topic.queues if row.queue == queue), None)

    def find_topic(self, name: str) -> TopicRow | None:
        """Return the row of a topic."""
        return next((row for row in self.unfiltered.topics if row.name == name), None)

    def find_group(self, name: str) -> GroupRow | None:
        """Return the row of a group."""
        return next((row for row in self.unfiltered.groups if row.name == name), None)

    def find_client(self, group: str, client_id: str) -> ClientRow | None:
        """Return the row of a client in a group."""
        group_row = self.find_group(group)
        return (
            next((client_row for client_row in group_row.clients if client_row.client.client_id == client_id), None)
            if group_row
            else None
        )

    def find_producer(self, client_id: str) -> ProducerRow | None:
        """Return the row of a producer client."""
        return next((row for row in self.unfiltered.producers if row.client.client_id == client_id), None)


def _contains(text: str, name: str) -> bool:
    return text in name.lower()


def _free_name(letter: str, badges: Mapping[str, Badge]) -> str:
    names, number = {badge.name for badge in badges.values()}, 1
    while f"{letter}{number}" in names:
        number += 1
    return f"{letter}{number}"
