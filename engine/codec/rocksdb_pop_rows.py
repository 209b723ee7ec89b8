"""Rows of popped messages in a RocksDB (docs/formats/transactions.md#pop-rocksdb): the family ``popState`` of
``kvStore``.

A key begins with the time at which the message becomes visible again; a broker reads everything else from the value, a
JSON object. Pure: keys and values in, records out.

Java: ``PopConsumerRecord``, ``PopConsumerRocksdbStore``.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any

FAMILY = "popState"

_LONG = struct.Struct(">q")
_INT = struct.Struct(">i")
_SEPARATOR = b"@"
_NUMBERS = ("queueId", "offset", "popTime", "invisibleTime", "retryFlag", "attemptTimes")


@dataclass(frozen=True, slots=True)
class PopRow:
    """A popped message that was not acknowledged: its place in a queue, its group, and when it was popped, for how
    long (ms). ``topic`` is the retry topic of a message that was retried before.
    """

    group: str
    topic: str
    queue_id: int
    queue_offset: int
    pop_time: int
    invisible_time: int
    retry_flag: int = 0
    attempt_count: int = 0
    """How often a revive failed."""
    attempt_id: str | None = None
    suspended: bool | None = None
    """Whether a retry leaves the number of deliveries as it is; None before 5.5."""

    @property
    def visible_time(self) -> int:
        """Time (ms) at which the message is delivered again, as a new message of the retry topic."""
        return self.pop_time + self.invisible_time


def encode(row: PopRow) -> tuple[bytes, bytes]:
    """Return the key and the value of a row."""
    value: dict[str, Any] = {
        "popTime": row.pop_time,
        "groupId": row.group,
        "topicId": row.topic,
        "queueId": row.queue_id,
        "retryFlag": row.retry_flag,
        "invisibleTime": row.invisible_time,
        "offset": row.queue_offset,
        "attemptTimes": row.attempt_count,
    }
    if row.attempt_id is not None:
        value["attemptId"] = row.attempt_id
    if row.suspended is not None:
        value["suspend"] = row.suspended
    return encode_key(row), json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def encode_key(row: PopRow) -> bytes:
    """Return the key of a row."""
    return _SEPARATOR.join(
        (
            _LONG.pack(row.visible_time) + row.group.encode(),
            row.topic.encode(),
            _INT.pack(row.queue_id),
            _LONG.pack(row.queue_offset),
        )
    )


def decode(value: bytes) -> PopRow | None:
    """Return the row from its value; None for one that is no JSON object of this form: a broker fails at it."""
    try:
        fields = json.loads(value)
    except ValueError:
        return None
    if not isinstance(fields, dict):
        return None
    group, topic = fields.get("groupId"), fields.get("topicId")
    numbers = {name: fields.get(name, 0) for name in _NUMBERS}
    if not isinstance(group, str) or not isinstance(topic, str):
        return None
    if not all(type(number) is int for number in numbers.values()):
        return None
    attempt_id, suspended = fields.get("attemptId"), fields.get("suspend")
    return PopRow(
        group,
        topic,
        queue_id=numbers["queueId"],
        queue_offset=numbers["offset"],
        pop_time=numbers["popTime"],
        invisible_time=numbers["invisibleTime"],
        retry_flag=numbers["retryFlag"],
        attempt_count=numbers["attemptTimes"],
        attempt_id=attempt_id if isinstance(attempt_id, str) else None,
        suspended=suspended if isinstance(suspended, bool) else None,
    )


def visible_time_of(key: bytes) -> int | None:
    """Return the time (ms) at the beginning of a key, which decides when the row is read; None for a short key."""
    return int(_LONG.unpack_from(key)[0]) if len(key) >= _LONG.size else None
