"""Encode messages: units of the commit log, versions 1 and 2, and the body of a client's batch
(docs/formats/commit-log.md).

Pure: takes a :class:`Message` and its place, returns bytes; Java: MessageExtBrokerInner and MessageExtEncoder.
:mod:`engine.codec.message` decodes; :mod:`engine.codec.message_columns` encodes whole arrays of messages. A
message that could not be read back raises ``ValueError``, which the put path turns into a status.

"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from engine.codec import batch
from engine.codec import properties as props
from engine.codec.crc import crc31
from engine.codec.message import BORN_HOST_V6, STORE_HOST_V6, Unit
from engine.codec.unit_flavours import BY_VERSION, MAX_PROPERTIES_BYTES
from engine.sentences import sentence

MAX_V1_TOPIC_BYTES = BY_VERSION[1].longest_topic
"""Maximum UTF-16 units, and bytes, of a topic in a unit of version 1."""
CRC_TAIL_BYTES = 20
"""Bytes that the property CRC takes at the end of a unit (docs/formats/commit-log.md#property-crc)."""
HEAD_SIZE = 88
"""Bytes before the body if both hosts are IPv4; each IPv6 host adds 12."""
IPV6_EXTRA_BYTES = 12

HEAD_FORMATS = {
    0: struct.Struct(">iIiiiqqiq8sq8siqi"),
    BORN_HOST_V6: struct.Struct(">iIiiiqqiq20sq8siqi"),
    STORE_HOST_V6: struct.Struct(">iIiiiqqiq8sq20siqi"),
    BORN_HOST_V6 | STORE_HOST_V6: struct.Struct(">iIiiiqqiq20sq20siqi"),
}
"""TOTALSIZE to BODYLEN, by the two host bits of SYSFLAG."""
HOST_BITS = BORN_HOST_V6 | STORE_HOST_V6
_I16 = struct.Struct(">h")
_U16 = struct.Struct(">H")
_PLACE, _TIME = struct.Struct(">qq"), struct.Struct(">q")
_PLACE_AT, _BORN_AT, _BORN_HOST_AT = 20, 40, 48
"""Positions of QUEUEOFFSET with PHYSICALOFFSET, BORNTIMESTAMP and BORNHOST in a unit."""
_CRC_NAME = b"__CRC32#\x01"
_MAX_TEMPLATES = 4096


class Message:
    """A message to be put, as RocketMQ's store takes it (Java: MessageExtBrokerInner).

    ``properties`` is the map that rewriting rules use (DELAY and the like). ``properties_raw`` is the text to be
    stored, byte for byte. With only the map the text is made from it; with only the text no rule is applied.
    Times are ms since the epoch, hosts ``ip:port`` or ``[ip]:port``. A ``born_timestamp`` of None is now, a
    ``store_host`` of None is the store's own. ``tags``, ``keys`` and ``unique_key`` are added to the map.

    """

    __slots__ = (
        "body",
        "born_host",
        "born_timestamp",
        "flag",
        "prepared_transaction_offset",
        "properties",
        "properties_raw",
        "queue_id",
        "reconsume_times",
        "store_host",
        "sys_flag",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        body: bytes,
        queue_id: int = 0,
        properties: dict[str, str] | None = None,
        properties_raw: bytes | None = None,
        *,
        flag: int = 0,
        sys_flag: int = 0,
        born_timestamp: int | None = None,
        born_host: str = "127.0.0.1:0",
        store_host: str | None = None,
        reconsume_times: int = 0,
        prepared_transaction_offset: int = 0,
        tags: str | None = None,
        keys: str | None = None,
        unique_key: str | None = None,
    ) -> None:
        self.topic = topic
        self.body = body
        self.queue_id = queue_id
        self.properties = properties
        self.properties_raw = properties_raw
        self.flag = flag
        self.sys_flag = sys_flag
        self.born_timestamp = born_timestamp
        self.born_host = born_host
        self.store_host = store_host
        self.reconsume_times = reconsume_times
        self.prepared_transaction_offset = prepared_transaction_offset
        if tags is not None or keys is not None or unique_key is not None:
            named = {props.TAGS: tags, props.KEYS: keys, props.UNIQUE_KEY: unique_key}
            self.properties = {**(properties or {}), **{name: value for name, value in named.items() if value}}

    @classmethod
    def of_unit(cls, unit: Unit) -> Message:
        """Return the message from which a stored unit was made: every field, the property text byte for byte."""
        return cls(
            unit.topic,
            unit.body,
            unit.queue_id,
            None,
            unit.properties_raw,
            flag=unit.flag,
            sys_flag=unit.sys_flag & ~HOST_BITS,
            born_timestamp=unit.born_timestamp,
            born_host=unit.born_host,
            store_host=unit.store_host,
            reconsume_times=unit.reconsume_times,
            prepared_transaction_offset=unit.prepared_transaction_offset,
        )

    @property
    def tags(self) -> str | None:
        return (self.properties or {}).get(props.TAGS)

    @property
    def keys(self) -> list[str]:
        return props.split_keys((self.properties or {}).get(props.KEYS))

    @property
    def waits(self) -> bool:
        """True if the sender waits for flush and replicas: WAIT absent or true (docs/formats/writing.md#flush)."""
        value = (self.properties or {}).get(props.WAIT)
        return not value or value.lower() == "true"

    def changed(self, **fields: object) -> Message:
        """Return a copy with other values in the named fields."""
        duplicate = Message.__new__(Message)
        for name in self.__slots__:
            setattr(duplicate, name, fields[name] if name in fields else getattr(self, name))
        return duplicate

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Message({self.topic!r}, {len(self.body)} bytes, queue {self.queue_id}, {self.properties!r})"


class TopicField:
    """The bytes that a topic adds to each of its units: the magic number, and its length and name behind the body."""

    __slots__ = ("fixed", "magic", "raw")

    def __init__(self, topic: str, auto_version: bool = True) -> None:
        raw = topic.encode()
        needs_version_2 = auto_version and utf16_length(topic) > MAX_V1_TOPIC_BYTES
        flavour = BY_VERSION[2 if needs_version_2 else 1]
        if len(raw) > flavour.longest_topic:
            raise ValueError(sentence("a topic of {count} bytes does not fit its length field", count=len(raw)))
        self.magic = flavour.magic
        self.raw = flavour.topic_length.pack(len(raw)) + raw
        self.fixed = HEAD_SIZE + len(self.raw) + 2
        """Bytes of a unit with IPv4 hosts beside body and properties."""


def utf16_length(text: str) -> int:
    """Return the number of UTF-16 units, as ``String.length``."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


@lru_cache(maxsize=4096)
def host_raw(host: str) -> bytes:
    """Return the 8 or 20 bytes of ``ip:port`` or ``[ip]:port``: address, then the port in four bytes
    (docs/formats/commit-log.md#unit).
    """
    ip, colon, port = host.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise ValueError(sentence("expected ip:port or [ip]:port, found {host}", host=repr(host)))
    family = socket.AF_INET6 if ip.startswith("[") else socket.AF_INET
    try:
        return socket.inet_pton(family, ip.strip("[]")) + int(port).to_bytes(4, "big")
    except OSError:
        raise ValueError(sentence("expected ip:port or [ip]:port, found {host}", host=repr(host))) from None


_templates: dict[tuple[str, ...], str] = {}


def encode_properties(properties: Mapping[str, str | None]) -> bytes:
    """Return property text in the map's order, every pair closed; null values are left out
    (docs/formats/commit-log.md#properties).

    Raises ``ValueError`` if a reader would not get the same names and values. (An empty value is stored, and
    every reader loses it, as with RocketMQ.)

    """
    names = tuple(properties)
    template = _templates.get(names)
    if template is None:
        template = template_of(names)
    text = template % tuple(properties.values())
    raw = text.encode()
    if raw.count(2) != len(names):
        raise ValueError(sentence("a property value holds the byte 0x02, which ends a property"))
    if "None" in text and None in properties.values():
        return encode_properties({name: value for name, value in properties.items() if value is not None})
    return raw


def template_of(names: tuple[str, ...]) -> str:
    """Return a format of property text for maps with exactly these names in this order."""
    for name in names:
        if not name or props.NAME_END in name or props.PAIR_END in name:
            raise ValueError(sentence("{name} cannot be the name of a property", name=repr(name)))
    template = "".join(f"{name.replace('%', '%%')}{props.NAME_END}%s{props.PAIR_END}" for name in names)
    if len(_templates) >= _MAX_TEMPLATES:
        _templates.clear()
    _templates[names] = template
    return template


def delete_property(raw: bytes, name: str) -> bytes:
    """Return property text without the pairs of ``name`` (Java: MessageUtils.deleteProperty)."""
    prefix = name.encode() + b"\x01"
    if prefix not in raw:
        return raw
    pieces = (raw[position : position + length] for position, length in props.pair_spans(raw))
    return b"".join(piece for piece in pieces if not piece.startswith(prefix))


def stored_properties(raw: bytes, property_crc: bool) -> bytes:
    """Return ``raw`` as a unit carries it: with ``property_crc``, without an old CRC, closed, and with room for the
    new CRC.
    """
    if not property_crc:
        return raw
    raw = delete_property(raw, props.CRC32)
    return raw + bytes(CRC_TAIL_BYTES) if not raw or raw.endswith(b"\x02") else raw + b"\x02" + bytes(CRC_TAIL_BYTES)


def write_property_crc(unit: bytearray | memoryview) -> None:
    """Write the property CRC of all bytes before it into the last twenty bytes
    (docs/formats/commit-log.md#property-crc).
    """
    digits = props.crc_digits(crc31(unit[:-CRC_TAIL_BYTES]))
    unit[-CRC_TAIL_BYTES:] = _CRC_NAME + digits + b"\x02"


def property_text(message: Message) -> bytes:
    """Return the property text of a message as it will be stored, before any CRC."""
    if message.properties_raw is not None:
        return message.properties_raw
    return encode_properties(message.properties) if message.properties else b""


def encode_unit(
    message: Message,
    *,
    queue_offset: int,
    physical_offset: int,
    store_timestamp: int,
    store_host: str = "127.0.0.1:10911",
    property_crc: bool = False,
    auto_version: bool = True,
) -> bytes:
    """Return the unit of ``message`` at its place; ``store_host`` is used if the message names none.

    ``property_crc`` is enabledAppendPropCRC, ``auto_version`` autoMessageVersionOnTopicLen. Only the limits of
    the fields are checked here; the put path checks the others (docs/formats/writing.md#checks). Raises
    ``ValueError``.

    """
    topic = TopicField(message.topic, auto_version)
    raw = stored_properties(property_text(message), property_crc)
    if len(raw) > MAX_PROPERTIES_BYTES:
        raise ValueError(sentence("properties of {count:,} bytes do not fit their length field", count=len(raw)))
    born, stored = host_raw(message.born_host), host_raw(message.store_host or store_host)
    sys_flag = message.sys_flag & ~HOST_BITS | host_bits(born, stored)
    body = message.body
    extra = len(born) + len(stored) - 16
    born_time = store_timestamp if message.born_timestamp is None else message.born_timestamp
    try:
        head = HEAD_FORMATS[sys_flag & HOST_BITS].pack(
            topic.fixed + extra + len(body) + len(raw),
            topic.magic,
            crc31(body),
            message.queue_id,
            message.flag,
            queue_offset,
            physical_offset,
            sys_flag,
            born_time,
            born,
            store_timestamp,
            stored,
            message.reconsume_times,
            message.prepared_transaction_offset,
            len(body),
        )
    except struct.error as error:
        raise ValueError(sentence("a number does not fit its field: {error}", error=error)) from None
    unit = b"".join((head, body, topic.raw, _U16.pack(len(raw)), raw))
    if not property_crc:
        return unit
    sealed = bytearray(unit)
    write_property_crc(sealed)
    return bytes(sealed)


def host_bits(born: bytes, stored: bytes) -> int:
    """Return the SYSFLAG bits of two raw hosts."""
    return (BORN_HOST_V6 if len(born) == 20 else 0) | (STORE_HOST_V6 if len(stored) == 20 else 0)


class UnitRun:
    """The units of a batch, one behind the other, before their place in the log is known
    (docs/formats/commit-log.md#batches).

    ``members`` is the result of :func:`engine.codec.batch.spans` for the body of ``batch``; ``shared`` is the
    property text of the batch itself. ``property_crc`` and ``auto_version`` as for :func:`encode_unit`. Raises
    ``ValueError``.

    """

    def __init__(
        self,
        batch: Message,
        members: Sequence[tuple[int, int, int, int, int]],
        shared: bytes,
        *,
        stored_host: bytes,
        property_crc: bool = False,
        auto_version: bool = True,
    ) -> None:
        topic, born = TopicField(batch.topic, auto_version), host_raw(batch.born_host)
        sys_flag = batch.sys_flag & ~HOST_BITS | host_bits(born, stored_host)
        head = HEAD_FORMATS[sys_flag & HOST_BITS]
        fixed = topic.fixed + len(born) + len(stored_host) - 16
        body, view = batch.body, memoryview(batch.body)
        born_time, topic_raw = batch.born_timestamp or 0, topic.raw
        pieces: list[bytes | memoryview] = []
        starts, position, longest = [], 0, 0
        try:
            for flag, start, length, text_position, text_length in members:
                raw = joined_properties(body[text_position : text_position + text_length], shared)
                if property_crc:
                    raw = stored_properties(raw, property_crc)
                content, text = view[start : start + length], len(raw)
                longest = max(longest, text)
                size = fixed + length + text
                starts.append(position)
                position += size
                pieces += (
                    head.pack(
                        size,
                        topic.magic,
                        crc31(content),
                        batch.queue_id,
                        flag,
                        0,
                        0,
                        sys_flag,
                        born_time,
                        born,
                        0,
                        stored_host,
                        batch.reconsume_times,
                        0,
                        length,
                    ),
                    content,
                    topic_raw,
                    _U16.pack(text & 0xFFFF),
                    raw,
                )
        except struct.error as error:
            raise ValueError(sentence("a number does not fit its field: {error}", error=error)) from None
        self._data = bytearray(b"".join(pieces))
        self._starts = starts
        self._stored_at = _BORN_HOST_AT + len(born)
        self._born_now = batch.born_timestamp is None
        self._sealed = property_crc
        self.longest_properties = longest
        """Bytes of the longest property text of a unit."""

    @property
    def size(self) -> int:
        """Bytes of all units."""
        return len(self._data)

    def place(self, queue_offset: int, physical_offset: int, now: int) -> tuple[memoryview, list[int]]:
        """Return the bytes for that place and time (ms), and the physical offset of each unit."""
        data, stored_at = self._data, self._stored_at
        for number, start in enumerate(self._starts):
            _PLACE.pack_into(data, start + _PLACE_AT, queue_offset + number, physical_offset + start)
            _TIME.pack_into(data, start + stored_at, now)
            if self._born_now:
                _TIME.pack_into(data, start + _BORN_AT, now)
        if self._sealed:
            view = memoryview(data)
            for start, end in zip(self._starts, [*self._starts[1:], len(data)], strict=True):
                write_property_crc(view[start:end])
        return memoryview(data), [physical_offset + start for start in self._starts]


def encode_batch(messages: Iterable[Message]) -> bytes:
    """Return the body of a batch as a client sends it: flag, body and properties of each message
    (docs/formats/commit-log.md#batches).
    """
    pieces = []
    for message in messages:
        raw = property_text(message)
        if len(raw) > MAX_PROPERTIES_BYTES:
            raise ValueError(sentence("properties of {count:,} bytes do not fit their length field", count=len(raw)))
        pieces.append(batch.encode_member(message.flag, message.body, raw))
    return b"".join(pieces)


def joined_properties(member_properties: bytes, shared: bytes) -> bytes:
    """Return member properties and batch properties as one text, adding a missing 0x02 between them
    (docs/formats/commit-log.md#batches).
    """
    if member_properties and shared and not member_properties.endswith(b"\x02"):
        return member_properties + b"\x02" + shared
    return member_properties + shared
