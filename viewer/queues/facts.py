"""Facts about a queue from its files and the groups' offsets, read off the loop; no Qt.

Everything here touches the disk and belongs into a job.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from engine.errors import CannotRead
from engine.inspection.groups import GroupProgress, find_group_waits, group_progress, queue_progress, waits_of
from engine.inspection.moved_entries import MovedMessages, find_moved_messages
from engine.inspection.queue_place import bounds_around, units_at
from engine.inspection.queue_reader import QueueReader
from engine.inspection.queue_sides import BothSides, QueueOnBothSides, compare_queue, find_both_sides
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.static_topics import LogicalOffsets, LogicalRange, find_logical_offsets
from engine.inspection.store_queues import AnyQueue
from engine.system_names import SCHEDULE_TOPIC
from viewer.queues.columns import state_of
from viewer.queues.queue_line import QueueFile
from viewer.queues.rows import EntryRow, QueueRow, QueueSource, entry_range
from viewer.widgets.drawn_marks import Unit

WRONG_VERDICTS = frozenset(("missing", "wrongTopic", "wrongQueue", "wrongQueueOffset"))
"""Verdicts of entries that do not lead to their unit."""
MAX_SEARCHED_BYTES = 256 << 20
"""Maximum bytes of the log that are searched for the unit of a wrong entry."""
MAX_COMPARED_ENTRIES = 8
"""Queues that are compared with those of the other kind at once."""
QueueKey = tuple[str, int]
"""Topic and queue id."""


@dataclass(frozen=True, slots=True)
class TieredFacts:
    """The part of a queue in tiered storage: queue offsets [minimum, maximum), bytes, and its folder if it is known."""

    minimum: int
    maximum: int
    bytes: int
    folder: str | None


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """State of one queue at one time. ``raw_end``: end of the readable entries, stale ones included; ``why_min`` is
    a key for the pane's sentences.
    """

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
    in_rocksdb: bool = False
    on_both_sides: QueueOnBothSides | None = None
    """The queue in files and in a RocksDB, if the store has both kinds and few queues are chosen."""
    both_sides: BothSides | None = None
    first_in_log: int = 0
    """Queue offset of the first entry whose message is in the log."""
    tiered: TieredFacts | None = None
    logical: tuple[LogicalRange, ...] = ()
    """Parts of logical queues of a static topic that are in this queue."""
    has_priorities: bool = False
    """Its topic is of type PRIORITY."""

    @property
    def moved(self) -> tuple[int, int] | None:
        """Queue offsets of the messages that are only in tiered storage, [start, end)."""
        if self.tiered is None or self.tiered.minimum >= min(self.first_in_log, self.tiered.maximum):
            return None
        return self.tiered.minimum, min(self.first_in_log, self.tiered.maximum)

    @property
    def delayed(self) -> bool:
        """Entries carry delivery times in place of tag codes."""
        return self.topic == SCHEDULE_TOPIC


def queue_facts(
    store: StoreSnapshot, queue: AnyQueue, progress: Iterable[GroupProgress], moved: MovedMessages | None = None
) -> QueueFacts:
    """Return all facts about one queue and the groups that read it; needs a few reads, whatever its length."""
    unit = queue.unit_size
    files = tuple(QueueFile(f.name, f.start_offset // unit, f.end_offset // unit) for f in queue.files)
    first_offset = files[0].start if files else queue.first_number if queue.in_rocksdb else 0
    raw_end = queue.raw_end // unit
    if isinstance(queue, QueueReader) and queue.kind == "batch":
        files = _by_message(queue, files, raw_end)
        first_offset, raw_end = files[0].start if files else 0, queue.max_offset
    tiered = None
    if moved is not None and queue.kind == "simple":
        first_offset, raw_end = entry_range(queue, moved)
        folder = moved.tiered.store.folder
        tiered = TieredFacts(
            moved.tiered.min_offset, moved.tiered.max_offset, moved.tiered.size, None if folder is None else str(folder)
        )
    why, physical = _minimum(store, queue)
    groups = tuple(sorted(progress, key=lambda group: (-group.behind, group.group)))
    return QueueFacts(
        queue.topic,
        queue.queue_id,
        queue.kind,
        files,
        first_offset,
        max(queue.min_offset, 0),
        queue.max_offset,
        raw_end,
        why,
        physical,
        groups,
        queue.ext is not None,
        queue.in_rocksdb,
        first_in_log=queue.first_in_log if tiered is not None else 0,
        tiered=tiered,
        has_priorities=queue.topic in store.priority_topics,
    )


def _by_message(queue: QueueReader, files: tuple[QueueFile, ...], end: int) -> tuple[QueueFile, ...]:
    """The files of a batch queue in queue offsets: their places in the folder are bytes and say nothing of them."""
    message_files = []
    for index, file in enumerate(files):
        if file.start >= end:
            break
        raw = queue.array(file.start, file.start + 1)
        start = int(raw[0]["msg_base_offset"]) if len(raw) else 0
        stop = queue.max_offset
        if index + 1 < len(files) and files[index + 1].start < end:
            following = queue.array(files[index + 1].start, files[index + 1].start + 1)
            stop = int(following[0]["msg_base_offset"]) if len(following) else stop
        message_files.append(QueueFile(file.name, start, max(stop, start)))
    return tuple(message_files)


def _minimum(store: StoreSnapshot, queue: AnyQueue) -> tuple[str, int | None]:
    """Return why the queue's minimum is what it is, as a key for the pane's sentences, and the offset of its unit."""
    entry = queue.entry(queue.min_offset) if queue.max_offset > max(queue.min_offset, 0) else None
    if not queue.files and not queue.in_rocksdb:
        return "noFiles", None
    if entry is None:
        return "nothing", None
    if entry.physical_offset < store.log.min_offset:
        return "kept", entry.physical_offset
    if queue.kind == "simple" and queue.min_offset > queue.first_number:
        return "corrected", entry.physical_offset
    return "firstRow" if queue.in_rocksdb else "first", entry.physical_offset


@dataclass(frozen=True, slots=True)
class LoadedQueues:
    """Facts and rows of the chosen queues."""

    facts: dict[QueueKey, QueueFacts]
    source: QueueSource


def look(store: StoreSnapshot, keys: list[QueueKey]) -> LoadedQueues:
    """Return the facts of those queues that exist, and the rows of all of them."""
    readers = [reader for key in dict.fromkeys(keys) if (reader := store.queues.find_with_moved(*key)) is not None]
    progress = _progress(store, [(reader.topic, reader.queue_id) for reader in readers])
    progress = _with_waits(store, progress)
    logical = _logical_offsets(store, list(progress))
    moved = {key: found for key in progress if (found := find_moved_messages(store, *key)) is not None}
    facts = {
        key: replace(queue_facts(store, reader, progress[key], moved.get(key)), logical=_ranges_of(logical.get(key)))
        for key, reader in zip(progress, readers, strict=True)
    }
    if len(facts) <= MAX_COMPARED_ENTRIES:
        facts = {key: _on_both_sides(store, queue) for key, queue in facts.items()}
    groups: dict[QueueKey, dict[int, tuple[str, ...]]] = {}
    for key, queue in facts.items():
        marks: dict[int, tuple[str, ...]] = {}
        for mark in queue.groups:
            marks[mark.offset] = (*marks.get(mark.offset, ()), mark.group)
        groups[key] = marks
    return LoadedQueues(facts, QueueSource(store.log, readers, groups, moved=moved, logical=logical))


def _ranges_of(logical: LogicalOffsets | None) -> tuple[LogicalRange, ...]:
    return () if logical is None else logical.ranges


def _logical_offsets(store: StoreSnapshot, keys: list[QueueKey]) -> dict[QueueKey, LogicalOffsets]:
    """The logical offsets of those queues that are part of a static topic."""
    by_topic = {topic: find_logical_offsets(store, topic) for topic in dict.fromkeys(topic for topic, _ in keys)}
    return {(topic, queue_id): by_topic[topic][queue_id] for topic, queue_id in keys if queue_id in by_topic[topic]}


def _on_both_sides(store: StoreSnapshot, facts: QueueFacts) -> QueueFacts:
    """Add what the other kind of queues has of this queue; the facts as they are if it cannot be read."""
    beside = store.queues.rocksdb_beside_files
    if beside is None or facts.kind != "simple":
        return facts
    try:
        in_files, in_rocksdb = store.queue_folders.by_topic(), beside.by_topic()
        topic, queue_id = facts.topic, facts.queue_id
        queues = in_files.get(topic, {}).get(queue_id), in_rocksdb.get(topic, {}).get(queue_id)
        compared = compare_queue(topic, queue_id, *queues)
        return replace(facts, on_both_sides=compared, both_sides=find_both_sides(store))
    except CannotRead:
        return facts


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
    """Return the offset of the unit that a wrong entry should lead to, searched between the units of the good
    entries around it; None if the entry is right or the log has no unit with its queue offset.
    """
    queue = store.queues.find(row.topic, row.queue_id)
    if queue is None or queue.kind != "simple" or state_of(row) not in WRONG_VERDICTS:
        return None
    start, stop = bounds_around(store.log, queue, row.queue_offset)
    if stop - start > MAX_SEARCHED_BYTES:
        return None
    offsets = [unit.offset for unit in units_at(store.log, row.topic, row.queue_id, row.queue_offset, start, stop)]
    return offsets[-1] if offsets else None


def _progress(store: StoreSnapshot, keys: list[QueueKey]) -> dict[QueueKey, list[GroupProgress]]:
    """The groups of each queue; the tables of offsets are read once, however many queues there are."""
    if len(keys) == 1:
        return {keys[0]: list(queue_progress(store, *keys[0]))}
    progress_by_queue: dict[QueueKey, list[GroupProgress]] = {key: [] for key in keys}
    for progress in group_progress(store) if keys else ():
        if (progress.topic, progress.queue_id) in progress_by_queue:
            progress_by_queue[progress.topic, progress.queue_id].append(progress)
    return progress_by_queue


def units_of(rows: list[QueueRow], key: QueueKey) -> dict[int, Unit]:
    """Place, size and keys of the unit by queue offset, for the entries that are some."""
    units: dict[int, Unit] = {}
    for row in rows:
        if not isinstance(row, EntryRow) or row.physical_offset is None:
            continue
        if (row.topic, row.queue_id) == key and row.state == "entry":
            unit = (row.physical_offset, row.size, row.keys)
            units.update(dict.fromkeys(range(row.queue_offset, row.next_offset), unit))
    return units


def verdicts_of(rows: list[QueueRow], key: QueueKey) -> dict[int, str | None]:
    """Verdict (or state) by queue offset; a batch answers for all its messages."""
    verdicts: dict[int, str | None] = {}
    for row in rows:
        if isinstance(row, EntryRow) and (row.topic, row.queue_id) == key:
            verdicts.update(dict.fromkeys(range(row.queue_offset, row.next_offset), state_of(row)))
    return verdicts
