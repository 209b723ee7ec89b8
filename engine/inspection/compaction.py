"""Reads compacted topics: the log and the queue that a broker keeps for each queue with ``cleanup.policy=COMPACTION``
(docs/formats/compaction.md).

Consumers of such a topic read from here and not from the commit log. Compaction rewrites all files but the newest one
and keeps the newest message of each key. A unit's queue offset stays; its ``physicalOffset`` is its place in this log.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from engine.codec.message import Unit
from engine.codec.unit_scan import Damage
from engine.files.layout import parse_file_name
from engine.inspection.log_reader import LogReader
from engine.inspection.queue_reader import BATCH_UNIT_SIZE
from engine.mapped.read_only import DescriptorCache, FileSequence, ReadOnlyFile
from engine.store.queue_entry import CqEntry, batch_entry

_CHUNK_BYTES = 1 << 20


class CompactedQueue:
    """A compacted queue: ``log`` holds its units, ``entries`` lists them by queue offset."""

    def __init__(self, topic: str, queue_id: int, log: FileSequence, queue: FileSequence) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.log = LogReader(log, lambda: ())
        self.queue = queue

    def __repr__(self) -> str:
        return f"CompactedQueue({self.name!r})"

    @property
    def name(self) -> str:
        """Topic and queue id as ``topic/queue``."""
        return f"{self.topic}/{self.queue_id}"

    @property
    def folder(self) -> Path:
        """The folder of its log."""
        return self.log.sequence.folders[0]

    @property
    def size(self) -> int:
        """Bytes of its log files."""
        return sum(file.size for file in self.log.files)

    @property
    def min_offset(self) -> int:
        """Queue offset of the first message; 0 if there is none."""
        return next((entry.queue_offset for entry in self.entries()), 0)

    @property
    def max_offset(self) -> int:
        """Queue offset behind the last message; 0 if there is none."""
        return next((rows[-1].next_offset for rows in reversed(self.files_of_entries()) if rows), 0)

    def unpaired_files(self) -> list[int]:
        """Return the starts of files that only the log or only the queue has: a broker does not start with them."""
        log, queue = ({file.start_offset for file in sequence.files} for sequence in (self.log.sequence, self.queue))
        return sorted(log ^ queue)

    def entries(self) -> Iterator[CqEntry]:
        """The entries of all queue files. ``physical_offset`` is a place in :attr:`log`. Raises :class:`CannotRead`."""
        for rows in self.files_of_entries():
            yield from rows

    def files_of_entries(self) -> list[list[CqEntry]]:
        """The entries by queue file; the first empty one ends a file. Raises :class:`CannotRead`."""
        self.queue.require_complete()
        files = []
        for file in self.queue.files:
            rows: list[CqEntry] = []
            data = file.read(0, file.size - file.size % BATCH_UNIT_SIZE)
            for position in range(0, len(data), BATCH_UNIT_SIZE):
                entry = batch_entry(data, position)
                if entry.state != "entry":
                    break
                rows.append(entry)
            files.append(rows)
        return files

    def entry(self, queue_offset: int) -> CqEntry | None:
        """The entry of one message; None if there is none. Raises :class:`CannotRead`."""
        return next((entry for entry in self.entries() if entry.queue_offset == queue_offset), None)

    def items(self, *, crc: bool = True) -> Iterator[Unit | Damage]:
        """Units and damage of all log files in order; zero bytes end a file. Raises :class:`CannotRead`."""
        self.log.sequence.require_complete()
        for file in self.log.files:
            for item in self.log.walk(file.start_offset, file.end_offset, crc):
                if isinstance(item, Unit) or (isinstance(item, Damage) and not is_unwritten(file, item)):
                    yield item

    def units(self) -> Iterator[Unit]:
        """The units of all log files, without damage. Raises :class:`CannotRead`."""
        return (item for item in self.items(crc=False) if isinstance(item, Unit))

    def unit(self, queue_offset: int) -> Unit | None:
        """The message at ``queue_offset`` as a consumer gets it; None if there is none. Raises :class:`CannotRead`."""
        entry = self.entry(queue_offset)
        item = self.log.seen_at(entry.physical_offset) if entry is not None else None
        return item if isinstance(item, Unit) else None


def is_unwritten(file: ReadOnlyFile, damage: Damage) -> bool:
    """Return True for zero bytes up to the end of a file: compaction leaves the rest of each file empty."""
    if damage.unread or damage.offset + damage.size < file.end_offset:
        return False
    start = damage.offset - file.start_offset
    return not any(any(file.read(position, _CHUNK_BYTES)) for position in range(start, file.size, _CHUNK_BYTES))


def list_compacted(root: Path, cache: DescriptorCache) -> list[CompactedQueue]:
    """The compacted queues of the store at ``root`` by topic and queue id. Raises :class:`CannotRead`."""
    reading = cache.reading
    logs = root / "compaction" / "compactionLog"
    compacted = []
    for topic_folder in reading.folders(logs):
        for queue_folder in reading.folders(topic_folder, listed=True):
            queue_id = parse_file_name(queue_folder.name)
            if queue_id is None or queue_folder.name != str(queue_id):
                continue
            compacted.append(compacted_at(root, topic_folder.name, queue_id, cache))
    return sorted(compacted, key=lambda item: (item.topic, item.queue_id))


def compacted_at(root: Path, topic: str, queue_id: int, cache: DescriptorCache) -> CompactedQueue:
    """The compacted queue of this name, whether it has files or not."""
    log, queue = (
        FileSequence((root / "compaction" / part / topic / str(queue_id),), cache)
        for part in ("compactionLog", "compactionCq")
    )
    return CompactedQueue(topic, queue_id, log, queue)


def newer_with_key(queue: CompactedQueue, unit: Unit) -> Unit | None:
    """The message that has replaced ``unit``: a later one of the queue with the same keys. Raises :class:`CannotRead`.

    Java compares the whole text of KEYS.
    """
    replacement = None
    for candidate in queue.units():
        if candidate.queue_offset > unit.queue_offset and candidate.keys == unit.keys:
            replacement = candidate
    return replacement
