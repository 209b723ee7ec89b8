"""What a queue's files and the groups' offsets say of it, read off the loop; no Qt.

Everything here touches the disk and belongs into a job.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from engine.codec.message import SCHEDULE_TOPIC
from engine.errors import CannotRead
from engine.inspection.group_waits import find_group_waits, waits_of
from engine.inspection.groups import GroupProgress, group_progress, queue_progress
from engine.inspection.queue_place import bounds_around, units_at
from engine.inspection.queue_reader import QueueReader
from engine.inspection.snapshot import StoreSnapshot
from viewer.queues.columns import state_of
from viewer.queues.queue_line import QueueFile
from viewer.queues.rows import EntryRow, QueueRow, QueueSource
from viewer.widgets.drawn_marks import Unit

LEADS_ELSEWHERE = frozenset(("missing", "wrongTopic", "wrongQueue", "wrongQueueOffset"))
"""Verdicts of entries that do not lead to their unit."""
MOST_SEARCHED = 256 << 20
"""Bytes of the log that are looked through for the unit of a wrong entry."""
QueueKey = tuple[str, int]
"""Topic and queue id."""


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """One queue at one time. ``raw_end``: behind the last readable entry, stale ones included; ``why_min`` in words."""

    topic: str
    queue_id: int
    kind: str
    files: tuple[QueueFile, ...]
    first: int
    minimum: int
    maximum: int
    raw_end: int
    why_min: str
    min_physical: int | None
    groups: tuple[GroupProgress, ...]
    has_ext: bool

    @property
    def delayed(self) -> bool:
        """Entries carry delivery times in place of tag codes."""
        return self.topic == SCHEDULE_TOPIC


def queue_facts(store: StoreSnapshot, queue: QueueReader, progress: Iterable[GroupProgress]) -> QueueFacts:
    """All facts about one queue and the groups that read it; a few reads, whatever its length."""
    unit = queue.unit_size
    batch = queue.kind == "batch"
    files = tuple(QueueFile(f.name, f.start_offset // unit, f.end_offset // unit) for f in queue.files)
    first = files[0].start if files else 0
    raw_end = queue.raw_end // unit
    if batch:
        files = _by_message(queue, files, raw_end)
        first, raw_end = files[0].start if files else 0, queue.max_offset
    why, physical = _minimum(store, queue)
    groups = tuple(sorted(progress, key=lambda group: (-group.behind, group.group)))
    return QueueFacts(
        queue.topic,
        queue.queue_id,
        queue.kind,
        files,
        first,
        max(queue.min_offset, 0),
        queue.max_offset,
        raw_end,
        why,
        physical,
        groups,
        queue.ext is not None,
    )


def _by_message(queue: QueueReader, files: tuple[QueueFile, ...], end: int) -> tuple[QueueFile, ...]:
    """The files of a batch queue in queue offsets: their places in the folder are bytes and say nothing of them."""
    found = []
    for at, file in enumerate(files):
        if file.start >= end:
            break
        raw = queue.array(file.start, file.start + 1)
        start = int(raw[0]["msg_base_offset"]) if len(raw) else 0
        stop = queue.max_offset
        if at + 1 < len(files) and files[at + 1].start < end:
            following = queue.array(files[at + 1].start, files[at + 1].start + 1)
            stop = int(following[0]["msg_base_offset"]) if len(following) else stop
        found.append(QueueFile(file.name, start, max(stop, start)))
    return tuple(found)


def _minimum(store: StoreSnapshot, queue: QueueReader) -> tuple[str, int | None]:
    """Why the queue's minimum is what it is, as a key for the pane's sentences, and the place of its unit."""
    entry = queue.entry(queue.min_offset) if queue.max_offset > max(queue.min_offset, 0) else None
    if not queue.files:
        return "noFiles", None
    if entry is None:
        return "nothing", None
    if entry.physical_offset < store.log.min_offset:
        return "kept", entry.physical_offset
    first = max(queue.sequence.min_offset, 0) // queue.unit_size
    if queue.kind == "simple" and queue.min_offset > first:
        return "corrected", entry.physical_offset
    return "first", entry.physical_offset


@dataclass(frozen=True, slots=True)
class Loaded:
    """What one look at the chosen queues gave."""

    facts: dict[QueueKey, QueueFacts]
    source: QueueSource


def look(store: StoreSnapshot, keys: list[QueueKey]) -> Loaded:
    """The facts of the queues that are there, and the rows of all of them."""
    readers = [reader for key in dict.fromkeys(keys) if (reader := store.queue(*key)) is not None]
    progress = _progress(store, [(reader.topic, reader.queue_id) for reader in readers])
    progress = _with_waits(store, progress)
    facts = {key: queue_facts(store, reader, progress[key]) for key, reader in zip(progress, readers, strict=True)}
    groups: dict[QueueKey, dict[int, tuple[str, ...]]] = {}
    for key, one in facts.items():
        marks: dict[int, tuple[str, ...]] = {}
        for mark in one.groups:
            marks[mark.offset] = (*marks.get(mark.offset, ()), mark.group)
        groups[key] = marks
    return Loaded(facts, QueueSource(store.log, readers, groups))


def _with_waits(
    store: StoreSnapshot, progress: dict[QueueKey, list[GroupProgress]]
) -> dict[QueueKey, list[GroupProgress]]:
    """Add what waits for each group; it is read only where a group has come to the end of its queue."""
    if all(group.state != "caughtUp" for groups in progress.values() for group in groups):
        return progress
    try:
        waits = find_group_waits(store)
    except CannotRead:
        return progress
    return {
        key: [replace(group, waiting=waits_of(waits, group).messages) for group in groups]
        for key, groups in progress.items()
    }


def own_unit(store: StoreSnapshot, row: EntryRow) -> int | None:
    """Where the unit stands that a wrong entry should lead to: between the units of the good entries around it; None
    where the entry is right, or none of the log has its queue offset.
    """
    queue = store.queue(row.topic, row.queue_id)
    if queue is None or queue.kind != "simple" or state_of(row) not in LEADS_ELSEWHERE:
        return None
    start, stop = bounds_around(store.log, queue, row.queue_offset)
    if stop - start > MOST_SEARCHED:
        return None
    found = [unit.offset for unit in units_at(store.log, row.topic, row.queue_id, row.queue_offset, start, stop)]
    return found[-1] if found else None


def _progress(store: StoreSnapshot, keys: list[QueueKey]) -> dict[QueueKey, list[GroupProgress]]:
    """The groups of each queue; the tables of offsets are read once, however many queues there are."""
    if len(keys) == 1:
        return {keys[0]: list(queue_progress(store, *keys[0]))}
    found: dict[QueueKey, list[GroupProgress]] = {key: [] for key in keys}
    for one in group_progress(store) if keys else ():
        if (one.topic, one.queue_id) in found:
            found[one.topic, one.queue_id].append(one)
    return found


def units_of(rows: list[QueueRow], key: QueueKey) -> dict[int, Unit]:
    """Place, size and keys of the unit by queue offset, for the entries that are some."""
    found: dict[int, Unit] = {}
    for one in rows:
        if isinstance(one, EntryRow) and (one.topic, one.queue_id) == key and one.state == "entry":
            unit = (one.physical_offset, one.size, one.keys)
            found.update(dict.fromkeys(range(one.queue_offset, one.next_offset), unit))
    return found


def verdicts_of(rows: list[QueueRow], key: QueueKey) -> dict[int, str | None]:
    """Verdict (or state) by queue offset; a batch answers for all its messages."""
    found: dict[int, str | None] = {}
    for one in rows:
        if isinstance(one, EntryRow) and (one.topic, one.queue_id) == key:
            found.update(dict.fromkeys(range(one.queue_offset, one.next_offset), state_of(one)))
    return found
