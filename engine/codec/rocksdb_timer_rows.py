"""Rows of timer messages in a RocksDB (docs/formats/delays.md#rocksdb): the family ``timer`` of ``rocksdbstore``.

A key is the due time and the message's unique key, so rows are in the order in which their messages are delivered. Two
rows with names hold how far the service has come. Pure: keys and values in, records out.

Java: ``TimerRocksDBRecord``, ``MessageRocksDBStorage``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

FAMILY = "timer"
SCAN_KEY = b"sys_topic_scan_offset_checkpoint"
"""Key of the row with the offset in the timer queue behind the last message that got a row."""
TIMELINE_KEY = b"timeline_checkpoint"
"""Key of the row with the time (ms) up to which messages were delivered."""
_LONG = struct.Struct(">q")
_VALUE = struct.Struct(">iq")


@dataclass(frozen=True, slots=True)
class TimerRow:
    """A timer message: when it is due (ms), its unique key, and its unit in the log (bytes)."""

    due_time: int
    unique_key: str
    size: int
    physical_offset: int


def encode(row: TimerRow) -> tuple[bytes, bytes]:
    """Return the key and the value of a row."""
    return time_key(row.due_time) + row.unique_key.encode(), _VALUE.pack(row.size, row.physical_offset)


def decode(key: bytes, value: bytes) -> TimerRow | None:
    """Return the row; None for one of another form, as a broker skips it."""
    if len(key) < _LONG.size or len(value) != _VALUE.size:
        return None
    (due_time,) = _LONG.unpack_from(key)
    size, physical_offset = _VALUE.unpack(value)
    return TimerRow(due_time, key[_LONG.size :].decode("utf-8", "replace"), size, physical_offset)


def is_named(key: bytes) -> bool:
    """Return True for the key of a row that is no message."""
    return key in (SCAN_KEY, TIMELINE_KEY)


def time_key(timestamp: int) -> bytes:
    """Return what the keys of the messages that are due at ``timestamp`` (ms) begin with."""
    return _LONG.pack(timestamp)


def decode_number(value: bytes | None) -> int | None:
    """Return the value of a row with a name; None if there is none, or if it is no number."""
    return int(_LONG.unpack(value)[0]) if value is not None and len(value) == _LONG.size else None
