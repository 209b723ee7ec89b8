"""Take apart a unit that cannot be read (docs/formats/commit-log.md#unit): which field is wrong, and what its value
would be.

One wrong bit in a length makes a unit undecodable although all other bytes are intact: topic, queue, keys, body.
Here each field on which others depend is tried with the values that make the rest of the unit agree. Pure; never
raises on bad bytes. A guess counts only if the unit itself supports it: its offset field names this place, or its
body matches its CRC, and its topic is a valid name.

"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from engine.codec import properties as props
from engine.codec.crc import crc31
from engine.codec.message import (
    BORN_HOST_V6,
    MAX_UNIT_BYTES,
    MIN_UNIT_SIZE,
    STORE_HOST_V6,
    Frame,
    Part,
    Unit,
    check_frame,
    decode_frame,
    list_fields,
)
from engine.codec.unit_flavours import BY_MAGIC, FLAVOURS, MAGICS
from engine.files.layout import MAX_NAME_BYTES
from engine.sentences import sentence

_I32, _I16, _U32 = struct.Struct(">i"), struct.Struct(">h"), struct.Struct(">I")
_I64 = struct.Struct(">q")
_SIZE, _MAGIC, _CRC, _QUEUE_ID, _QUEUE_OFFSET, _PHYSICAL, _SYS_FLAG = 0, 4, 8, 12, 20, 28, 36
_MAX_TOPIC_BYTES = {form.topic_width: min(form.longest_topic, MAX_NAME_BYTES) for form in FLAVOURS}
"""Width of the topic's length → the longest name that is tried: a topic is a folder."""
_FORBIDDEN_IN_NAMES = frozenset('<>:"\\|?*')
_IN_HEX = frozenset(("magicCode", "bodyCRC", "sysFlag"))
_COMPUTED_FIELDS = frozenset(("totalSize", "bodyLength", "topicLength", "propertiesLength"))
"""Fields whose mended value is computed to fit the others: weaker evidence than one of few possible values."""
_FAR_APART_MS = 366 * 86_400_000
"""Implausible distance of a unit's two times, in ms: with wrong host lengths one of them is part of an address."""
MAX_ATTEMPTS = 4096
"""Maximum number of places that are tried for the end of a body whose length is wrong."""


class FieldFault(NamedTuple):
    """A field that contradicts the others: its stored value, and its likely value (None if unknown)."""

    field: str
    stored: int
    likely: int | None

    @property
    def is_overflow(self) -> bool:
        """True if the field is the 16-bit length of properties that are longer than it can hold."""
        return self.field == "propertiesLength" and (self.likely or 0) >= 1 << 15

    @property
    def words(self) -> str:
        """``totalSize says 77, it would be 572``."""
        stored = self._number(self.stored)
        if self.likely is None:
            return sentence("{field} says {says}", field=self.field, says=stored)
        would = self._number(self.likely)
        return sentence("{field} says {says}, it would be {would}", field=self.field, says=stored, would=would)

    def _number(self, value: int) -> str:
        return f"0x{value & 0xFFFFFFFF:08X}" if self.field in _IN_HEX else f"{value:,}"


@dataclass(frozen=True, slots=True)
class Salvage:
    """The unit with its wrong fields mended, those fields, and every field's place."""

    unit: Unit
    wrong: tuple[FieldFault, ...]
    parts: tuple[Part, ...]


class _Patch(NamedTuple):
    position: int
    data: bytes
    wrong: FieldFault


def salvage(buf: bytes | bytearray | memoryview, base: int, sizes: Sequence[int] = ()) -> Salvage | None:
    """Return the unit at the beginning of ``buf``, at absolute offset ``base``, as far as it can be recovered.

    ``sizes`` are lengths in bytes known from elsewhere: the distance to the next unit, its queue entry. None if
    no guess is supported.

    """
    raw = bytes(buf[: MAX_UNIT_BYTES + 1])
    if len(raw) < MIN_UNIT_SIZE:
        return None
    overflowed = salvage_overflow(raw, base)
    if overflowed is not None:
        return overflowed
    best: tuple[tuple[int, ...], Salvage] | None = None
    for patches in _guesses(raw, sizes):
        candidate = _try_patches(raw, base, patches)
        if candidate is not None:
            rank = _rank(candidate, sizes)
            if best is None or rank < best[0]:
                best = (rank, candidate)
    return best[1] if best is not None else None


