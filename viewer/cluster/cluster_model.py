"""What the Cluster view stands at: whom it asks, what came, what is chosen and filtered; no Qt, no clock of its own.

Readings come through :meth:`ClusterModel.take`; whoever draws asks for :attr:`ClusterModel.picture`. A client keeps its
short name and colour as long as it is there; one that goes keeps its place for some seconds.
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
from viewer.cluster.rebalance import MOST_MOMENTS, Moment, moment_of
from viewer.cluster.rows import (
    MANY,
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
    of_users,
    producer_rows,
    topic_rows,
)

PORT = 9876
"""A name server's usual port."""
COLOURS = 8
WINDOW = 10_000
"""Ms over which rates are taken: groups commit every 5 s, nearer readings tell little."""
STAYS = 10_000
"""Ms that a client that went keeps its place."""
MINUTE = 60_000
KEPT, KEPT_QUEUES = 1_800, 60_000
"""Readings that can be gone back to, at most, and queues in all of them together: larger clusters keep fewer."""
MOMENT_QUEUES, FEWEST_MOMENTS = 1_000_000, 120
"""Queues in all moments of the timelines together, at most: from some hundred queues on they reach less far back."""
SHARED_QUEUES = 600
"""Queues of a cluster, at most, of whose readings those parts are kept once that stay the same; of larger ones few
readings are kept, and comparing them costs time.
"""
EVERY = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds between two readings that can be chosen."""
ONLY = ("behind", "orphan", "idle", "two")
Standing = Literal["off", "connecting", "live", "paused", "failed", "replay"]
ChosenKind = Literal["", "names", "broker", "topic", "queue", "group", "client", "producer"]


class NoAddress(ValueError):
    """What was typed names no name server."""


def addresses_in(text: str) -> tuple[str, ...]:
    """``HOST[:PORT]``, several apart by ``;``, ``,`` or blanks, as ``HOST:PORT``. Raises :class:`NoAddress`."""
    parts = text.replace(";", " ").replace(",", " ").split()
    if not parts:
        raise NoAddress(text.strip())
    return tuple(dict.fromkeys(_address(part) for part in parts))


def _address(part: str) -> str:
    bare = part.removeprefix("[").removesuffix("]")
    if part.count(":") > 1 and (bare == part or len(part) - len(bare) == 2):
        host, port = bare, str(PORT)
    else:
        host, colon, port = part.rpartition(":")
        host, port = (host, port) if colon else (part, str(PORT))
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
class Question:
    """An administrator's request that was made, and what came of it; ``answer`` −1: none."""

    address: str
    code: int
    name: str
    answer: int


@dataclass(frozen=True, slots=True)
class Asking:
    """How often a question was asked in all, and how long the longest and the last took (ms)."""

    question: Question
    times: int
    longest: float
    last: float


