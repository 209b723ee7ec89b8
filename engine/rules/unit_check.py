"""A broker's check of a unit before it accepts it (docs/formats/commit-log.md#unit-check), reproduced exactly.

:mod:`engine.codec.message` proves a frame; this module gives RocketMQ's answer, oddities included: a negative body
length counts as no body, all 32 bits of the stored CRC are compared, PHYSICALOFFSET is not compared at all.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal, NamedTuple

from engine.codec import properties as props
from engine.codec.crc import crc31, hex_crc
from engine.codec.java import utf8
from engine.codec.message import BORN_HOST_V6, DEFAULT_DELAY_LEVELS, MAGIC_BLANK, STORE_HOST_V6, tags_code_of
from engine.codec.unit_flavours import BY_MAGIC, READ_BY
from engine.releases import NEWEST, Release, rules_of
from engine.sentences import plural, sentence
from engine.system_names import SCHEDULE_TOPIC

Bytes = bytes | bytearray | memoryview

_PAIR = struct.Struct(">iI")
_HEAD = struct.Struct(">iIiiiqqiq")
_I32 = struct.Struct(">i")
_I64 = struct.Struct(">q")
_I16 = struct.Struct(">h")
_CRC_RESERVED = 20
_DUP_INFO = "DUP_INFO"


class Rules(NamedTuple):
    """Settings of the check that come from the release and the configuration."""

    release: Release = NEWEST
    crc: bool = True  # checkCRCOnRecover
    property_crc: bool = False  # forceVerifyPropCRC
    dup_info: bool = False  # duplicationEnable
    delay_levels: tuple[int, ...] = DEFAULT_DELAY_LEVELS
    own_offset: bool = False  # checkCommitLogOffsetOnRecover


@dataclass(frozen=True, slots=True)
class Request:
    """Dispatch request of a valid unit (Java: DispatchRequest); offsets are those stored in the unit."""

    topic: str
    queue_id: int
    physical_offset: int
    size: int
    tags_code: int
    store_timestamp: int
    queue_offset: int
    sys_flag: int
    properties: dict[str, str]
    base_offset: int
    batch_size: int


class Refusal(NamedTuple):
    """The check failed: ``size`` is the unit's own length if only the sum of its parts disagrees, else −1."""

    size: int
    reason: str


class NeedsMoreBytes(NamedTuple):
    """The unit's ``size`` bytes are not all in the buffer, though the file may hold them."""

    size: int


BLANK: Literal["blank"] = "blank"
STANDARD = Rules()
Answer = Request | Refusal | NeedsMoreBytes | Literal["blank"]


def check(buf: Bytes, position: int, room: int, rules: Rules = STANDARD, body: bool = True) -> Answer:
    """Return a broker's judgement on the unit at ``buf[position]``; ``room`` is the number of bytes from there to the
    end of the file.

    With ``body`` False the body is skipped and no CRC is computed, as dispatch does.
    """
    if room <= 4 or room < 8:
        return Refusal(-1, plural("{n} byte left in the file", "{n} bytes left in the file", n=room))
    if len(buf) - position < 8:
        return NeedsMoreBytes(8)
    total, magic = _PAIR.unpack_from(buf, position)
    release = rules_of(rules.release)
    if (release.checks_length_before_magic and room < total) or (release.refuses_negative_length and total < 0):
        return Refusal(
            -1,
            plural(
                "the length field says {total:,}, {n:,} byte is left in the file",
                "the length field says {total:,}, {n:,} bytes are left in the file",
                total=total,
                n=room,
            ),
        )
    if magic == MAGIC_BLANK:
        return BLANK
    if magic not in READ_BY[rules.release]:
        if total == 0 and magic == 0:
            return Refusal(-1, sentence("zero bytes: nothing was written here"))
        reason = sentence("magic code 0x{magic:08X}", magic=magic)
        return Refusal(-1, reason + ": " + sentence(BY_MAGIC[magic].unread_note) if magic in BY_MAGIC else reason)
    if total < 0 or total > room:
        return Refusal(
            -1,
            plural(
                "the length field says {total:,}, {n:,} byte is left in the file",
                "the length field says {total:,}, {n:,} bytes are left in the file",
                total=total,
                n=room,
            ),
        )
    if len(buf) - position < total:
        return NeedsMoreBytes(total)
    try:
        return _parse(buf, position, min(len(buf), position + room), rules, body)
    except (struct.error, ValueError, IndexError) as error:
        return Refusal(-1, sentence("the unit cannot be parsed: {why}", why=error))


