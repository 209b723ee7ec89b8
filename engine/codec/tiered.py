"""Tiered storage (docs/formats/tiered.md): the table of its segments, names of its folders and files, and its index.

Pure. Java: ``MessageStoreUtil``, ``DefaultMetadataStore``, ``IndexStoreFile`` of ``org.apache.rocketmq.tieredstore``.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from engine.codec.java import jhash

SegmentKind = Literal["COMMIT_LOG", "CONSUME_QUEUE", "INDEX"]
QUEUE_UNIT_BYTES = 20
INDEX_HEAD_BYTES = 28
INDEX_SLOT_BYTES = 8
INDEX_ITEM_BYTES = 28
_TABLES: Mapping[str, SegmentKind] = {
    "commitLogFileSegmentTable": "COMMIT_LOG",
    "consumeQueueFileSegmentTable": "CONSUME_QUEUE",
    "indexFileSegmentTable": "INDEX",
}
_ENTRY = struct.Struct(">qiq")
_INDEX_COUNTS = struct.Struct(">ii")
_INDEX_COUNTS_AT = 20
_SLOT = struct.Struct(">ii")
_ITEM = struct.Struct(">iiiqii")
_DIGITS = 20
_HASH_LETTERS = 8


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of tiered storage: the bytes from ``start_offset`` on. Times in ms; ``size`` is the uploaded length."""

    start_offset: int
    size: int
    begin_timestamp: int
    end_timestamp: int

    @property
    def end_offset(self) -> int:
        """Offset behind its last byte."""
        return self.start_offset + self.size


@dataclass(frozen=True, slots=True)
class TieredTable:
    """``config/tieredStoreMetadata.json``: segments by path (``broker/topic/queue``) and kind; topics by their id."""

    topics: dict[int, str] = field(default_factory=dict)
    segments: dict[SegmentKind, dict[str, list[Segment]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IndexItem:
    """An entry of an index segment: a message at ``offset`` of the tiered log of its queue."""

    topic_id: int
    queue_id: int
    offset: int
    size: int
    seconds: int  # from the segment's begin time


def segment_name(start_offset: int) -> str:
    """The file name of the segment that begins at ``start_offset``."""
    return f"{_hash(str(start_offset))}{start_offset:0{_DIGITS}d}"


def cluster_folder(cluster: str) -> str:
    """The folder of a cluster below ``tieredStoreFilePath``."""
    return f"{_hash(cluster)}_{cluster}"


def is_cluster_folder(name: str) -> bool:
    """Return True if ``name`` is that of a cluster's folder."""
    prefix, _, cluster = name.partition("_")
    return bool(cluster) and prefix == _hash(cluster)


def _hash(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:_HASH_LETTERS]


def decode_table(value: Mapping[Any, Any]) -> TieredTable:
    """Return the table from the parsed JSON; rows that are none are left out."""
    topics = {}
    for name, row in _mapping(value.get("topicMetadataTable")).items():
        number = row.get("topicId") if isinstance(row, Mapping) else None
        if isinstance(number, int):
            topics[number] = str(name)
    segments: dict[SegmentKind, dict[str, list[Segment]]] = {}
    for table, kind in _TABLES.items():
        for path, rows in _mapping(value.get(table)).items():
            listed = [segment for row in _mapping(rows).values() if (segment := _segment(row)) is not None]
            segments.setdefault(kind, {})[str(path)] = sorted(listed, key=lambda segment: segment.start_offset)
    return TieredTable(topics, segments)


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _segment(row: Any) -> Segment | None:
    numbers = [_number(row, name) for name in ("baseOffset", "size", "beginTimestamp", "endTimestamp")]
    start, size, begin, end = numbers
    return Segment(start, size, begin, end) if min(start, size) >= 0 else None


def _number(row: Any, name: str) -> int:
    """A number of a row; −1 for anything else."""
    number = _mapping(row).get(name)
    return number if isinstance(number, int) else -1


def decode_entry(data: bytes) -> tuple[int, int, int] | None:
    """Offset in the tiered log, size and tags code of a queue entry; None if it is cut."""
    return _ENTRY.unpack(data) if len(data) == _ENTRY.size else None


def index_slots(head: bytes, size: int) -> int | None:
    """The number of slots of an index segment of ``size`` bytes; None if its header does not fit its length."""
    if len(head) < INDEX_HEAD_BYTES:
        return None
    _, items = _INDEX_COUNTS.unpack_from(head, _INDEX_COUNTS_AT)
    slot_bytes = size - INDEX_HEAD_BYTES - items * INDEX_ITEM_BYTES
    return slot_bytes // INDEX_SLOT_BYTES if slot_bytes > 0 and slot_bytes % INDEX_SLOT_BYTES == 0 else None


def key_hash(topic: str, key: str) -> int:
    """The hash under which a message of ``topic`` with ``key`` is indexed."""
    return jhash(f"{topic}#{key}") & 0x7FFFFFFF


def slot_position(hash_code: int, slots: int) -> int:
    """Position of the slot of a key in an index segment."""
    return INDEX_HEAD_BYTES + hash_code % slots * INDEX_SLOT_BYTES


def decode_slot(data: bytes) -> tuple[int, int]:
    """Position and length (bytes) of the items of a slot; (0, 0) for none."""
    if len(data) < _SLOT.size:
        return 0, 0
    position, length = _SLOT.unpack(data)
    return (position, length) if position > 0 and length > 0 else (0, 0)


def decode_items(data: bytes, hash_code: int) -> Iterator[IndexItem]:
    """The items of a slot that have the hash."""
    for item_hash, *fields in _ITEM.iter_unpack(data[: len(data) // _ITEM.size * _ITEM.size]):
        if item_hash == hash_code:
            yield IndexItem(*fields)
