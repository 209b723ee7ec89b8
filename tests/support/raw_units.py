"""Bytes of commit-log units made by hand, field by field (docs/formats/commit-log.md#unit), for tests of readers."""

from __future__ import annotations

import struct
import zlib

from engine.codec.crc import crc31
from engine.codec.message import BORN_HOST_V6, MAGIC_BLANK, STORE_HOST_V6
from engine.codec.unit_flavours import BY_MAGIC, BY_VERSION

_V4 = bytes([192, 168, 1, 2])
_V6 = bytes.fromhex("20010db8000000000000000000000042")


def raw_unit(
    offset: int = 0,
    *,
    topic: bytes = b"TopicTest",
    body: bytes = b"Hello",
    properties: bytes = b"TAGS\x01TagA\x02KEYS\x01k1\x02",
    version: int = 1,
    queue_id: int = 3,
    flag: int = 0,
    queue_offset: int = 5,
    sys_flag: int = 0,
    born: int = 1_700_000_000_000,
    stored: int = 1_700_000_000_123,
    reconsume: int = 0,
    prepared: int = 0,
    body_crc: int | None = None,
) -> bytes:
    """Return a whole unit for the place ``offset``; host widths follow ``sys_flag``, the CRC is the body's unless
    given.
    """
    born_host = (_V6 if sys_flag & BORN_HOST_V6 else _V4) + struct.pack(">i", 50_000)
    store_host = (_V6 if sys_flag & STORE_HOST_V6 else b"\x7f\0\0\1") + struct.pack(">i", 10_911)
    crc = crc31(body) if body_crc is None else body_crc
    magic = BY_VERSION[version].magic
    pack = struct.pack(">Iiiiqqiq", magic, crc, queue_id, flag, queue_offset, offset, sys_flag, born) + born_host
    pack += struct.pack(">q", stored) + store_host + struct.pack(">iqi", reconsume, prepared, len(body)) + body
    pack += BY_VERSION[version].topic_length.pack(len(topic)) + topic
    pack += struct.pack(">h", len(properties)) + properties
    return struct.pack(">i", len(pack) + 4) + pack


def raw_log(*units: dict[str, object], base: int = 0) -> bytes:
    """Return units one after another, each with its own offset."""
    log = bytearray()
    for fields in units:
        log += raw_unit(base + len(log), **fields)  # type: ignore[arg-type]
    return bytes(log)


def raw_blank(size: int) -> bytes:
    """Return the first eight bytes of an end-of-file unit."""
    return struct.pack(">iI", size, MAGIC_BLANK)


def with_property_crc(unit: bytes) -> bytes:
    """Return ``unit`` with the twenty bytes of ``enabledAppendPropCRC`` at its end; its lengths grow with it."""
    position = properties_length_position(unit)
    grown = bytearray(unit)
    struct.pack_into(">i", grown, 0, len(unit) + 20)
    struct.pack_into(">h", grown, position, len(unit) - position - 2 + 20)
    digits = str(zlib.crc32(grown) & 0x7FFFFFFF)[::-1].ljust(10, "0")
    return bytes(grown) + b"__CRC32#\x01" + digits.encode() + b"\x02"


def properties_length_position(unit: bytes) -> int:
    """Return the position of the length of the properties in ``unit``."""
    (sys_flag,) = struct.unpack_from(">i", unit, 36)
    position = 48 + (20 if sys_flag & BORN_HOST_V6 else 8) + 8 + (20 if sys_flag & STORE_HOST_V6 else 8) + 12
    (body,) = struct.unpack_from(">i", unit, position)
    position += 4 + body
    length = BY_MAGIC[struct.unpack_from(">I", unit, 4)[0]].topic_length
    return int(position + length.size + length.unpack_from(unit, position)[0])
