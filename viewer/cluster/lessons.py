"""Lessons, and the run of a lesson. No Qt.

A lesson is a scripted experiment with the user's own clients that shows one behaviour of RocketMQ.

A run continues with each reading and each event of its clients: a waiting action is checked again, all others are done
at once. Results are counted from the events of its clients; lessons on rebalance also use the last step of their
group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from engine.client.consuming import BROADCASTING
from engine.client.events import Committed, Rebalanced, Sent
from engine.system_names import DLQ_PREFIX, RETRY_PREFIX
from viewer.cluster.clients_process import DEFAULT_OPTIONS, Options
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
from viewer.cluster.rebalance_words import Impact, end_of_step_ms, impacts
from viewer.look.assets import tr, words

if TYPE_CHECKING:
    from viewer.cluster.own_clients import OwnClients


Verb = Literal[
    "broker",
    "producer",
    "consumer",
    "restart",
    "running",
    "all queues owned",
    "delivered",
    "stop",
    "kill",
    "wait",
    "until",
]
ACTION_TIMEOUT_MS = 90_000
"""Maximum wait for an action; then the run fails."""
TOPIC = "Lesson"
RETRIES = "messageDelayLevel=1s 1s 1s 2s 3s"
"""Levels 3 and 4 are the delays of a retried message: 10 s and 30 s by default."""
CHECKS = "transactionTimeOut=500\ntransactionCheckInterval=500\ntransactionCheckMax=3"
SLOW_FLUSH_S = 0.6
"""Seconds of a flush on the slow disk: from 0.55 s on, a producer of 5.3 avoids a broker for two seconds."""
SEND_COUNT, BROADCAST_COUNT, LATER_COUNT, RETRY_COUNT, HALF_COUNT = 16, 60, 40, 20, 8
"""Numbers of messages: of each producer, before and while a client is away, of the retry lesson, of half messages."""


@dataclass(frozen=True, slots=True)
class Action:
    """An action or a condition to wait for.

    ``amount`` is a producer's rate, a consumer's ms a message, clients that share all queues, messages delivered,
    the number of a consumer (from 0), or seconds. ``name`` is a suffix of the group (for a broker: a prefix),
    ``topic`` another topic than the lesson's; ``{group}`` in it is replaced. ``condition`` is the condition of
    "until".
    """

    verb: Verb
    amount: float = 0
    options: Options = DEFAULT_OPTIONS
    name: str = ""
    topic: str = ""
    condition: Callable[[Record], bool] | None = None


def _sent(count: int) -> Action:
    """Wait until so many messages are stored."""
    return Action("until", condition=lambda record: len(record.of(Sent)) >= count)


def _each_received(count: int, consumers: int) -> Action:
    """Wait until each of so many consumers has received so many messages."""

    def is_met(record: Record) -> bool:
        received = Counter(delivery.client_id for delivery in record.deliveries)
        return len(received) == consumers and min(received.values()) >= count

    return Action("until", condition=is_met)


def _any_received(count: int) -> Action:
    """Wait until one consumer has received so many messages."""
    return Action(
        "until",
        condition=lambda record: max(Counter(delivery.client_id for delivery in record.deliveries).values()) >= count,
    )


def _not_committed(consumer_index: int, count: int) -> Action:
    """Wait until a consumer (counted from 0) has received so many messages beyond its last commit."""

    def is_met(record: Record) -> bool:
        client_id = [event for event, options in record.clients.items() if options.stall_every][consumer_index]
        committed = {event.queue: event.offset for event in record.of(Committed) if event.client_id == client_id}
        deliveries = [event for event in record.deliveries if event.client_id == client_id]
        return sum(event.queue_offset >= committed.get(event.queue, 0) for event in deliveries) >= count

    return Action("until", condition=is_met)


def _allocated(clients: int) -> Action:
    """Wait until so many clients have seen each other and allocated queues."""

    def is_met(record: Record) -> bool:
        list_lengths = {
            rebalance.client_id: len(rebalance.client_ids)
            for rebalance in record.of(Rebalanced)
            if rebalance.topic == record.topic
        }
        return len(list_lengths) == clients and set(list_lengths.values()) == {clients}

    return Action("until", condition=is_met)


def _read(topic: str, count: int) -> Action:
    """Wait until so many messages of a broker's topic were read."""
    return Action("until", condition=lambda record: len(record.of_queue(topic.format(group=record.group))) >= count)


