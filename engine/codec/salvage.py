"""A unit that cannot be read, taken apart as far as it holds (docs/formats/commit-log.md#unit): which field is wrong,
and what it would be.

One bit in a length is enough that nothing can cut a unit out of its file, and all the rest of it stands there legible:
topic, queue, keys, body. Here each field that others depend on is tried with the values under which the rest of the
unit agrees. Pure; never raises on bad bytes. A guess counts only where the unit itself bears it out: it says that it
belongs to this place, or its body has the CRC that it says, and its topic is a name.
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
    LARGEST_UNIT,
    MIN_UNIT_SIZE,
    STORE_HOST_V6,
    Frame,
    Part,
    Unit,
    cut,
    measure,
    parts,
)
from engine.codec.unit_flavours import BY_MAGIC, FLAVOURS, MAGICS
from engine.layout import LONGEST_NAME

_I32, _I16, _U32 = struct.Struct(">i"), struct.Struct(">h"), struct.Struct(">I")
_I64 = struct.Struct(">q")
_SIZE, _MAGIC, _CRC, _QUEUE_ID, _QUEUE_OFFSET, _PHYSICAL, _SYS_FLAG = 0, 4, 8, 12, 20, 28, 36
_LONGEST_TOPICS = {one.topic_width: min(one.longest_topic, LONGEST_NAME) for one in FLAVOURS}
"""Width of the topic's length → the longest name that is tried: a topic is a folder."""
_ODD_IN_NAMES = frozenset('<>:"\\|?*')
_IN_HEX = frozenset(("magicCode", "bodyCRC", "sysFlag"))
_FITTED = frozenset(("totalSize", "bodyLength", "topicLength", "propertiesLength"))
"""Fields whose mended value is whatever makes the rest fit: a weaker witness than one of a few values that does."""
_FAR_APART = 366 * 86_400_000
"""Between the two times of a unit, in ms: with wrong lengths of hosts the second is part of an address."""
MOST_TRIED = 4096
"""Places that are tried for the end of a body whose length is wrong."""


class Wrong(NamedTuple):
    """A field that contradicts the rest: what it says, and what it would be (None where nothing tells)."""

    field: str
    says: int
    would_be: int | None

    @property
    def is_overflow(self) -> bool:
        """Whether the field is the 16-bit length of properties that are longer than it can say."""
        return self.field == "propertiesLength" and (self.would_be or 0) >= 1 << 15

    @property
    def words(self) -> str:
        """``totalSize says 77, it would be 572``."""
        would = f", it would be {self._number(self.would_be)}" if self.would_be is not None else ""
        return f"{self.field} says {self._number(self.says)}{would}"

    def _number(self, value: int) -> str:
        return f"0x{value & 0xFFFFFFFF:08X}" if self.field in _IN_HEX else f"{value:,}"


@dataclass(frozen=True, slots=True)
class Salvage:
    """The unit as it would be with its wrong fields mended, those fields, and every field's place."""

    unit: Unit
    wrong: tuple[Wrong, ...]
    parts: tuple[Part, ...]


class _Patch(NamedTuple):
    position: int
    data: bytes
    wrong: Wrong


def salvage(buf: bytes | bytearray | memoryview, base: int, sizes: Sequence[int] = ()) -> Salvage | None:
    """What stands at the beginning of ``buf``, at absolute offset ``base``, as far as it holds.

    ``sizes``: lengths in bytes that others tell of it: the distance to the next unit, its queue entry. None where no
    guess is borne out.
    """
    raw = bytes(buf[: LARGEST_UNIT + 1])
    if len(raw) < MIN_UNIT_SIZE:
        return None
    overflowed = _overflowed(raw, base)
    if overflowed is not None:
        return overflowed
    best: tuple[tuple[int, ...], Salvage] | None = None
    for patches in _guesses(raw, sizes):
        found = _tried(raw, base, patches)
        if found is not None:
            rank = _rank(found, sizes)
            if best is None or rank < best[0]:
                best = (rank, found)
    return best[1] if best is not None else None


class Entry(NamedTuple):
    """What a queue entry tells of a unit: its length in bytes, its topic, its queue, and its number there."""

    size: int
    topic: str
    queue_id: int
    queue_offset: int


