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
MAX_AREAS = 48
MAX_SERIES = 8
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
    if len(ordered) <= MAX_AREAS:
        return tuple(ordered)
    small_areas = ordered[MAX_AREAS - 1 :]
    summary_area = Area(
        "\x00more",
        tr("{n:,} more", n=len(small_areas)),
        sum(area.bytes for area in small_areas),
        sum(area.messages or 0 for area in small_areas),
    )
    return tuple(sorted([*ordered[: MAX_AREAS - 1], summary_area], key=lambda area: (-area.bytes, area.name)))


@dataclass(frozen=True, slots=True)
class Series:
    """Rates of one topic in each span; the empty topic stands for all others."""

    topic: str
    rates: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates by spans of ``span_ms``: ``first`` is the beginning of the first, every span up to the last is there."""

    first: int
    spans: int
    series: tuple[Series, ...]
    span_ms: int = HOUR

    @property
    def highest(self) -> float:
        """The highest sum of one span."""
        return max((sum(values) for values in zip(*(series.rates for series in self.series), strict=True)), default=0.0)


MAX_SPANS = 24 * 366


def rates(job: JobState, measure: Measure) -> Rates | None:
    """Return rates by topic, most bytes first, by hour or by the shorter spans of the job.

    None if no time is known, or if the times are so far apart that most spans would be empty.
    """
    rows: list[Record] = job.rows.get("statsTime", [])
    begin_of, span_ms = ("time", int(rows[0]["spanMs"])) if rows else ("hour", HOUR)
    rows = rows or job.rows.get("statsHour", [])
    begins = [int(row[begin_of]) for row in rows if row.get(begin_of) is not None]
    if not begins:
        return None
    first, spans = min(begins), (max(begins) - min(begins)) // span_ms + 1
    if spans > MAX_SPANS:
        return None
    sums: dict[str, int] = defaultdict(int)
    for row in rows:
        sums[str(row.get("topic") or "")] += int(row["bytes"])
    ordered = sorted(sums, key=lambda topic: (-sums[topic], topic))
    own = set(ordered[:MAX_SERIES])
    by_topic: dict[str, list[float]] = {topic: [0.0] * spans for topic in ordered[:MAX_SERIES]}
    if len(ordered) > MAX_SERIES:
        by_topic[""] = [0.0] * spans
    for row in rows:
        topic = str(row.get("topic") or "")
        if row.get(begin_of) is not None:
            line = by_topic[topic if topic in own else ""]
            line[(int(row[begin_of]) - first) // span_ms] += int(row[measure]) / (span_ms / 1000)
    series = tuple(Series(topic, tuple(line)) for topic, line in by_topic.items())
    return Rates(first, spans, series, span_ms)


def topics_by_bytes(job: JobState) -> list[str]:
    """The topics, most bytes first."""
    return [str(row["topic"]) for row in job.rows.get("statsTopic", []) if row.get("topic")]
