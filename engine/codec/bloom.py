"""The bloom filter of a consume queue's ext unit: its bits tell which SQL groups of a topic wanted a message
(docs/formats/reading.md#filters).

Pure. Only RocketMQ's defaults: an error rate of 20 % and 32 groups make 3 hashes over 112 bits. Java:
``BloomFilter``, Guava's ``murmur3_128``.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from engine.codec.java import i32

HASHES = 3
BITS = 112
_MASK = (1 << 64) - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


@lru_cache(maxsize=4096)
def positions(group: str, topic: str) -> tuple[int, ...]:
    """Return the bit numbers of a group in the maps of a topic's units."""
    h = murmur3_64(f"{group}#{topic}".encode())
    low_half, high_half = i32(h), i32(h >> 32)
    bits = []
    for step in range(1, HASHES + 1):
        mixed = i32(low_half + step * high_half)
        bits.append((~mixed if mixed < 0 else mixed) % BITS)
    return tuple(bits)


def bit_map(groups: Iterable[tuple[int, ...]]) -> bytes:
    """Return the map with the bits of ``groups`` set; each group is a tuple of bit numbers."""
    bits = bytearray(BITS // 8)
    for bit in (bit for of in groups for bit in of):
        bits[bit >> 3] |= 1 << (bit & 7)
    return bytes(bits)


def murmur3_64(data: bytes) -> int:
    """Return the first 64 bits of murmur3_x64_128 with seed 0, unsigned."""
    h1 = h2 = 0
    tail_start = len(data) // 16 * 16
    for position in range(0, tail_start, 16):
        h1 ^= _mix_word(int.from_bytes(data[position : position + 8], "little"), _C1, 31, _C2)
        h1 = ((_rotate_left(h1, 27) + h2) * 5 + 0x52DCE729) & _MASK
        h2 ^= _mix_word(int.from_bytes(data[position + 8 : position + 16], "little"), _C2, 33, _C1)
        h2 = ((_rotate_left(h2, 31) + h1) * 5 + 0x38495AB5) & _MASK
    tail = data[tail_start:]
    if len(tail) > 8:
        h2 ^= _mix_word(int.from_bytes(tail[8:], "little"), _C2, 33, _C1)
    if tail:
        h1 ^= _mix_word(int.from_bytes(tail[:8], "little"), _C1, 31, _C2)
    h1 ^= len(data)
    h2 ^= len(data)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    return (_finalize(h1) + _finalize(h2)) & _MASK


def _rotate_left(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def _mix_word(word: int, factor: int, bits: int, second_factor: int) -> int:
    return _rotate_left(word * factor & _MASK, bits) * second_factor & _MASK


def _finalize(value: int) -> int:
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & _MASK
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return value ^ value >> 33
