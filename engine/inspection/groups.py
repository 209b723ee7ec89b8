"""Consumer groups: their progress in each queue, what they must still handle, and which may not consume
(docs/formats/config-tables.md#tables).

Progress compares the offset tables with the queues. A group whose offset is at the end of the queue may still have
to handle messages in its retry topics, and messages that were popped and not acknowledged
(docs/protocol/pop.md#revive; docs/formats/transactions.md#retry, #pop). A popped message has a checkpoint in the
revive topic. Until the checkpoint is due, it is in the timer topic.

A broker answers pulls and pops of groups that may not consume, and of topics that may not be read, with NO_PERMISSION,
and what the group has not read waits.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from engine.codec import pop, properties
from engine.codec.config_tables import PERM_READ, ConsumerOffset, client_offsets, consumer_offsets, subscription_groups
from engine.codec.json_dialect import parse
from engine.codec.message import Unit
from engine.errors import CannotRead, StoreError, Undecoded
from engine.inspection import tables
from engine.inspection.get_message import store_time
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.store_queues import AnyQueue
from engine.inspection.tables import offsets, read_table
from engine.sentences import sentence
from engine.system_names import RETRY_PREFIX, REVIVE_GROUP, REVIVE_PREFIX, TIMER_TOPIC


@dataclass(frozen=True, slots=True)
class Permissions:
    """Groups with ``consumeEnable=false``, and the permission of each topic that may not be read."""

    barred_groups: frozenset[str] = frozenset()
    unreadable_topics: dict[str, int] = field(default_factory=dict)

    def of_group(self, group: str) -> str:
        """Words for why a group may not consume, "" if it may."""
        if group not in self.barred_groups:
            return ""
        return sentence("{group} may not consume: subscriptionGroup.json says consumeEnable=false", group=group)

    def of_topic(self, topic: str) -> str:
        """Words for why a topic may not be read, "" if it may."""
        perm = self.unreadable_topics.get(topic)
        return (
            ""
            if perm is None
            else sentence("{topic} may not be read: topics.json says perm {perm}", topic=topic, perm=perm)
        )

    def why_barred(self, group: str, topic: str) -> str:
        """Words for why a group gets nothing of a topic, "" if it gets what is there."""
        return self.of_group(group) or self.of_topic(topic)


def read_permissions(store: StoreSnapshot) -> Permissions:
    """The permissions in the tables that a broker would load. Raises :class:`CannotRead`."""
    groups = tables.loaded(store, "subscriptionGroup.json")
    rows = subscription_groups(groups).rows if groups is not None else ()
    topics = tables.topics(store) or {}
    return Permissions(
        frozenset(row.name for row in rows if not row.consume_enable),
        {name: topic.perm for name, topic in topics.items() if not topic.perm & PERM_READ},
    )


State = Literal["behind", "notBegun", "caughtUp", "beyondMax", "belowMin", "gone"]
Mode = Literal["cluster", "broadcast"]


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """A group's progress in one queue.

    ``offset`` is the next message it reads, ``behind`` the number of messages it has not read. ``belowMin``: the log
    has deleted some of these, whatever minimum a start would count from. ``notBegun``: the offset is below zero, as
    JavaScript clients write it; a broker treats it as no offset, so all that the queue holds is unread. ``waiting``:
    messages in retry topics, or popped and not acknowledged (:mod:`engine.inspection.groups`); None if not
    counted.
    """

    group: str
    topic: str
    queue_id: int
    offset: int
    max_offset: int
    behind: int
    oldest_unread_timestamp: int | None
    state: State
    mode: Mode
    waiting: int | None = None


def group_progress(store: StoreSnapshot, client_file: str | Path | None = None) -> Iterator[GroupProgress]:
    """Progress of every group in the store's tables, or of the client whose own ``offsets.json`` is given.

    Unreadable queues and tables are left out. Raises :class:`StoreError` if the given file cannot be read.
    """
    if client_file is not None:
        yield from _of_client(store, Path(client_file))
        return
    for row in _rows(store):
        for queue_id, offset in sorted(row.offsets.items()):
            with contextlib.suppress(CannotRead):
                yield _progress(store, row.group, row.topic, queue_id, offset, _mode(row))


@dataclass(frozen=True, slots=True)
class UnknownProgress:
    """A group in a queue that is not decoded, so its lag is unknown; ``why`` gives the reason."""

    group: str
    topic: str
    queue_id: int
    offset: int
    mode: Mode
    why: str


def unknown_progress(store: StoreSnapshot) -> Iterator[UnknownProgress]:
    """Offsets of the store's tables in queues that are not decoded."""
    for row in _rows(store):
        for queue_id, offset in sorted(row.offsets.items()):
            try:
                store.queues.find(row.topic, queue_id)
            except Undecoded as error:
                yield UnknownProgress(row.group, row.topic, queue_id, offset, _mode(row), error.what)
            except CannotRead:
                continue


