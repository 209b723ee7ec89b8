"""Message unit of the commit log, versions 1 and 2 (docs/formats/commit-log.md).

Pure: bytes in, records out. Whole blocks go through :mod:`engine.codec.columns`; this module is for one unit at a
time. No length inside the bytes is trusted: :func:`check_frame` checks the frame before any bytes are copied out.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple

from engine.codec import properties as props
from engine.codec.crc import crc31
from engine.codec.java import jhash, utf8
from engine.codec.unit_fields import OF_BYTES
from engine.codec.unit_flavours import BY_VERSION, FLAVOURS
from engine.errors import CorruptUnit
from engine.sentences import Sentence, msgid, plural, sentence
from engine.system_names import SCHEDULE_TOPIC

MAGIC_BLANK = 0xCBD43194

COMPRESSED = 0x1
MULTI_TAGS = 0x2
TRANSACTION_MASK = 0xC
PREPARED = 0x4
COMMIT = 0x8
ROLLBACK = 0xC
BORN_HOST_V6 = 0x10
STORE_HOST_V6 = 0x20
NEED_UNWRAP = 0x40
INNER_BATCH = 0x80
COMPRESSION_MASK = 0x700
COMPRESSION_NAMES = {0: "zlib", 1: "lz4", 2: "zstd", 3: "zlib"}

DEFAULT_DELAY_LEVELS = tuple(
    n * 1000 for n in (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
)
MIN_UNIT_SIZE = 91
MAX_UNIT_BYTES = 128 << 20
"""Bytes of the largest unit that is decoded; RocketMQ's default limit is 4 MiB + 64 KiB."""

_HEAD = struct.Struct(">iIiiiqqiq")  # up to BORNTIMESTAMP: 48 bytes
_STORE_TIME = struct.Struct(">q")
_AFTER_HOSTS = struct.Struct(">iqi")  # RECONSUMETIMES, PREPAREDTRANSACTIONOFFSET, BODYLEN
_I32 = struct.Struct(">i")
_I16 = struct.Struct(">h")
_HEAD_SIZE = _HEAD.size
_FORMS = {form.magic: (form.version, form.topic_width, form.topic_length.unpack_from) for form in FLAVOURS}
_NO_UNIT = msgid("no unit: {reason}")
_EXPECTED = " or ".join(f"0x{flavour.magic:08X}" for flavour in FLAVOURS)

Crc = Literal["ok", "bad", "unchecked"]


class Frame(NamedTuple):
    """Positions and lengths of a unit's variable parts, in bytes from the unit's first byte."""

    size: int
    version: int
    store_timestamp: int
    after_hosts: int
    body: int
    body_length: int
    topic: int
    topic_length: int
    properties: int
    properties_length: int


class Part(NamedTuple):
    """A field of a unit for a view of bytes: RocketMQ's name for it, position in the unit, length in bytes."""

    name: str
    position: int
    length: int


@dataclass(frozen=True, slots=True)
class Unit:
    """A message unit at ``offset`` (absolute bytes of the commit log). Times are ms since the epoch."""

    offset: int
    size: int
    version: int
    body_crc: int
    queue_id: int
    flag: int
    queue_offset: int
    physical_offset: int  # the PHYSICALOFFSET field; RocketMQ never compares it with the unit's place
    sys_flag: int
    born_timestamp: int
    born_host_raw: bytes
    store_timestamp: int
    store_host_raw: bytes
    reconsume_times: int
    prepared_transaction_offset: int
    body: bytes
    topic: str
    properties_raw: bytes
    properties: dict[str, str]
    crc: Crc
    raw_crc: int | None = field(default=None, repr=False)  # computed CRC of the body, if it was checked

    @property
    def end(self) -> int:
        """Offset behind the last byte."""
        return self.offset + self.size

    @property
    def body_length(self) -> int:
        """Bytes of the body as it is stored."""
        return len(self.body)

    @property
    def stale(self) -> bool:
        """True if the unit's own offset differs from its place: left over in a reused file."""
        return self.physical_offset != self.offset

    @property
    def born_host(self) -> str:
        return host_text(self.born_host_raw)

    @property
    def store_host(self) -> str:
        return host_text(self.store_host_raw)

    @property
    def tags(self) -> str | None:
        return self.properties.get(props.TAGS)

    @property
    def keys(self) -> list[str]:
        return props.split_keys(self.properties.get(props.KEYS))

    @property
    def unique_key(self) -> str | None:
        return self.properties.get(props.UNIQUE_KEY)

    @property
    def tags_code(self) -> int:
        """The code that dispatch writes into the queue entry, with the default delay levels."""
        return tags_code_of(self.topic, self.properties, self.store_timestamp)

    @property
    def offset_msg_id(self) -> str:
        """Offset message id: store host and PHYSICALOFFSET in upper-case hex
        (docs/formats/commit-log.md#message-ids).
        """
        return offset_message_id(self.store_host_raw, self.physical_offset)

    @property
    def transaction_type(self) -> int:
        return self.sys_flag & TRANSACTION_MASK

    @property
    def batch_size(self) -> int:
        """Messages in this unit: INNER_NUM if INNER_NUM and INNER_BASE are both present, else 1
        (docs/formats/commit-log.md#unit-check).
        """
        number, base = self.properties.get(props.INNER_NUM), self.properties.get(props.INNER_BASE)
        if number is None or base is None:
            return 1
        try:
            return int(number)
        except ValueError:
            return 1


