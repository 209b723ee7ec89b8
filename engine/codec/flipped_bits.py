"""Find flipped bits that explain a wrong body CRC: one bit anywhere, or several within one byte.

A CRC is linear: stored ^ computed is the CRC of the error alone. We step that difference backwards over zero
bytes, one stride at a time, until it is the CRC of one bit. This finds the place in a fraction of the time of
trying every bit (baby step, giant step; 64 KiB in under a millisecond). RocketMQ drops the CRC's top bit, so both
values are tried.

The generated CRC functions come from crcmod; without it the result says so. A flip that explains the difference
is no proof: damage in two places can look like one elsewhere, and the stored CRC itself may be wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from engine.codec.crc import MASK, crc31
from engine.extras import install_line
from engine.sentences import plural, sentence

_POLYNOMIAL = 0x104C11DB7
_RECIPROCAL = 0x1DB710641
_TOP_BIT = 0x80000000
_STRIDE_OF_BITS, _STRIDE_OF_BYTES = 256, 64
_MASKS_OF_BITS = tuple(1 << bit for bit in range(8))
_MASKS_OF_BYTES = tuple(range(1, 256))
MAX_BODY_BYTES = 16 << 20
MAX_BYTE_SEARCH_BYTES = 64 << 10
"""Up to this size, fewer than one difference in a hundred is explained by a single byte by chance."""


@dataclass(frozen=True, slots=True)
class FlippedBits:
    """The byte at ``position`` of the body (from 0) has the bits of ``mask`` inverted."""

    position: int
    mask: int

    @property
    def bits(self) -> list[int]:
        """The inverted bits, 0 = lowest."""
        return [bit for bit in range(8) if self.mask >> bit & 1]

    @property
    def words(self) -> str:
        """Name the bits and their byte."""
        numbers = ", ".join(str(bit) for bit in self.bits)
        return plural(
            "bit {bits} of byte {byte:,} of the body",
            "bits {bits} of byte {byte:,} of the body",
            n=len(self.bits),
            bits=numbers,
            byte=self.position,
        )


@dataclass(frozen=True, slots=True)
class Explanation:
    """Possible causes of a wrong CRC. All empty and ``note`` None: more than one place has changed."""

    flips: tuple[
        FlippedBits, ...
    ]  # single bits, first byte first; several bits of a byte only if no single bit explains it
    field_bit: int | None  # bit of the stored CRC field that alone explains the difference
    note: str | None  # why the body was not searched

    @property
    def words(self) -> str:
        """Sentence that names the possible causes, or why there are none."""
        causes = [flip.words for flip in self.flips[:4]]
        if len(self.flips) > 4:
            causes.append(sentence("one of {n} more places", n=len(self.flips) - 4))
        if self.field_bit is not None:
            causes.append(sentence("bit {bit} of the stored CRC", bit=self.field_bit))
        if causes:
            explained: str = sentence("would be explained by {cause}", cause=causes[0])
            for cause in causes[1:]:
                explained = sentence("{text} or {cause}", text=explained, cause=cause)
            return explained
        return self.note or sentence("no change of a single bit or byte explains it")


def explain(body: bytes, stored: int) -> Explanation:
    """Find flipped bits of ``body`` or of its stored CRC (the signed field) that explain the difference."""
    stored_unsigned = stored & 0xFFFFFFFF
    difference = crc31(body) ^ stored_unsigned
    field_bit = difference.bit_length() - 1 if difference and difference & (difference - 1) == 0 else None
    if difference == 0 or stored_unsigned & _TOP_BIT:  # a valid field never has the top bit
        return Explanation((), field_bit, None)
    if not body:
        return Explanation((), field_bit, sentence("the body is empty"))
    if len(body) > MAX_BODY_BYTES:
        return Explanation((), field_bit, sentence("bodies over {n:,} bytes are not searched", n=MAX_BODY_BYTES))
    try:
        flips = _search(difference, len(body), _STRIDE_OF_BITS, _MASKS_OF_BITS)
        if not flips and field_bit is None and len(body) <= MAX_BYTE_SEARCH_BYTES:
            flips = _search(difference, len(body), _STRIDE_OF_BYTES, _MASKS_OF_BYTES)
    except ImportError:
        return Explanation(
            (),
            field_bit,
            sentence("the search for flipped bits needs the package crcmod: {command}", command=install_line("crcmod")),
        )
    return Explanation(flips, field_bit, None)


def _search(syndrome: int, length: int, stride: int, masks: tuple[int, ...]) -> tuple[FlippedBits, ...]:
    backward = _functions()[1]
    baby_steps = _baby_steps(stride, masks)
    flips = []
    zeros = bytes(stride)
    for start in (syndrome & MASK, syndrome & MASK | _TOP_BIT):
        state, stepped_back = start, 0
        while stepped_back < length:
            step = baby_steps.get(state)
            if step is not None and stepped_back + step[0] <= length:
                flips.append(FlippedBits(length - stepped_back - step[0], step[1]))
            state = backward(zeros, state)
            stepped_back += stride
    return tuple(sorted(set(flips), key=lambda flip: (flip.position, flip.mask)))


@cache
def _baby_steps(stride: int, masks: tuple[int, ...]) -> dict[int, tuple[int, int]]:
    """Return CRC → (n, mask): the CRC of a byte ``mask`` and zeros, ``n`` bytes in all, for n from 1 to ``stride``."""
    forward = _functions()[0]
    steps: dict[int, tuple[int, int]] = {}
    for mask in masks:
        state = mask
        for count in range(1, stride + 1):
            state = forward(b"\0", state)
            steps[state] = (count, mask)
    return steps


@cache
def _functions() -> tuple[Callable[[bytes, int], int], Callable[[bytes, int], int]]:
    """Return the CRC register's step forward over bytes, and its step backward over zeros."""
    import crcmod

    forward = crcmod.mkCrcFun(_POLYNOMIAL, initCrc=0, rev=True, xorOut=0)
    return forward, crcmod.mkCrcFun(_RECIPROCAL, initCrc=0, rev=False, xorOut=0)
