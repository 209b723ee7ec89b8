"""Lite topics of a store: their light queues, when a broker deletes them, and who has not read them
(docs/formats/consume-queue.md#light-queues). Java: ``AbstractLiteLifecycleManager``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.codec.lite_topics import split_lite_queue
from engine.inspection import tables
from engine.inspection.get_message import store_time
from engine.inspection.groups import group_progress

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot

EXPIRATION = "lite.topic.expiration"
BOUND_TOPIC = "lite.bind.topic"
MIN_INACTIVE_MS = 15 * 60 * 1000
"""``minLiteTTl``: no lite topic is deleted sooner after its last message, or sooner after the broker's start."""


@dataclass(frozen=True, slots=True)
class LiteTopic:
    """A lite topic. ``last_timestamp``: store time of its last message; ``expires_at``: a broker deletes it after this
    time (ms), None: never. ``behind``: messages that each group with an offset has not read.
    """

    topic: str
    name: str
    queue: str
    min_offset: int
    max_offset: int
    last_timestamp: int | None
    expires_at: int | None
    behind: tuple[tuple[str, int], ...]

    @property
    def unread(self) -> tuple[tuple[str, int], ...]:
        """Groups that have messages to read, with their number."""
        return tuple((group, count) for group, count in self.behind if count > 0)

    def is_expired(self, now: int) -> bool:
        """Return True if a broker that runs at ``now`` (ms) deletes it."""
        return self.expires_at is not None and now > self.expires_at


@dataclass(frozen=True, slots=True)
class LiteGroup:
    """A group that reads lite topics, with its attributes about them."""

    name: str
    topic: str
    attributes: tuple[tuple[str, str], ...]


def expiration_minutes(store: StoreSnapshot) -> dict[str, int]:
    """Minutes after which the lite topics of a topic are deleted, by topic; topics that keep them are left out.

    Raises :class:`CannotRead`.
    """
    minutes = {name: row.attributes.get(EXPIRATION, "") for name, row in (tables.topics(store) or {}).items()}
    return {name: int(text) for name, text in minutes.items() if text.isdecimal() and int(text) > 0}


def lite_topics(store: StoreSnapshot, topic: str | None = None) -> Iterator[LiteTopic]:
    """The lite topics of a store, or of one of its topics. Raises :class:`CannotRead`."""
    queues = {}
    for name, by_id in store.queues.by_topic().items():
        parts = split_lite_queue(name)
        if parts is not None and 0 in by_id and topic in {None, parts[0]}:
            queues[name] = (*parts, by_id[0])
    if not queues:
        return
    minutes = expiration_minutes(store)
    behind: dict[str, dict[str, int]] = defaultdict(dict)
    for progress in group_progress(store):
        if progress.topic in queues and progress.behind is not None:
            behind[progress.topic][progress.group] = progress.behind
    for name, (parent, lite_topic, queue) in queues.items():
        newest = queue.entry(queue.max_offset - 1) if queue.max_offset > max(queue.min_offset, 0) else None
        stored = store_time(store, newest) if newest is not None else -1
        expires_at = (
            stored + max(minutes[parent] * 60_000, MIN_INACTIVE_MS) if stored > 0 and parent in minutes else None
        )
        yield LiteTopic(
            parent,
            lite_topic,
            name,
            max(queue.min_offset, 0),
            queue.max_offset,
            stored if stored > 0 else None,
            expires_at,
            tuple(sorted(behind[name].items())),
        )


def lite_groups(store: StoreSnapshot, topic: str | None = None) -> list[LiteGroup]:
    """The groups that are bound to a topic with lite topics. Raises :class:`CannotRead`."""
    groups = []
    for row in tables.group_rows(store) or ():
        bound = row.attributes.get(BOUND_TOPIC)
        if bound is not None and topic in {None, bound}:
            attributes = tuple(sorted((key, value) for key, value in row.attributes.items() if key.startswith("lite.")))
            groups.append(LiteGroup(row.name, bound, attributes))
    return groups
