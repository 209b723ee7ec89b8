"""Statistics of the pipeline as areas and as rates over time; no Qt. Times are ms since the epoch, sizes bytes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from viewer.look.assets import tr, words
from viewer.pipeline.state import JobState, Record
from viewer.widgets.areas import Area

HOUR = 3_600_000
MOST_AREAS = 48
MOST_SERIES = 8
Grouping = Literal["statsQueue", "statsTag", "statsProducer"]
GROUPINGS: tuple[tuple[Grouping, str], ...] = (
    ("statsQueue", words("Topic › Queue")),
    ("statsTag", "Tag"),
    ("statsProducer", words("Producer")),
)
Measure = Literal["messages", "bytes"]
MEASURES: tuple[tuple[Measure, str], ...] = (
    ("messages", words("Units a second")),
    ("bytes", words("Bytes a second")),
)


def byte_areas(job: JobState, grouping: Grouping) -> Area:
    """The bytes of all units as areas in two levels; they add up to the bytes of all topics."""
    groups: dict[str, list[Area]] = defaultdict(list)
    for row in job.rows.get(grouping, []):
        topic = str(row.get("topic") or "")
        if grouping == "statsQueue":
            child_key, top = str(row.get("queueId")), topic
            name = tr("Queue {number}", number=row.get("queueId"))
        elif grouping == "statsTag":
            child_key, top = str(row.get("tag") or ""), topic
            name = child_key or tr("(no tag)")
        else:
            child_key, top = topic, str(row.get("host") or "")
            name = topic or tr("(no topic)")
        groups[top].append(Area(child_key or "-", name, int(row["bytes"]), int(row["messages"]), topic))
    tops = [_sum(top, areas, named=grouping != "statsProducer") for top, areas in groups.items()]
    children = _few(tops)
    return Area("", "", sum(child.bytes for child in children), children=children)


def _sum(top: str, areas: list[Area], *, named: bool) -> Area:
    below = _few(areas)
    return Area(
        top or "-",
        top or tr("(no topic)"),
        sum(child.bytes for child in below),
        sum(child.messages or 0 for child in below),
        top if named else "",
        children=below,
        code=not named,
    )


def _few(areas: Sequence[Area]) -> tuple[Area, ...]:
    """Sort areas by size; those too small to be seen become one area."""
    ordered = sorted((area for area in areas if area.bytes), key=lambda area: (-area.bytes, area.name))
    if len(ordered) <= MOST_AREAS:
        return tuple(ordered)
    small_areas = ordered[MOST_AREAS - 1 :]
    summary_area = Area(
        "\x00more",
        tr("{n:,} more", n=len(small_areas)),
        sum(area.bytes for area in small_areas),
        sum(area.messages or 0 for area in small_areas),
    )
    return tuple(sorted([*ordered[: MOST_AREAS - 1], summary_area], key=lambda area: (-area.bytes, area.name)))


@dataclass(frozen=True, slots=True)
class Series:
    """A topic's rate in each hour; the empty topic stands for all others."""

    topic: str
    rates: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates by hour: ``first`` is the beginning of the first hour, every hour up to the last is there."""

    first: int
    hours: int
    series: tuple[Series, ...]

    @property
    def highest(self) -> float:
        """The highest sum of one hour."""
        return max((sum(values) for values in zip(*(series.rates for series in self.series), strict=True)), default=0.0)


MOST_HOURS = 24 * 366


def rates(job: JobState, measure: Measure) -> Rates | None:
    """Rates by topic, most bytes first; None where no hour is known, or so many that most would be empty."""
    rows: list[Record] = job.rows.get("statsHour", [])
    hours_ms = [int(row["hour"]) for row in rows if row.get("hour") is not None]
    if not hours_ms:
        return None
    first_hour, hours = min(hours_ms), (max(hours_ms) - min(hours_ms)) // HOUR + 1
    if hours > MOST_HOURS:
        return None
    sums: dict[str, int] = defaultdict(int)
    for row in rows:
        sums[str(row.get("topic") or "")] += int(row["bytes"])
    ordered = sorted(sums, key=lambda topic: (-sums[topic], topic))
    shown_topics = set(ordered[:MOST_SERIES])
    lines: dict[str, list[float]] = {topic: [0.0] * hours for topic in ordered[:MOST_SERIES]}
    if len(ordered) > MOST_SERIES:
        lines[""] = [0.0] * hours
    for row in rows:
        topic = str(row.get("topic") or "")
        if row.get("hour") is not None:
            line = lines[topic if topic in shown_topics else ""]
            line[(int(row["hour"]) - first_hour) // HOUR] += int(row[measure]) / (HOUR / 1000)
    return Rates(first_hour, hours, tuple(Series(topic, tuple(line)) for topic, line in lines.items()))


def topics_by_bytes(job: JobState) -> list[str]:
    """The topics, most bytes first."""
    return [str(row["topic"]) for row in job.rows.get("statsTopic", []) if row.get("topic")]
