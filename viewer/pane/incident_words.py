"""An incident in four answers: what happened, what is lost, what the next start loses, what to do first. No Qt.

The answers come from the end of a check. There is a card only if messages are lost or will be. The rows of its
table are the losses of each topic and queue.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.english import capital
from engine.releases import NAMES, Release, rules_of
from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import number_span, stamps_shown
from viewer.pane.plan_words import messages_in_words
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.widgets.columns import Column, RecordKind, moment_column, number_column, topic_column

MAX_TOPICS = 4
Summary = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer in a clause, with its reason and a ``mark`` of its severity ("" for no harm)."""

    mark: str
    clause: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Incident:
    """The four answers of an incident.

    Steps are (words, command). ``already`` lists the queues that lost messages, ``to_come`` those that lose them
    at the next start.
    """

    happened: Answer
    lost: Answer
    start: Answer
    steps: tuple[tuple[str, str], ...]
    already: tuple[Summary, ...] = ()
    to_come: tuple[Summary, ...] = ()
    release: str = ""
    """Name of the release that ``start`` is about. "" if no start is known."""
    other_releases: str = ""
    """What starts of other releases would lose, if it differs."""

    @property
    def line(self) -> str:
        """Return the incident in one line, for a folded card. The figures come first, because the end may be cut."""
        start = tr("by the next start of {release}: {n}", release=self.release, n=self.start.clause)
        if not self.release:
            start = tr("by the next start: {n}", n=self.start.clause)
        clauses = (
            capital(tr("lost already: {n}", n=self.lost.clause)),
            start,
            self.other_releases,
            self.happened.clause,
        )
        return " · ".join(part for part in clauses if part)

    @property
    def start_title(self) -> str:
        """The question that ``start`` answers."""
        if not self.release:
            return tr("Lost by the next start")
        return tr("Lost by the next start of {release}", release=self.release)


def incident_of(summary: Summary | None, *, complete: bool) -> Incident | None:
    """Return the incident of a check's summary. None if nothing is lost and nothing will be."""
    if summary is None:
        return None
    lost = summary["lostAlready"]
    starts = {name: start for name in NAMES if (start := summary["lostByNextStart"].get(name))}
    own_release = _own_release(summary, starts)
    considered_starts = (
        [starts[own_release]] if own_release is not None and starts[own_release]["starts"] else list(starts.values())
    )
    if not (lost and lost["messages"]) and not any(start_facts["messages"] for start_facts in considered_starts):
        return None
    headline, *why = re.split(": |：", stamps_shown(engine_words(summary["whatHappened"])), maxsplit=1)
    steps = tuple((engine_words(step["text"]), step["command"] or "") for step in summary["firstSteps"])
    return Incident(
        Answer("error", headline, capital("".join(why))),
        _lost(lost, complete=complete),
        _start(starts, own_release, summary.get("releaseEvidence")),
        steps,
        tuple(lost["queues"]) if lost else (),
        tuple(starts[own_release]["queues"]) if own_release is not None else (),
        rules_of(own_release).title if own_release is not None else "",
        _others(starts, own_release),
    )


def _own_release(summary: Summary, starts: Mapping[Release, Summary]) -> Release | None:
    """Return the release that seems to have written the store.

    If its start is unknown, return the first release with a known start.
    """
    release = next((name for name in starts if name == summary.get("release")), None)
    return release or max(starts, default=None, key=NAMES.index)


def _lost(lost: Summary | None, *, complete: bool) -> Answer:
    edge = "" if complete else tr("Not all of the store was checked.")
    if lost is None:
        return Answer("", tr("unknown"), edge)
    if not lost["messages"]:
        return Answer("", tr("nothing"), edge)
    return Answer("error", messages_in_words(lost["messages"]), " ".join((_topics(lost["queues"]), edge)).strip())


def _start(starts: Mapping[Release, Summary], own_release: Release | None, evidence: str | None) -> Answer:
    """Describe what a start of the store's own release loses, and then what other releases would."""
    if own_release is None:
        return Answer("", tr("unknown"))
    start = starts[own_release]
    why = []
    if evidence:
        wrote = tr(
            "{release} probably wrote this store: {why}",
            release=rules_of(own_release).title,
            why=engine_words(evidence),
        )
        why.append(wrote)
    why += [part for part in (_others(starts, own_release), _topics(start["queues"])) if part]
    mark = "error" if not start["starts"] else "warn" if start["messages"] else ""
    return Answer(mark, _start_words(start), " · ".join(why))