@dataclass(frozen=True, slots=True)
class Look:
    """One reading: the cluster, and what was asked for it: question, times, longest ms."""

    state: ClusterState
    asked: tuple[tuple[Question, int, float], ...] = ()
    took: float = 0.0
    """Ms that the reading took."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is chosen: ``name`` of broker, topic, group or client; of a client the ``group`` too, of a queue itself."""

    kind: ChosenKind = ""
    name: str = ""
    group: str = ""
    queue: Queue | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened: a client joins or left, a broker registers or is gone."""

    at: int
    what: Literal["joins", "left", "registers", "gone"]
    who: str


NOTHING = Chosen()
MOST_MARKS = 500


class ClusterModel:
    """One a window; see the module."""

    def __init__(self) -> None:
        self.address = ""
        self.standing: Standing = "off"
        self.fault = ""
        """Why nothing comes, in the engine's words."""
        self.every = 1.0
        self.text, self.only = "", ""
        self.allowed: set[str] = set()
        """Clusters of which somebody said that he may write to them."""
        self.of_lab = False
        """The lab of this window serves it."""
        self._forget()

    def _forget(self) -> None:
        """Nothing is known of any cluster."""
        self.state: ClusterState | None = None
        self.took = 0.0
        self.requests: dict[Question, Asking] = {}
        self.in_last = 0
        """Requests of the last reading."""
        self.chosen = NOTHING
        self.picture = Picture()
        """What is in sight."""
        self.whole = Picture()
        """The same without the filter."""
        self.minutes: dict[tuple[str, str], deque[tuple[int, float | None]]] = {}
        """A minute of rates, (ms, messages a second): of (group, client), (group, "") and ("", topic)."""
        self.kept: deque[ClusterState] = deque()
        """Readings that can be gone back to, the newest last."""
        self.at: int | None = None
        """The time that is shown (ms); None: the newest."""
        self.recording = ""
        """The name of the recording that is shown, where one is."""
        self.moments: dict[str, deque[Moment]] = {}
        """Of each group what its timeline is made of."""
        self._badges: dict[str, Badge] = {}
        self._named: dict[str, Badge] = {}
        """Each client's badge, the last one of those that went too: a name is nobody else's later."""
        self.deliveries = Deliveries()
        """What consumers of one's own were handed."""
        self.killed: set[str] = set()
        """Ids of clients of one's own that were killed."""
        self.lesson_ends: dict[str, int] = {}
        """Group of a lesson → the time (ms) at which its figures were taken: what came later is not the lesson's."""
        self.marks: list[Mark] = []
        """What happened, for the slider."""
        self._left: dict[str, int] = {}
        self._gone_clients: dict[tuple[str, str], tuple[int, ClientRow]] = {}
        self._gone_producers: dict[str, tuple[int, ProducerRow]] = {}

    # ---- how it stands -----------------------------------------------------------------------------------------------

    def begin(self, addresses: Sequence[str]) -> None:
        """Another cluster is asked from now on; what was known of the last one is forgotten."""
        address = ";".join(addresses)
        if address != self.address or self.recording:
            self._forget()
        self.address, self.standing, self.fault = address, "connecting", ""

    def end(self) -> None:
        """Nobody is asked any more; the last picture stays, and says when it was taken."""
        self.standing = "off"

    def pause(self) -> None:
        """The same, for a while."""
        self.standing = "paused"

    def fail(self, words: str) -> None:
        """Nothing can be read."""
        self.standing, self.fault = "failed", words

    @property
    def addresses(self) -> tuple[str, ...]:
        """The name servers that are asked."""
        return tuple(self.address.split(";")) if self.address else ()

    @property
    def stale(self) -> bool:
        """Whether what is shown is not from now."""
        return self.state is not None and self.standing in {"off", "paused", "failed"}

    @property
    def is_own(self) -> bool:
        """Whether clients may be started against it: it is on this machine, or somebody said that it is his own."""
        return (
            bool(self.address)
            and not self.recording
            and (self.address in self.allowed or all(_is_here(address) for address in self.addresses))
        )

    @property
    def span(self) -> tuple[int, int]:
        """The time of which readings are kept, ms."""
        return (self.kept[0].at, self.kept[-1].at) if self.kept else (0, 0)

    # ---- what comes --------------------------------------------------------------------------------------------------

    def take(self, look: Look) -> list[Question]:
        """One more reading; gives the questions that were asked for the first time."""
        state = look.state
        told = {address: words for address, words in state.name_servers.items() if words}
        self.standing, self.took = "live", look.took
        self.fault = "" if len(told) < len(state.name_servers) else "; ".join(f"{a}: {w}" for a, w in told.items())
        new = self._count(look)
        if self.fault and not state.brokers:
            self.standing = "failed"
            return new
        if self.kept and len(state.queues) <= SHARED_QUEUES:
            state = state.sharing(self.kept[-1])
        self._keep(state)
        self._name(state)
        if self.at is None:
            self.state = state
            self._draw()
            self._remember()
        return new

    def _keep(self, state: ClusterState) -> None:
        """For going back, and for the timeline of each group."""
        self._mark(state)
        if self.kept:
            self.kept[-1].forget()
        self.kept.append(state)
        most = max(KEPT_QUEUES // max(len(state.queues), 1), 2 * WINDOW // 1000)
        while len(self.kept) > min(KEPT, most):
            self.kept.popleft()
        by_topic: dict[str, list[Queue]] = {}
        for queue in of_users(state):
            by_topic.setdefault(queue.topic, []).append(queue)
        answered = {name for part in state.masters if not part.words for name in part.groups}
        for name, group in state.groups.items():
            if group.model == "BROADCASTING" or name not in answered:
                continue  # nobody told of it: in its timeline that is a stretch without a reading
            held = self.moments.setdefault(name, deque(maxlen=MOST_MOMENTS))
            while len(held) > FEWEST_MOMENTS and len(held) * len(state.queues) >= MOMENT_QUEUES:
                held.popleft()
            queues = [queue for topic in sorted(group.subscriptions) for queue in by_topic.get(topic, ())]
            made = moment_of(state, name, queues, held[-1] if held else None)
            if made is not None:
                held.append(made)

    def _mark(self, state: ClusterState) -> None:
        """Who came and who left since the reading before, brokers too."""
        if not self.kept:
            return
        before = self.kept[-1]
        there = {one.client_id for group in state.groups.values() for one in group.clients}
        then = {one.client_id for group in before.groups.values() for one in group.clients}
        names = {part.name for part in state.brokers if not part.words}
        known = {part.name for part in before.brokers if not part.words}
        found = [("joins", there - then), ("left", then - there), ("registers", names - known), ("gone", known - names)]
        for what, some in found:
            self.marks += [Mark(state.at, what, one) for one in sorted(some)]  # type: ignore[arg-type]
        del self.marks[:-MOST_MARKS]

    def go_to(self, at: int | None) -> None:
        """Show the reading of that time, the last one before it; None: the newest, and those that come."""
        if not self.kept:
            return
        self.at = None if at is None or at >= self.kept[-1].at else at
        if self.state is not None:
            self.state.forget()
        times = [state.at for state in self.kept]
        number = len(times) if self.at is None else bisect_right(times, self.at)
        self.state = self.kept[max(number - 1, 0)]
        self._draw()

    def load(self, address: str, states: Sequence[ClusterState], name: str) -> None:
        """Show a recording, from its first reading on; nobody is asked."""
        self._forget()
        self.address, self.standing, self.fault, self.recording = address, "replay", "", name
        for state in states:
            self._keep(state)
            self._name(state)
        self.go_to(states[0].at if states else None)

    def _count(self, look: Look) -> list[Question]:
        new = []
        self.in_last = 0
        for question, times, longest in look.asked:
            known = self.requests.get(question)
            if known is None:
                new.append(question)
                known = Asking(question, 0, 0.0, 0.0)
            self.requests[question] = Asking(question, known.times + times, max(known.longest, longest), longest)
            self.in_last += times
        return new

    def figures(self) -> Figures:
        """Rates over the last seconds."""
        last = self.state
        if last is None:
            return Figures()
        first = last
        for state in reversed(self.kept):
            if state.at < last.at:
                first = state
                if last.at - state.at >= WINDOW:
                    break
        return Figures(last.rates(first), last.consumed(first)) if first is not last else Figures()

    def _name(self, state: ClusterState) -> None:
        """Short names for those who came; who went longer ago loses its own. Where there are many, the eight colours
        are each group's own.
        """
        senders = [one for part in state.masters for clients in part.producers.values() for one in clients]
        readers = [one for group in state.groups.values() for one in group.clients]
        consuming = {one.client_id for one in readers}
        there = [*((one, "P") for one in senders if one.client_id not in consuming), *((one, "C") for one in readers)]
        known = {one.client_id for one, _ in there}
        for client_id in list(self._badges):
            if client_id in known:
                self._left.pop(client_id, None)
            elif state.at - self._left.setdefault(client_id, state.at) > STAYS:
                del self._badges[client_id], self._left[client_id]
        if len(known) <= SMALL_CLIENTS:
            for one, letter in there:
                self._give(one.client_id, letter, self._badges)
            return
        for group in state.groups.values():
            for one in group.clients:
                peers = {other.client_id: self.badge(other.client_id) for other in group.clients}
                self._give(one.client_id, "C", peers)
        for one in senders:
            if one.client_id not in self._badges:
                self._badges[one.client_id] = Badge("P", -1)

    def _give(self, client_id: str, letter: str, peers: Mapping[str, Badge]) -> None:
        """A short name and a colour that none of its peers has: those of its group, in a large cluster."""
        if client_id not in self._badges:
            before = self._named.get(client_id)
            places = {badge.place for badge in peers.values()}
            spare = {badge.place for badge in self._named.values()} if peers is self._badges else places
            place = next(
                (one for one in range(COLOURS) if one not in places | spare),
                next((one for one in range(COLOURS) if one not in places), -1),
            )
            if before is not None and before.place not in places:
                place = before.place
            taken = self._named if peers is self._badges else peers
            name = before.name if before is not None else _free_name(letter, taken)
            self._badges[client_id] = self._named[client_id] = Badge(name, place)

    def badge(self, client_id: str) -> Badge:
        """The short name and the colour of a client, of one that went too."""
        return self._badges.get(client_id) or self._named.get(client_id, Badge("?", -1))

    def name_of(self, client_id: str) -> str:
        """A short name, of a client too that went long ago: the name that it had."""
        found = self._named.get(client_id)
        return found.name if found is not None else client_id

    # ---- what is in sight --------------------------------------------------------------------------------------------

    def show(self, text: str, only: str = "") -> None:
        """Have in sight what has ``text`` in its name, of that what is in trouble of one kind (:data:`ONLY`)."""
        self.text, self.only = text.strip(), only
        self._draw()

    def choose(self, chosen: Chosen) -> None:
        """Something else is chosen; of a topic with several groups, the chosen one goes before the others."""
        if chosen != self.chosen:
            self.chosen = chosen
            self._draw()

    @property
    def leading(self) -> str:
        """The group that is looked at: the chosen one, or that of the chosen client."""
        return self.chosen.name if self.chosen.kind == "group" else self.chosen.group

    def _draw(self) -> None:
        state = self.state
        if state is None:
            self.picture = self.whole = Picture()
            return
        index = Index(state, self.figures())
        topics = topic_rows(index, self.leading)
        groups = group_rows(index, self._badges, self._gone_by_group(state.at))
        producers = producer_rows(state, self._badges, self._gone_senders(state.at))
        self._lose(groups, producers, state.at)
        self.whole = Picture(state, broker_rows(state, topics), topics, groups, producers)
        self.picture = self._filtered(self.whole) if self.text or self.only else self.whole

    def _lose(self, groups: Iterable[GroupRow], producers: Iterable[ProducerRow], at: int) -> None:
        """Keep each client as it is now, for the seconds after it went."""
        for group in groups:
            for row in group.clients:
                if not row.left:
                    self._gone_clients[group.name, row.client.client_id] = (at, row)
        for sender in producers:
            if not sender.left:
                self._gone_producers[sender.client.client_id] = (at, sender)

    def _gone_by_group(self, at: int) -> dict[str, tuple[ClientRow, ...]]:
        assert self.state is not None
        found: dict[str, tuple[ClientRow, ...]] = {}
        for (name, client_id), (seen, row) in list(self._gone_clients.items()):
            group = self.state.groups.get(name)
            if group is not None and any(one.client_id == client_id for one in group.clients):
                continue
            if at - seen > STAYS or group is None:
                del self._gone_clients[name, client_id]
            else:
                left = replace(row, left=True, owned=(), behind=None, went=None)
                found[name] = (*found.get(name, ()), left)
        return found

    def _gone_senders(self, at: int) -> tuple[ProducerRow, ...]:
        assert self.state is not None
        there = {one.client_id for clients in self.state.producers.values() for one in clients}
        found = []
        for client_id, (seen, row) in list(self._gone_producers.items()):
            if client_id in there:
                continue
            if at - seen > STAYS:
                del self._gone_producers[client_id]
            else:
                found.append(replace(row, left=True))
        return tuple(found)

    def _filtered(self, whole: Picture) -> Picture:
        """Topics and groups that are meant, with those that they have to do with."""
        text = self.text.lower()
        topics = {row.name for row in whole.topics if _has(text, row.name) and self._is_topic(row)}
        groups = {row.name for row in whole.groups if self._is_group(row, text)}
        meant = groups if self.only in {"", "idle"} and text else groups if self.only == "idle" else set()
        related = {topic for row in whole.groups if row.name in meant for topic in row.group.subscriptions}
        shown = tuple(row for row in whole.topics if row.name in topics or row.name in related)
        names = {row.name for row in shown}
        keep = {group for row in shown if row.name in topics for group in row.groups} | groups
        senders = tuple(row for row in whole.producers if not self.only and self._is_sender(row, text))
        brokers = tuple(
            replace(row, topics=held)
            for row in whole.brokers
            if (held := tuple(one for one in row.topics if one[0] in names)) or _has(text, row.name)
        )
        return Picture(whole.state, brokers, shown, tuple(row for row in whole.groups if row.name in keep), senders)

    def _is_topic(self, row: TopicRow) -> bool:
        match self.only:
            case "behind":
                return (row.worst or 0) >= MANY
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
                fits = any((queue.behind or 0) >= MANY for queue in row.queues)
            case "orphan":
                fits = row.orphans > 0
            case "two":
                fits = any(len(queue.owners) > 1 for queue in row.queues)
            case "idle":
                fits = row.idle > 0
            case _:
                fits = bool(text)
        names = (part for one in row.clients for part in (one.client.client_id, one.client.address, one.badge.name))
        return fits and (_has(text, row.name) or any(_has(text, name) for name in names))

    def _is_sender(self, row: ProducerRow, text: str) -> bool:
        return any(_has(text, one) for one in (*row.groups, row.client.client_id, row.client.address, row.badge.name))

    # ---- a minute of rates -------------------------------------------------------------------------------------------

    def _remember(self) -> None:
        """One more point for the curves of the side column."""
        assert self.state is not None
        at = self.state.at
        groups = self.whole.groups
        points: dict[tuple[str, str], float | None] = {("", topic.name): topic.came for topic in self.whole.topics}
        points |= {(group.name, ""): group.went for group in groups}
        points |= {(group.name, row.client.client_id): row.went for group in groups for row in group.clients}
        for key, rate in points.items():
            self.minutes.setdefault(key, deque()).append((at, rate))
        for key, minute in list(self.minutes.items()):
            while minute and at - minute[0][0] > MINUTE:
                minute.popleft()
            if not minute:
                del self.minutes[key]

    # ---- finding -----------------------------------------------------------------------------------------------------

    def find_queue(self, queue: Queue | None) -> QueueRow | None:
        """The row of a queue, None where it is not there any more."""
        return next((row for topic in self.whole.topics for row in topic.queues if row.queue == queue), None)

    def find_topic(self, name: str) -> TopicRow | None:
        """The row of a topic."""
        return next((row for row in self.whole.topics if row.name == name), None)

    def find_group(self, name: str) -> GroupRow | None:
        """The row of a group."""
        return next((row for row in self.whole.groups if row.name == name), None)

    def find_client(self, group: str, client_id: str) -> ClientRow | None:
        """The row of a client within a group."""
        found = self.find_group(group)
        return next((one for one in found.clients if one.client.client_id == client_id), None) if found else None

    def find_producer(self, client_id: str) -> ProducerRow | None:
        """The row of a client that sends."""
        return next((row for row in self.whole.producers if row.client.client_id == client_id), None)


def _is_here(address: str) -> bool:
    return address.startswith(("127.", "localhost:", "[::1]:"))


def _has(text: str, name: str) -> bool:
    return text in name.lower()


def _free_name(letter: str, taken: Mapping[str, Badge]) -> str:
    names, number = {badge.name for badge in taken.values()}, 1
    while f"{letter}{number}" in names:
        number += 1
    return f"{letter}{number}"
