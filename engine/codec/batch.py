"""The messages inside an inner batch: one unit of the log whose body holds several
(docs/formats/commit-log.md#batches).

Pure and bounded: lengths are proven before anything is cut out, and damage ends the walk as a value. The body
of a compressed batch has to be unpacked first.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from engine.codec import properties as props

_HEAD = struct.Struct(">5i")  # size, magic, CRC, flag, body length
_I16 = struct.Struct(">h")
SMALLEST = _HEAD.size + _I16.size
MOST_MEMBERS = 100_000


@dataclass(frozen=True, slots=True)
class Member:
    """One message of a batch. ``queue_offset`` of member *i* is the unit's plus *i*."""

    index: int
    position: int  # in the body, bytes
    size: int
    flag: int
    body: bytes
    properties_raw: bytes

    @property
    def properties(self) -> dict[str, str]:
        return props.decode(self.properties_raw)

    @property
    def tags(self) -> str | None:
        return self.properties.get(props.TAGS)

    @property
    def keys(self) -> list[str]:
        return props.split_keys(self.properties.get(props.KEYS))

    @property
    def unique_key(self) -> str | None:
        return self.properties.get(props.UNIQUE_KEY)


@dataclass(frozen=True, slots=True)
class MemberDamage:
    """From ``position`` on the body holds no member; ``size`` bytes are left."""

    index: int
    position: int
    size: int
    reason: str


def encode(flag: int, body: bytes, properties: dict[str, str]) -> bytes:
    """One member as a client writes it: magic and CRC are 0."""
    return member(flag, body, props.encode(properties))


def member(flag: int, body: bytes, raw: bytes) -> bytes:
    """The same of property text that is there already."""
    return b"".join(member_pieces(flag, body, raw))


def member_pieces(flag: int, body: bytes, raw: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """The same in four pieces, for who puts many of them one behind the other."""
    length, named = len(body), len(raw)
    return _HEAD.pack(SMALLEST + length + named, 0, 0, flag, length), body, _I16.pack(named), raw


def walk(body: bytes | bytearray | memoryview) -> Iterator[Member | MemberDamage]:
    """Every member of ``body``; a :class:`MemberDamage` is the last thing where not all of it makes sense."""
    at, index, limit = 0, 0, len(body)
    while at < limit:
        seen = _member(body, at, index, limit)
        if isinstance(seen, str):
            yield MemberDamage(index, at, limit - at, seen)
            return
        yield seen
        at += seen.size
        index += 1


def members(body: bytes | bytearray | memoryview, most: int = MOST_MEMBERS) -> list[Member | MemberDamage]:
    """The members of ``body`` as a list, at most ``most``; what is left out is told by a last damage."""
    found: list[Member | MemberDamage] = []
    for seen in walk(body):
        if len(found) == most:
            found.append(MemberDamage(most, seen.position, len(body) - seen.position, f"more than {most:,} members"))
            break
        found.append(seen)
    return found


def spans(body: bytes | bytearray | memoryview) -> list[tuple[int, int, int, int, int]] | MemberDamage:
    """Of each member its flag, where its body lies and how long it is, where its property text lies and how long that
    is; the first damage instead where not all of ``body`` makes sense.
    """
    found: list[tuple[int, int, int, int, int]] = []
    at, limit = 0, len(body)
    while at < limit:
        seen = _lengths(body, at, limit)
        if isinstance(seen, str):
            return MemberDamage(len(found), at, limit - at, seen)
        size, flag, body_length, properties_length = seen
        start = at + _HEAD.size
        found.append((flag, start, body_length, start + body_length + _I16.size, properties_length))
        at += size
    return found


def _member(body: bytes | bytearray | memoryview, at: int, index: int, limit: int) -> Member | str:
    seen = _lengths(body, at, limit)
    if isinstance(seen, str):
        return seen
    size, flag, body_length, _ = seen
    start = at + _HEAD.size
    raw = bytes(body[start + body_length + _I16.size : at + size])
    return Member(index, at, size, flag, bytes(body[start : start + body_length]), raw)


def _lengths(body: bytes | bytearray | memoryview, at: int, limit: int) -> tuple[int, int, int, int] | str:
    """Size, flag, lengths of body and properties of the member at ``at``; what is wrong with it instead."""
    room = limit - at
    if room < SMALLEST:
        return f"{room} bytes left, a member has at least {SMALLEST}"
    size, _, _, flag, body_length = _HEAD.unpack_from(body, at)
    if size < SMALLEST or size > room:
        return f"a member's length says {size:,}, expected {SMALLEST} to {room:,}"
    if body_length < 0 or SMALLEST + body_length > size:
        return f"bodyLength says {body_length:,} in a member of {size:,} bytes"
    (properties_length,) = _I16.unpack_from(body, at + _HEAD.size + body_length)
    if properties_length < 0 or SMALLEST + body_length + properties_length != size:
        return f"propertiesLength says {properties_length:,}, {size - SMALLEST - body_length:,} bytes are left"
    return size, flag, body_length, properties_length
