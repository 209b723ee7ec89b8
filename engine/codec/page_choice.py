"""Chooses the pages of a message's body among pages of several files, so that the body matches its CRC.

A CRC is linear: that of a body is the XOR of one value for each page. The value of a page depends on its bytes and on
how many bytes follow it. So a choice of pages costs a few XORs, whatever the body's size::

    pages in the image   0 1 2 x x 3 4 5 6 x 7        x: page of another file
    S[s][j]              value of page j of the body if s pages before it are left out
    T[s][c]              S[s][0] ^ … ^ S[s][c − 1]
    CRC of the choice    T[0][3] ^ (T[2][7] ^ T[2][3]) ^ (T[3][8] ^ T[3][7])

One of 2³¹ wrong choices has the right CRC. So the number of attempts is bounded, the likeliest choices come first, and
two different choices with the right CRC prove neither.
"""

from __future__ import annotations

import functools
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from engine.codec.crc import MASK, crc32

PAGE_BYTES = 4096
MAX_COMBINATIONS = 1 << 17
"""Maximum number of choices for one body. One of 16,000 bodies whose pages are not all there gets wrong ones."""
MAX_STEPS = 1 << 16
"""Maximum number of ranges of pages that :meth:`PageChoice.iter_choices_at` leaves out on trial."""
MAX_GUESSED_PAGES = 16
"""Pages in a range of which only one border is known."""
_POLYNOMIAL = 0xEDB88320
_ONES = 0xFFFFFFFF
Words = npt.NDArray[np.uint32]


def raw_crc(data: bytes) -> int:
    """Return the CRC register after ``data`` if it was 0 before."""
    return crc32(data, _ONES) ^ _ONES  # type: ignore[call-arg]


def _multiply(factor: int, other_factor: int) -> int:
    """Return the product of two polynomials modulo the CRC's, bits reversed."""
    bit, product = 1 << 31, 0
    while bit:
        if factor & bit:
            product ^= other_factor
        other_factor = (other_factor >> 1) ^ (_POLYNOMIAL if other_factor & 1 else 0)
        bit >>= 1
    return product


@functools.lru_cache(maxsize=64)
def _zeros(count: int) -> int:
    """Return the polynomial by which ``count`` zero bytes multiply the register."""
    power, square = 1 << 31, 1 << 23  # 1, and x^8
    while count:
        if count & 1:
            power = _multiply(power, square)
        square = _multiply(square, square)
        count >>= 1
    return power


def append_zeros(register: int, count: int) -> int:
    """Return the register after ``count`` zero bytes."""
    return _multiply(_zeros(count), register)


@functools.lru_cache(maxsize=16)
def _table(count: int) -> Words:
    """Return four tables, one for each byte of a register, that append ``count`` zero bytes."""
    table = np.zeros((4, 256), np.uint32)
    for byte in range(4):
        for bit in range(8):
            value = append_zeros(1 << (8 * byte + bit), count)
            table[byte, 1 << bit : 2 << bit] = table[byte, : 1 << bit] ^ np.uint32(value)
    return table


def _append_zeros_to_all(registers: Words, table: Words) -> Words:
    parts = registers.view(np.uint8).reshape(-1, 4)
    changed: Words = table[0][parts[:, 0]]
    for byte in range(1, 4):
        changed ^= table[byte][parts[:, byte]]
    return changed


