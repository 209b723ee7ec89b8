"""Lessons: scripts of clients of one's own, of which each shows one harm, or one habit, of RocketMQ. No Qt.

A run goes on with each reading, and as its clients tell something: an act that waits is looked at again, all others
are done at once. What it showed is counted from what its clients told; of those about a rebalance also from the last
step of their group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from engine.client.consuming import BROADCASTING
from engine.client.events import Committed, Rebalanced, Sent
from engine.client.messages import DEAD_LETTERS, RETRY
from viewer.cluster.clients_work import USUAL, Options
from viewer.cluster.cluster_model import ClusterModel
from viewer.cluster.lesson_figures import (
    GIVEN_UP,
    Record,
    again_after_kill,
    broadcast,
    dead_letters,
    disagreement,
    latencies,
    transactions,
)
from viewer.cluster.rebalance import timeline
from viewer.cluster.rebalance_words import Harm, harms, until
from viewer.look.assets import tr, words

Verb = Literal[
    "broker", "producer", "consumer", "again", "running", "shared", "handed", "stop", "kill", "wait", "until"
]
PATIENCE = 90_000
"""Ms that an act waits before the run gives up."""
TOPIC = "Lesson"
RETRIES = "messageDelayLevel=1s 1s 1s 2s 3s"
"""Levels 3 and 4 are those after which a message comes again: 10 s and 30 s where nobody said otherwise."""
CHECKS = "transactionTimeOut=500\ntransactionCheckInterval=500\ntransactionCheckMax=3"
SLOW = 0.6
"""Seconds of a flush on the slow disk: from 0.55 s on a producer of 5.3 avoids a broker, for two seconds."""
SENDS, BROADCASTS, LATER, REFUSED_OF, HALVES = 16, 60, 40, 20, 8
"""Messages of a lesson: of each producer, before and while a client is away, in all."""


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that is done, or waited for: ``amount`` is a producer's rate, a consumer's ms a message, clients that
    share all queues, messages handed out, the number of a consumer (from 0), seconds.

    ``name`` is the end of a group's name (of a broker: its beginning), ``topic`` another topic than the lesson's;
    ``{group}`` in it stands for the group. ``true`` is what "until" waits for.
    """

    verb: Verb
    amount: float = 0
    options: Options = USUAL
    name: str = ""
    topic: str = ""
    true: Callable[[Record], bool] | None = None


def _sent(count: int) -> Act:
    """All of so many messages are stored."""
    return Act("until", true=lambda record: len(record.of(Sent)) >= count)


def _each_got(count: int, consumers: int) -> Act:
    """So many consumers were handed so many messages each."""

    def true(record: Record) -> bool:
        got = Counter(one.client_id for one in record.deliveries)
        return len(got) == consumers and min(got.values()) >= count

    return Act("until", true=true)


def _one_got(count: int) -> Act:
    """Some consumer was handed so many messages."""
    return Act("until", true=lambda record: max(Counter(one.client_id for one in record.deliveries).values()) >= count)


def _not_committed(place: int, count: int) -> Act:
    """Of the consumers, counted from 0, one was handed so many messages behind what it committed last."""

    def true(record: Record) -> bool:
        who = [one for one, options in record.clients.items() if options.stalls][place]
        done = {one.queue: one.offset for one in record.of(Committed) if one.client_id == who}
        handed = [one for one in record.deliveries if one.client_id == who]
        return sum(one.queue_offset >= done.get(one.queue, 0) for one in handed) >= count

    return Act("until", true=true)


def _allocated(clients: int) -> Act:
    """So many clients saw each other in their lists, and took what they take to be their own."""

    def true(record: Record) -> bool:
        seen = {one.client_id: len(one.client_ids) for one in record.of(Rebalanced) if one.topic == record.topic}
        return len(seen) == clients and set(seen.values()) == {clients}

    return Act("until", true=true)


def _read(topic: str, count: int) -> Act:
    """So many messages of a topic of the broker's were read."""
    return Act("until", true=lambda record: len(record.of_queue(topic.format(group=record.group))) >= count)


@dataclass(frozen=True, slots=True)
class Lesson:
    """A script with its name and what it is about. ``about_moves``: it is about a rebalance, whose harms are told."""

    key: str
    title: str
    about: str
    acts: tuple[Act, ...]
    about_moves: bool = False


