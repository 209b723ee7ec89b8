"""The account of a store's bytes as a tree of named areas, under one of four groupings; no Qt.

Every tree's areas add up to the whole directory: what no topic has is an area of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Literal

from engine.query import quote
from viewer.look.assets import tr, words
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
REST = "\x01"
"""Begins the keys of areas that are no topic's: a topic may have any name."""
MOST = 48
"""Areas below one; the smallest further ones become one area."""
REST_WORDS = {
    "commitlog/blank": words("End-of-file units"),
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
    "small": words("Checkpoint, marks"),
    "other": words("Other files"),
}
SMALL = ("checkpoint", "abort", "lock", "compaction")
HATCHED = {
    "commitlog/blank": "line",
    "commitlog/zeroTail": "line",
    "commitlog/unreadable": "error",
    "commitlog/notLookedAt": "line",
}


def area_of(space: Space, grouping: Grouping, measure: Measure = "bytes") -> Area:
    """The whole directory as one area; ``measure``: lengths, or what the disk gave for them."""
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
    return Area("", "", space.counted, children=_few(listed))


def topic_words(topic: str | None) -> str:
    """A topic's name as it is shown."""
    if topic == OTHERS or topic is None:
        return tr("(all others)")
    return topic or tr("(no topic)")


def _by_topic(space: Space) -> Iterable[Area]:
    cells: dict[str, dict[int, dict[str, list[int]]]] = defaultdict(lambda: defaultdict(dict))
    days = sorted({row.day for row in space.rows if row.day})
    for row in space.rows:
        if row.kind == "commitlog" and row.part in UNITS and row.topic is not None:
            one = cells[row.topic][row.queue_id or 0].setdefault(row.day or "", [0, 0])
            one[0] += row.bytes
            one[1] += row.messages or 0
    for topic, queues in cells.items():
        dead = tr("deleted: dead") if topic in space.deleted_topics else ""
        below = _few([_queue_area(topic, number, found, days) for number, found in queues.items()])
        yield _sum(Area(topic, topic_words(topic), 0, 0, topic, dead, target=places.queue(topic)), below)


def _queue_area(topic: str, number: int, found: dict[str, list[int]], days: list[str]) -> Area:
    below = tuple(
        Area(
            day or "-",
            day or tr("no day"),
            count[0],
            count[1],
            topic,
            age=_age(day, days),
            target=at_day(day),
            code=True,
        )
        for day, count in sorted(found.items())
    )
    name = tr("Queue {number}", number=number)
    return _sum(Area(str(number), name, 0, 0, topic, target=places.queue(topic, number)), below, keep_order=True)


def _by_tag(space: Space) -> Iterable[Area]:
    yield from _named(
        space.tags,
        space,
        lambda one: one.topic,
        topic_words,
        lambda one: one.name,
        lambda name: tr("(all others)") if name == OTHERS else name or tr("(no tag)"),
        _tag_target,
        top_is_topic=True,
    )


def _by_producer(space: Space) -> Iterable[Area]:
    yield from _named(
        space.producers,
        space,
        lambda one: one.name,
        topic_words,
        lambda one: one.topic,
        topic_words,
        _host_target,
        top_is_topic=False,
    )


def _named(
    rows: Iterable[NamedSpace],
    space: Space,
    top: Callable[[NamedSpace], str | None],
    top_words: Callable[[str | None], str],
    low: Callable[[NamedSpace], str | None],
    low_words: Callable[[str | None], str],
    target: Callable[[NamedSpace], Place | None],
    *,
    top_is_topic: bool,
) -> Iterable[Area]:
    listed = list(rows)
    groups: dict[str | None, list[NamedSpace]] = defaultdict(list)
    for one in listed:
        groups[top(one)].append(one)
    for name, own in groups.items():
        below = _few(
            [
                Area(
                    low(one) or "-",
                    low_words(low(one)),
                    one.bytes,
                    one.messages,
                    one.topic,
                    target=target(one),
                    code=top_is_topic,
                )
                for one in own
            ]
        )
        topic = name or "" if top_is_topic else ""
        goal = places.queue(topic) if top_is_topic else None
        yield _sum(Area(name or "-", top_words(name), 0, 0, topic, target=goal, code=not top_is_topic), below)
    if not listed:
        yield from _by_topic(space)


