"""An incident in four answers: what happened, what is lost already, what the next start loses, what to do first; no Qt.

The answers are those that a check ends with; there is a card only where messages are lost or will be.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.counted import capital
from viewer.look.assets import tr
from viewer.look.engine_words import engine_words
from viewer.look.formats import stamps_shown
from viewer.pane.plan_words import RELEASES, messages_in_words

MOST_TOPICS = 4
Told = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """``mark`` of how grave it is ("" where there is no harm), the answer in a clause, and why."""

    mark: str
    said: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Incident:
    """The four answers; steps as (words, command); the queues that lost messages already, and those that the next start
    makes lose them.
    """

    happened: Answer
    lost: Answer
    start: Answer
    steps: tuple[tuple[str, str], ...]
    already: tuple[Told, ...] = ()
    to_come: tuple[Told, ...] = ()

    @property
    def line(self) -> str:
        """All of it in one line, for a card that is folded; the figures first, for it may be cut at its end."""
        said = tr("lost already: {n}", n=self.lost.said), tr("by the next start: {n}", n=self.start.said)
        return " · ".join((capital(said[0]), said[1], self.happened.said))


def incident_of(told: Told | None, *, complete: bool) -> Incident | None:
    """The ``incident`` of a check's summary; None where nothing is lost and nothing will be."""
    if told is None:
        return None
    lost, starts = told["lostAlready"], {like: one for like, one in told["lostByNextStart"].items() if one}
    if not (lost and lost["messages"]) and not any(one["messages"] for one in starts.values()):
        return None
    said, *why = re.split(": |：", stamps_shown(engine_words(told["whatHappened"])), maxsplit=1)
    steps = tuple((engine_words(step["text"]), step["command"] or "") for step in told["firstSteps"])
    return Incident(
        Answer("error", said, capital("".join(why))),
        _lost(lost, complete=complete),
        _start(starts),
        steps,
        tuple(lost["queues"]) if lost else (),
        tuple(_worst(starts)["queues"]) if starts else (),
    )


def _lost(lost: Told | None, *, complete: bool) -> Answer:
    edge = "" if complete else tr("Not all of the store was looked at.")
    if lost is None:
        return Answer("", tr("cannot be told"), edge)
    if not lost["messages"]:
        return Answer("", tr("nothing"), edge)
    return Answer("error", messages_in_words(lost["messages"]), " ".join((_topics(lost["queues"]), edge)).strip())


def _worst(starts: Mapping[str, Told]) -> Told:
    """The release whose start loses most."""
    return max(starts.values(), key=lambda one: one["messages"])


def _start(starts: Mapping[str, Told]) -> Answer:
    """The worst of both releases, and what each does."""
    if not starts:
        return Answer("", tr("cannot be told"))
    said = [f"{RELEASES[like]}: {_start_words(one)}" for like, one in starts.items()]
    most = _worst(starts)
    topics = _topics(most["queues"])
    if most["messages"]:
        return Answer("warn", messages_in_words(most["messages"]), " · ".join(part for part in (*said, topics) if part))
    return Answer("", tr("nothing more"), " · ".join(said))


def _start_words(one: Told) -> str:
    if not one["starts"]:
        return tr("does not start: {why}", why=engine_words(one["why"]))
    said = messages_in_words(one["messages"]) if one["messages"] else tr("nothing more")
    return said + (f", {tr('Index files deleted')} {one['indexFilesDeleted']:,}" if one["indexFilesDeleted"] else "")


def _topics(queues: Iterable[Told]) -> str:
    """``OrderPaid 24,361 · UserClicks 1,204 · and 3 more``."""
    counts: Counter[str] = Counter()
    for one in queues:
        counts[one["topic"]] += one["messages"]
    listed = [f"{topic} {count:,}" for topic, count in counts.most_common(MOST_TOPICS)]
    more = len(counts) - len(listed)
    return " · ".join([*listed, *([tr("and {n:,} more", n=more)] if more > 0 else [])])