def queue_progress(store: StoreSnapshot, topic: str, queue_id: int) -> Iterator[GroupProgress]:
    """Progress of every group that has an offset in one queue."""
    for row in _rows(store):
        if row.topic == topic and queue_id in row.offsets:
            yield _progress(store, row.group, topic, queue_id, row.offsets[queue_id], _mode(row))


def _rows(store: StoreSnapshot) -> Iterator[ConsumerOffset]:
    for name in ("consumerOffset.json", "lmqConsumerOffset.json"):
        table = None
        with contextlib.suppress(CannotRead):
            table = read_table(store, name)
        if table is not None and tables.note_broken_table(store, table) is None:
            yield from consumer_offsets(table.value).rows


def _mode(row: ConsumerOffset) -> Mode:
    return "broadcast" if row.mode == "broadcast" else "cluster"


def _of_client(store: StoreSnapshot, file: Path) -> Iterator[GroupProgress]:
    raw = store.small_file(file)
    if raw is None:
        raise StoreError(sentence("expected a client's offsets.json, found nothing of this name"), file=str(file))
    parsed = parse(raw)
    if parsed.complaint or not isinstance(parsed.value, dict):
        raise StoreError(
            sentence("expected a client's offsets.json: {value}", value=parsed.complaint or "found no object"),
            file=str(file),
        )
    group = file.resolve().parent.name
    for row in sorted(client_offsets(parsed.value).rows, key=lambda r: (r.topic, r.queue_id)):
        with contextlib.suppress(CannotRead):
            yield _progress(store, group, row.topic, row.queue_id, row.offset, "broadcast")


def _progress(store: StoreSnapshot, group: str, topic: str, queue_id: int, offset: int, mode: Mode) -> GroupProgress:
    queue = store.queues.find(topic, queue_id)
    if queue is None:
        state: State = "gone" if offset > 0 else "notBegun" if offset < 0 else "caughtUp"
        return GroupProgress(group, topic, queue_id, offset, 0, 0, None, state, mode)
    first_in_log, max_offset = queue.first_in_log, queue.max_offset
    if offset < 0:
        state = "notBegun"
    elif offset > max_offset:
        state = "beyondMax"
    elif offset == max_offset:
        state = "caughtUp"
    else:
        state = "belowMin" if offset < first_in_log else "behind"
    oldest = _oldest_unread(store, queue, max(offset, first_in_log))
    unread_count = max_offset - (first_in_log if offset < 0 else offset)
    return GroupProgress(group, topic, queue_id, offset, max_offset, max(unread_count, 0), oldest, state, mode)


def _oldest_unread(store: StoreSnapshot, queue: AnyQueue, next_offset: int) -> int | None:
    """Store time (ms) of the message at ``next_offset``, the next one in the log that the group reads."""
    if next_offset >= queue.max_offset:
        return None
    entry = queue.entry(next_offset)
    time = store_time(store, entry) if entry is not None else -1
    return time if time >= 0 else None


MAX_RECORDS = 20_000
"""Number of newest records of each revive queue, and of the timer topic, that are read: checkpoints live minutes."""
QueueKey = tuple[str, str, int]
"""Group, topic and queue id."""
PopKey = tuple[str, str, int, int, int]
"""Topic, group, queue id, first queue offset and time (ms) of a pop: its acknowledgements name the same values."""


@dataclass(frozen=True, slots=True)
class GroupWaits:
    """Waiting messages of all groups.

    ``retry``: messages by (group, topic); the topic is "" if a retry topic of a group serves all its topics.
    ``popped``: messages that were popped and not acknowledged, by group, topic and queue.
    """

    retry: Counter[tuple[str, str]] = field(default_factory=Counter)
    popped: Counter[QueueKey] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class WaitingMessages:
    """Messages that a group must still handle, whatever its offset is: ``retry`` of them are in retry topics,
    ``popped`` were popped and not acknowledged.
    """

    retry: int = 0
    popped: int = 0

    @property
    def messages(self) -> int:
        """All of them."""
        return self.retry + self.popped


NO_WAITS = WaitingMessages()


def find_group_waits(store: StoreSnapshot) -> GroupWaits:
    """Find the waiting messages of each group.

    Raises:
        CannotRead: offsets or records cannot be read or are not decoded.
    """
    store.require("pop")
    store.queues.require()
    read = {(row.group, row.topic): row.offsets for row in offsets(store) if row.mode != "broadcast"}
    groups = {group for group, _ in read}
    waits = GroupWaits()
    for topic, queues in store.queues.by_topic().items():
        if topic.startswith(RETRY_PREFIX):
            group, original = split_retry_topic(topic, groups)
            progress = read.get((group, topic), {})
            waiting = sum(
                max(queue.max_offset - max(progress.get(number, 0), queue.first_in_log), 0)
                for number, queue in queues.items()
            )
            if waiting:
                waits.retry[group, original] += waiting
    for point, waiting_offsets in open_checkpoints(store):
        waits.popped[point.group, point.topic, point.queue_id] += len(waiting_offsets)
    return waits


