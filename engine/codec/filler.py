"""Units that stand where damage was, so that the log goes on behind it (docs/formats/repair.md#placeholders).

A broker stops reading the log at the first unit that it cannot read. A unit of exactly the damaged length keeps it
going: messages behind it keep their physical offsets. Two kinds, both of which every release takes for a message::

    placeholder  in the queue of a lost message, under its queue offset: later messages keep their queue offsets,
                 also when the queues are built again from the log. Its body is an inner batch without members:
                 a Java client of 5.x hands nothing to the application, others an empty message.
    filler       in topic ``storescope_filler``, as the first half of a transaction that nobody ends: it goes into no
                 queue and no index. For bytes of which no queue entry is known.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from typing import Any

from engine.codec.encode import CRC_TAIL_BYTES, Message, TopicField, encode_properties, encode_unit
from engine.codec.message import (
    COMPRESSED,
    INNER_BATCH,
    MAGIC_BLANK,
    MAX_UNIT_BYTES,
    NEED_UNWRAP,
    PREPARED,
)
from engine.codec.properties import NAME_END

FILLER_TOPIC = "storescope_filler"
LOST = "STORESCOPE_LOST"
"""Property of every placeholder and filler: what was there, ``unit`` or ``bytes``."""
BLANK_BYTES = 8
"""Bytes of the shortest blank: length and magic number."""
_EMPTY_BATCH = zlib.compress(b"")
_LOST_PREFIX = f"{LOST}{NAME_END}".encode()
_HOST = "0.0.0.0:0"
_NO_MEMBERS = COMPRESSED | INNER_BATCH | NEED_UNWRAP


def placeholder(
    size: int,
    *,
    physical_offset: int,
    topic: str,
    queue_id: int,
    queue_offset: int,
    store_timestamp: int,
    properties: Mapping[str, str] | None = None,
    property_crc: bool = False,
) -> bytes | None:
    """Return a unit of ``size`` bytes in the queue of a lost message; None if so few bytes cannot hold one.

    ``store_timestamp`` is in ms. ``properties`` are those that a service needs to pass over it.
    """
    return _unit_of_size(
        size,
        Message(topic, b"", queue_id, sys_flag=_NO_MEMBERS, born_host=_HOST, store_host=_HOST),
        dict(properties or {}),
        {LOST: "unit"},
        queue_offset=queue_offset,
        physical_offset=physical_offset,
        store_timestamp=store_timestamp,
        property_crc=property_crc,
    )


def shortest_placeholder(
    topic: str, properties: Mapping[str, str], *, property_crc: bool = False, is_named: bool = True
) -> int:
    """Return the bytes with which a placeholder or filler in ``topic`` has room for :data:`LOST`; not ``is_named``:
    without room for it.
    """
    raw = encode_properties({**properties, LOST: "bytes"} if is_named else dict(properties))
    return TopicField(topic).fixed + len(raw) + len(_EMPTY_BATCH) + (CRC_TAIL_BYTES if property_crc else 0)


def filler(size: int, *, physical_offset: int, store_timestamp: int, property_crc: bool = False) -> bytes | None:
    """Return a unit of ``size`` bytes that is in no queue; None if so few bytes cannot hold one."""
    for topic in (FILLER_TOPIC, FILLER_TOPIC[0]):
        unit = _unit_of_size(
            size,
            Message(topic, b"", 0, sys_flag=_NO_MEMBERS | PREPARED, born_host=_HOST, store_host=_HOST),
            {},
            {LOST: "bytes"},
            queue_offset=0,
            physical_offset=physical_offset,
            store_timestamp=store_timestamp,
            property_crc=property_crc,
        )
        if unit is not None:
            return unit
    return None


def blank(size: int) -> bytes:
    """Return the ``size`` bytes (8 at least) that end a file of the log: a broker goes on with the next file."""
    return struct.pack(">iI", size, MAGIC_BLANK) + bytes(size - BLANK_BYTES)


def is_stand_in(sys_flag: int, body: bytes, properties_raw: bytes) -> bool:
    """Return True for a placeholder or filler."""
    return has_its_flags(sys_flag) and body.startswith(_EMPTY_BATCH) and _LOST_PREFIX in properties_raw


def has_its_flags(sys_flag: Any) -> Any:
    """Return True for the flags of a placeholder or filler, which few other messages have; for an array, a mask."""
    return (sys_flag & _NO_MEMBERS) == _NO_MEMBERS


def _unit_of_size(
    size: int,
    message: Message,
    needed: dict[str, str],
    wanted: dict[str, str],
    *,
    queue_offset: int,
    physical_offset: int,
    store_timestamp: int,
    property_crc: bool,
) -> bytes | None:
    """Return the unit of ``message`` whose body fills ``size`` bytes; without ``wanted`` where there is no room."""
    for properties in ({**needed, **wanted}, needed):
        raw = encode_properties(properties)
        fixed = TopicField(message.topic).fixed + len(raw) + (CRC_TAIL_BYTES if property_crc else 0)
        if not fixed + len(_EMPTY_BATCH) <= size <= MAX_UNIT_BYTES:
            continue
        return encode_unit(
            message.changed(body=_EMPTY_BATCH.ljust(size - fixed, b"\0"), properties_raw=raw),
            queue_offset=queue_offset,
            physical_offset=physical_offset,
            store_timestamp=store_timestamp,
            property_crc=property_crc,
        )
    return None