LESSONS = (
    Lesson(
        "more",
        words("One more consumer"),
        words(
            "Two consumers share four queues, and a third one comes. Queues move: how long each stands still, and "
            "what is handed out twice, is counted."
        ),
        (
            Act("producer", 200),
            Act("consumer"),
            Act("consumer"),
            Act("shared", 2),
            Act("handed", 400),
            Act("wait", 6),
            Act("consumer"),
            Act("shared", 3),
            Act("wait", 8),
        ),
        about_moves=True,
    ),
    Lesson(
        "many",
        words("One too many"),
        words(
            "Four queues feed four consumers, and a fifth one comes. A queue has one owner at a time: one of the "
            "five stands idle."
        ),
        (
            Act("producer", 200),
            *(Act("consumer"),) * 4,
            Act("shared", 4),
            Act("handed", 400),
            Act("wait", 6),
            Act("consumer"),
            Act("wait", 12),
        ),
        about_moves=True,
    ),
    Lesson(
        "kill",
        words("Async commit and a kill"),
        words(
            "Three consumers take 20 ms for a message, and a second more for each fiftieth. What is committed ends "
            "before the oldest that is not done. The second consumer is killed: what it had taken behind that is "
            "handed out again."
        ),
        (
            Act("producer", 300),
            *(Act("consumer", 20, Options(stalls=50)),) * 3,
            Act("shared", 3),
            Act("handed", 900),
            Act("wait", 6),
            _not_committed(1, 10),
            Act("kill", 1),
            Act("shared", 2),
            Act("wait", 12),
        ),
        about_moves=True,
    ),
    Lesson(
        "disagree",
        words("Two clients disagree"),
        words(
            "Two consumers of a group share the queues out by different strategies, AVG and AVG_BY_CIRCLE. Both see "
            "the same list; each computes its own share. Some queues have two owners, some have none."
        ),
        (
            Act("producer", 200),
            Act("consumer"),
            Act("handed", 100),
            Act("consumer", options=Options(strategy="AVG_BY_CIRCLE")),
            _allocated(2),
            Act("wait", 4),
        ),
    ),
    Lesson(
        "slow",
        words("The slow queue and least latency"),
        words(
            "A topic lies on two brokers, and the disk of one needs 0.6 s for each flush. A producer sends to all in "
            "turn; then one with sendLatencyFaultEnable, which stays away from a broker that was slow."
        ),
        (
            Act("broker", name="quick", options=Options(settings="flushDiskType=SYNC_FLUSH")),
            Act("broker", name="slow", options=Options(settings="flushDiskType=SYNC_FLUSH", slow=SLOW)),
            Act("running"),
            Act("producer", 100, Options(most=SENDS)),
            _sent(SENDS),
            Act("producer", 100, Options(most=SENDS, avoids=True)),
            _sent(2 * SENDS),
        ),
    ),
    Lesson(
        "broadcast",
        words("Broadcast"),
        words(
            "Two consumers are handed everything, each for itself; offsets lie in a file of the client. The second "
            "goes away, messages come, it returns under its name: it goes on where its file says."
        ),
        (
            Act("producer", 200, Options(most=BROADCASTS)),
            _sent(BROADCASTS),
            Act("consumer", options=Options(model=BROADCASTING)),
            Act("consumer", options=Options(model=BROADCASTING, name="{group}-2")),
            _each_got(BROADCASTS, 2),
            Act("wait", 2),
            Act("stop", 1),
            Act("producer", 200, Options(most=LATER)),
            _one_got(BROADCASTS + LATER),
            Act("again", options=Options(model=BROADCASTING, name="{group}-2")),
            _each_got(BROADCASTS + LATER, 2),
        ),
    ),
    Lesson(
        "retry",
        words("Retry to the dead letters"),
        words(
            "A consumer refuses each fifth message. The broker hands it out again after a delay, each time a longer "
            "one; after two times it is a dead letter. Delays are short here: 1 s and 2 s."
        ),
        (
            Act("broker", name="retry", options=Options(settings=RETRIES)),
            Act("running"),
            Act("consumer", options=Options(refuses=5, most_again=2)),
            Act("producer", 200, Options(most=REFUSED_OF)),
            Act("consumer", name="-dead", topic=DEAD_LETTERS + "{group}"),
            _read(DEAD_LETTERS + "{group}", REFUSED_OF // 5),
        ),
    ),
    Lesson(
        "transaction",
        words("A transaction that nobody finishes"),
        words(
            "A producer commits every second half message, and of the others it never knows. The broker asks again "
            "and again, then gives up: nobody is handed these. It asks each half second here, three times."
        ),
        (
            Act("broker", name="checks", options=Options(settings=CHECKS), topic=GIVEN_UP),
            Act("running"),
            Act("consumer"),
            Act("consumer", name="-given-up", topic=GIVEN_UP),
            Act("producer", 100, Options(most=HALVES, commits=2)),
            _read(GIVEN_UP, HALVES // 2),
        ),
    ),
)


def lessons_markdown(runs: Iterable[LessonRun]) -> str:
    """What each run showed that has ended, as Markdown; "" where none has."""
    lines: list[str] = []
    for one in runs:
        if one.standing == "done":
            lines += [f"## {tr(one.lesson.title)}", "", tr(one.lesson.about), "", f"{one.group} · {one.topic}", ""]
            lines += [f"- {told.name}: {told.figure}, {told.note}" for told in one.figures]
            lines.append("")
    return "\n".join(["", f"# {tr('Lessons')}", "", *lines]).rstrip() + "\n" if lines else ""


class Row(Protocol):
    """How a client of one's own stands."""

    @property
    def standing(self) -> str: ...

    @property
    def client_id(self) -> str: ...

    @property
    def words(self) -> str: ...


class Clients(Protocol):
    """Who starts and ends clients: :class:`viewer.cluster.own_clients.OwnClients`."""

    def add(
        self, kind: str, addresses: tuple[str, ...], group: str, topic: str, amount: float, options: Options = USUAL
    ) -> object:
        """A new one."""
        ...

    @property
    def last(self) -> int:
        """The number of the one that was added last."""
        ...

    def row(self, number: int) -> Row:
        """How one stands."""
        ...

    def stop(self, number: int) -> None:
        """It says goodbye."""
        ...

    def kill(self, number: int) -> None:
        """It ends without a word."""
        ...

    def forget(self, addresses: tuple[str, ...], topics: tuple[str, ...], groups: tuple[str, ...]) -> None:
        """Topics and groups are deleted."""
        ...


@dataclass
class LessonRun:
    """One run of a lesson. ``standing``: running, done or failed; ``result`` is one line of what it showed, ``figures``
    are all of it.
    """

    lesson: Lesson
    number: int
    standing: str = "running"
    result: str = ""
    figures: tuple[Harm, ...] = ()
    done: int = 0
    """Acts that are done."""
    begun: int = 0
    consumers: list[int] = field(default_factory=list)
    others: list[int] = field(default_factory=list)
    brokers: list[int] = field(default_factory=list)
    record: Record = field(init=False)
    _told: dict[int, Options] = field(default_factory=dict)
    _addresses: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.record = Record(self.group, self.topic)

    @property
    def group(self) -> str:
        """A group of its own each time: offsets of the last run are none of its. What differs stands in front: a narrow
        table shortens names in their middle.
        """
        return f"{self.lesson.key}-lesson-{self.number}"

    @property
    def topic(self) -> str:
        """The same for its topic."""
        return f"{self.lesson.key}-{TOPIC}-{self.number}"

    def go_on(self, model: ClusterModel, own: Clients) -> None:
        """Do what can be done now; called with each reading, and as clients tell something."""
        now = model.kept[-1].at if model.kept else 0
        while self.standing == "running":
            failed = self._failed(own)
            if failed:
                self.standing, self.result = "failed", failed
                self._stop(own)
                return
            if self.done == len(self.lesson.acts):
                self._end(model, own)
                return
            act = self.lesson.acts[self.done]
            self.begun = self.begun or now
            if self._do(act, now, model, own):
                self.done += 1
                self.begun = now
            elif now - self.begun > PATIENCE:
                self.standing, self.result = "failed", tr("waited in vain")
                self._stop(own)
            else:
                return

    def _failed(self, own: Clients) -> str:
        """Why one of its clients could not begin, or ended by itself."""
        for number, options in self._told.items():
            row = own.row(number)
            if row.client_id:
                self.record.clients[row.client_id] = options
            if row.standing == "failed":
                return row.words
        return ""

    def _do(self, act: Act, now: int, model: ClusterModel, own: Clients) -> bool:
        """Whether the act is done, or what it waits for has come."""
        match act.verb:
            case "broker" | "producer" | "consumer" | "again":
                self._begin(act, model, own)
            case "stop":
                number = self.consumers.pop(round(act.amount))
                own.stop(number)
            case "kill":
                own.kill(self.consumers.pop(round(act.amount)))
            case "running":
                return all(own.row(number).standing == "running" for number in self._told)
            case "shared":
                return self._shared(round(act.amount), model)
            case "handed":
                return model.deliveries.handed(self.group, 0, now + PATIENCE) >= act.amount
            case "until":
                return act.true is not None and act.true(self.record)
            case "wait":
                return now - self.begun >= act.amount * 1000
        return True

    def _begin(self, act: Act, model: ClusterModel, own: Clients) -> None:
        """One more client, or a broker."""
        kind = "consumer" if act.verb == "again" else act.verb
        options = replace(act.options, told=True, name=act.options.name.format(group=self.group))
        group, topic = self.group + act.name, act.topic.format(group=self.group) or self.topic
        if kind == "broker":
            group, topic = f"{act.name}-{self.number}", f"{self.topic} {act.topic}".strip()
        self.record.groups.add(group)
        self._addresses = model.addresses
        own.add(kind, model.addresses, group, topic, act.amount, options)
        {"broker": self.brokers, "producer": self.others, "consumer": self.consumers}[kind].append(own.last)
        self._told[own.last] = options

    def _shared(self, clients: int, model: ClusterModel) -> bool:
        """Whether so many clients own all queues, each at least one."""
        held = model.moments.get(self.group)
        if not held:
            return False
        owners = held[-1].owners
        return bool(owners) and all(len(mine) == 1 for mine in owners) and len({mine[0] for mine in owners}) == clients

    def _end(self, model: ClusterModel, own: Clients) -> None:
        self.standing = "done"
        end = model.deliveries.known_until(self.group)
        if end:
            model.lesson_ends[self.group] = end
        state = model.kept[-1] if model.kept else None
        self.record.kept_by_brokers = len(state.offsets(self.group)) if state is not None else 0
        self.figures = tuple(self._counted(model))
        if self.lesson.about_moves:
            names = (tr("pause"), tr("twice"), tr("burst"), tr("idle"))
            told = [f"{name} {one.figure}" for name, one in zip(names, self.figures, strict=False)]
        else:
            told = [f"{one.name} {one.figure}" for one in self.figures]
        self.result = " · ".join(told) or tr("no step was seen")
        self._stop(own)

    def _counted(self, model: ClusterModel) -> list[Harm]:
        match self.lesson.key:
            case "disagree":
                return disagreement(self.record, self._names(model))
            case "slow":
                return latencies(self.record)
            case "broadcast":
                return broadcast(self.record, self._names(model))
            case "retry":
                return dead_letters(self.record)
            case "transaction":
                return transactions(self.record)
        line = timeline(self.group, tuple(model.moments.get(self.group, ())))
        step = line.steps[-1] if len(line.steps) > 1 else None
        if step is None:
            return []
        found = harms(step, model.every, model.deliveries, self.group, until(model, line, step))
        return found + again_after_kill(self.record)

    def _names(self, model: ClusterModel) -> Callable[[str], str]:
        """Short names; of clients that no reading has seen, which of the lesson's they are."""
        places = {client_id: number for number, client_id in enumerate(self.record.clients, 1)}

        def name_of(client_id: str) -> str:
            found = model.name_of(client_id)
            return found if found != client_id else tr("client {n:,}", n=places.get(client_id, 0))

        return name_of

    def cancel(self, own: Clients) -> None:
        """Stop it where it is."""
        if self.standing == "running":
            self.standing, self.result = "failed", tr("stopped")
            self._stop(own)

    def _stop(self, own: Clients) -> None:
        """All that it started says goodbye: producers first, so that nothing is left to be consumed; brokers last.

        Topic and group go too, with the lesson's broker or by themselves.
        """
        self.record.closed = True
        for number in (*self.others, *self.consumers, *self.brokers):
            own.stop(number)
        if self._told and not self.brokers:
            own.forget(self._addresses, (self.topic, RETRY + self.group), (self.group,))