def tags_code_of(
    topic: str, properties: dict[str, str], store_timestamp: int, levels: tuple[int, ...] = DEFAULT_DELAY_LEVELS
) -> int:
    """Return the tagsCode of a dispatch request (docs/formats/commit-log.md#unit-check): the tag's hash, or the
    delivery time (ms) in the schedule topic.
    """
    if topic == SCHEDULE_TOPIC and props.DELAY in properties:
        try:
            level = min(int(properties[props.DELAY]), len(levels))
        except ValueError:
            level = 0
        if level > 0:
            return store_timestamp + levels[level - 1]
    tags = properties.get(props.TAGS)
    return jhash(tags) if tags else 0


def bare_reason(reason: str) -> str:
    """Return the reason of :func:`check_frame` for messages that already have "no unit"."""
    if isinstance(reason, Sentence) and reason.id == _NO_UNIT:
        return str(reason.params["reason"])
    return reason if isinstance(reason, Sentence) else reason.removeprefix("no unit: ")


def check_frame(buf: bytes | bytearray | memoryview, position: int, limit: int) -> Frame | str:
    """Check the frame of the unit at ``buf[position]``; bytes from ``limit`` on do not exist.

    Returns the positions, or one sentence with the expected and the actual value. The sentence begins with ``cut
    off`` if the unit may be complete but its bytes are not in the buffer.
    """
    room = limit - position
    if room < _HEAD_SIZE + 40:
        return plural(
            "cut off: {n} byte left, a unit has at least {least}",
            "cut off: {n} bytes left, a unit has at least {least}",
            n=room,
            least=MIN_UNIT_SIZE,
        )
    size, magic = struct.unpack_from(">iI", buf, position)
    form = _FORMS.get(magic)
    if form is None:
        reason = sentence("magic code 0x{magic:08X}, expected {expected}", magic=magic, expected=_EXPECTED)
        return sentence(_NO_UNIT, reason=reason)
    if size < MIN_UNIT_SIZE or size > MAX_UNIT_BYTES:
        return sentence(
            "length field says {size:,}, a unit has {least} to {most:,} bytes",
            size=size,
            least=MIN_UNIT_SIZE,
            most=MAX_UNIT_BYTES,
        )
    version, topic_width, read_topic_length = form
    (sys_flag,) = _I32.unpack_from(buf, position + 36)
    store_time = _HEAD_SIZE + (20 if sys_flag & BORN_HOST_V6 else 8)
    after_hosts = store_time + 8 + (20 if sys_flag & STORE_HOST_V6 else 8)
    body = after_hosts + 16
    if body > room:
        return plural(
            "cut off: {n} byte left, the fixed fields need {size}",
            "cut off: {n} bytes left, the fixed fields need {size}",
            n=room,
            size=body,
        )
    (body_length,) = _I32.unpack_from(buf, position + body - 4)
    topic_field = body + body_length
    topic = topic_field + topic_width
    if body_length < 0 or topic + 2 > size:
        return sentence("bodyLength says {n:,} in a unit of {total:,} bytes", n=body_length, total=size)
    if topic > room:
        return sentence("cut off: the unit has {size:,} bytes, {room:,} are here", size=size, room=room)
    (topic_length,) = read_topic_length(buf, position + topic_field)
    properties = topic + topic_length + 2
    if topic_length < 0 or properties > size:
        return sentence("topicLength says {n:,} in a unit of {size:,} bytes", n=topic_length, size=size)
    if properties > room:
        return sentence("cut off: the unit has {size:,} bytes, {room:,} are here", size=size, room=room)
    (properties_length,) = _I16.unpack_from(buf, position + properties - 2)
    if properties_length < 0 or properties + properties_length != size:
        return plural(
            "propertiesLength says {length:,}; {n:,} byte is left in the unit",
            "propertiesLength says {length:,}; {n:,} bytes are left in the unit",
            n=size - properties,
            length=properties_length,
        )
    if size > room:
        return sentence("cut off: the unit has {size:,} bytes, {room:,} are here", size=size, room=room)
    return Frame(
        size, version, store_time, after_hosts, body, body_length, topic, topic_length, properties, properties_length
    )