@dataclass(frozen=True, slots=True)
class Lesson:
    """A script with title and description. ``is_about_rebalance``: a lesson on rebalance, whose impacts are shown."""

    key: str
    title: str
    description: str
    actions: tuple[Action, ...]
    is_about_rebalance: bool = False


LESSONS = (
    Lesson(
        "more",
        words("One more consumer"),
        words(
            "Two consumers share four queues, and a third one joins. Queues move. The lesson measures how long "
            "each queue pauses, and what is delivered twice."
        ),
        (
            Action("producer", 200),
            Action("consumer"),
            Action("consumer"),
            Action("all queues owned", 2),
            Action("delivered", 400),
            Action("wait", 6),
            Action("consumer"),
            Action("all queues owned", 3),
            Action("wait", 8),
        ),
        is_about_rebalance=True,
    ),
    Lesson(
        "many",
        words("One too many"),
        words(
            "Four consumers share four queues, and a fifth one joins. A queue has only one owner at a time, so "
            "one of the five consumers is idle."
        ),
        (
            Action("producer", 200),
            *(Action("consumer"),) * 4,
            Action("all queues owned", 4),
            Action("delivered", 400),
            Action("wait", 6),
            Action("consumer"),
            Action("wait", 12),
        ),
        is_about_rebalance=True,
    ),
    Lesson(
        "kill",
        words("Async commit and a kill"),
        words(
            "Three consumers need 20 ms for a message, and one second more for each fiftieth. A consumer commits "
            "only up to its oldest unfinished message. The second consumer is killed: messages that it took after "
            "that offset are delivered again."
        ),
        (
            Action("producer", 300),
            *(Action("consumer", 20, Options(stall_every=50)),) * 3,
            Action("all queues owned", 3),
            Action("delivered", 900),
            Action("wait", 6),
            _not_committed(1, 10),
            Action("kill", 1),
            Action("all queues owned", 2),
            Action("wait", 12),
        ),
        is_about_rebalance=True,
    ),
    Lesson(
        "disagree",
        words("Two clients disagree"),
        words(
            "Two consumers of a group use different allocation strategies, AVG and AVG_BY_CIRCLE. Both see the "
            "same list of clients, and each computes its own share. Some queues get two owners, some none."
        ),
        (
            Action("producer", 200),
            Action("consumer"),
            Action("delivered", 100),
            Action("consumer", options=Options(strategy="AVG_BY_CIRCLE")),
            _allocated(2),
            Action("wait", 4),
        ),
    ),
    Lesson(
        "slow",
        words("The slow queue and least latency"),
        words(
            "A topic is on two brokers, and the disk of one needs 0.6 s for each flush. One producer sends to all "
            "queues in turn. Another one has sendLatencyFaultEnable and avoids a broker that was slow."
        ),
        (
            Action("broker", name="quick", options=Options(broker_settings="flushDiskType=SYNC_FLUSH")),
            Action(
                "broker",
                name="slow",
                options=Options(broker_settings="flushDiskType=SYNC_FLUSH", flush_delay_s=SLOW_FLUSH_S),
            ),
            Action("running"),
            Action("producer", 100, Options(message_count=SEND_COUNT)),
            _sent(SEND_COUNT),
            Action("producer", 100, Options(message_count=SEND_COUNT, avoid_slow_brokers=True)),
            _sent(2 * SEND_COUNT),
        ),
    ),
    Lesson(
        "broadcast",
        words("Broadcast"),
        words(
            "Two consumers each get every message, and each keeps its offsets in its own file. The second one "
            "stops, messages arrive, and it starts again under its old name: it continues from the offsets in its "
            "file."
        ),
        (
            Action("producer", 200, Options(message_count=BROADCAST_COUNT)),
            _sent(BROADCAST_COUNT),
            Action("consumer", options=Options(message_model=BROADCASTING)),
            Action("consumer", options=Options(message_model=BROADCASTING, client_id="{group}-2")),
            _each_received(BROADCAST_COUNT, 2),
            Action("wait", 2),
            Action("stop", 1),
            Action("producer", 200, Options(message_count=LATER_COUNT)),
            _any_received(BROADCAST_COUNT + LATER_COUNT),
            Action("restart", options=Options(message_model=BROADCASTING, client_id="{group}-2")),
            _each_received(BROADCAST_COUNT + LATER_COUNT, 2),
        ),
    ),
    Lesson(
        "retry",
        words("Retry to the dead letters"),
        words(
            "A consumer rejects each fifth message. The broker delivers it again after a delay, which grows each "
            "time; after two retries it is a dead letter. Delays are short here: 1 s and 2 s."
        ),
        (
            Action("broker", name="retry", options=Options(broker_settings=RETRIES)),
            Action("running"),
            Action("consumer", options=Options(reject_every=5, max_reconsume=2)),
            Action("producer", 200, Options(message_count=RETRY_COUNT)),
            Action("consumer", name="-dead", topic=DLQ_PREFIX + "{group}"),
            _read(DLQ_PREFIX + "{group}", RETRY_COUNT // 5),
        ),
    ),
    Lesson(
        "transaction",
        words("A transaction that no producer ends"),
        words(
            "A producer commits every second half message and never finishes the others. The broker checks these "
            "again and again, then gives up: they are never delivered. Here it checks three times, every half "
            "second."
        ),
        (
            Action("broker", name="checks", options=Options(broker_settings=CHECKS), topic=GIVEN_UP),
            Action("running"),
            Action("consumer"),
            Action("consumer", name="-given-up", topic=GIVEN_UP),
            Action("producer", 100, Options(message_count=HALF_COUNT, commit_every=2)),
            _read(GIVEN_UP, HALF_COUNT // 2),
        ),
    ),
)


@dataclass
class LessonRun:
    """Run of a lesson. ``status``: running, done or failed; ``result`` is a summary line, ``figures`` all results."""

    lesson: Lesson
    number: int
    status: str = "running"
    result: str = ""
    figures: tuple[Impact, ...] = ()
    done: int = 0
    """Number of finished actions."""
    action_started_ms: int = 0
    consumers: list[int] = field(default_factory=list)
    producers: list[int] = field(default_factory=list)
    brokers: list[int] = field(default_factory=list)
    record: Record = field(init=False)
    _options: dict[int, Options] = field(default_factory=dict)
    _addresses: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.record = Record(self.group, self.topic)

    @property
    def group(self) -> str:
        """Group of this run, new for each run so that old offsets have no effect.

        The differing part comes first: a narrow table shortens names in their middle.
        """
        return f"{self.lesson.key}-lesson-{self.number}"

    @property
    def topic(self) -> str:
        """Topic of this run, new for each run."""
        return f"{self.lesson.key}-{TOPIC}-{self.number}"

    def go_on(self, model: ClusterModel, clients: OwnClients) -> None:
        """Do all actions that are possible now. Called with each reading and each event of the clients."""
        now = model.readings[-1].time_ms if model.readings else 0
        while self.status == "running":
            failed = self._failed(clients)
            if failed:
                self.status, self.result = "failed", failed
                self._stop(clients)
                return
            if self.done == len(self.lesson.actions):
                self._end(model, clients)
                return
            action = self.lesson.actions[self.done]
            self.action_started_ms = self.action_started_ms or now
            if self._do(action, now, model, clients):
                self.done += 1
                self.action_started_ms = now
            elif now - self.action_started_ms > ACTION_TIMEOUT_MS:
                self.status, self.result = "failed", tr("timed out")
                self._stop(clients)
            else:
                return

    def _failed(self, clients: OwnClients) -> str:
        """Return why one of its clients could not start, or ended by itself."""
        for number, options in self._options.items():
            row = clients.row(number)
            if row.client_id:
                self.record.clients[row.client_id] = options
            if row.status == "failed":
                return row.error
        return ""

    def _do(self, action: Action, now: int, model: ClusterModel, clients: OwnClients) -> bool:
        """Do the action; return True if it is done, or if the condition is met."""
        match action.verb:
            case "broker" | "producer" | "consumer" | "restart":
                self._begin(action, model, clients)
            case "stop":
                number = self.consumers.pop(round(action.amount))
                clients.stop(number)
            case "kill":
                clients.kill(self.consumers.pop(round(action.amount)))
            case "running":
                return all(clients.row(number).status == "running" for number in self._options)
            case "all queues owned":
                return self._all_queues_owned(round(action.amount), model)
            case "delivered":
                return model.deliveries.delivered_count(self.group, 0, now + ACTION_TIMEOUT_MS) >= action.amount
            case "until":
                return action.condition is not None and action.condition(self.record)
            case "wait":
                return now - self.action_started_ms >= action.amount * 1000
        return True

    def _begin(self, action: Action, model: ClusterModel, clients: OwnClients) -> None:
        """Start a client or a broker."""
        kind = "consumer" if action.verb == "restart" else action.verb
        options = replace(
            action.options, reports_events=True, client_id=action.options.client_id.format(group=self.group)
        )
        group, topic = self.group + action.name, action.topic.format(group=self.group) or self.topic
        if kind == "broker":
            group, topic = f"{action.name}-{self.number}", f"{self.topic} {action.topic}".strip()
        self.record.groups.add(group)
        self._addresses = model.addresses
        clients.add(kind, model.addresses, group, topic, action.amount, options)
        {"broker": self.brokers, "producer": self.producers, "consumer": self.consumers}[kind].append(clients.last)
        self._options[clients.last] = options

    def _all_queues_owned(self, client_count: int, model: ClusterModel) -> bool:
        """Return True if so many clients own all queues, each at least one."""
        moments = model.moments.get(self.group)
        if not moments:
            return False
        owners = moments[-1].owners
        return (
            bool(owners)
            and all(len(queue_owners) == 1 for queue_owners in owners)
            and len({queue_owners[0] for queue_owners in owners}) == client_count
        )

    def _end(self, model: ClusterModel, clients: OwnClients) -> None:
        self.status = "done"
        end = model.deliveries.known_until(self.group)
        if end:
            model.lesson_ends[self.group] = end
        state = model.readings[-1] if model.readings else None
        self.record.kept_by_brokers = len(state.offsets(self.group)) if state is not None else 0
        self.figures = tuple(self._count_figures(model))
        if self.lesson.is_about_rebalance:
            names = (tr("pause"), tr("twice"), tr("burst"), tr("idle"))
            texts = [f"{name} {figure.figure}" for name, figure in zip(names, self.figures, strict=False)]
        else:
            texts = [f"{figure.name} {figure.figure}" for figure in self.figures]
        self.result = " · ".join(texts) or tr("no step was seen")
        self._stop(clients)

    def _count_figures(self, model: ClusterModel) -> list[Impact]:
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
        figures = impacts(step, model.interval_s, model.deliveries, self.group, end_of_step_ms(model, line, step))
        return figures + again_after_kill(self.record)

    def _names(self, model: ClusterModel) -> Callable[[str], str]:
        """Return a function for short names; clients without a reading are numbered within the lesson."""
        places = {client_id: number for number, client_id in enumerate(self.record.clients, 1)}

        def name_of(client_id: str) -> str:
            name = model.name_of(client_id)
            return name if name != client_id else tr("client {n:,}", n=places.get(client_id, 0))

        return name_of

    def cancel(self, clients: OwnClients) -> None:
        """Stop the run where it is."""
        if self.status == "running":
            self.status, self.result = "failed", tr("stopped")
            self._stop(clients)

    def _stop(self, clients: OwnClients) -> None:
        """Stop everything the run started: producers first, so that nothing remains unconsumed; brokers last.

        Topic and group are deleted too, with the lesson's broker or separately.
        """
        self.record.closed = True
        for number in (*self.producers, *self.consumers, *self.brokers):
            clients.stop(number)
        if self._options and not self.brokers:
            clients.forget(self._addresses, (self.topic, RETRY_PREFIX + self.group), (self.group,))
