"""A store's bytes as a tree of named areas, under one of four groupings. No Qt.

The areas of each tree add up to the whole directory: bytes that belong to no topic have areas of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Literal

from engine.query import quote
from viewer.look.assets import tr, tr_plural, words
from viewer.runtime import places
from viewer.runtime.places import Place, Search
from viewer.widgets.areas import Area

if TYPE_CHECKING:
    from engine.inspection.space.account import NamedSpace, Space

Measure = Literal["bytes", "allocated"]
MEASURES: tuple[tuple[Measure, str], ...] = (("allocated", words("On disk")), ("bytes", words("Length")))
Grouping = Literal["topic", "tag", "producer", "day"]
GROUPINGS: tuple[tuple[Grouping, str], ...] = (
    ("topic", words("Topic › Queue › Day")),
    ("tag", words("Tag")),
    ("producer", words("Producer")),
    ("day", words("Day")),
)
UNITS = ("units", "stale", "beyondEnd")
OTHERS = "\x00others"
REST_PREFIX = "\x01"
"""Prefix of the keys of areas without a topic: a topic may have any name."""
MAX_AREAS = 48
"""Maximum number of areas below an area; the smallest of the others are merged."""
REST_LABELS = {
    "commitlog/blank": words("End-of-file units"),
    "commitlog/entryHeaders": words("Headers of DLedger entries"),
    "commitlog/zeroTail": words("Zero tail"),
    "commitlog/unreadable": words("Damaged"),
    "commitlog/notRead": words("No part of the log"),
    "commitlog/notLookedAt": words("Not looked at"),
    "commitlog/notInQueues": words("In no queue"),
    "queues": words("Queue files"),
    "index": words("Index files"),
    "timerlog": words("Timer log"),
    "timerwheel": words("Timer wheel"),
    "config": words("Config"),
    "tiered storage": words("Tiered storage"),
    "small": words("Checkpoint, marks"),
    "other": words("Other files"),
}
SMALL = ("checkpoint", "abort", "lock", "compaction")
HATCH_ROLES = {
    "commitlog/blank": "line",
    "commitlog/zeroTail": "line",
    "commitlog/unreadable": "error",
    "commitlog/notLookedAt": "line",
}


def area_of(space: Space, grouping: Grouping, measure: Measure = "bytes") -> Area:
    """Return the whole directory as one area; ``measure`` selects file lengths or space allocated on disk."""
    if measure == "allocated":
        space = replace(
            space, rows=tuple(replace(row, bytes=row.allocated) for row in space.rows), counted=space.allocated
        )
    make: dict[Grouping, Callable[[Space], Iterable[Area]]] = {
        "topic": _by_topic,
        "tag": _by_tag,
        "producer": _by_producer,
        "day": _by_day,
    }
    listed = [*make[grouping](space), *_rest(space)]
    return Area("", "", space.counted, children=_largest(listed))


def topic_words(topic: str | None) -> str:
    """Return the name of a topic as it is shown."""
    if topic == OTHERS or topic is None:
        return tr("(all others)")
    return topic or tr("(no topic)")


def _by_topic(space: Space) -> Iterable[Area]:
    cells: dict[str, dict[int, dict[str, list[int]]]] = defaultdict(lambda: defaultdict(dict))
    days = sorted({row.day for row in space.rows if row.day})
    for row in space.rows:
        if row.kind == "commitlog" and row.part in UNITS and row.topic is not None:
            totals = cells[row.topic][row.queue_id or 0].setdefault(row.day or "", [0, 0])
            totals[0] += row.bytes
            totals[1] += row.messages or 0
    for topic, queues in cells.items():
        note = tr("deleted: dead") if topic in space.deleted_topics else ""
        queue_areas = _largest(
            [_queue_area(topic, number, days_of_queue, days) for number, days_of_queue in queues.items()]
        )
        yield _sum(Area(topic, topic_words(topic), 0, 0, topic, note, target=places.queue(topic)), queue_areas)


def _queue_area(topic: str, number: int, by_day: dict[str, list[int]], days: list[str]) -> Area:
    day_areas = tuple(
        Area(
            day or "-",
            day or tr("no day"),
            count[0],
            count[1],
            topic,
            age=_age(day, days),
            target=search_of_day(day),
            code=True,
        )
        for day, count in sorted(by_day.items())
    )
    name = tr("Queue {number}", number=number)
    return _sum(Area(str(number), name, 0, 0, topic, target=places.queue(topic, number)), day_areas, keep_order=True)


def _by_tag(space: Space) -> Iterable[Area]:
    yield from _by_name(
        space.tags,
        space,
        lambda item: item.topic,
        topic_words,
        lambda item: item.name,
        lambda name: tr("(all others)") if name == OTHERS else name or tr("(no tag)"),
        _tag_target,
        outer_is_topic=True,
    )


def _by_producer(space: Space) -> Iterable[Area]:
    yield from _by_name(
        space.producers,
        space,
        lambda item: item.name,
        topic_words,
        lambda item: item.topic,
        topic_words,
        _host_target,
        outer_is_topic=False,
    )


def _by_name(
    rows: Iterable[NamedSpace],
    space: Space,
    outer: Callable[[NamedSpace], str | None],
    outer_words: Callable[[str | None], str],
    inner: Callable[[NamedSpace], str | None],
    inner_words: Callable[[str | None], str],
    target: Callable[[NamedSpace], Place | None],
    *,
    outer_is_topic: bool,
) -> Iterable[Area]:
    listed = list(rows)
    groups: dict[str | None, list[NamedSpace]] = defaultdict(list)
    for named_space in listed:
        groups[outer(named_space)].append(named_space)
    for name, group in groups.items():
        inner_areas = _largest(
            [
                Area(
                    inner(named_space) or "-",
                    inner_words(inner(named_space)),
                    named_space.bytes,
                    named_space.messages,
                    named_space.topic,
                    target=target(named_space),
                    code=outer_is_topic,
                )
                for named_space in group
            ]
        )
        topic = name or "" if outer_is_topic else ""
        place = places.queue(topic) if outer_is_topic else None
        yield _sum(
            Area(name or "-", outer_words(name), 0, 0, topic, target=place, code=not outer_is_topic), inner_areas
        )
    if not listed:
        yield from _by_topic(space)


def _by_day(space: Space) -> Iterable[Area]:
    cells: dict[str, dict[str, list[int]]] = defaultdict(dict)
    days = sorted({row.day for row in space.rows if row.day})
    for row in space.rows:
        if row.kind == "commitlog" and row.part in UNITS and row.topic is not None:
            totals = cells[row.day or ""].setdefault(row.topic, [0, 0])
            totals[0] += row.bytes
            totals[1] += row.messages or 0
    for day, topics in cells.items():
        topic_areas = _largest(
            [
                Area(
                    topic,
                    topic_words(topic),
                    count[0],
                    count[1],
                    topic,
                    age=_age(day, days),
                    target=places.queue(topic),
                )
                for topic, count in topics.items()
            ]
        )
        yield _sum(Area(day or "-", day or tr("no day"), 0, 0, target=search_of_day(day), code=True), topic_areas)


def _rest(space: Space) -> Iterable[Area]:
    sizes: dict[str, list[int]] = {}
    for row in space.rows:
        key = rest_key(row.kind, row.part, row.topic)
        if key:
            totals = sizes.setdefault(key, [0, 0])
            totals[0] += row.bytes
            totals[1] = file_count(space, key) or totals[1] + row.files
    goals = {
        "queues": Place("queue"),
        "index": places.index(),
        "config": Place("config"),
        "commitlog/unreadable": Place("findings"),
        "commitlog/zeroTail": places.log(),
    }
    for key, (size, files) in sizes.items():
        note = files_words(files) if files else ""
        yield Area(
            f"{REST_PREFIX}{key}",
            tr(REST_LABELS.get(key, key)),
            size,
            None,
            note=note,
            hatch=HATCH_ROLES.get(key, ""),
            target=goals.get(key),
        )


def rest_key(kind: str, part: str, topic: str | None) -> str:
    """Return the key of the area of a row that belongs to no topic; empty for units."""
    if kind == "commitlog":
        return "" if part in UNITS and topic is not None else f"commitlog/{part}"
    if kind in {"consumequeue", "batchconsumequeue", "consumequeue_ext"}:
        return "queues"
    return "small" if kind in SMALL else kind


def file_count(space: Space, key: str) -> int:
    """Count the files of the kinds that :func:`rest_key` puts together; 0 for parts of the log."""
    return sum(kind.files for kind in space.kinds if kind.kind != "commitlog" and rest_key(kind.kind, "", None) == key)


def files_words(count: int) -> str:
    """Return ``3 files``."""
    return tr_plural("{n:,} file", "{n:,} files", n=count)


def _sum(area: Area, parts: Iterable[Area], *, keep_order: bool = False) -> Area:
    children = tuple(parts) if keep_order else tuple(sorted(parts, key=lambda child: (-child.bytes, child.name)))
    return replace(
        area,
        bytes=sum(child.bytes for child in children),
        messages=sum(child.messages or 0 for child in children),
        children=children,
    )


def _largest(areas: list[Area]) -> tuple[Area, ...]:
    """Sort the areas by size and merge the smallest beyond :data:`MAX_AREAS` into one."""
    ordered = sorted((area for area in areas if area.bytes), key=lambda area: (-area.bytes, area.name))
    if len(ordered) <= MAX_AREAS:
        return tuple(ordered)
    small_areas = ordered[MAX_AREAS - 1 :]
    message_counts = [area.messages for area in small_areas if area.messages is not None]
    merged = Area(
        "\x00more",
        tr("{n:,} more", n=len(small_areas)),
        sum(area.bytes for area in small_areas),
        sum(message_counts) if message_counts else None,
    )
    return tuple(sorted([*ordered[: MAX_AREAS - 1], merged], key=lambda area: (-area.bytes, area.name)))


def _age(day: str, days: list[str]) -> float | None:
    if not day or len(days) < 2:
        return None
    first_day, last_day = date.fromisoformat(days[0]).toordinal(), date.fromisoformat(days[-1]).toordinal()
    return (date.fromisoformat(day).toordinal() - first_day) / max(last_day - first_day, 1)


def search_of_day(day: str) -> Search | None:
    """Return a search for the first unit of a day."""
    if not day:
        return None
    start = datetime.fromisoformat(day).astimezone()
    return Search("time", day, round(start.timestamp() * 1000))


def _tag_target(tag: NamedSpace) -> Place | None:
    if OTHERS in {tag.topic, tag.name or ""} or tag.name is None:
        return None
    return Place("filter", name=f"topic = {quote(tag.topic)} and tags = {quote(tag.name)}", part="only")


def _host_target(producer: NamedSpace) -> Place | None:
    if OTHERS in {producer.topic, producer.name or ""} or producer.name is None:
        return None
    return Place(
        "filter", name=f"topic = {quote(producer.topic)} and bornHost contains {quote(producer.name)}", part="only"
    )