def _parse(buf: Bytes, start: int, limit: int, rules: Rules, body: bool) -> Request | Refusal:
    total, magic, stored_crc, queue_id, _, queue_offset, physical, sys_flag, _ = _HEAD.unpack_from(buf, start)
    position = start + _HEAD.size + (20 if sys_flag & BORN_HOST_V6 else 8)
    (stored,) = _I64.unpack_from(buf, position)
    position += 8 + (20 if sys_flag & STORE_HOST_V6 else 8) + 12
    (body_length,) = _I32.unpack_from(buf, position)
    position += 4
    if body_length > 0:
        if body_length > total:
            return Refusal(
                -1,
                sentence("bodyLength says {n:,} in a unit of {total:,} bytes", n=body_length, total=total),
            )
        if position + body_length > limit:
            return Refusal(-1, sentence("the body reaches beyond the file"))
        if body and rules.crc and not rules.property_crc:
            computed = crc31(buf[position : position + body_length])
            if computed != stored_crc:
                return Refusal(
                    -1,
                    sentence(
                        "CRC of the body is {found}, the stored CRC is {expected}",
                        found=hex_crc(computed),
                        expected=hex_crc(stored_crc),
                    ),
                )
        position += body_length
    length_field = BY_MAGIC[magic].topic_length
    (topic_length,) = length_field.unpack_from(buf, position)
    position += length_field.size
    if not 0 <= topic_length <= total or position + topic_length > limit:
        return Refusal(-1, sentence("topicLength says {n:,}", n=topic_length))
    topic = utf8(bytes(buf[position : position + topic_length]))
    position += topic_length
    (length,) = _I16.unpack_from(buf, position)
    position += 2
    properties: dict[str, str] = {}
    if length > 0:
        if length > total or position + length > limit:
            return Refusal(-1, sentence("propertiesLength says {n:,}", n=length))
        properties = props.decode(bytes(buf[position : position + length]))
        position += length
    wrong = _wrong_properties(buf, position, total, topic, properties, rules, body)
    if wrong:
        return Refusal(-1, wrong)
    if position - start != total:
        return Refusal(
            total,
            plural(
                "the parts make {n:,} byte, the length field says {total:,}",
                "the parts make {n:,} bytes, the length field says {total:,}",
                n=position - start,
                total=total,
            ),
        )
    base, count = queue_offset, 1
    if props.INNER_NUM in properties and props.INNER_BASE in properties:
        base, count = int(properties[props.INNER_BASE]), int(properties[props.INNER_NUM])
        if not -0x8000 <= count < 0x8000:
            return Refusal(-1, sentence("INNER_NUM says {n}", n=count))
    code = tags_code_of(topic, properties, stored, rules.delay_levels)
    return Request(topic, queue_id, physical, total, code, stored, queue_offset, sys_flag, properties, base, count)


def _wrong_properties(
    buf: Bytes, end: int, total: int, topic: str, properties: dict[str, str], rules: Rules, body: bool
) -> str | None:
    if rules.dup_info and properties and properties.get(_DUP_INFO, "").count("_") != 1:
        return sentence("DUP_INFO has not two parts, and duplicationEnable is on")
    if topic == SCHEDULE_TOPIC and props.DELAY in properties:
        int(properties[props.DELAY])
    if body and rules.crc and rules.property_crc:
        digits = properties.get(props.CRC32)
        if digits is None:
            return sentence("no property CRC, and forceVerifyPropCRC is on")
        start = end - total
        expected = int(digits[::-1])
        computed = crc31(buf[start : start + total - _CRC_RESERVED]) if start >= 0 else -1
        if computed != expected:
            return sentence("property CRC is {found}, the stored CRC is {expected}", found=computed, expected=expected)
    return None
