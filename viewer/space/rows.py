"""Table of the Space view: a row for each topic and each other area, and the sum compared with the files."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from viewer.look.assets import tr, tr_plural, words
from viewer.look.formats import number, plain, size
from viewer.look.topic_kinds import is_system_topic
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.space.areas import (
    OTHERS,
    REST_LABELS,
    REST_PREFIX,
    UNITS,
    file_count,
    files_words,
    rest_key,
    search_of_day,
    topic_words,
)
from viewer.space.day_bars import MAX_DAYS, DayBar
from viewer.widgets.columns import Column, RecordKind, RowAppearance

if TYPE_CHECKING:
    from engine.inspection.space.account import Space


@dataclass(frozen=True, slots=True)
class SpaceRow:
    """A row: ``kind`` is topic, rest or sum; sizes in bytes, ``share`` of the whole directory."""

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
    """Return the topics by bytes with system topics last, then the other areas, then the sum."""
    topics: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    other_areas: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in space.rows:
        key = rest_key(row.kind, row.part, row.topic)
        if row.topic is not None and key in {"", "queues"}:
            topic_totals = topics[row.topic]
            topic_totals[1 if key else 0] += row.bytes
            topic_totals[2] += 0 if key else row.messages or 0
            topic_totals[3] += row.allocated
        else:
            area_totals = other_areas[key or "other"]
            area_totals[0] += row.bytes
            area_totals[1] = file_count(space, key) or area_totals[1] + row.files
            area_totals[2] += row.allocated
    directory_bytes = space.bytes or 1
    space_table = [
        SpaceRow(
            topic,
            "topic",
            topic_words(topic),
            log,
            queues,
            messages if space.is_log_decoded else messages or None,
            (log + queues) / directory_bytes,
            topic=None if topic == OTHERS else topic,
            allocated=allocated,
            dead=topic in space.deleted_topics,
        )
        for topic, (log, queues, messages, allocated) in topics.items()
    ]
    space_table.sort(key=lambda row: (is_system_topic(row.key), -row.log - (row.queues or 0), row.key))
    for key, (total, files, allocated) in other_areas.items():
        if total or files:
            notes = [files_words(files)] if files else []
            if allocated != total:
                notes.append(tr("{size} allocated", size=size(allocated)))
            name = tr(REST_LABELS.get(key, key))
            space_table.append(
                SpaceRow(
                    f"{REST_PREFIX}{key}",
                    "rest",
                    name,
                    total,
                    share=total / directory_bytes,
                    note=" · ".join(notes),
                    allocated=allocated,
                )
            )
    space_table.append(_sum(space))
    return space_table


def _sum(space: Space) -> SpaceRow:
    note = (
        tr("bytes, equal to the files ✓")
        if space.equal
        else tr_plural("the files have {n:,} byte", "the files have {n:,} bytes", n=space.bytes)
    )
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
    """Return a bar for each of the newest days, oldest first; all earlier days are one bar.

    ``topics`` are those with a colour, in order.
    """
    cells: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    messages: dict[str, int] = defaultdict(int)
    for row in space.rows:
        if row.kind == "commitlog" and row.part in UNITS and row.topic is not None and row.day:
            cells[row.day][row.topic] += row.bytes
            messages[row.day] += row.messages or 0
    order = {topic: number for number, topic in enumerate(topics)}
    days = sorted(cells)
    early, late = days[: max(len(days) - MAX_DAYS, 0)], days[max(len(days) - MAX_DAYS, 0) :]
    bars = []
    if early:
        merged: dict[str, int] = defaultdict(int)
        for day in early:
            for topic, count in cells[day].items():
                merged[topic] += count
        bars.append(_bar(f"≤ {early[-1]}", merged, sum(messages[day] for day in early), order))
    return bars + [_bar(day, cells[day], messages[day], order) for day in late]


def _bar(day: str, cells: dict[str, int], messages: int, order: dict[str, int]) -> DayBar:
    parts = sorted(cells.items(), key=lambda item: (order.get(item[0], 99), -item[1], item[0]))
    return DayBar(day, sum(cells.values()), messages, tuple(parts), search_of_day(day[-10:]))


def _look(row: SpaceRow) -> RowAppearance | None:
    if row.kind == "sum":
        return RowAppearance(
            fill="raised", tone="ok" if row.equal else "error", words=row.note, words_from=2, strong=True
        )
    if row.kind == "rest":
        return RowAppearance(
            tone="error" if row.key.endswith("unreadable") else "text2", words=row.note or " ", words_from=2
        )
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
        "what": row.key.removeprefix(REST_PREFIX) if row.kind == "rest" else row.kind,
        "bytes": row.log,
        "queueBytes": row.queues,
        "messages": row.messages,
        "mean": row.mean,
        "share": round(row.share, 6),
        "allocated": row.allocated,
        "note": row.note,
    }


NARROW = 540
"""Width below which the table hides mean and share, px at 100 %."""

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
"""The same table for a narrow window."""
