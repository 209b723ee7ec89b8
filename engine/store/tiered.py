"""Reads tiered storage with the posix provider (docs/formats/tiered.md): messages that a broker with
``TieredMessageStore`` has copied out of its log, queue by queue.

``config/tieredStoreMetadata.json`` says which segments there are. Their files are in ``tieredStoreFilePath``, which
only the broker's configuration names, or in a folder of the store. Offsets of units are those of the tiered log of
their queue.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from engine.codec import tiered as codec
from engine.codec.json_dialect import parse
from engine.codec.message import Unit, decode
from engine.errors import CannotRead, CorruptUnit
from engine.files.store_folders import tiered_folder
from engine.mapped.read_only import DescriptorCache, ReadOnlyFile
from engine.sentences import sentence
from engine.store.get_message import GetMessageStatus

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from engine.files.layout import StorePaths
    from engine.store.message_filter import MessageFilter

TABLE = "tieredStoreMetadata.json"
TABLE_MAX_BYTES = 64 << 20
_SCAN_COUNT = 4096
"""Messages that a broker reads ahead from tiered storage."""


@dataclass(frozen=True, slots=True)
class TieredEntry:
    """A queue entry in tiered storage. ``offset`` is that of its message in the tiered log of the queue, ``position``
    the message's first byte in ``file``.
    """

    queue_offset: int
    offset: int
    size: int
    tags_code: int
    file: str
    position: int


@dataclass(frozen=True, slots=True)
class TieredMessages:
    """The result of getMessage in tiered storage: status, next offset to ask for, and entries with their messages."""

    status: GetMessageStatus
    next_begin_offset: int
    messages: list[tuple[TieredEntry, bytes]] = field(default_factory=list)


@dataclass(frozen=True)
class TieredQueue:
    """A queue in tiered storage. Offsets in messages."""

    topic: str
    queue_id: int
    path: str
    queue: tuple[codec.Segment, ...]
    log: tuple[codec.Segment, ...]
    store: TieredStore

    @property
    def name(self) -> str:
        """Topic and queue id as ``topic/queue``."""
        return f"{self.topic}/{self.queue_id}"

    @property
    def size(self) -> int:
        """Bytes of its log and queue segments."""
        return sum(segment.size for segment in (*self.queue, *self.log))

    @property
    def max_offset(self) -> int:
        """Queue offset behind the last message."""
        return self.queue[-1].end_offset // codec.QUEUE_UNIT_BYTES if self.queue else 0

    @cached_property
    def min_offset(self) -> int:
        """Queue offset of the first message: of the first entry whose message is in the log.

        Raises :class:`CannotRead`.
        """
        if not self.queue:
            return 0
        first_entry = self.queue[0].start_offset // codec.QUEUE_UNIT_BYTES
        if self.store.folder is None or not self.log or not self.log[0].size:
            return first_entry
        unit = self._unit_at(self.log[0].start_offset, min(self.log[0].size, 1 << 16))
        return max(first_entry, unit.queue_offset) if unit is not None else first_entry

    @property
    def messages(self) -> int:
        """Number of its messages. Raises :class:`CannotRead`."""
        return max(self.max_offset - self.min_offset, 0)

    def holds(self, queue_offset: int) -> bool:
        """Return True if it has the message. Raises :class:`CannotRead`."""
        return self.min_offset <= queue_offset < self.max_offset

    def unit(self, queue_offset: int) -> Unit | None:
        """The message at ``queue_offset``; None if there is none. Raises :class:`CannotRead`."""
        if not self.holds(queue_offset):
            return None
        entry = self.entry(queue_offset)
        return self._unit_at(entry.offset, entry.size) if entry is not None else None

    def unit_bytes(self, entry: TieredEntry) -> bytes:
        """The bytes of the message of an entry. Raises :class:`CannotRead`."""
        return self._read("COMMIT_LOG", self.log, entry.offset, entry.size)

    def get_messages(self, offset: int, max_count: int, message_filter: MessageFilter | None) -> TieredMessages:
        """At most ``max_count`` messages from ``offset`` on (``MessageStoreFetcherImpl.getMessageAsync``). A broker may
        return fewer, as its cache has them. Raises :class:`CannotRead`.
        """
        if offset < self.min_offset:
            return TieredMessages(GetMessageStatus.OFFSET_TOO_SMALL, self.min_offset)
        messages: list[tuple[TieredEntry, bytes]] = []
        next_offset = offset
        while next_offset < min(self.max_offset, offset + _SCAN_COUNT) and len(messages) < max_count:
            entry = self.entry(next_offset)
            data = self.unit_bytes(entry) if entry is not None else b""
            if entry is None or len(data) != entry.size:
                break
            next_offset += 1
            if message_filter is None or (
                message_filter.matches_entry(entry.tags_code, None) and message_filter.matches_unit(data)
            ):
                messages.append((entry, data))
        if next_offset == offset:
            return TieredMessages(GetMessageStatus.OFFSET_FOUND_NULL, offset)
        status = GetMessageStatus.FOUND if messages else GetMessageStatus.NO_MATCHED_MESSAGE
        return TieredMessages(status, next_offset, messages)

    def store_time(self, queue_offset: int) -> int:
        """Store time (ms) of the message at ``queue_offset``, −1 without one. Raises :class:`CannotRead`."""
        unit = self.unit(queue_offset)
        return unit.store_timestamp if unit is not None else -1

    def offset_by_time(self, timestamp: int, boundary: str = "lower") -> int:
        """The queue offset for a time (``FlatMessageFile.getQueueOffsetByTimeAsync``). Raises :class:`CannotRead`."""
        first_offset, last_offset = self.min_offset, self.max_offset - 1
        if last_offset < first_offset:
            return first_offset
        if self.store_time(last_offset) < timestamp:
            return last_offset + 1
        if self.store_time(first_offset) > timestamp:
            return first_offset
        offset = self._first_at_or_after(timestamp)
        while boundary == "upper" and offset < last_offset and self.store_time(offset + 1) == timestamp:
            offset += 1
        return offset

    def _first_at_or_after(self, timestamp: int) -> int:
        """In the segment with the time; where two segments have it, in that which a bisection meets first."""
        first_segment, last_segment = 0, len(self.queue) - 1
        number = (first_segment + last_segment) // 2
        while first_segment <= last_segment:
            segment = self.queue[number]
            if segment.begin_timestamp <= timestamp <= segment.end_timestamp:
                break
            if timestamp < segment.begin_timestamp:
                last_segment = number - 1
            else:
                first_segment = number + 1
            number = first_segment + max(last_segment - first_segment, 0) // 2
        segment = self.queue[min(max(number, 0), len(self.queue) - 1)]
        lower = segment.start_offset // codec.QUEUE_UNIT_BYTES
        upper = segment.end_offset // codec.QUEUE_UNIT_BYTES - 1
        while lower < upper:
            middle = (lower + upper) // 2
            if self.store_time(middle) < timestamp:
                lower = middle + 1
            else:
                upper = middle
        return lower

    def unit_of(self, item: codec.IndexItem) -> Unit | None:
        """The message of an index entry. Raises :class:`CannotRead`."""
        return self._unit_at(item.offset, item.size)

    def entry(self, queue_offset: int) -> TieredEntry | None:
        """The entry at ``queue_offset``; None if no segment has it. Raises :class:`CannotRead`."""
        place = queue_offset * codec.QUEUE_UNIT_BYTES
        values = codec.decode_entry(self._read("CONSUME_QUEUE", self.queue, place, codec.QUEUE_UNIT_BYTES))
        if values is None:
            return None
        segment = _segment_at(self.log, values[0])
        file, position = "", 0
        if segment is not None:
            file = str(self.store.file(self.path, "COMMIT_LOG", segment))
            position = values[0] - segment.start_offset
        return TieredEntry(queue_offset, *values, file, position)

    def entry_bytes(self, queue_offset: int) -> tuple[bytes, str, int]:
        """The bytes of the entry at ``queue_offset``, the name of its segment, and its number there.

        Raises :class:`CannotRead`.
        """
        place = queue_offset * codec.QUEUE_UNIT_BYTES
        segment = _segment_at(self.queue, place)
        if segment is None:
            return b"", "", 0
        name = codec.segment_name(segment.start_offset)
        number = (place - segment.start_offset) // codec.QUEUE_UNIT_BYTES
        return self._read("CONSUME_QUEUE", self.queue, place, codec.QUEUE_UNIT_BYTES), name, number

    def _unit_at(self, offset: int, size: int) -> Unit | None:
        data = self._read("COMMIT_LOG", self.log, offset, size)
        try:
            return decode(data, 0, offset)
        except CorruptUnit:
            return None

    def _read(self, kind: codec.SegmentKind, segments: tuple[codec.Segment, ...], offset: int, size: int) -> bytes:
        segment = _segment_at(segments, offset)
        if segment is None:
            return b""
        return self.store.read(self.path, kind, segment, offset - segment.start_offset, size)


def _segment_at(segments: Sequence[codec.Segment], offset: int) -> codec.Segment | None:
    """The segment that has the byte at ``offset``."""
    number = bisect_right(segments, offset, key=lambda segment: segment.start_offset) - 1
    return segments[number] if number >= 0 and offset < segments[number].end_offset else None


class TieredStore:
    """The tiered part of a store. ``folder`` is the folder of its cluster; None if no configuration names it."""

    def __init__(self, table: codec.TieredTable, folder: Path | None, cache: DescriptorCache) -> None:
        self._table = table
        self._cache = cache
        self.folder = folder

    @cached_property
    def queues(self) -> list[TieredQueue]:
        """Its queues by topic and queue id."""
        logs = self._table.segments.get("COMMIT_LOG", {})
        queues = []
        for path, segments in self._table.segments.get("CONSUME_QUEUE", {}).items():
            _, _, name = path.partition("/")
            topic, _, number = name.rpartition("/")
            if topic and number.isdigit():
                queues.append(TieredQueue(topic, int(number), path, tuple(segments), tuple(logs.get(path, ())), self))
        return sorted(queues, key=lambda queue: (queue.topic, queue.queue_id))

    def queue(self, topic: str, queue_id: int) -> TieredQueue | None:
        """Return a copied queue; None if nothing of it was copied."""
        return self._by_name.get((topic, queue_id))

    @cached_property
    def _by_name(self) -> dict[tuple[str, int], TieredQueue]:
        return {(queue.topic, queue.queue_id): queue for queue in self.queues}

    def close(self) -> None:
        """Close the files that were read."""
        self._cache.close()

    @property
    def size(self) -> int:
        """Bytes of all segments, those of the index included."""
        tables = self._table.segments.values()
        return sum(segment.size for table in tables for segments in table.values() for segment in segments)

    def by_key(self, key: str, topic: str | None) -> Iterator[Unit]:
        """The messages with this key or unique key that the uploaded index leads to. Raises :class:`CannotRead`."""
        topics = {number: name for number, name in self._table.topics.items() if topic in {None, name}}
        hashes = {codec.key_hash(name, key): number for number, name in topics.items()}
        for path, segments in self._table.segments.get("INDEX", {}).items():
            for segment in segments:
                for hash_code, number in hashes.items():
                    yield from self._of_items(path, segment, hash_code, topics[number], key)

    def _of_items(self, path: str, segment: codec.Segment, hash_code: int, topic: str, key: str) -> Iterator[Unit]:
        def read(position: int, size: int) -> bytes:
            return self.read(path, "INDEX", segment, position, size)

        slots = codec.index_slots(read(0, codec.INDEX_HEAD_BYTES), segment.size)
        if slots is None:
            return
        position, length = codec.decode_slot(read(codec.slot_position(hash_code, slots), codec.INDEX_SLOT_BYTES))
        for item in codec.decode_items(read(position, length), hash_code) if length else ():
            queue = self.queue(topic, item.queue_id)
            unit = queue.unit_of(item) if queue is not None else None
            if unit is not None and unit.topic == topic and key in {unit.unique_key, *unit.keys}:
                yield unit

    def file_length(self, path: str, kind: codec.SegmentKind, segment: codec.Segment) -> int | None:
        """The length of a segment's file in bytes; None if it is missing. Raises :class:`CannotRead`."""
        info = self._cache.reading.status(self.file(path, kind, segment))
        return info.st_size if info is not None else None

    def segments(self) -> Iterator[tuple[str, codec.SegmentKind, codec.Segment]]:
        """Every segment with its path and kind."""
        for kind, paths in self._table.segments.items():
            for path, segments in paths.items():
                for segment in segments:
                    yield path, kind, segment

    def file(self, path: str, kind: codec.SegmentKind, segment: codec.Segment) -> Path:
        """The file of a segment. Raises :class:`CannotRead` if the folder is not known."""
        if self.folder is None:
            words = sentence("the files of tiered storage are not here: name the broker's configuration")
            raise CannotRead(words, file=TABLE)
        return self.folder / path / kind / codec.segment_name(segment.start_offset)

    def read(self, path: str, kind: codec.SegmentKind, segment: codec.Segment, position: int, size: int) -> bytes:
        """Bytes of a segment. Raises :class:`CannotRead` if its file is not at hand."""
        file = self.file(path, kind, segment)
        size = min(size, segment.size - position)
        return ReadOnlyFile(str(file), segment.start_offset, segment.size, self._cache).read(position, size)


