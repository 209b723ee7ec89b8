"""A run of a lesson. No Qt.

It continues with each reading and each event of its clients: a waiting action is checked again, all others are done
at once. Results are counted from the events of its clients; lessons on rebalance also use the last step of their
group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine.system_names import RETRY_PREFIX
from viewer.cluster.clients_process import Options
from viewer.cluster.cluster_model import ClusterModel
from viewer.cluster.lesson_figures import (
    Record,
    again_after_kill,
    broadcast,
    dead_letters,
    disagreement,
    latencies,
    transactions,
)
from viewer.cluster.lessons import ACTION_TIMEOUT_MS, TOPIC, Action, Lesson
from viewer.cluster.rebalance import timeline
from viewer.cluster.rebalance_words import Harm, harms, until
from viewer.look.assets import tr

if TYPE_CHECKING:
    from viewer.cluster.own_clients import OwnClients


@dataclass
class LessonRun:
    """Run of a lesson. ``status``: running, done or failed; ``result`` is a summary line, ``figures`` all results."""

    lesson: Lesson
    number: int
    status: str = "running"
    result: str = ""
    figures: tuple[Harm, ...] = ()
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
        """Do whatever is possible now; called with each reading and each event of the clients."""
        now = model.readings[-1].at if model.readings else 0
        while self.status == "running":
            failed = self._failed(clients)
            if failed:
                self.status, self.result = "failed", failed
                self._stop(clients)
                return
            if self.done == len(self.lesson.acts):
                self._end(model, clients)
                return
            act = self.lesson.acts[self.done]
            self.action_started_ms = self.action_started_ms or now
            if self._do(act, now, model, clients):
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
                return row.words
        return ""

    def _do(self, act: Action, now: int, model: ClusterModel, clients: OwnClients) -> bool:
        """Do the action; return True if it is done, or if the condition is met."""
        match act.verb:
            case "broker" | "producer" | "consumer" | "again":
                self._begin(act, model, clients)
            case "stop":
                number = self.consumers.pop(round(act.amount))
                clients.stop(number)
            case "kill":
                clients.kill(self.consumers.pop(round(act.amount)))
            case "running":
                return all(clients.row(number).status == "running" for number in self._options)
            case "shared":
                return self._all_queues_owned(round(act.amount), model)
            case "handed":
                return model.deliveries.handed(self.group, 0, now + ACTION_TIMEOUT_MS) >= act.amount
            case "until":
                return act.condition is not None and act.condition(self.record)
            case "wait":
                return now - self.action_started_ms >= act.amount * 1000
        return True

    def _begin(self, act: Action, model: ClusterModel, clients: OwnClients) -> None:
        """Start a client or a broker."""
        kind = "consumer" if act.verb == "again" else act.verb
        options = replace(act.options, reports_events=True, name=act.options.name.format(group=self.group))
        group, topic = self.group + act.name, act.topic.format(group=self.group) or self.topic
        if kind == "broker":
            group, topic = f"{act.name}-{self.number}", f"{self.topic} {act.topic}".strip()
        self.record.groups.add(group)
        self._addresses = model.addresses
        clients.add(kind, model.addresses, group, topic, act.amount, options)
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
        if self.lesson.about_moves:
            names = (tr("pause"), tr("twice"), tr("burst"), tr("idle"))
            texts = [f"{name} {figure.figure}" for name, figure in zip(names, self.figures, strict=False)]
        else:
            texts = [f"{figure.name} {figure.figure}" for figure in self.figures]
        self.result = " · ".join(texts) or tr("no step was seen")
        self._stop(clients)

    def _count_figures(self, model: ClusterModel) -> list[Harm]:
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
        figures = harms(step, model.interval_s, model.deliveries, self.group, until(model, line, step))
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