def salvage_overwritten(buf: bytes | bytearray | memoryview, base: int, entry: Entry) -> Salvage | None:
    """The unit at the beginning of ``buf`` of which a part was overwritten, as its queue's ``entry`` tells of it.

    No guess makes such a unit agree with itself. But where its head still names this place, or its end still holds the
    entry's topic, the rest of it can be read: fields that contradict the entry are mended by it. None where nothing of
    the unit is left, or where its lengths leave no room for what the entry tells.
    """
    raw = bytes(buf[: entry.size])
    name = entry.topic.encode("utf-8")
    if len(raw) < entry.size or entry.size < MIN_UNIT_SIZE:
        return None
    (magic,) = _U32.unpack_from(raw, _MAGIC)
    has_head = magic in MAGICS and _I64.unpack_from(raw, _PHYSICAL)[0] == base
    flavour = BY_MAGIC[magic] if has_head else next(one for one in FLAVOURS if len(name) <= one.longest_topic)
    width, body = flavour.topic_width, _body_at(raw)
    topic = _place_of_topic(raw, body, width, name, has_head=has_head)
    behind = topic + width + len(name)
    properties = entry.size - behind - 2
    if topic < 0 or not 0 <= properties < 1 << 15:
        return None
    mended = bytearray(raw)
    mended[topic : topic + width] = len(name).to_bytes(width, "big")
    mended[topic + width : behind] = name
    wrong = [] if raw[topic + width : behind] == name else [Wrong("topicLength", _length(raw, topic, width), len(name))]
    for field, position, form, value in (
        ("totalSize", _SIZE, _I32, entry.size),
        ("magicCode", _MAGIC, _U32, flavour.magic),
        ("queueId", _QUEUE_ID, _I32, entry.queue_id),
        ("queueOffset", _QUEUE_OFFSET, _I64, entry.queue_offset),
        ("physicalOffset", _PHYSICAL, _I64, base),
        ("bodyLength", body - 4, _I32, topic - body),
        ("propertiesLength", behind, _I16, properties),
    ):
        (says,) = form.unpack_from(raw, position)
        if says != value:
            wrong.append(Wrong(field, says, value))
            form.pack_into(mended, position, value)
    frame = measure(mended, 0, len(mended))
    if not isinstance(frame, Frame):
        return None
    unit = cut(mended, 0, frame, base)
    if unit.crc == "bad":
        wrong.append(Wrong("bodyCRC", unit.body_crc, None))
    return Salvage(unit, tuple(wrong), tuple(parts(mended)))


def _place_of_topic(raw: bytes, body: int, width: int, name: bytes, *, has_head: bool) -> int:
    """Where the topic's length stands: where the end of the unit still says so, else where the head does; or -1."""
    at = raw.rfind(len(name).to_bytes(width, "big") + name)
    while at >= body:
        behind = at + width + len(name)
        if behind + 2 <= len(raw) and _I16.unpack_from(raw, behind)[0] == len(raw) - behind - 2:
            return at
        at = raw.rfind(len(name).to_bytes(width, "big") + name, 0, at + len(name))
    if not has_head or body > len(raw):
        return -1
    (length,), (crc,) = _I32.unpack_from(raw, body - 4), _I32.unpack_from(raw, _CRC)
    if length == 0 and crc:  # the overwritten part begins in the head: how long the body was is not known
        return -1
    return body + length if 0 <= length <= len(raw) - body - width - len(name) - 2 else -1


def _length(raw: bytes, position: int, width: int) -> int:
    return int.from_bytes(raw[position : position + width], "big")


def _tried(raw: bytes, base: int, patches: Sequence[_Patch]) -> Salvage | None:
    mended = bytearray(raw)
    for patch in patches:
        mended[patch.position : patch.position + len(patch.data)] = patch.data
    frame = measure(mended, 0, len(mended))
    if not isinstance(frame, Frame):
        return None
    unit = cut(mended, 0, frame, base)
    sound_body = bool(unit.body) and unit.crc == "ok"
    if not _is_name(unit.topic) or (unit.stale and not sound_body) or unit.queue_id < 0 or unit.queue_offset < 0:
        return None
    wrong = [patch.wrong for patch in patches]
    if unit.stale:
        wrong.append(Wrong("physicalOffset", unit.physical_offset, base))
    if unit.crc == "bad":
        wrong.append(Wrong("bodyCRC", unit.body_crc, None))
    return Salvage(unit, tuple(wrong), tuple(parts(mended[: unit.size])))