def open_tiered(paths: StorePaths, config: MessageStoreConfig | None, cache: DescriptorCache) -> TieredStore | None:
    """The tiered part of the store in ``paths``; None if it has none. Raises :class:`CannotRead`."""
    file, reading = paths.config / TABLE, cache.reading
    for candidate in (file, file.with_name(f"{TABLE}.bak")):
        data = reading.small(candidate, TABLE_MAX_BYTES)
        value = parse(data).value if data else None
        if isinstance(value, dict):
            return TieredStore(codec.decode_table(value), _cluster_folder(paths.root, config, cache), cache)
    return None


def folder_without_table(paths: StorePaths, config: MessageStoreConfig | None, cache: DescriptorCache) -> Path | None:
    """Return the folder with segments of a store whose table of them is gone or cannot be parsed, else None.

    Raises :class:`CannotRead`.
    """
    return _cluster_folder(paths.root, config, cache) if open_tiered(paths, config, cache) is None else None


def _cluster_folder(root: Path, config: MessageStoreConfig | None, cache: DescriptorCache) -> Path | None:
    """The folder with the brokers' segments: in the configured folder, or in one of the store's folders."""
    configured = tiered_folder(root, config) if config is not None else None
    for folder in (configured,) if configured is not None else cache.reading.folders(root):
        for below in cache.reading.folders(folder):
            if codec.is_cluster_folder(below.name):
                return below
    return None
