"""Rows of open transactions in a RocksDB (docs/formats/transactions.md#rocksdb): the family ``trans`` of
``rocksdbstore``.

A half message has a row until an op message settles it, or until it was checked too often. Pure: keys and values in,
records out.

Java: ``TransRocksDBRecord``, ``MessageRocksDBStorage``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

FAMILY = "trans"
LAST_OFFSET_KEY = b"lastOffsetPy"
"""Key of the row with the offset (bytes of the log) of the last half message that got a row."""

_LONG = struct.Struct(">q")
_VALUE = struct.Struct(">ii")
_SEPARATOR = "@"


@dataclass(frozen=True, slots=True)
class TransactionRow:
    """A half message without an outcome: its unit in the log (bytes), its real topic, its unique key, and how often
    its producer was asked.
    """

    physical_offset: int
    topic: str
    unique_key: str
    check_count: int
    size: int


def encode(row: TransactionRow) -> tuple[bytes, bytes]:
    """Return the key and the value of a row."""
    words = f"{_SEPARATOR}{row.topic}{_SEPARATOR}{row.unique_key}"
    return _LONG.pack(row.physical_offset) + words.encode(), _VALUE.pack(row.check_count, row.size)


def decode(key: bytes, value: bytes) -> TransactionRow | None:
    """Return the row; None for one of another form, as a broker skips it: also where a name contains ``@``."""
    if len(key) <= _LONG.size or len(value) != _VALUE.size:
        return None
    words = key[_LONG.size :].decode("utf-8", "replace").split(_SEPARATOR)
    if len(words) != 3 or not words[2]:
        return None
    (physical_offset,) = _LONG.unpack_from(key)
    check_count, size = _VALUE.unpack(value)
    return TransactionRow(physical_offset, words[1], words[2], check_count, size)


def decode_offset(value: bytes | None) -> int | None:
    """Return the value of the row :data:`LAST_OFFSET_KEY`; None if there is none, or if it is no offset."""
    return int(_LONG.unpack(value)[0]) if value is not None and len(value) == _LONG.size else None
