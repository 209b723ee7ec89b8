"""Bodies inside a batch unit, replaced so that the members' keys can still be read."""

from __future__ import annotations

from engine.codec.batch import MemberDamage, spans
from engine.codec.crc import crc32
from engine.codec.stand_in_bodies import FILLER, MIN_STAND_IN_BYTES, set_crc


def without_member_bodies(body: bytes) -> bytes | None:
    """Return the body of an unpacked batch with filler in the place of its members' bodies, and the same length and
    CRC-32; None if it is no complete batch.

    Members' bodies stay if all of them are shorter than the four bytes that a CRC needs.
    """
    members = spans(body)
    if isinstance(members, MemberDamage):
        return None
    changed = bytearray(body)
    place = -1
    for _, start, length, _, _ in members:
        changed[start : start + length] = FILLER * length
        if length >= MIN_STAND_IN_BYTES:
            place = start
    if place < 0:
        return body
    set_crc(changed, place, crc32(body))
    return bytes(changed)