class Entry(NamedTuple):
    """The facts about a unit in its queue entry: length in bytes, topic, queue, queue offset."""

    size: int
    topic: str
    queue_id: int
    queue_offset: int


def salvage_overwritten(buf: bytes | bytearray | memoryview, base: int, entry: Entry) -> Salvage | None:
    """Return the unit at the beginning of ``buf``, a part of which was overwritten, with the help of its queue
    ``entry``.

    No guess makes such a unit agree with itself. But if its head still names this place, or its end still holds
    the entry's topic, the other fields can be read: those that contradict the entry are replaced by it. None if
    nothing of the unit remains, or if its lengths contradict the entry.

    """
    raw = bytes(buf[: entry.size])
    name = entry.topic.encode("utf-8")
    if len(raw) < entry.size or entry.size < MIN_UNIT_SIZE:
        return None
    (magic,) = _U32.unpack_from(raw, _MAGIC)
    has_head = magic in MAGICS and _I64.unpack_from(raw, _PHYSICAL)[0] == base
    flavour = BY_MAGIC[magic] if has_head else next(form for form in FLAVOURS if len(name) <= form.longest_topic)
    width, body = flavour.topic_width, _body_at(raw)
    topic = _place_of_topic(raw, body, width, name, has_head=has_head)
    topic_end = topic + width + len(name)
    properties = entry.size - topic_end - 2
    if topic < 0 or not 0 <= properties < 1 << 15:
        return None
    mended = bytearray(raw)
    mended[topic : topic + width] = len(name).to_bytes(width, "big")
    mended[topic + width : topic_end] = name
    wrong = (
        []
        if raw[topic + width : topic_end] == name
        else [FieldFault("topicLength", _length(raw, topic, width), len(name))]
    )
    for field, position, form, value in (
        ("totalSize", _SIZE, _I32, entry.size),
        ("magicCode", _MAGIC, _U32, flavour.magic),
        ("queueId", _QUEUE_ID, _I32, entry.queue_id),
        ("queueOffset", _QUEUE_OFFSET, _I64, entry.queue_offset),
        ("physicalOffset", _PHYSICAL, _I64, base),
        ("bodyLength", body - 4, _I32, topic - body),
        ("propertiesLength", topic_end, _I16, properties),
    ):
        (stored,) = form.unpack_from(raw, position)
        if stored != value:
            wrong.append(FieldFault(field, stored, value))
            form.pack_into(mended, position, value)
    frame = check_frame(mended, 0, len(mended))
    if not isinstance(frame, Frame):
        return None
    unit = decode_frame(mended, 0, frame, base)
    if unit.crc == "bad":
        wrong.append(FieldFault("bodyCRC", unit.body_crc, None))
    return Salvage(unit, tuple(wrong), tuple(list_fields(mended)))


def _place_of_topic(raw: bytes, body: int, width: int, name: bytes, *, has_head: bool) -> int:
    """Return the position of the topic's length: as the end of the unit shows it, else as the head does; or -1."""
    position = raw.rfind(len(name).to_bytes(width, "big") + name)
    while position >= body:
        topic_end = position + width + len(name)
        if topic_end + 2 <= len(raw) and _I16.unpack_from(raw, topic_end)[0] == len(raw) - topic_end - 2:
            return position
        position = raw.rfind(len(name).to_bytes(width, "big") + name, 0, position + len(name))
    if not has_head or body > len(raw):
        return -1
    (length,), (crc,) = _I32.unpack_from(raw, body - 4), _I32.unpack_from(raw, _CRC)
    if length == 0 and crc:  # the overwritten part begins in the head: the body's length is unknown
        return -1
    return body + length if 0 <= length <= len(raw) - body - width - len(name) - 2 else -1