def waits_of(waits: GroupWaits, progress: GroupProgress) -> WaitingMessages:
    """Return the waiting messages of one group and queue; none for a broadcast.

    A retry topic has a single count for all queues of its topic.
    """
    group = progress.group
    if progress.mode == "broadcast":
        return NO_WAITS
    popped = waits.popped[group, progress.topic, progress.queue_id]
    if progress.topic.startswith(RETRY_PREFIX):
        return WaitingMessages(0, popped)
    popped += sum(
        count
        for (owner, topic, _queue), count in waits.popped.items()
        if owner == group and topic.startswith(RETRY_PREFIX) and pop.normal_topic(topic, group) == progress.topic
    )
    return WaitingMessages(waits.retry[group, progress.topic] + waits.retry[group, ""], popped)


def split_retry_topic(topic: str, groups: set[str]) -> tuple[str, str]:
    """Split a retry topic into its group and the topic whose messages are retried ("" if it serves all topics)."""
    name = topic.removeprefix(RETRY_PREFIX)
    if name in groups:
        return name, ""
    for group in sorted(groups, key=len, reverse=True):
        if name.startswith((f"{group}+", f"{group}_")):
            return group, name[len(group) + 1 :]
    return name, ""


def open_checkpoints(
    store: StoreSnapshot, max_records: int = MAX_RECORDS
) -> Iterator[tuple[pop.CheckPoint, list[int]]]:
    """Yield each pop whose messages are not all acknowledged, with their queue offsets, from the newest
    ``max_records`` records of each revive queue and of the timer topic; rows in a RocksDB are not among them. Raises
    :class:`CannotRead`.
    """
    store.queues.require()
    handled = {row.topic: row.offsets for row in offsets(store) if row.group == REVIVE_GROUP}
    points: dict[PopKey, pop.CheckPoint] = {}
    acknowledged: dict[PopKey, set[int]] = {}
    closed: set[PopKey] = set()
    queues_by_topic = store.queues.by_topic()
    for queue in queues_by_topic.get(TIMER_TOPIC, {}).values():
        for unit, offset in _newest_records(store, queue, max_records):
            if unit.properties.get(properties.REAL_TOPIC, "").startswith(REVIVE_PREFIX):
                _take(unit, offset, points, acknowledged)
    for topic, queues in queues_by_topic.items():
        for number, queue in queues.items() if topic.startswith(REVIVE_PREFIX) else ():
            for unit, offset in _newest_records(store, queue, max_records):
                key = _take(unit, offset, points, acknowledged)
                is_handled = offset <= handled.get(topic, {}).get(number, -1)
                if key and unit.tags == pop.CHECK_POINT_TAG and is_handled:
                    closed.add(key)
    for key, point in points.items():
        if key not in closed:
            waiting = [offset for offset in point.offsets if offset not in acknowledged.get(key, ())]
            if waiting:
                yield point, waiting


def _take(
    unit: Unit, offset: int, points: dict[PopKey, pop.CheckPoint], acknowledged: dict[PopKey, set[int]]
) -> PopKey | None:
    """Note a record; returns the pop that it belongs to, None if it is neither a checkpoint nor an acknowledgement."""
    if unit.tags == pop.CHECK_POINT_TAG:
        point = pop.read_check_point(unit.body, offset)
        if point is not None:
            points[_key(point)] = point
            return _key(point)
    elif unit.tags in {pop.ACK_TAG, pop.BATCH_ACK_TAG}:
        ack = pop.read_ack(unit.body, unit.tags, "")
        if ack is not None:
            acknowledged.setdefault(_key(ack), set()).update(ack.all_offsets)
            return _key(ack)
    return None


def _key(record: pop.CheckPoint | pop.Ack) -> PopKey:
    return record.topic, record.group, record.queue_id, record.start_offset, record.pop_time


def _newest_records(store: StoreSnapshot, queue: AnyQueue, max_records: int) -> Iterator[tuple[Unit, int]]:
    """The newest records of a queue with their queue offsets; damaged ones are skipped."""
    end = queue.max_offset
    for entry in queue.entries(max(queue.first_in_log, end - max_records), end):
        item = store.log.unit_at(entry.physical_offset, crc=False)
        if isinstance(item, Unit):
            yield item, entry.queue_offset
