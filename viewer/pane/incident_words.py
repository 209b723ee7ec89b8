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
from engine.releases import NAMES, Release, of
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
    release: str = ""
    """The release of whose start ``start`` speaks, as a sentence names it; "" where no start can be told."""
    others: str = ""
    """What starts of other releases would lose, where that is something else."""

    @property
    def line(self) -> str:
        """All of it in one line, for a card that is folded; the figures first, for it may be cut at its end."""
        start = tr("by the next start of {release}: {n}", release=self.release, n=self.start.said)
        if not self.release:
            start = tr("by the next start: {n}", n=self.start.said)
        said = (capital(tr("lost already: {n}", n=self.lost.said)), start, self.others, self.happened.said)
        return " · ".join(part for part in said if part)

    @property
    def start_title(self) -> str:
        """The question that ``start`` answers."""
        if not self.release:
            return tr("Lost by the next start")
        return tr("Lost by the next start of {release}", release=self.release)


def incident_of(told: Told | None, *, complete: bool) -> Incident | None:
    """The ``incident`` of a check's summary; None where nothing is lost and nothing will be."""
    if told is None:
        return None
    lost, starts = told["lostAlready"], {name: start for name in NAMES if (start := told["lostByNextStart"].get(name))}
    own = _own_release(told, starts)
    asked = [starts[own]] if own is not None and starts[own]["starts"] else list(starts.values())
    if not (lost and lost["messages"]) and not any(one["messages"] for one in asked):
        return None
    said, *why = re.split(": |：", stamps_shown(engine_words(told["whatHappened"])), maxsplit=1)
    steps = tuple((engine_words(step["text"]), step["command"] or "") for step in told["firstSteps"])
    return Incident(
        Answer("error", said, capital("".join(why))),
        _lost(lost, complete=complete),
        _start(starts, own, told.get("releaseEvidence")),
        steps,
        tuple(lost["queues"]) if lost else (),
        tuple(starts[own]["queues"]) if own is not None else (),
        of(own).title if own is not None else "",
        _others(starts, own),
    )


def _own_release(told: Told, starts: Mapping[Release, Told]) -> Release | None:
    """The release that seems to have written the store; where its start cannot be told, the first that can."""
    own = next((name for name in starts if name == told.get("release")), None)
    return own or max(starts, default=None, key=NAMES.index)


def _lost(lost: Told | None, *, complete: bool) -> Answer:
    edge = "" if complete else tr("Not all of the store was looked at.")
    if lost is None:
        return Answer("", tr("cannot be told"), edge)
    if not lost["messages"]:
        return Answer("", tr("nothing"), edge)
    return Answer("error", messages_in_words(lost["messages"]), " ".join((_topics(lost["queues"]), edge)).strip())


def _start(starts: Mapping[Release, Told], own: Release | None, evidence: str | None) -> Answer:
    """What a start of the store's own release loses, and then what others would."""
    if own is None:
        return Answer("", tr("cannot be told"))
    start = starts[own]
    why = []
    if evidence:
        wrote = tr(
            "{release} seems to have written this store: {why}", release=of(own).title, why=engine_words(evidence)
        )
        why.append(wrote)
    why += [part for part in (_others(starts, own), _topics(start["queues"])) if part]
    mark = "error" if not start["starts"] else "warn" if start["messages"] else ""
    return Answer(mark, _start_words(start), " · ".join(why))


def _others(starts: Mapping[Release, Told], own: Release | None) -> str:
    """``RocketMQ 4.9.8 would lose 1,376 messages`` for each release whose start does something else."""
    said = []
    for name, start in starts.items():
        if own is None or name == own or _start_words(start) == _start_words(starts[own]):
            continue
        release = of(name).title
        if not start["starts"]:
            said.append(tr("{release} does not start", release=release))
        else:
            said.append(tr("{release} would lose {n}", release=release, n=_start_words(start)))
    return " · ".join(said)


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
    "topic": "topic",
    "queue_id": "queueId",
    "queues": "queues",
    "messages": "messages",
    "first": "firstQueueOffset",
    "last": "lastQueueOffset",
    "first_unit": "firstUnit",
    "first_timestamp": "firstTimestamp",
    "last_timestamp": "lastTimestamp",
}


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
                one["topic"],
                one["queueId"],
                1,
                one["messages"],
                one["firstQueueOffset"],
                one["lastQueueOffset"],
                one["firstUnit"],
                one["firstTimestamp"],
                one["lastTimestamp"],
            )
        )
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
        topic,
        None,
        len(rows),
        sum(row.messages for row in rows),
        first_unit=min(units, default=None),
        first_timestamp=min(begins, default=None),
        last_timestamp=max(ends, default=None),
    )


def lost_kind(rows: Iterable[LostRow]) -> RecordKind:
    """The table of these rows; times only where any is known."""
    columns: tuple[Column, ...] = (
        replace(topic_column(width=150), text=_name, filterable=False),
        Column(
            "queueId",
            words("Queue"),
            110,
            _queues,
            lambda row: row.queue_id,
            right=True,
            mono=True,
            filterable=False,
            elide="never",
        ),
        number_column("messages", words("Messages"), 84, filterable=False),
        Column(
            "firstQueueOffset",
            words("Queue offsets"),
            150,
            _offsets,
            lambda row: row.first,
            mono=True,
            jump=lambda row: row.place if row.first is not None else None,
            filterable=False,
            elide="never",
        ),
        number_column(
            "firstUnit",
            words("First unit"),
            110,
            filterable=False,
            jump=lambda row: None if row.first_unit is None else places.log(row.first_unit),
        ),
    )
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