def _others(starts: Mapping[Release, Summary], own_release: Release | None) -> str:
    """Return ``RocketMQ 4.9.8 would lose 1,376 messages`` for each release whose start does something else."""
    sentences = []
    for name, start in starts.items():
        if own_release is None or name == own_release or _start_words(start) == _start_words(starts[own_release]):
            continue
        release = rules_of(name).title
        if not start["starts"]:
            sentences.append(tr("{release} does not start", release=release))
        else:
            sentences.append(tr("{release} would lose {n}", release=release, n=_start_words(start)))
    return " · ".join(sentences)


def _start_words(start: Summary) -> str:
    if not start["starts"]:
        return tr("does not start: {why}", why=engine_words(start["why"]))
    text = messages_in_words(start["messages"]) if start["messages"] else tr("nothing more")
    return text + (
        f", {tr('Index files deleted')} {start['indexFilesDeleted']:,}" if start["indexFilesDeleted"] else ""
    )


def _topics(queues: Iterable[Summary]) -> str:
    """Return ``OrderPaid 24,361 · UserClicks 1,204 · and 3 more``."""
    counts: Counter[str] = Counter()
    for queue in queues:
        counts[queue["topic"]] += queue["messages"]
    listed = [f"{topic} {count:,}" for topic, count in counts.most_common(MAX_TOPICS)]
    unlisted = len(counts) - len(listed)
    return " · ".join([*listed, *([tr("and {n:,} more", n=unlisted)] if unlisted > 0 else [])])


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
    """Lost messages of a queue.

    A row without ``queue_id`` is the sum of a topic, or of all topics (no topic). Offsets, the first unit's place
    in the log, and times in ms are None if they are unknown or do not belong to a single queue.
    """

    topic: str
    queue_id: int | None
    queues: int
    messages: int
    first_offset: int | None = None
    last_offset: int | None = None
    first_unit: int | None = None
    first_timestamp: int | None = None
    last_timestamp: int | None = None

    @property
    def place(self) -> Place | None:
        """The first lost entry in its queue, or the topic's queues. None for the sum of all."""
        return places.queue(self.topic, self.queue_id, self.first_offset) if self.topic else None

    def record(self) -> dict[str, object]:
        """Return the row in the form of a check's ``queues``."""
        return {field: getattr(self, name) for name, field in FIELDS.items()}


def lost_rows(lost_queues: Iterable[Mapping[str, Any]]) -> list[LostRow]:
    """Return each topic with its sum, then its queues. The topic that loses most comes first, the sum of all last."""
    by_topic: dict[str, list[LostRow]] = {}
    for queue in lost_queues:
        by_topic.setdefault(queue["topic"], []).append(
            LostRow(
                queue["topic"],
                queue["queueId"],
                1,
                queue["messages"],
                queue["firstQueueOffset"],
                queue["lastQueueOffset"],
                queue["firstUnit"],
                queue["firstTimestamp"],
                queue["lastTimestamp"],
            )
        )
    rows: list[LostRow] = []
    for topic, queues in sorted(
        by_topic.items(), key=lambda item: (-sum(queue.messages for queue in item[1]), item[0])
    ):
        rows += [_sum(queues, topic), *sorted(queues, key=lambda queue: queue.queue_id or 0)]
    return [*rows, _sum([row for row in rows if row.queue_id is not None], "")] if rows else []


def _sum(rows: list[LostRow], topic: str) -> LostRow:
    """Sum up ``rows`` in one row without offsets, because these belong to a single queue."""
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
    """Return the table of these rows. It has times only if any is known."""
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
            lambda row: row.first_offset,
            mono=True,
            jump=lambda row: row.place if row.first_offset is not None else None,
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
        return tr_plural("All, {n:,} queue", "All, {n:,} queues", n=row.queues)
    return tr_plural("{n:,} queue", "{n:,} queues", n=row.queues)


def _offsets(row: LostRow) -> str:
    return "" if row.first_offset is None or row.last_offset is None else number_span(row.first_offset, row.last_offset)