def _overflowed(raw: bytes, base: int) -> Salvage | None:
    """The unit whose properties are longer than their 16-bit length can say: 4.x stores such members of a batch.

    Everything else agrees: the length is what is left of the 16 bits, and the body has its CRC.
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
    behind = topic + width + int.from_bytes(raw[topic : topic + width], "big", signed=width > 1)
    if not topic < behind <= size - 2:
        return None
    says, left = _I16.unpack_from(raw, behind)[0], size - behind - 2
    if left < 1 << 15 or says & 0xFFFF != left & 0xFFFF:
        return None
    bare = bytearray(raw[: behind + 2])
    _I32.pack_into(bare, _SIZE, len(bare))
    _I16.pack_into(bare, behind, 0)
    frame = measure(bare, 0, len(bare))
    if not isinstance(frame, Frame):
        return None
    unit = cut(raw, 0, frame._replace(size=size, properties_length=left), base)
    if unit.crc != "ok" or unit.stale or not _is_name(unit.topic):
        return None
    named = [Part(f"properties.{name}", behind + 2 + at, length) for name, at, length in _pairs(unit.properties_raw)]
    return Salvage(unit, (Wrong("propertiesLength", says, left),), (*parts(bare), *named))


def _pairs(raw: bytes) -> Iterator[tuple[str, int, int]]:
    """Name, position and length of each pair of a property text."""
    for at, length in props.spans(raw):
        yield raw[at : at + length].split(b"\x01", 1)[0].decode("utf-8", "replace"), at, length


def _is_name(topic: str) -> bool:
    return bool(topic) and topic.isprintable() and "\ufffd" not in topic and not _ODD_IN_NAMES & set(topic)


def _rank(found: Salvage, sizes: Sequence[int]) -> tuple[int, ...]:
    """The smaller, the likelier: a body that fits its CRC, properties that are pairs, few fields that are wrong, two
    times that belong together, a length that others tell.
    """
    unit = found.unit
    text = unit.properties_raw
    pairs = not text or (text[0] >= ord(" ") and b"\x01" in text and b"\0" not in text)
    fitted = sum(1 + (one.field in _FITTED) for one in found.wrong)
    apart = abs(unit.store_timestamp - unit.born_timestamp) > _FAR_APART
    return (unit.crc == "bad", not pairs, fitted, apart, unit.size not in sizes)


# -- guesses


def _guesses(raw: bytes, sizes: Sequence[int]) -> Iterator[tuple[_Patch, ...]]:
    """Sets of mended fields, those that change least first."""
    for magic in _magics(raw):
        for flags in _sys_flags(raw):
            width = BY_MAGIC[_U32.unpack(magic.data if magic else raw[_MAGIC : _MAGIC + 4])[0]].topic_width
            head = tuple(patch for patch in (magic, flags) if patch is not None)
            after = bytearray(raw)
            for patch in head:
                after[patch.position : patch.position + len(patch.data)] = patch.data
            yield head
            yield from _other_size(after, width, head)
            for size in _sizes(raw, sizes):
                yield from _other_lengths(bytes(after), width, head, size)


def _magics(raw: bytes) -> Iterator[_Patch | None]:
    """The magic as it is where there is such a one, then the others: of two versions one may have become the other."""
    says = _U32.unpack_from(raw, _MAGIC)[0]
    if says in MAGICS:
        yield None
    for magic in MAGICS:
        if magic != says:
            yield _Patch(_MAGIC, _U32.pack(magic), Wrong("magicCode", says, magic))


def _sys_flags(raw: bytes) -> Iterator[_Patch | None]:
    """The flag as it is, then with other widths of hosts."""
    yield None
    (says,) = _I32.unpack_from(raw, _SYS_FLAG)
    for bits in (BORN_HOST_V6, STORE_HOST_V6, BORN_HOST_V6 | STORE_HOST_V6):
        yield _Patch(_SYS_FLAG, _I32.pack(says ^ bits), Wrong("sysFlag", says, says ^ bits))


def _sizes(raw: bytes, sizes: Sequence[int]) -> list[int]:
    """Lengths that the unit may have: its own field's, and what others tell."""
    own = _I32.unpack_from(raw, _SIZE)[0]
    return [one for one in dict.fromkeys((own, *sizes)) if MIN_UNIT_SIZE <= one <= len(raw)]


