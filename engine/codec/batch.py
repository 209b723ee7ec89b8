"""The messages inside an inner batch: one unit of the log whose body holds several
(docs/formats/commit-log.md#batches).

No I/O. Every length is checked before it is used, and damage ends the walk as a value. The body
of a compressed batch has to be unpacked first.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from engine.codec import properties as props
from engine.sentences import plural, sentence

_HEAD = struct.Struct(">5i")  # size, magic, CRC, flag, body length
_I16 = struct.Struct(">h")
MIN_MEMBER_BYTES = _HEAD.size + _I16.size
MAX_MEMBERS = 100_000


@dataclass(frozen=True, slots=True)
class Member:
    """A message of a batch. Member *i* has the unit's ``queue_offset`` plus *i*."""

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
    """From ``position`` on, the remaining ``size`` bytes of the body are not a member."""

    index: int
    position: int
    size: int
    reason: str


def encode(flag: int, body: bytes, properties: dict[str, str]) -> bytes:
    """Return one member as a client writes it: magic and CRC are 0."""
    return encode_member(flag, body, props.encode(properties))


def encode_member(flag: int, body: bytes, raw: bytes) -> bytes:
    """Return one member; ``raw`` is the encoded property text."""
    return b"".join(encode_member_pieces(flag, body, raw))


def encode_member_pieces(flag: int, body: bytes, raw: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """Return one member as four byte strings, for callers that join many members."""
    body_length, properties_length = len(body), len(raw)
    return (
        _HEAD.pack(MIN_MEMBER_BYTES + body_length + properties_length, 0, 0, flag, body_length),
        body,
        _I16.pack(properties_length),
        raw,
    )


def walk(body: bytes | bytearray | memoryview) -> Iterator[Member | MemberDamage]:
    """Yield every member of ``body``. A :class:`MemberDamage` comes last if the body is not valid to its end."""
    position, index, limit = 0, 0, len(body)
    while position < limit:
        member = _member(body, position, index, limit)
        if isinstance(member, str):
            yield MemberDamage(index, position, limit - position, member)
            return
        yield member
        position += member.size
        index += 1


def members(body: bytes | bytearray | memoryview, max_count: int = MAX_MEMBERS) -> list[Member | MemberDamage]:
    """Return at most ``max_count`` members of ``body``. If there are more, the last item is a damage that says so."""
    members_list: list[Member | MemberDamage] = []
    for member in walk(body):
        if len(members_list) == max_count:
            reason = sentence("more than {n:,} members", n=max_count)
            members_list.append(
                MemberDamage(
                    max_count,
                    member.position,
                    len(body) - member.position,
                    reason,
                )
            )
            break
        members_list.append(member)
    return members_list


def spans(body: bytes | bytearray | memoryview) -> list[tuple[int, int, int, int, int]] | MemberDamage:
    """Return flag, body position, body length, properties position and properties length of each member, or the
    first damage if ``body`` is not valid to its end.
    """
    member_spans: list[tuple[int, int, int, int, int]] = []
    position, limit = 0, len(body)
    while position < limit:
        lengths = _lengths(body, position, limit)
        if isinstance(lengths, str):
            return MemberDamage(len(member_spans), position, limit - position, lengths)
        size, flag, body_length, properties_length = lengths
        start = position + _HEAD.size
        member_spans.append((flag, start, body_length, start + body_length + _I16.size, properties_length))
        position += size
    return member_spans


def _member(body: bytes | bytearray | memoryview, position: int, index: int, limit: int) -> Member | str:
    lengths = _lengths(body, position, limit)
    if isinstance(lengths, str):
        return lengths
    size, flag, body_length, _ = lengths
    start = position + _HEAD.size
    raw = bytes(body[start + body_length + _I16.size : position + size])
    return Member(index, position, size, flag, bytes(body[start : start + body_length]), raw)


def _lengths(body: bytes | bytearray | memoryview, position: int, limit: int) -> tuple[int, int, int, int] | str:
    """Return size, flag, body length and properties length of the member at ``position``, or a sentence about what
    is wrong with it.
    """
    room = limit - position
    if room < MIN_MEMBER_BYTES:
        return plural(
            "{n} byte left, a member has at least {least}",
            "{n} bytes left, a member has at least {least}",
            n=room,
            least=MIN_MEMBER_BYTES,
        )
    size, _, _, flag, body_length = _HEAD.unpack_from(body, position)
    if size < MIN_MEMBER_BYTES or size > room:
        return sentence(
            "the length of a member is {size:,}, expected {least} to {most:,}",
            size=size,
            least=MIN_MEMBER_BYTES,
            most=room,
        )
    if body_length < 0 or MIN_MEMBER_BYTES + body_length > size:
        return sentence("bodyLength is {length:,} in a member of {size:,} bytes", length=body_length, size=size)
    (properties_length,) = _I16.unpack_from(body, position + _HEAD.size + body_length)
    if properties_length < 0 or MIN_MEMBER_BYTES + body_length + properties_length != size:
        return plural(
            "propertiesLength is {length:,}, {n:,} byte is left",
            "propertiesLength is {length:,}, {n:,} bytes are left",
            length=properties_length,
            n=size - MIN_MEMBER_BYTES - body_length,
        )
    return size, flag, body_length, properties_length
