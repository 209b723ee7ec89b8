"""Java's rules for strings and numbers where Python differs (conventions of the format notes,
docs/formats/index-file.md#insert).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

_MASK32 = 0xFFFFFFFF
_MAX_UNMASKED_LENGTH = 48


def i32(value: int) -> int:
    """Return ``value`` wrapped to a signed 32-bit integer."""
    value &= _MASK32
    return value - (1 << 32) if value & 0x80000000 else value


def i64(value: int) -> int:
    """Return ``value`` wrapped to a signed 64-bit integer."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def jhash(text: str) -> int:
    """``String.hashCode``: over UTF-16 code units, so a character outside the BMP counts twice."""
    h = continue_hash(0, text)
    return h - (1 << 32) if h & 0x80000000 else h


def continue_hash(h: int, text: str) -> int:
    """Continue a hash: ``h`` is the hash of a text's beginning, ``text`` is the remainder. Returns it unsigned."""
    if text.isascii():
        if len(text) <= _MAX_UNMASKED_LENGTH:  # a slightly larger number costs less than a mask at each step
            for unit in text.encode():
                h = 31 * h + unit
            return h & _MASK32
        for unit in text.encode():
            h = (31 * h + unit) & _MASK32
    else:
        raw = text.encode("utf-16-le", "surrogatepass")
        for position in range(0, len(raw), 2):
            h = (31 * h + (raw[position] | raw[position + 1] << 8)) & _MASK32
    return h


@lru_cache(maxsize=1024)
def topic_hash(topic: str) -> int:
    """Return the unsigned hash of ``topic#``, the start value for every index key of the topic."""
    return continue_hash(0, f"{topic}#")


def index_key_hash(topic: str, key: str) -> int:
    """Return the hash that an index file stores for ``topic#key``: made positive, and 0 for −2³¹, which stays
    negative in Java.
    """
    h = continue_hash(topic_hash(topic), key)
    if h & 0x80000000:
        h = (1 << 32) - h
        return 0 if h == 1 << 31 else h
    return h


def split(text: str, separator: str) -> list[str]:
    """``String.split`` for a plain separator: trailing empty pieces are dropped, an empty input gives one empty
    piece.
    """
    pieces = text.split(separator)
    if len(pieces) == 1:
        return pieces
    while pieces and not pieces[-1]:
        pieces.pop()
    return pieces


def divide(dividend: int, divisor: int) -> int:
    """Integer division that truncates toward zero."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def utf8(raw: bytes) -> str:
    """``new String(raw, UTF_8)``: malformed bytes become U+FFFD."""
    return raw.decode("utf-8", "replace")


def hash_map_order(keys: Iterable[str]) -> list[str]:
    """Return distinct keys in the order in which a ``java.util.HashMap`` returns them after this insertion order."""
    listed = list(keys)
    buckets = 16
    while len(listed) > buckets * 3 // 4:
        buckets *= 2

    def bucket(key: str) -> int:
        h = jhash(key) & _MASK32
        return (h ^ h >> 16) & (buckets - 1)

    return sorted(listed, key=bucket)
