"""Rows of consume queues in a RocksDB (docs/formats/consume-queue.md#rocksdb): entries in the column family
``default``, bounds of queues and the end of dispatch in the column family ``offset``.

Pure: keys and values in, records out. Reading many entries at once goes through ``dtypes.ROCKSDB_QUEUE_ROW``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal

ENTRY_FAMILY = "default"
BOUND_FAMILY = "offset"
FAMILIES = (ENTRY_FAMILY, BOUND_FAMILY)

Bound = Literal["min", "max"]

_SEPARATOR = b"\x01"
_TOPIC_LENGTH = struct.Struct(">i")
_QUEUE_ID = struct.Struct(">i")
_QUEUE_OFFSET = struct.Struct(">q")
_ENTRY = struct.Struct(">qiqq")
_PLACE = struct.Struct(">qq")
_DISPATCHED = struct.Struct(">q")
_CHECKPOINT_TOPIC = "CHECKPOINT_TOPIC"
_BOUND_WORDS: dict[bytes, Bound] = {b"min": "min", b"max": "max"}


@dataclass(frozen=True, slots=True)
class QueueRow:
    """Value of an entry: position and size of the message in the commit log (bytes), code of its tag, store time
    (ms).
    """

    physical_offset: int
    size: int
    tags_code: int
    store_timestamp: int


@dataclass(frozen=True, slots=True)
class BoundRow:
    """A bound of a queue: the queue offset of its first (``min``) or last (``max``) entry, and that entry's place in
    the commit log (bytes).
    """

    topic: str
    queue_id: int
    bound: Bound
    physical_offset: int
    queue_offset: int


def _topic_part(topic: str) -> bytes:
    name = topic.encode("utf-8")
    return _TOPIC_LENGTH.pack(len(name)) + _SEPARATOR + name + _SEPARATOR


def entry_prefix(topic: str, queue_id: int) -> bytes:
    """Return the prefix of the keys of all entries of a queue."""
    return _topic_part(topic) + _QUEUE_ID.pack(queue_id) + _SEPARATOR


def entry_key(topic: str, queue_id: int, queue_offset: int) -> bytes:
    """Return the key of one entry. Keys of a queue are sorted by queue offset."""
    return entry_prefix(topic, queue_id) + _QUEUE_OFFSET.pack(queue_offset)


def end_of_entries(topic: str, queue_id: int) -> bytes:
    """Return a key after all entries of a queue."""
    return _topic_part(topic) + _QUEUE_ID.pack(queue_id) + b"\x02"


def queue_offset_of(key: bytes) -> int:
    """Return the queue offset at the end of an entry's key."""
    return int(_QUEUE_OFFSET.unpack_from(key, len(key) - _QUEUE_OFFSET.size)[0])


def encode_entry(row: QueueRow) -> bytes:
    """Return the 28 bytes of an entry's value."""
    return _ENTRY.pack(row.physical_offset, row.size, row.tags_code, row.store_timestamp)


def decode_entry(value: bytes) -> QueueRow:
    """Return the value of an entry; raises ``struct.error`` for another length than 28 bytes."""
    return QueueRow(*_ENTRY.unpack(value))


def bound_key(topic: str, queue_id: int, bound: Bound) -> bytes:
    """Return the key of a bound of a queue."""
    return _topic_part(topic) + bound.encode("ascii") + _SEPARATOR + _QUEUE_ID.pack(queue_id)


CHECKPOINT_KEY = bound_key(_CHECKPOINT_TOPIC, 0, "max")
"""Key of the row that holds the end of dispatch."""


def encode_bound(row: BoundRow) -> bytes:
    """Return the 16 bytes of a bound's value."""
    return _PLACE.pack(row.physical_offset, row.queue_offset)


def decode_bound(key: bytes, value: bytes) -> BoundRow | None:
    """Return a row of the family ``offset``; None for a row that is not a bound of a queue: brokers skip it."""
    if len(key) < _TOPIC_LENGTH.size or len(value) != _PLACE.size:
        return None
    (length,) = _TOPIC_LENGTH.unpack_from(key)
    topic_end = _TOPIC_LENGTH.size + 1 + length
    if length < 0 or len(key) != topic_end + len(_SEPARATOR) * 2 + 3 + _QUEUE_ID.size:
        return None
    bound = _BOUND_WORDS.get(key[topic_end + 1 : topic_end + 4])
    separators = key[_TOPIC_LENGTH.size : _TOPIC_LENGTH.size + 1], key[topic_end : topic_end + 1], key[-5:-4]
    if bound is None or separators != (_SEPARATOR,) * 3:
        return None
    topic = key[_TOPIC_LENGTH.size + 1 : topic_end].decode("utf-8", "replace")
    (queue_id,) = _QUEUE_ID.unpack(key[-_QUEUE_ID.size :])
    physical_offset, queue_offset = _PLACE.unpack(value)
    return BoundRow(topic, queue_id, bound, physical_offset, queue_offset)


def decode_dispatched(value: bytes) -> int | None:
    """Return the end of dispatch (commit log offset, bytes) from the checkpoint row; None if the value is invalid."""
    return int(_DISPATCHED.unpack(value)[0]) if len(value) == _DISPATCHED.size else None