def decode_store_timestamp(buf: bytes | bytearray | memoryview, position: int = 0) -> int | None:
    """Return the store time (ms) of a unit of which only the fixed fields need to be there; None without them."""
    if len(buf) - position < _HEAD_SIZE:
        return None
    sys_flag = _HEAD.unpack_from(buf, position)[-2]
    field = position + _HEAD_SIZE + (20 if sys_flag & BORN_HOST_V6 else 8)
    return int(_STORE_TIME.unpack_from(buf, field)[0]) if field + _STORE_TIME.size <= len(buf) else None


def decode_frame(buf: bytes | bytearray | memoryview, position: int, frame: Frame, base: int, crc: bool = True) -> Unit:
    """Return the unit at ``buf[position]``, whose frame is checked; ``base`` is the absolute offset of ``buf[0]``."""
    _, _, body_crc, queue_id, flag, queue_offset, physical_offset, sys_flag, born_time = _HEAD.unpack_from(
        buf, position
    )
    (store_time,) = _STORE_TIME.unpack_from(buf, position + frame.store_timestamp)
    reconsume, prepared, _ = _AFTER_HOSTS.unpack_from(buf, position + frame.after_hosts)
    body = bytes(buf[position + frame.body : position + frame.body + frame.body_length])
    topic = utf8(bytes(buf[position + frame.topic : position + frame.topic + frame.topic_length]))
    raw = bytes(buf[position + frame.properties : position + frame.size])
    computed = crc31(body) if crc else None
    verdict: Crc = "unchecked" if computed is None else "ok" if not body or computed == body_crc else "bad"
    return Unit(
        base + position,
        frame.size,
        frame.version,
        body_crc,
        queue_id,
        flag,
        queue_offset,
        physical_offset,
        sys_flag,
        born_time,
        bytes(buf[position + _HEAD_SIZE : position + frame.store_timestamp]),
        store_time,
        bytes(buf[position + frame.store_timestamp + 8 : position + frame.after_hosts]),
        reconsume,
        prepared,
        body,
        topic,
        raw,
        props.decode(raw),
        verdict,
        computed,
    )


def decode(buf: bytes | bytearray | memoryview, position: int = 0, base: int = 0, crc: bool = True) -> Unit:
    """Return the unit at ``buf[position]``; raises :class:`CorruptUnit` with the absolute offset if there is none."""
    frame = check_frame(buf, position, len(buf))
    if isinstance(frame, str):
        raise CorruptUnit(frame, offset=base + position)
    return decode_frame(buf, position, frame, base, crc)


def list_fields(buf: bytes | bytearray | memoryview, start: int = 0) -> list[Part]:
    """Return every field of the unit at ``buf[start]`` in the order of the bytes; [] if there is no unit.

    Properties come pair by pair as ``properties.NAME``.
    """
    frame = check_frame(buf, start, len(buf))
    if isinstance(frame, str):
        return []
    variable_lengths = {
        "bornHost": frame.store_timestamp - _HEAD_SIZE,
        "storeHost": frame.after_hosts - frame.store_timestamp - 8,
        "body": frame.body_length,
        "topicLength": BY_VERSION[frame.version].topic_width,
        "topic": frame.topic_length,
    }
    fields, position = [], 0
    for name, in_bytes in OF_BYTES:
        length = variable_lengths.get(name, in_bytes.width)
        fields.append(Part(name, position, length))
        position += length
    raw = bytes(buf[start + frame.properties : start + frame.size])
    for position, length in props.pair_spans(raw):
        name = utf8(raw[position : position + length]).partition(props.NAME_END)[0].rstrip(props.PAIR_END)
        fields.append(Part(f"properties.{name}", frame.properties + position, length))
    return fields