def _length(raw: bytes, position: int, width: int) -> int:
    return int.from_bytes(raw[position : position + width], "big")


def _try_patches(raw: bytes, base: int, patches: Sequence[_Patch]) -> Salvage | None:
    mended = bytearray(raw)
    for patch in patches:
        mended[patch.position : patch.position + len(patch.data)] = patch.data
    frame = check_frame(mended, 0, len(mended))
    if not isinstance(frame, Frame):
        return None
    unit = decode_frame(mended, 0, frame, base)
    sound_body = bool(unit.body) and unit.crc == "ok"
    if not _is_name(unit.topic) or (unit.stale and not sound_body) or unit.queue_id < 0 or unit.queue_offset < 0:
        return None
    wrong = [patch.wrong for patch in patches]
    if unit.stale:
        wrong.append(FieldFault("physicalOffset", unit.physical_offset, base))
    if unit.crc == "bad":
        wrong.append(FieldFault("bodyCRC", unit.body_crc, None))
    return Salvage(unit, tuple(wrong), tuple(list_fields(mended[: unit.size])))


def salvage_overflow(raw: bytes, base: int) -> Salvage | None:
    """Return the unit if its properties are longer than their 16-bit length can hold: 4.x stores such members of a
    batch.

    Everything else agrees: the length is the true length modulo 2¹⁶, and the body matches its CRC.

    """
    (size,) = _I32.unpack_from(raw, _SIZE)
    magic = _U32.unpack_from(raw, _MAGIC)[0]
    body = _body_at(raw)
    if magic not in BY_MAGIC or not MIN_UNIT_SIZE <= size <= len(raw) or body > size:
        return None
    width = BY_MAGIC[magic].topic_width
    topic = body + _I32.unpack_from(raw, body - 4)[0]
    if not body <= topic <= size - width:
        return None
    topic_end = topic + width + int.from_bytes(raw[topic : topic + width], "big", signed=width > 1)
    if not topic < topic_end <= size - 2:
        return None
    stored, properties_length = _I16.unpack_from(raw, topic_end)[0], size - topic_end - 2
    if properties_length < 1 << 15 or stored & 0xFFFF != properties_length & 0xFFFF:
        return None
    without_properties = bytearray(raw[: topic_end + 2])
    _I32.pack_into(without_properties, _SIZE, len(without_properties))
    _I16.pack_into(without_properties, topic_end, 0)
    frame = check_frame(without_properties, 0, len(without_properties))
    if not isinstance(frame, Frame):
        return None
    unit = decode_frame(raw, 0, frame._replace(size=size, properties_length=properties_length), base)
    if unit.crc != "ok" or unit.stale or not _is_name(unit.topic):
        return None
    property_parts = [
        Part(f"properties.{name}", topic_end + 2 + position, length)
        for name, position, length in _pairs(unit.properties_raw)
    ]
    return Salvage(
        unit,
        (FieldFault("propertiesLength", stored, properties_length),),
        (*list_fields(without_properties), *property_parts),
    )


class ShortenedUnit(NamedTuple):
    """A unit whose properties were too long for their 16-bit length, without the longest of them."""

    data: bytes
    left_out: tuple[str, ...]  # names of properties


def shorten(buf: bytes | memoryview, overflowed: Salvage) -> ShortenedUnit:
    """Return the unit as a broker reads it: body and short properties as they are, and of the longest as few left out
    as there must be.
    """
    unit = overflowed.unit
    raw = unit.properties_raw
    pairs = list(_pairs(raw))
    left_out: set[int] = set()
    length = len(raw)
    for number in sorted(range(len(pairs)), key=lambda number: -pairs[number][2]):
        if length < 1 << 15:
            break
        left_out.add(number)
        length -= pairs[number][2]
    remaining = b"".join(
        raw[position : position + size] for number, (_, position, size) in enumerate(pairs) if number not in left_out
    )
    head = bytearray(buf[: unit.size - len(raw)])
    _I16.pack_into(head, len(head) - 2, len(remaining))
    _I32.pack_into(head, _SIZE, len(head) + len(remaining))
    return ShortenedUnit(bytes(head) + remaining, tuple(pairs[number][0] for number in sorted(left_out)))