class PageChoice:
    """Finds the ``count`` pages of a body between its first bytes, ``head``, and its last ones, ``tail``.

    ``registers`` are the :func:`raw_crc` of all pages between them, in order.
    """

    def __init__(self, registers: Words, count: int, head: bytes, tail: bytes, body_crc: int) -> None:
        self._count, self._surplus = count, len(registers) - count
        size = len(head) + count * PAGE_BYTES + len(tail)
        around = append_zeros(_ONES, size) ^ append_zeros(raw_crc(head), size - len(head)) ^ raw_crc(tail) ^ _ONES
        self._crc_of_pages = np.uint32((around ^ body_crc) & MASK)
        self._sums = self._added_sums(registers, len(tail))
        self.combinations = 0
        """Number of choices that were tried."""

    def _added_sums(self, registers: Words, tail_size: int) -> Words:
        """Return the table ``T`` of the module's docstring."""
        count, surplus = self._count, self._surplus
        added = np.zeros((surplus + 1, count + 1), np.uint32)
        values = _append_zeros_to_all(np.ascontiguousarray(registers), _table(tail_size))
        page = _table(PAGE_BYTES)
        for number in range(count - 1, -1, -1):
            values = values[: number + surplus + 1]
            added[:, number + 1] = values[number:]
            if number:
                values = _append_zeros_to_all(values, page)
        np.bitwise_xor.accumulate(added, axis=1, out=added)
        return added & np.uint32(MASK)

    def iter_choices(self, max_combinations: int = MAX_COMBINATIONS) -> Iterator[list[int]]:
        """Yield the choices with the right CRC, as numbers of pages; those with few gaps first."""
        for search in (self._with_one_gap, self._with_equal_gaps, self._with_two_gaps, self._with_three_gaps):
            yield from search(max_combinations)

    def iter_choices_at(self, breaks: Sequence[int], max_steps: int = MAX_STEPS) -> Iterator[list[int]]:
        """Yield the choices with the right CRC that leave out ranges of pages between ``breaks``: numbers of pages.

        First both borders of each range are breaks, then only one border of one range, then of two ranges.
        """
        surplus, sums = self._surplus, self._sums
        total = self._count + surplus
        borders = sorted({0, *breaks, total})
        blocks = [(start, end, 0) for start in borders for end in borders if start < end <= start + surplus]
        certain_ranges = {(start, end) for start, end, _ in blocks}
        sizes = range(1, min(surplus, MAX_GUESSED_PAGES) + 1)
        guesses = {(border, border + size) for border in borders for size in sizes if border + size <= total}
        guesses |= {(border - size, border) for border in borders for size in sizes if border >= size}
        blocks = sorted([*blocks, *((start, end, 1) for start, end in guesses - certain_ranges)])
        starts = [start for start, _, _ in blocks]
        for guessed in range(3):
            waiting: list[tuple[int, int, int, int, tuple[tuple[int, int], ...]]] = [(0, surplus, 0, guessed, ())]
            while waiting:
                position, pages_to_omit, value, guesses_left, omitted_ranges = waiting.pop()
                shift = surplus - pages_to_omit
                crc_before = value ^ int(sums[shift][position - shift])
                if not pages_to_omit:
                    self.combinations += 1
                    if not guesses_left and crc_before ^ int(sums[shift][-1]) == self._crc_of_pages:
                        omitted = {page for block in omitted_ranges for page in range(*block)}
                        yield [page for page in range(total) if page not in omitted]
                    continue
                for start, end, guess in islice(blocks, bisect_left(starts, position), None):
                    if end - start <= pages_to_omit and guess <= guesses_left and start - shift <= self._count:
                        max_steps -= 1
                        if max_steps < 0:
                            return
                        added = crc_before ^ int(sums[shift][start - shift])
                        block = start, end
                        remaining = pages_to_omit - end + start
                        waiting.append((end, remaining, added, guesses_left - guess, (*omitted_ranges, block)))

    def _exceeds_limit(self, combinations: int, max_combinations: int) -> bool:
        """Return True if so many more choices are too many; count them otherwise."""
        if self.combinations + combinations > max_combinations:
            return True
        self.combinations += combinations
        return False

    def _pages(self, cuts: list[tuple[int, int]]) -> list[int]:
        """Return the numbers of the pages; each cut is a page of the body and the pages left out before it."""
        numbers = np.arange(self._count)
        shifts = np.zeros(self._count, np.int64)
        for start, shift in cuts:
            shifts[start:] = shift
        pages: list[int] = (numbers + shifts).tolist()
        return pages

    def _with_one_gap(self, limit: int) -> Iterator[list[int]]:
        sums, surplus = self._sums, self._surplus
        if surplus == 0:
            self.combinations += 1
            if sums[0][-1] == self._crc_of_pages:
                yield self._pages([])
            return
        if self._exceeds_limit(self._count + 1, limit):
            return
        for cut in np.flatnonzero(sums[0] ^ sums[surplus] ^ sums[surplus][-1] == self._crc_of_pages).tolist():
            yield self._pages([(cut, surplus)])

    def _with_equal_gaps(self, limit: int) -> Iterator[list[int]]:
        """Yield choices with equal gaps between equal pieces, as a file system makes them for two files at once."""
        count, surplus, sums = self._count, self._surplus, self._sums
        for gap in range(1, surplus // 3 + 1):
            if surplus % gap:
                continue
            gaps = surplus // gap
            for piece in range(1, count // (gaps - 1) + 1):
                first = max(0, count - gaps * piece)
                starts = np.arange(first, min(piece, count - (gaps - 1) * piece) + 1)
                if not len(starts) or self._exceeds_limit(len(starts), limit):
                    continue
                values = sums[surplus][-1] ^ sums[0][starts]
                for number in range(gaps):
                    cuts = starts + number * piece
                    values = values ^ sums[(number + 1) * gap][cuts]
                    if number:
                        values ^= sums[number * gap][cuts]
                for start in starts[values == self._crc_of_pages].tolist():
                    yield self._pages([(start + number * piece, (number + 1) * gap) for number in range(gaps)])

    def _with_two_gaps(self, limit: int) -> Iterator[list[int]]:
        count, surplus, sums = self._count, self._surplus, self._sums
        if surplus < 2 or self._exceeds_limit((surplus - 1) * count * (count + 1) // 2, limit):
            return
        for shift in range(1, surplus):
            first = sums[0] ^ sums[shift]
            second = sums[shift] ^ sums[surplus] ^ (sums[surplus][-1] ^ self._crc_of_pages)
            for cut, other in _equal_pairs(first, second):
                if cut < other:
                    yield self._pages([(cut, shift), (other, surplus)])

    def _with_three_gaps(self, limit: int) -> Iterator[list[int]]:
        count, surplus, sums = self._count, self._surplus, self._sums
        pairs = (surplus - 1) * (surplus - 2) // 2
        if surplus < 3 or self._exceeds_limit(pairs * (count + 1) * count * (count - 1) // 6, limit):
            return
        for shift in range(1, surplus - 1):
            first = sums[0] ^ sums[shift]
            for other_shift in range(shift + 1, surplus):
                middle = sums[shift] ^ sums[other_shift]
                last = sums[other_shift] ^ sums[surplus] ^ (sums[surplus][-1] ^ self._crc_of_pages)
                for cut in range(1, count):
                    for start, end in _equal_pairs(first[:cut] ^ middle[cut], last[cut + 1 :]):
                        yield self._pages([(start, shift), (cut, other_shift), (end + cut + 1, surplus)])


def find_breaks(pages: npt.NDArray[np.uint8]) -> list[int]:
    """Return the numbers of the pages at which the text of the page before does not go on.

    There the four bytes across the border occur inside no page. Random bytes have a break at every border.
    """
    data = pages.reshape(-1).astype(np.uint64)
    shingles = (data[:-3] * 16_777_619 ^ data[1:-2] * 65_599 ^ data[2:-1] * 8191 ^ data[3:] * 31) & np.uint64(0xFFFFF)
    borders = np.arange(1, len(pages)) * pages.shape[1]
    across = (borders[:, None] + np.array([-3, -2, -1])).reshape(-1)
    inside = np.ones(len(shingles), bool)
    inside[across] = False
    is_known = np.zeros(1 << 20, bool)
    is_known[shingles[inside]] = True
    breaks: list[int] = (np.flatnonzero(~is_known[shingles[across]].reshape(-1, 3).all(axis=1)) + 1).tolist()
    return breaks


def _equal_pairs(values: Words, other_values: Words) -> Iterator[tuple[int, int]]:
    """Yield the positions of equal values in both arrays."""
    for value in np.intersect1d(values, other_values).tolist():
        for position in np.flatnonzero(values == value).tolist():
            for other_position in np.flatnonzero(other_values == value).tolist():
                yield position, other_position


def find_least_similar(pages: npt.NDArray[np.uint8], sample: npt.NDArray[np.uint8], count: int) -> list[int]:
    """Return the numbers of the ``count`` pages whose distribution of bytes differs most from that of ``sample``."""
    if not count:
        return []
    counts = np.zeros((len(pages), 256), np.float32)
    for number, page in enumerate(pages):
        counts[number] = np.bincount(page, minlength=256)
    roots = np.sqrt(counts / pages.shape[1])
    model = np.sqrt(np.bincount(sample, minlength=256).astype(np.float32) / max(len(sample), 1))
    order = np.empty(0, np.int64)
    for _ in range(3):  # the similar pages improve the model
        order = np.argsort(-np.sum((roots - model) ** 2, axis=1), kind="stable")
        model = roots[order[count:]].mean(axis=0) if count < len(order) else model
    return sorted(order[:count].tolist())
