"""Rows of an index in a RocksDB (docs/formats/index-file.md#rocksdb): the family ``default`` of ``rocksdbstore``.

A key has the hour of the store time, then topic, type, key and unique key between ``@``, then the unit's offset. So the
rows of a key of one topic lie together within an hour. Pure: keys and values in, records out.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from engine.codec.index_keys import KEY, TAG, TAG_PREFIX, UNIQUE_KEY, IndexType

FAMILY = "default"
HOUR_MS = 3_600_000
LAST_OFFSET_KEY = b"lastOffsetPy"
"""Key of the row with the offset of the last unit that is indexed."""
END_OF_HOURS = b"\x01"
"""A key behind the rows of all hours, and in front of the named rows."""

_LONG = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class IndexRow:
    """The place of a unit with the key (offset in the log), and its store time (ms)."""

    physical_offset: int
    store_timestamp: int


@dataclass(frozen=True, slots=True)
class IndexKeyRow:
    """The parts of a row's key: topic, type and text of the key, and the unit's unique key and offset.

    ``text`` is as :func:`engine.codec.index_keys.key_text` makes it.
    """

    topic: str
    index_type: IndexType
    text: str
    unique_key: str
    physical_offset: int


def encode_key(row: IndexKeyRow, timestamp: int) -> bytes:
    """Return the key of a row of a unit that was stored at ``timestamp`` (ms)."""
    start, _ = key_range(timestamp, row.topic, row.index_type, row.text)
    unique_part = b"" if row.index_type == UNIQUE_KEY else f"{row.unique_key}@".encode()
    return start + unique_part + _LONG.pack(row.physical_offset)


def encode_value(timestamp: int) -> bytes:
    """Return the value of a row of a unit that was stored at ``timestamp`` (ms)."""
    return _LONG.pack(timestamp)


def decode_key(key: bytes) -> IndexKeyRow | None:
    """Return what a key says; None for that of a row with a name, or one of another form."""
    if len(key) < 2 * _LONG.size + 2 or key[_LONG.size : _LONG.size + 1] != b"@" or key[-_LONG.size - 1 :][:1] != b"@":
        return None
    topic, _, after_topic = key[_LONG.size + 1 : -_LONG.size - 1].decode("utf-8", "replace").partition("@")
    index_type, _, after_type = after_topic.partition("@")
    text, separator, unique_key = after_type.rpartition("@")
    (offset,) = _LONG.unpack(key[-_LONG.size :])
    if index_type == UNIQUE_KEY and not separator:
        return IndexKeyRow(topic, UNIQUE_KEY, unique_key, unique_key, offset)
    if index_type == KEY and separator:
        return IndexKeyRow(topic, KEY, text, unique_key, offset)
    if index_type == TAG and separator:
        return IndexKeyRow(topic, TAG, TAG_PREFIX + text, unique_key, offset)
    return None


def hour_key(timestamp: int) -> bytes:
    """Return what the keys of an hour begin with; ``timestamp`` in ms is any time in it."""
    return _LONG.pack(max(timestamp, 0) // HOUR_MS * HOUR_MS)


def hour_of(key: bytes) -> int:
    """Return the hour (ms) at the beginning of a key."""
    return int(_LONG.unpack_from(key)[0])


def key_range(hour: int, topic: str, index_type: IndexType, text: str) -> tuple[bytes, bytes]:
    """Return first key, and a key behind the last, of the rows of a key in an hour.

    ``text`` is a key, a unique key, or ``T#`` and tags, as :func:`engine.codec.index_keys.key_text` makes it.
    """
    value = text.removeprefix(TAG_PREFIX) if index_type == TAG else text
    start = hour_key(hour) + f"@{topic}@{index_type}@{value}".encode()
    return start + b"@", start + b"A"


def decode(key: bytes, value: bytes) -> IndexRow | None:
    """Return the row; None for one of another form."""
    if len(key) < 2 * _LONG.size + 1 or len(value) != _LONG.size or key[-_LONG.size - 1 : -_LONG.size] != b"@":
        return None
    return IndexRow(int(_LONG.unpack(key[-_LONG.size :])[0]), int(_LONG.unpack(value)[0]))


def decode_offset(value: bytes) -> int | None:
    """Return the value of the row :data:`LAST_OFFSET_KEY`; None if it is no offset."""
    return int(_LONG.unpack(value)[0]) if len(value) == _LONG.size else None