def _by_day(space: Space) -> Iterable[Area]:
    cells: dict[str, dict[str, list[int]]] = defaultdict(dict)
    days = sorted({row.day for row in space.rows if row.day})
    for row in space.rows:
        if row.kind == "commitlog" and row.part in UNITS and row.topic is not None:
            one = cells[row.day or ""].setdefault(row.topic, [0, 0])
            one[0] += row.bytes
            one[1] += row.messages or 0
    for day, topics in cells.items():
        below = _few(
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
        yield _sum(Area(day or "-", day or tr("no day"), 0, 0, target=at_day(day), code=True), below)


def _rest(space: Space) -> Iterable[Area]:
    sizes: dict[str, list[int]] = {}
    for row in space.rows:
        key = rest_key(row.kind, row.part, row.topic)
        if key:
            one = sizes.setdefault(key, [0, 0])
            one[0] += row.bytes
            one[1] = file_count(space, key) or one[1] + row.files
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
            f"{REST}{key}",
            tr(REST_WORDS.get(key, key)),
            size,
            None,
            note=note,
            hatch=HATCHED.get(key, ""),
            target=goals.get(key),
        )


def rest_key(kind: str, part: str, topic: str | None) -> str:
    """Which area that is no topic's a row belongs to; empty for units."""
    if kind == "commitlog":
        return "" if part in UNITS and topic is not None else f"commitlog/{part}"
    if kind in {"consumequeue", "batchconsumequeue", "consumequeue_ext"}:
        return "queues"
    return "small" if kind in SMALL else kind


def file_count(space: Space, key: str) -> int:
    """Files of the kinds that :func:`rest_key` puts together; 0 for parts of the log."""
    return sum(kind.files for kind in space.kinds if kind.kind != "commitlog" and rest_key(kind.kind, "", None) == key)


def files_words(count: int) -> str:
    """``3 files``."""
    return tr("1 file") if count == 1 else tr("{n:,} files", n=count)


def _sum(area: Area, below: Iterable[Area], *, keep_order: bool = False) -> Area:
    children = tuple(below) if keep_order else tuple(sorted(below, key=lambda one: (-one.bytes, one.name)))
    return replace(
        area,
        bytes=sum(one.bytes for one in children),
        messages=sum(one.messages or 0 for one in children),
        children=children,
    )


def _few(areas: list[Area]) -> tuple[Area, ...]:
    """Largest first; what is too many to be seen becomes one area."""
    ordered = sorted((one for one in areas if one.bytes), key=lambda one: (-one.bytes, one.name))
    if len(ordered) <= MOST:
        return tuple(ordered)
    rest = ordered[MOST - 1 :]
    told = [one.messages for one in rest if one.messages is not None]
    more = Area("\x00more", tr("{n:,} more", n=len(rest)), sum(one.bytes for one in rest), sum(told) if told else None)
    return tuple(sorted([*ordered[: MOST - 1], more], key=lambda one: (-one.bytes, one.name)))


def _age(day: str, days: list[str]) -> float | None:
    if not day or len(days) < 2:
        return None
    first, last = date.fromisoformat(days[0]).toordinal(), date.fromisoformat(days[-1]).toordinal()
    return (date.fromisoformat(day).toordinal() - first) / max(last - first, 1)


def at_day(day: str) -> Search | None:
    """The first unit of a day."""
    if not day:
        return None
    start = datetime.fromisoformat(day).astimezone()
    return Search("time", day, round(start.timestamp() * 1000))


def _tag_target(one: NamedSpace) -> Place | None:
    if OTHERS in {one.topic, one.name or ""} or one.name is None:
        return None
    return Place("filter", name=f"topic = {quote(one.topic)} and tags = {quote(one.name)}", part="only")


def _host_target(one: NamedSpace) -> Place | None:
    if OTHERS in {one.topic, one.name or ""} or one.name is None:
        return None
    return Place("filter", name=f"topic = {quote(one.topic)} and bornHost contains {quote(one.name)}", part="only")