@lru_cache(maxsize=4096)
def host_text(raw: bytes) -> str:
    """Return ``ip:port`` or ``[ip]:port`` for 8 or 20 raw bytes."""
    port = int.from_bytes(raw[-4:], "big", signed=True)
    if len(raw) == 8:
        return f"{raw[0]}.{raw[1]}.{raw[2]}.{raw[3]}:{port}"
    return f"[{socket.inet_ntop(socket.AF_INET6, raw[:16])}]:{port}"


def offset_message_id(host_raw: bytes, offset: int) -> str:
    """Return the upper-case hex of raw store host (8 or 20 bytes) and commit-log offset: 32 or 56 characters
    (docs/formats/commit-log.md#message-ids).
    """
    return (host_raw + (offset & (1 << 64) - 1).to_bytes(8, "big")).hex().upper()


def parse_offset_message_id(text: str) -> tuple[bytes, int] | None:
    """Return (raw host, commit-log offset) of an offset message id, or None if ``text`` is not one."""
    raw = _id_bytes(text)
    if raw is None:
        return None
    return raw[:-8], int.from_bytes(raw[-8:], "big", signed=True)


def _id_bytes(text: str) -> bytes | None:
    """Return the bytes of an id in hex: 16 with an IPv4 host, 28 with an IPv6 host; None if ``text`` is not one."""
    if len(text) not in (32, 56):
        return None
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        return None
    return raw if len(raw) * 2 == len(text) else None  # fromhex() skips blanks


class UniqueKeyParts(NamedTuple):
    """The client's address, process, class loader, time and counter in a UNIQ_KEY
    (docs/formats/commit-log.md#message-ids). The time counts milliseconds from the first midnight of the month in
    the client's time zone.
    """

    ip: str
    pid: int
    class_loader: int
    ms_in_month: int
    counter: int


def parse_unique_key(text: str) -> UniqueKeyParts | None:
    """Return the parts of a UNIQ_KEY that a Java client made, or None if ``text`` is not one."""
    raw = _id_bytes(text)
    if raw is None:
        return None
    width = len(raw) - 12
    ip = socket.inet_ntop(socket.AF_INET if width == 4 else socket.AF_INET6, raw[:width])
    pid, loader, ms, counter = struct.unpack(">HIIH", raw[width:])
    return UniqueKeyParts(ip, pid, loader, ms, counter)


def sys_flag_words(sys_flag: int) -> list[str]:
    """Describe every bit of ``sys_flag`` in words (docs/formats/commit-log.md#sysflag); unknown bits are named as
    such.
    """
    words = []
    if sys_flag & COMPRESSED:
        kind = (sys_flag & COMPRESSION_MASK) >> 8
        words.append(f"compressed, {COMPRESSION_NAMES.get(kind, f'unknown type {kind}')}")
    elif sys_flag & COMPRESSION_MASK:
        words.append(f"compression type {(sys_flag & COMPRESSION_MASK) >> 8}, body not compressed")
    if sys_flag & MULTI_TAGS:
        words.append("multi tags")
    transaction = sys_flag & TRANSACTION_MASK
    if transaction:
        words.append({PREPARED: "PREPARED", COMMIT: "COMMIT", ROLLBACK: "ROLLBACK"}[transaction] + " of a transaction")
    if sys_flag & BORN_HOST_V6:
        words.append("born host IPv6")
    if sys_flag & STORE_HOST_V6:
        words.append("store host IPv6")
    if sys_flag & NEED_UNWRAP:
        words.append("needs unwrapping")
    if sys_flag & INNER_BATCH:
        words.append("inner batch")
    unknown = sys_flag & ~0x7FF & 0xFFFFFFFF
    if unknown:
        words.append(f"unknown bits 0x{unknown:X}")
    return words