def _body_at(raw: bytes | bytearray) -> int:
    (flags,) = _I32.unpack_from(raw, _SYS_FLAG)
    return 48 + (20 if flags & BORN_HOST_V6 else 8) + 8 + (20 if flags & STORE_HOST_V6 else 8) + 16


def _size_patch(raw: bytes | bytearray, size: int) -> tuple[_Patch, ...]:
    says = _I32.unpack_from(raw, _SIZE)[0]
    return () if says == size else (_Patch(_SIZE, _I32.pack(size), Wrong("totalSize", says, size)),)


def _other_size(raw: bytearray, width: int, head: tuple[_Patch, ...]) -> Iterator[tuple[_Patch, ...]]:
    """The length that the lengths inside add up to."""
    body = _body_at(raw)
    if body > len(raw):
        return
    topic = body + _I32.unpack_from(raw, body - 4)[0]
    if not body <= topic <= len(raw) - width:
        return
    behind = topic + width + (raw[topic] if width == 1 else _I16.unpack_from(raw, topic)[0])
    if not topic < behind <= len(raw) - 2:
        return
    properties = _I16.unpack_from(raw, behind)[0]
    size = behind + 2 + properties
    if properties >= 0 and size <= len(raw):
        yield (*_size_patch(raw, size), *head)


def _other_lengths(raw: bytes, width: int, head: tuple[_Patch, ...], size: int) -> Iterator[tuple[_Patch, ...]]:
    """One of the lengths inside is wrong, in a unit of ``size`` bytes."""
    first = (*_size_patch(raw, size), *head)
    body = _body_at(raw)
    if body + width + 2 > size:
        return
    (length,) = _I32.unpack_from(raw, body - 4)
    if 0 <= length <= size - body - width - 2:
        yield from _other_names(raw, width, first, size, body + length)
    yield from _other_bodies(raw, width, first, size, body)


def _other_names(
    raw: bytes, width: int, first: tuple[_Patch, ...], size: int, topic: int
) -> Iterator[tuple[_Patch, ...]]:
    """The length of the properties or of the topic is wrong; the topic's length stands at ``topic``."""
    says = raw[topic] if width == 1 else _I16.unpack_from(raw, topic)[0]
    behind = topic + width + says
    if says >= 0 and behind + 2 <= size:
        told, left = _I16.unpack_from(raw, behind)[0], size - behind - 2
        if left < 1 << 15:
            yield (*first, _Patch(behind, _I16.pack(left), Wrong("propertiesLength", told, left)))
    for length in range(1, _LONGEST_TOPICS[width] + 1):
        behind = topic + width + length
        if behind + 2 <= size and _I16.unpack_from(raw, behind)[0] == size - behind - 2:
            data = length.to_bytes(width, "big")
            yield (*first, _Patch(topic, data, Wrong("topicLength", says, length)))


def _other_bodies(
    raw: bytes, width: int, first: tuple[_Patch, ...], size: int, body: int
) -> Iterator[tuple[_Patch, ...]]:
    """The length of the body is wrong: wherever a topic's length, a topic and the properties' length end the unit."""
    says, wanted = _I32.unpack_from(raw, body - 4)[0], _U32.unpack_from(raw, _CRC)[0]
    tried = 0
    for behind in range(size - 2, body, -1):  # where the properties' length may stand: properties are short
        if size - behind - 2 >= 1 << 15 or tried >= MOST_TRIED:
            return
        if _I16.unpack_from(raw, behind)[0] != size - behind - 2:
            continue
        tried += 1
        for length in range(1, 128):
            topic = behind - length - width
            if topic < body:
                break
            if int.from_bytes(raw[topic : topic + width], "big") == length:
                patch = _Patch(body - 4, _I32.pack(topic - body), Wrong("bodyLength", says, topic - body))
                if crc31(raw[body:topic]) == wanted or _is_name(raw[topic + width : behind].decode("utf-8", "replace")):
                    yield (*first, patch)
