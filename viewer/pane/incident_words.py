"""An incident in four answers: what happened, what is lost already, what the next start loses, what to do first; no Qt.

The answers are those that a check ends with; there is a card only where messages are lost or will be. What of a topic
and of its queues is lost are the rows of its table.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.counted import capital
from engine.releases import of, parse
from viewer.look.assets import tr, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import number_span, stamps_shown
from viewer.pane.plan_words import messages_in_words
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.widgets.columns import Column, RecordKind, moment_column, number_column, topic_column

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
    said = [f"{of(parse(like)).title}: {_start_words(one)}" for like, one in starts.items()]
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


FIELDS = {
    "topic": "topic", "queue_id": "queueId", "queues": "queues", "messages": "messages", "first": "firstQueueOffset",
    "last": "lastQueueOffset", "first_unit": "firstUnit", "first_timestamp": "firstTimestamp",
    "last_timestamp": "lastTimestamp",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LostRow:
    """One queue; or the sum of a topic's queues, or of all (no topic), where ``queue_id`` is None. Offsets, the first
    unit's place in the log, and times in ms are None where they are not known or not of one queue.
    """

    topic: str
    queue_id: int | None
    queues: int
    messages: int
    first: int | None = None
    last: int | None = None
    first_unit: int | None = None
    first_timestamp: int | None = None
    last_timestamp: int | None = None

    @property
    def place(self) -> Place | None:
        """The first lost entry in its queue, or the topic's queues; the sum of all leads nowhere."""
        return places.queue(self.topic, self.queue_id, self.first) if self.topic else None

    def record(self) -> dict[str, object]:
        """The row as a check's ``queues`` say it."""
        return {field: getattr(self, name) for name, field in FIELDS.items()}


def lost_rows(told: Iterable[Mapping[str, Any]]) -> list[LostRow]:
    """Each topic with its sum, then its queues; the topic that loses most first, the sum of all last."""
    by_topic: dict[str, list[LostRow]] = {}
    for one in told:
        by_topic.setdefault(one["topic"], []).append(
            LostRow(
                one["topic"], one["queueId"], 1, one["messages"], one["firstQueueOffset"], one["lastQueueOffset"],
                one["firstUnit"], one["firstTimestamp"], one["lastTimestamp"],
            )
        )  # fmt: skip
    rows: list[LostRow] = []
    for topic, queues in sorted(by_topic.items(), key=lambda item: (-sum(one.messages for one in item[1]), item[0])):
        rows += [_sum(queues, topic), *sorted(queues, key=lambda one: one.queue_id or 0)]
    return [*rows, _sum([row for row in rows if row.queue_id is not None], "")] if rows else []


def _sum(rows: list[LostRow], topic: str) -> LostRow:
    """All of ``rows`` as one: no offsets, for these are a queue's own."""
    begins = [row.first_timestamp for row in rows if row.first_timestamp is not None]
    ends = [row.last_timestamp for row in rows if row.last_timestamp is not None]
    units = [row.first_unit for row in rows if row.first_unit is not None]
    return LostRow(
        topic, None, len(rows), sum(row.messages for row in rows), first_unit=min(units, default=None),
        first_timestamp=min(begins, default=None), last_timestamp=max(ends, default=None),
    )  # fmt: skip


def lost_kind(rows: Iterable[LostRow]) -> RecordKind:
    """The table of these rows; times only where any is known."""
    columns: tuple[Column, ...] = (
        replace(topic_column(width=150), text=_name, filterable=False),
        Column("queueId", words("Queue"), 110, _queues, lambda row: row.queue_id, right=True, mono=True,
               filterable=False, elide="never"),
        number_column("messages", words("Messages"), 84, filterable=False),
        Column("firstQueueOffset", words("Queue offsets"), 150, _offsets, lambda row: row.first, mono=True,
               jump=lambda row: row.place if row.first is not None else None, filterable=False, elide="never"),
        number_column("firstUnit", words("First unit"), 110, filterable=False,
                      jump=lambda row: None if row.first_unit is None else places.log(row.first_unit)),
    )  # fmt: skip
    if any(row.first_timestamp is not None for row in rows):
        columns += (
            moment_column("firstTimestamp", words("Stored from"), filterable=False),
            moment_column("lastTimestamp", words("Stored to"), filterable=False),
        )
    return RecordKind("lost", columns, verdict=lambda row: row.topic, record=LostRow.record)


def _name(row: LostRow) -> str:
    return "" if row.queue_id is not None else row.topic


def _queues(row: LostRow) -> str:
    if row.queue_id is not None:
        return str(row.queue_id)
    if not row.topic:
        return tr("All, 1 queue") if row.queues == 1 else tr("All, {n:,} queues", n=row.queues)
    return tr("1 queue") if row.queues == 1 else tr("{n:,} queues", n=row.queues)


def _offsets(row: LostRow) -> str:
    return "" if row.first is None or row.last is None else number_span(row.first, row.last)