def _pairs(raw: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield name, position and length of each pair of a property text."""
    for position, length in props.pair_spans(raw):
        yield raw[position : position + length].split(b"\x01", 1)[0].decode("utf-8", "replace"), position, length


def _is_name(topic: str) -> bool:
    return bool(topic) and topic.isprintable() and "\ufffd" not in topic and not _FORBIDDEN_IN_NAMES & set(topic)


def _rank(candidate: Salvage, sizes: Sequence[int]) -> tuple[int, ...]:
    """Return a sort key, the likeliest first: a body that matches its CRC, properties that are pairs, few wrong
    fields, two times that are close, a length known from elsewhere.
    """
    unit = candidate.unit
    text = unit.properties_raw
    pairs = not text or (text[0] >= ord(" ") and b"\x01" in text and b"\0" not in text)
    penalty = sum(1 + (field_fault.field in _COMPUTED_FIELDS) for field_fault in candidate.wrong)
    far_apart = abs(unit.store_timestamp - unit.born_timestamp) > _FAR_APART_MS
    return (unit.crc == "bad", not pairs, penalty, far_apart, unit.size not in sizes)


# -- guesses


def _guesses(raw: bytes, sizes: Sequence[int]) -> Iterator[tuple[_Patch, ...]]:
    """Yield sets of mended fields, the smallest changes first."""
    for magic in _magics(raw):
        for flags in _sys_flags(raw):
            width = BY_MAGIC[_U32.unpack(magic.data if magic else raw[_MAGIC : _MAGIC + 4])[0]].topic_width
            head = tuple(patch for patch in (magic, flags) if patch is not None)
            mended = bytearray(raw)
            for patch in head:
                mended[patch.position : patch.position + len(patch.data)] = patch.data
            yield head
            yield from _other_size(mended, width, head)
            for size in _sizes(raw, sizes):
                yield from _other_lengths(bytes(mended), width, head, size)


def _magics(raw: bytes) -> Iterator[_Patch | None]:
    """Yield the magic as it is if it is a known one, then the others: damage may have turned one version into
    another.
    """
    stored = _U32.unpack_from(raw, _MAGIC)[0]
    if stored in MAGICS:
        yield None
    for magic in MAGICS:
        if magic != stored:
            yield _Patch(_MAGIC, _U32.pack(magic), FieldFault("magicCode", stored, magic))


def _sys_flags(raw: bytes) -> Iterator[_Patch | None]:
    """Yield the flag as it is, then with other widths of hosts."""
    yield None
    (stored,) = _I32.unpack_from(raw, _SYS_FLAG)
    for bits in (BORN_HOST_V6, STORE_HOST_V6, BORN_HOST_V6 | STORE_HOST_V6):
        yield _Patch(_SYS_FLAG, _I32.pack(stored ^ bits), FieldFault("sysFlag", stored, stored ^ bits))


def _sizes(raw: bytes, sizes: Sequence[int]) -> list[int]:
    """Return lengths that the unit may have: its own field's, and those known from elsewhere."""
    own_size = _I32.unpack_from(raw, _SIZE)[0]
    return [size for size in dict.fromkeys((own_size, *sizes)) if MIN_UNIT_SIZE <= size <= len(raw)]


def _body_at(raw: bytes | bytearray) -> int:
    (flags,) = _I32.unpack_from(raw, _SYS_FLAG)
    return 48 + (20 if flags & BORN_HOST_V6 else 8) + 8 + (20 if flags & STORE_HOST_V6 else 8) + 16


def _size_patch(raw: bytes | bytearray, size: int) -> tuple[_Patch, ...]:
    stored = _I32.unpack_from(raw, _SIZE)[0]
    return () if stored == size else (_Patch(_SIZE, _I32.pack(size), FieldFault("totalSize", stored, size)),)


def _other_size(raw: bytearray, width: int, head: tuple[_Patch, ...]) -> Iterator[tuple[_Patch, ...]]:
    """Try the length that follows from the lengths inside."""
    body = _body_at(raw)
    if body > len(raw):
        return
    topic = body + _I32.unpack_from(raw, body - 4)[0]
    if not body <= topic <= len(raw) - width:
        return
    topic_end = topic + width + (raw[topic] if width == 1 else _I16.unpack_from(raw, topic)[0])
    if not topic < topic_end <= len(raw) - 2:
        return
    properties = _I16.unpack_from(raw, topic_end)[0]
    size = topic_end + 2 + properties
    if properties >= 0 and size <= len(raw):
        yield (*_size_patch(raw, size), *head)


def _other_lengths(raw: bytes, width: int, head: tuple[_Patch, ...], size: int) -> Iterator[tuple[_Patch, ...]]:
    """Assume that one of the lengths inside is wrong, in a unit of ``size`` bytes."""
    patches = (*_size_patch(raw, size), *head)
    body = _body_at(raw)
    if body + width + 2 > size:
        return
    (length,) = _I32.unpack_from(raw, body - 4)
    if 0 <= length <= size - body - width - 2:
        yield from _other_names(raw, width, patches, size, body + length)
    yield from _other_bodies(raw, width, patches, size, body)


def _other_names(
    raw: bytes, width: int, patches: tuple[_Patch, ...], size: int, topic: int
) -> Iterator[tuple[_Patch, ...]]:
    """Assume that the length of the properties or of the topic is wrong; the topic's length is at ``topic``."""
    stored_length = raw[topic] if width == 1 else _I16.unpack_from(raw, topic)[0]
    topic_end = topic + width + stored_length
    if stored_length >= 0 and topic_end + 2 <= size:
        stored_properties_length, properties_length = _I16.unpack_from(raw, topic_end)[0], size - topic_end - 2
        if properties_length < 1 << 15:
            yield (
                *patches,
                _Patch(
                    topic_end,
                    _I16.pack(properties_length),
                    FieldFault("propertiesLength", stored_properties_length, properties_length),
                ),
            )
    for length in range(1, _MAX_TOPIC_BYTES[width] + 1):
        topic_end = topic + width + length
        if topic_end + 2 <= size and _I16.unpack_from(raw, topic_end)[0] == size - topic_end - 2:
            data = length.to_bytes(width, "big")
            yield (*patches, _Patch(topic, data, FieldFault("topicLength", stored_length, length)))


def _other_bodies(
    raw: bytes, width: int, patches: tuple[_Patch, ...], size: int, body: int
) -> Iterator[tuple[_Patch, ...]]:
    """Assume that the length of the body is wrong: try every place where topic length, topic and properties length
    end the unit.
    """
    stored_length, stored_crc = _I32.unpack_from(raw, body - 4)[0], _U32.unpack_from(raw, _CRC)[0]
    attempts = 0
    for topic_end in range(size - 2, body, -1):  # candidates for the properties' length: properties are short
        if size - topic_end - 2 >= 1 << 15 or attempts >= MAX_ATTEMPTS:
            return
        if _I16.unpack_from(raw, topic_end)[0] != size - topic_end - 2:
            continue
        attempts += 1
        for length in range(1, 128):
            topic = topic_end - length - width
            if topic < body:
                break
            if int.from_bytes(raw[topic : topic + width], "big") == length:
                patch = _Patch(body - 4, _I32.pack(topic - body), FieldFault("bodyLength", stored_length, topic - body))
                if crc31(raw[body:topic]) == stored_crc or _is_name(
                    raw[topic + width : topic_end].decode("utf-8", "replace")
                ):
                    yield (*patches, patch)
