"""The table of the view Space: a row a topic, a row for what is no topic's, and the sum, held against the files."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from viewer.look.assets import tr, words
from viewer.look.formats import number, plain, size
from viewer.look.topic_kinds import is_system_topic
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.space.areas import (
    OTHERS,
    REST,
    REST_WORDS,
    UNITS,
    at_day,
    file_count,
    files_words,
    rest_key,
    topic_words,
)
from viewer.space.day_bars import MOST, DayBar
from viewer.widgets.columns import Column, RecordKind, RowLook

if TYPE_CHECKING:
    from engine.inspection.space.account import Space


@dataclass(frozen=True, slots=True)
class SpaceRow:
    """One line: ``kind`` is topic, rest or sum; sizes in bytes, ``share`` of the whole directory."""

    key: str
    kind: str
    name: str
    log: int
    queues: int | None = None
    messages: int | None = None
    share: float = 0.0
    note: str = ""
    equal: bool = True
    topic: str | None = None
    allocated: int = 0
    dead: bool = False

    @property
    def mean(self) -> int | None:
        return round(self.log / self.messages) if self.messages else None


def space_rows(space: Space) -> list[SpaceRow]:
    """Topics by bytes, system topics behind them, then the rest, then the sum."""
    topics: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    rest: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in space.rows:
        key = rest_key(row.kind, row.part, row.topic)
        if row.topic is not None and key in {"", "queues"}:
            one = topics[row.topic]
            one[1 if key else 0] += row.bytes
            one[2] += 0 if key else row.messages or 0
            one[3] += row.allocated
        else:
            other = rest[key or "other"]
            other[0] += row.bytes
            other[1] = file_count(space, key) or other[1] + row.files
            other[2] += row.allocated
    whole = space.bytes or 1
    listed = [
        SpaceRow(
            topic,
            "topic",
            topic_words(topic),
            log,
            queues,
            messages,
            (log + queues) / whole,
            topic=None if topic == OTHERS else topic,
            allocated=allocated,
            dead=topic in space.deleted_topics,
        )
        for topic, (log, queues, messages, allocated) in topics.items()
    ]
    listed.sort(key=lambda row: (is_system_topic(row.key), -row.log - (row.queues or 0), row.key))
    for key, (total, files, allocated) in rest.items():
        if total or files:
            notes = [files_words(files)] if files else []
            if allocated != total:
                notes.append(tr("{size} allocated", size=size(allocated)))
            name = tr(REST_WORDS.get(key, key))
            listed.append(
                SpaceRow(
                    f"{REST}{key}",
                    "rest",
                    name,
                    total,
                    share=total / whole,
                    note=" · ".join(notes),
                    allocated=allocated,
                )
            )
    listed.append(_sum(space))
    return listed


def _sum(space: Space) -> SpaceRow:
    note = tr("bytes, equal to the files ✓") if space.equal else tr("the files have {n:,} bytes", n=space.bytes)
    return SpaceRow(
        "\x02sum",
        "sum",
        tr("Sum of the above"),
        space.counted,
        share=1.0,
        note=note,
        equal=space.equal,
        allocated=space.allocated,
    )


def day_bars(space: Space, topics: tuple[str, ...]) -> list[DayBar]:
    """The newest days, the oldest of them first; earlier ones together. ``topics``: those with a colour, in order."""
    cells: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    messages: dict[str, int] = defaultdict(int)
    for row in space.rows:
        if row.kind == "commitlog" and row.part in UNITS and row.topic is not None and row.day:
            cells[row.day][row.topic] += row.bytes
            messages[row.day] += row.messages or 0
    order = {topic: at for at, topic in enumerate(topics)}
    days = sorted(cells)
    early, late = days[: max(len(days) - MOST, 0)], days[max(len(days) - MOST, 0) :]
    found = []
    if early:
        merged: dict[str, int] = defaultdict(int)
        for day in early:
            for topic, count in cells[day].items():
                merged[topic] += count
        found.append(_bar(f"≤ {early[-1]}", merged, sum(messages[day] for day in early), order))
    return found + [_bar(day, cells[day], messages[day], order) for day in late]


def _bar(day: str, cells: dict[str, int], messages: int, order: dict[str, int]) -> DayBar:
    parts = sorted(cells.items(), key=lambda one: (order.get(one[0], 99), -one[1], one[0]))
    return DayBar(day, sum(cells.values()), messages, tuple(parts), at_day(day[-10:]))


def _look(row: SpaceRow) -> RowLook | None:
    if row.kind == "sum":
        return RowLook(fill="raised", tone="ok" if row.equal else "error", words=row.note, words_from=2, strong=True)
    if row.kind == "rest":
        return RowLook(tone="error" if row.key.endswith("unreadable") else "text2", words=row.note or " ", words_from=2)
    return None


def _bytes_words(row: SpaceRow) -> str:
    return number(row.log) if row.kind == "sum" else size(row.log)


def _exact(row: SpaceRow) -> str:
    parts = [f"{row.log:,} B"]
    if row.queues is not None:
        parts.append(tr("queue files {n:,} B", n=row.queues))
    parts.append(tr("{size} allocated", size=f"{row.allocated:,} B"))
    if row.dead:
        parts.append(tr("deleted topic: nobody reads these bytes any more"))
    return "\n".join(parts)


def _place(row: SpaceRow) -> Place | None:
    return places.queue(row.topic) if row.kind == "topic" and row.topic and row.queues else None


def _record(row: SpaceRow) -> dict[str, object]:
    return {
        "type": "space",
        "topic": row.topic,
        "what": row.key.removeprefix(REST) if row.kind == "rest" else row.kind,
        "bytes": row.log,
        "queueBytes": row.queues,
        "messages": row.messages,
        "mean": row.mean,
        "share": round(row.share, 6),
        "allocated": row.allocated,
        "note": row.note,
    }


NARROW = 540
"""Px at 100 % below which the table leaves the mean and the share out."""

SPACE = RecordKind(
    "space",
    (
        Column(
            "topic",
            words("Topic"),
            164,
            lambda row: plain(row.name),
            lambda row: row.topic,
            elide="middle",
            paint="topic",
            jump=_place,
            tip=_exact,
        ),
        Column(
            "bytes",
            words("Commit log"),
            118,
            _bytes_words,
            lambda row: row.log,
            right=True,
            mono=True,
            tip=_exact,
            filterable=False,
        ),
        Column(
            "queueBytes",
            words("Queue files"),
            90,
            lambda row: size(row.queues),
            lambda row: row.queues,
            right=True,
            mono=True,
            tone=lambda _: "text2",
            filterable=False,
        ),
        Column(
            "messages",
            words("Units"),
            86,
            lambda row: number(row.messages),
            lambda row: row.messages,
            right=True,
            mono=True,
            filterable=False,
        ),
        Column(
            "mean",
            words("Mean"),
            68,
            lambda row: f"{row.mean:,} B" if row.mean is not None else "",
            lambda row: row.mean,
            right=True,
            mono=True,
            tone=lambda _: "text2",
            filterable=False,
        ),
        Column(
            "share",
            words("Share"),
            68,
            lambda row: f"{row.share:.1%}",
            lambda row: row.share,
            right=True,
            mono=True,
            tone=lambda _: "text2",
            filterable=False,
        ),
    ),
    look=_look,
    verdict=lambda row: row.note if row.kind != "topic" else tr("deleted: dead") if row.dead else "",
    record=_record,
    command=lambda _row: ["storescope", "space", "STORE"],
)
SLIM = replace(SPACE, columns=SPACE.columns[:4])
"""The same for a narrow window."""
