"""Finds units anywhere: in free space, in an image of a disk, at a place that is not their own
(docs/formats/commit-log.md#unit). :mod:`engine.codec.unit_scan` only finds units that are at their own offset.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.codec import dledger, properties
from engine.codec.message import (
    BORN_HOST_V6,
    MAGIC_BLANK,
    MAX_UNIT_BYTES,
    MIN_UNIT_SIZE,
    STORE_HOST_V6,
    Frame,
    check_frame,
)
from engine.codec.unit_flavours import BY_MAGIC, MAGIC_BYTES, MAX_PROPERTIES_BYTES, PREFIX

PAGE_BYTES = 4096
"""Bytes of a block of a file system: it keeps files in pieces of whole blocks."""
PIECE_BYTES = 1 << 16
"""Bytes that are compared at a time: they stay in the nearest caches."""
_LAST_BYTES = tuple(magic[-1] for magic in MAGIC_BYTES)
_HEAD = struct.Struct(">iIiiiqqiq")
_I64 = struct.Struct(">q")
EARLIEST_MS = 1_262_304_000_000  # 2010: no RocketMQ before
LATEST_MS = 4_102_444_800_000  # 2100
_ENTRY = dledger.MAGIC.to_bytes(4, "big")
_ENTRY_BLANK = dledger.BLANK_MAGIC.to_bytes(4, "big", signed=True)
_BLANK = MAGIC_BLANK.to_bytes(4, "big")
_TEXT_BYTES = bytes([1, 2, 9, 10, 13, *range(32, 256)])  # what a client may write, and the two separators
_NAME_BYTES = bytes(range(33, 256))


def find_magics(data: npt.NDArray[np.uint8], start: int, stop: int) -> npt.NDArray[np.int64]:
    """Return the positions in [start, stop) of ``data`` at which a magic number begins; ascending."""
    count = min(stop, len(data) - len(PREFIX)) - start
    if count <= 0:
        return np.empty(0, np.int64)
    match = data[start : start + count] == PREFIX[0]
    match &= data[start + 1 : start + 1 + count] == PREFIX[1]
    if not match.any():
        return np.empty(0, np.int64)
    hits: npt.NDArray[np.int64] = np.flatnonzero(match) + start
    hits = hits[data[hits + 2] == PREFIX[2]]
    if not len(hits):
        return hits
    last_bytes = data[hits + 3]
    return hits[np.logical_or.reduce([last_bytes == byte for byte in _LAST_BYTES])]


class UnitHead(NamedTuple):
    """The fixed fields at the beginning of a unit whose end is not there."""

    size: int
    physical_offset: int
    queue_id: int
    queue_offset: int
    store_timestamp: int


HEAD_BYTES = 76
"""Bytes of the longest beginning of a unit up to its store time."""


def read_head(data: bytes | memoryview | npt.NDArray[np.uint8], position: int) -> UnitHead | None:
    """Return the head of the unit that begins at ``position``; None if its fields are no unit's.

    Eight fields have to be what a broker writes, so random bytes behind a magic number are no head.
    """
    if position < 0 or position + HEAD_BYTES > len(data):
        return None
    raw = bytes(data[position : position + HEAD_BYTES])
    size, magic, body_crc, queue_id, _, queue_offset, physical_offset, sys_flag, born_timestamp = _HEAD.unpack_from(raw)
    if magic not in BY_MAGIC or not MIN_UNIT_SIZE <= size <= MAX_UNIT_BYTES:
        return None
    if body_crc < 0 or queue_id < 0 or queue_offset < 0 or physical_offset < 0 or sys_flag & ~0x7FF:
        return None
    (store_timestamp,) = _I64.unpack_from(raw, 48 + (20 if sys_flag & BORN_HOST_V6 else 8))
    if not (EARLIEST_MS <= store_timestamp <= LATEST_MS and EARLIEST_MS <= born_timestamp <= LATEST_MS):
        return None
    return UnitHead(size, physical_offset, queue_id, queue_offset, store_timestamp)


STORE_HOST_END_BYTES = 96
"""Bytes of the longest beginning of a unit up to its store host."""


def read_store_host(head: bytes) -> bytes:
    """Return the raw store host in the beginning of a unit."""
    sys_flag = int.from_bytes(head[36:40], "big")
    start = 56 + (20 if sys_flag & BORN_HOST_V6 else 8)
    return head[start : start + (20 if sys_flag & STORE_HOST_V6 else 8)]


def has_frame(read: Callable[[int, int], bytes], size: int) -> bool:
    """Return True if the lengths in a unit of ``size`` bytes agree; ``read`` returns bytes from a position of it on.

    Only a few bytes are read: so a size that is no unit's does not cost its bytes.
    """
    head = read(0, MIN_UNIT_SIZE + 24)
    if len(head) < MIN_UNIT_SIZE or size < MIN_UNIT_SIZE:
        return False
    flavour = BY_MAGIC.get(int.from_bytes(head[4:8], "big"))
    sys_flag = int.from_bytes(head[36:40], "big")
    body = 48 + (20 if sys_flag & BORN_HOST_V6 else 8) + 8 + (20 if sys_flag & STORE_HOST_V6 else 8) + 16
    body_length = int.from_bytes(head[body - 4 : body], "big", signed=True)
    if flavour is None or body_length < 0 or body + body_length + flavour.topic_width + 2 > size:
        return False
    topic = body + body_length + flavour.topic_width
    field = read(topic - flavour.topic_width, flavour.topic_width)
    if len(field) < flavour.topic_width:
        return False
    (topic_length,) = flavour.topic_length.unpack(field)
    properties = topic + topic_length + 2
    if topic_length < 0 or properties > size:
        return False
    properties_length = int.from_bytes(read(properties - 2, 2), "big", signed=True)
    return bool(properties_length >= 0 and properties + properties_length == size)


FOLLOWING_BYTES = 36
"""Bytes behind a unit that :func:`judge_end` needs."""
EndVerdict = Literal["proven", "open", "contradicted", "wrong"]


def judge_end(
    unit: bytes,
    physical_offset: int,
    following: bytes,
    frame: Frame | str | None = None,
    moved_by: int = 0,
) -> EndVerdict:
    """Judge the end of ``unit``, its topic and properties, which no CRC covers: may it be other bytes?

    The lengths of ``unit`` agree, and its body matches its CRC. ``following`` are the bytes behind it: the next unit or
    the end of the log. A file system keeps files in whole pages, so where a page ends with the unit, the bytes of the
    page in which the body ends are of the same file. ``open``: nothing proves it and nothing contradicts it;
    ``contradicted``: the unit behind it is of another place. ``frame`` is that of the unit, if the caller has it.
    ``moved_by`` is not 0 if the unit was moved by a number of bytes that no file system moves: then the unit behind it
    may lie elsewhere, and it is the edge of what was moved that may lie in the end.
    """
    if frame is None:
        frame = check_frame(unit, 0, len(unit))
    if isinstance(frame, str):
        return "wrong"
    if properties.verify_crc(unit):
        return "proven"
    is_text = _are_pairs(unit[frame.properties :])
    if not is_text or not _is_topic(unit[frame.topic : frame.topic + frame.topic_length]):
        return "wrong"
    proven_to = frame.body + frame.body_length if frame.body_length else 0
    if moved_by:
        if following[4:8] in (*MAGIC_BYTES, _BLANK):
            return "proven"
        return "open" if _may_be_moved_whole(unit, physical_offset + moved_by, proven_to, moved_by) else "wrong"
    end = physical_offset + len(unit)
    following = following[: -end % PAGE_BYTES]
    if len(following) < 8:
        is_one_page = (physical_offset + max(proven_to - 1, 0)) // PAGE_BYTES == (end - 1) // PAGE_BYTES
        return "proven" if is_one_page else "open"
    if following.startswith((_ENTRY, _ENTRY_BLANK)):
        return "proven"
    magic = following[4:8]
    if magic in MAGIC_BYTES and len(following) >= FOLLOWING_BYTES:
        return "proven" if _I64.unpack_from(following, 28)[0] == end else "contradicted"
    return "proven" if magic in MAGIC_BYTES or magic == _BLANK or not any(following) else "open"


def names_other_host(unit: bytes, physical_offset: int, following: bytes, frame: Frame, own: Collection[bytes]) -> bool:
    """Return True if the unit behind ``unit`` names another store host, and the end of ``unit`` that no CRC covers lies
    in the page of that one: two logs may have messages of the same sizes at the same offsets. Hosts of one log,
    ``own``, are not another's.
    """
    end = physical_offset + len(unit)
    proven_to = physical_offset + frame.body + frame.body_length
    following = following[: -end % PAGE_BYTES]
    host = read_store_host(following) if following[4:8] in MAGIC_BYTES else b""
    unit_host = read_store_host(unit)
    if len(host) < 8 or host == unit_host or {host, unit_host}.issubset(own):
        return False
    is_one_page = (proven_to - 1) // PAGE_BYTES == (end - 1) // PAGE_BYTES
    return not is_one_page and not properties.verify_crc(unit)


def _may_be_moved_whole(unit: bytes, position: int, proven_to: int, moved_by: int) -> bool:
    """Return True if the end of a moved unit is in one page, is closed, and has no bytes twice: where bytes were moved
    to the front, those at the edge are there a second time, and the last ones are missing.
    """
    is_one_page = (position + max(proven_to - 1, 0)) // PAGE_BYTES == (position + len(unit) - 1) // PAGE_BYTES
    end, count = unit[proven_to:], -moved_by
    is_twice = moved_by < 0 and any(
        end[start : start + count] == end[start - count : start] for start in range(count, len(end) - count + 1)
    )
    return is_one_page and unit.endswith(b"\x02") and not is_twice


def _are_pairs(raw: bytes) -> bool:
    if raw.translate(None, _TEXT_BYTES) or not _is_utf8(raw):
        return False
    pairs = raw.removesuffix(b"\x02").split(b"\x02") if raw else []
    return all(pair.find(b"\x01") > 0 for pair in pairs)


def _is_topic(raw: bytes) -> bool:
    return bool(raw) and not raw.translate(None, _NAME_BYTES) and _is_utf8(raw)


def _is_utf8(raw: bytes) -> bool:
    if raw.isascii():
        return True
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_tail(data: bytes, topic_width: int) -> bool:
    """Return True if ``data`` is a topic and properties with their lengths, to the byte: what follows a body."""
    length = int.from_bytes(data[:topic_width], "big")
    topic_end = topic_width + length
    if length <= 0 or topic_end + 2 > len(data):
        return False
    if int.from_bytes(data[topic_end : topic_end + 2], "big") != len(data) - topic_end - 2:
        return False
    return _is_topic(data[topic_width:topic_end]) and _are_pairs(data[topic_end + 2 :])


class UnitTail(NamedTuple):
    """The end of a unit whose beginning is not there. ``size`` counts its topic's length field and what follows."""

    size: int
    topic: str
    properties: dict[str, str]


MAX_TAIL_BYTES = MAX_PROPERTIES_BYTES + 2 + 129
"""Bytes in front of a unit's end that hold its topic and properties."""


def read_tail(data: bytes) -> UnitTail | None:
    """Return the topic and properties of the unit that ends where ``data`` ends; None if there are none."""
    raw = data[-MAX_TAIL_BYTES:]
    if len(raw) < 4:
        return None
    lengths = np.frombuffer(raw[:-1], np.uint8).astype(np.int32) << 8 | np.frombuffer(raw[1:], np.uint8)
    positions = np.arange(len(lengths))
    for position in np.flatnonzero((lengths == len(raw) - positions - 2) & (lengths > 0)).tolist():
        text = raw[position + 2 :]
        if not _are_pairs(text):
            continue
        for length in range(1, min(position, 128)):
            name = raw[position - length : position]
            if raw[position - length - 1] == length and _is_topic(name):
                topic = name.decode("utf-8", "replace")
                return UnitTail(len(raw) - position + length + 1, topic, properties.decode(text))
    return None
