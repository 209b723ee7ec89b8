"""Lessons: scripts of clients of one's own, of which each shows one harm of a rebalance. No Qt.

A run goes on with each reading: an act that waits is looked at again, all others are done at once. What it showed is
the last step of its group, with its harms counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

from viewer.cluster.cluster_model import ClusterModel
from viewer.cluster.rebalance import timeline
from viewer.cluster.rebalance_words import harms, until
from viewer.look.assets import tr, words

Verb = Literal["producer", "consumer", "shared", "handed", "kill", "wait"]
PATIENCE = 90_000
"""Ms that an act waits before the run gives up."""
TOPIC = "Lesson"


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that is done, or waited for: ``amount`` is a producer's rate, a consumer's ms a message, clients that
    share all queues, messages handed out, the number of a consumer (from 0), seconds.
    """

    verb: Verb
    amount: float = 0


@dataclass(frozen=True, slots=True)
class Lesson:
    """A script with its name and what it is about."""

    key: str
    title: str
    about: str
    acts: tuple[Act, ...]


LESSONS = (
    Lesson(
        "more", words("One more consumer"),
        words("Two consumers share four queues, and a third one comes. Queues move: how long each stands still, and "
              "what is handed out twice, is counted."),
        (Act("producer", 200), Act("consumer"), Act("consumer"), Act("shared", 2), Act("handed", 400), Act("wait", 6),
         Act("consumer"), Act("shared", 3), Act("wait", 8)),
    ),
    Lesson(
        "many", words("One too many"),
        words("Four queues feed four consumers, and a fifth one comes. A queue has one owner at a time: one of the "
              "five stands idle."),
        (Act("producer", 200), *(Act("consumer"),) * 4, Act("shared", 4), Act("handed", 400), Act("wait", 6),
         Act("consumer"), Act("wait", 12)),
    ),
    Lesson(
        "kill", words("Async commit and a kill"),
        words("Three consumers take 20 ms for each message and commit now and then; the second is killed. What it had "
              "not committed is handed out again."),
        (Act("producer", 300), *(Act("consumer", 20),) * 3, Act("shared", 3), Act("handed", 900), Act("wait", 6),
         Act("kill", 1), Act("shared", 2), Act("wait", 12)),
    ),
)  # fmt: skip


class Clients(Protocol):
    """Who starts and ends clients: :class:`viewer.cluster.own_clients.OwnClients`."""

    def add(self, kind: str, addresses: tuple[str, ...], group: str, topic: str, amount: float) -> object:
        """A new one."""
        ...

    @property
    def last(self) -> int:
        """The number of the one that was added last."""
        ...

    def stop(self, number: int) -> None:
        """It says goodbye."""
        ...

    def kill(self, number: int) -> None:
        """It ends without a word."""
        ...


@dataclass
class LessonRun:
    """One run of a lesson. ``standing``: running, done or failed; ``result`` is one line of what it showed."""

    lesson: Lesson
    number: int
    standing: str = "running"
    result: str = ""
    done: int = 0
    """Acts that are done."""
    begun: int = 0
    consumers: list[int] = field(default_factory=list)
    others: list[int] = field(default_factory=list)

    @property
    def group(self) -> str:
        """A group of its own each time: offsets of the last run are none of its."""
        return f"lesson-{self.lesson.key}-{self.number}"

    @property
    def topic(self) -> str:
        """The same for its topic."""
        return f"{TOPIC}-{self.lesson.key}-{self.number}"

    def go_on(self, model: ClusterModel, own: Clients) -> None:
        """Do what can be done now; called with each reading."""
        now = model.kept[-1].at if model.kept else 0
        while self.standing == "running":
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

    def _do(self, act: Act, now: int, model: ClusterModel, own: Clients) -> bool:
        """Whether the act is done, or what it waits for has come."""
        if act.verb in {"producer", "consumer"}:
            own.add(act.verb, model.addresses, self.group, self.topic, act.amount)
            (self.others if act.verb == "producer" else self.consumers).append(own.last)
            return True
        if act.verb == "kill":
            own.kill(self.consumers.pop(round(act.amount)))
            return True
        if act.verb == "shared":
            return self._shared(round(act.amount), model)
        if act.verb == "handed":
            return model.deliveries.handed(self.group, 0, now + PATIENCE) >= act.amount
        return now - self.begun >= act.amount * 1000

    def _shared(self, clients: int, model: ClusterModel) -> bool:
        """Whether so many clients own all queues, each at least one."""
        held = model.moments.get(self.group)
        if not held:
            return False
        owners = held[-1].owners
        return bool(owners) and all(len(mine) == 1 for mine in owners) and len({mine[0] for mine in owners}) == clients

    def _end(self, model: ClusterModel, own: Clients) -> None:
        line = timeline(self.group, tuple(model.moments.get(self.group, ())))
        step = line.steps[-1] if len(line.steps) > 1 else None
        self.standing = "done"
        if step is None:
            self.result = tr("no step was seen")
        else:
            told = harms(step, model.every, model.deliveries, self.group, until(line, step))
            names = (tr("pause"), tr("twice"), tr("burst"), tr("idle"))
            self.result = " · ".join(f"{name} {one.figure}" for name, one in zip(names, told, strict=True))
        self._stop(own)

    def cancel(self, own: Clients) -> None:
        """Stop it where it is."""
        if self.standing == "running":
            self.standing, self.result = "failed", tr("stopped")
            self._stop(own)

    def _stop(self, own: Clients) -> None:
        """All that it started says goodbye: producers first, so that nothing is left to be consumed."""
        for number in (*self.others, *self.consumers):
            own.stop(number)
