"""Compiled twins of searching texts in a block: the place of a property's value, and whether a text matches.

Imported late and only through :mod:`engine.codec.block_texts`. The caller checks addresses: each text lies in
``buffer`` … ``end``. Loads of 32 bytes end before ``end``; what they read behind a text is masked out.
"""

from __future__ import annotations

import numpy as np
from numba import int8, int32, int64, njit, uint8, uint32

from engine.codec.intrinsics import equal32, le64, lowest_bit, prefetch, u8

EQUAL, CONTAINS, STARTS, ENDS = 0, 1, 2, 3
NULL, FALSE, TRUE = -1, 0, 1
NUMBER, NO_NUMBER, UNSURE = 0, 1, 2
ODD, PLAIN, PLAIN_WIDE = 0, 1, 2
_WIDE = 32
_AHEAD = 8
_DIGITS = 18
_ALL = np.uint32(0xFFFFFFFF)


@njit(cache=True, nogil=True, forceinline=True)
def _find(p, stop, end, byte):
    """Return the first address in [p, stop) that holds ``byte``, else ``stop``; nothing from ``end`` on is read."""
    while p + _WIDE <= end and p < stop:
        mask = equal32(p, byte)
        if mask:
            return min(p + lowest_bit(mask), stop)
        p += _WIDE
    while p < stop and u8(p) != byte:
        p += 1
    return min(p, stop)


@njit(cache=True, nogil=True, forceinline=True)
def _same(p, q, count):
    for i in range(count):
        if u8(p + i) != u8(q + i):
            return False
    return True


@njit(cache=True, nogil=True)
def property_values(buffer, end, positions, lengths, name, name_length, starts, sizes):
    """Write for each property text (position in ``buffer``, length) where the value of ``name`` is, −1 for none.

    As :func:`engine.codec.properties.decode`: pairs without a name or a value do not count, the last of several
    does.
    """
    first_byte = u8(name)
    for row in range(positions.shape[0]):
        p = buffer + positions[row]
        stop = p + lengths[row]
        start, size = int64(-1), int64(0)
        while p < stop:
            pair_end = _find(p, stop, end, uint8(2))
            value = p + name_length + 1
            if value < pair_end and u8(p) == first_byte and u8(value - 1) == uint8(1) and _same(p, name, name_length):
                start, size = value - buffer, pair_end - value
            p = pair_end + 1
        starts[row] = start
        sizes[row] = size


@njit(cache=True, nogil=True, forceinline=True)
def _holds(p, stop, end, sought, count, a, b):
    """Search the ``count`` bytes at ``sought`` in [p, stop); the bytes at ``a`` and ``b`` are compared first."""
    last_start = stop - count  # the last address at which they fit
    if count == 0:
        return last_start >= p
    byte_a, byte_b = u8(sought + a), u8(sought + b)
    while p <= last_start and p + b + _WIDE <= end and p + a + _WIDE <= end:
        mask = equal32(p + a, byte_a) & equal32(p + b, byte_b)
        if last_start - p < _WIDE - 1:
            mask &= _ALL >> uint32(_WIDE - 1 - (last_start - p))
        while mask:
            if _same(p + lowest_bit(mask), sought, count):
                return True
            mask &= mask - uint32(1)
        p += _WIDE
    while p <= last_start:
        if u8(p) == u8(sought) and _same(p, sought, count):
            return True
        p += 1
    return False


@njit(cache=True, nogil=True, forceinline=True)
def _answer(p, stop, end, match_kind, sought, count, a, b):
    if stop - p < count or (match_kind == EQUAL and stop - p != count):
        return False
    if match_kind == CONTAINS:
        return _holds(p, stop, end, sought, count, a, b)
    return _same(stop - count if match_kind == ENDS else p, sought, count)


@njit(cache=True, nogil=True)
def ask(buffer, end, starts, sizes, match_kind, sought, count, a, b, answers):
    """Compare each text (position in ``buffer``, −1 for none, length) with the bytes at ``sought`` in the way
    ``match_kind``.
    """
    for row in range(starts.shape[0]):
        p = buffer + starts[row]
        if starts[row] < 0:
            answers[row] = int8(NULL)
        else:
            answers[row] = int8(_answer(p, p + sizes[row], end, match_kind, sought, count, a, b))


@njit(cache=True, nogil=True)
def ask_keys(buffer, end, starts, sizes, match_kind, sought, count, a, b, answers):
    """Compare as :func:`ask` each key in each text; keys are separated by single spaces. TRUE if one matches, NULL
    if there is no key.
    """
    for row in range(starts.shape[0]):
        answer = NULL
        p = buffer + starts[row]
        stop = p + sizes[row] if starts[row] >= 0 else p
        while p < stop and answer != TRUE:
            key_end = _find(p, stop, end, uint8(32))
            if key_end > p:
                answer = TRUE if _answer(p, key_end, end, match_kind, sought, count, a, b) else FALSE
            p = key_end + 1
        answers[row] = int8(answer)


@njit(cache=True, nogil=True)
def read_numbers(buffer, starts, sizes, values, states):
    """Write the whole number that each text is, ignoring surrounding blanks; UNSURE for texts that only Python can
    decide.
    """
    for row in range(starts.shape[0]):
        values[row], states[row] = 0, int8(NO_NUMBER)
        if starts[row] < 0:
            continue
        p = buffer + starts[row]
        stop = p + sizes[row]
        needs_python = False
        for address in range(p, stop):
            needs_python |= u8(address) >= uint8(128)
        while p < stop and _is_blank(u8(p)):
            p += 1
        while p < stop and _is_blank(u8(stop - 1)):
            stop -= 1
        is_negative = p < stop and u8(p) == uint8(45)
        if p < stop and (is_negative or u8(p) == uint8(43)):
            p += 1
        value, is_number = int64(0), p < stop
        if stop - p > _DIGITS:
            needs_python = True
        else:
            while p < stop:
                digit = int64(u8(p)) - 48
                is_number &= 0 <= digit <= 9
                value = value * 10 + digit
                p += 1
        if needs_python:
            states[row] = int8(UNSURE)
        elif is_number:
            values[row], states[row] = -value if is_negative else value, int8(NUMBER)


@njit(cache=True, nogil=True, forceinline=True)
def _is_blank(byte):
    """Return True for an ASCII byte that a regular expression takes for a blank."""
    return byte == uint8(32) or uint8(9) <= byte <= uint8(13) or uint8(28) <= byte <= uint8(31)


@njit(cache=True, nogil=True)
def compare(buffer, starts, sizes, sought, count, signs, plain):
    """Write the sign of each text against the bytes at ``sought``, and in ``plain`` whether it is ASCII, where byte
    order is text order.
    """
    for row in range(starts.shape[0]):
        sign, ascii_only = 0, True
        if starts[row] >= 0:
            p, size = buffer + starts[row], int64(sizes[row])
            for address in range(p, p + size):
                ascii_only &= u8(address) < uint8(128)
            for i in range(min(size, count)):
                text_byte, sought_byte = int32(u8(p + i)), int32(u8(sought + i))
                if text_byte != sought_byte:
                    sign = -1 if text_byte < sought_byte else 1
                    break
            if sign == 0 and size != count:
                sign = -1 if size < count else 1
        signs[row], plain[row] = int8(sign), ascii_only


@njit(cache=True, nogil=True)
def zero_runs(positions, lengths, buffer, run, rows):
    """Write to ``rows`` the numbers of the texts with ``run`` (at least 15) zero bytes in a row; return how many.

    Any 15 bytes in a row hold a word of 8 bytes at an address that 8 divides: only these words are looked at first.
    """
    count = int64(0)
    texts = positions.shape[0]
    for number in range(texts):
        if number + _AHEAD < texts:
            ahead = buffer + positions[number + _AHEAD]
            prefetch(ahead)
            prefetch(ahead + 64)
        begin = buffer + positions[number]
        stop = begin + lengths[number]
        word = (begin + 7) & ~int64(7)
        while word + 8 <= stop:
            if le64(word) != 0:
                word += 8
                continue
            first, last = word, word + 8
            while first > begin and u8(first - 1) == 0:
                first -= 1
            while last < stop and u8(last) == 0:
                last += 1
            if last - first >= run:
                rows[count] = number
                count += 1
                break
            word = (last + 7) & ~int64(7)
    return count


@njit(cache=True, nogil=True)
def judge_pairs(positions, lengths, buffer, names, kinds):
    """Classify each property text: PLAIN if every pair has a value and a name of its own, without quotes,
    backslashes and control characters; PLAIN_WIDE if it is also not all ASCII; else ODD.

    ``names`` is work space for begin and length of the names of one text.
    """
    for row in range(positions.shape[0]):
        p = buffer + positions[row]
        stop = p + lengths[row]
        kind, count, name_end, start = PLAIN, 0, int64(0), p
        while p <= stop and kind != ODD:
            byte = u8(p) if p < stop else uint8(2)
            if byte == uint8(2):
                if p < stop or start < stop:
                    is_odd = name_end <= start or p <= name_end + 1 or count == names.shape[0]
                    for i in range(count if not is_odd else 0):
                        other_length = names[i, 1]
                        is_odd |= other_length == name_end - start and _same(names[i, 0], start, other_length)
                    if is_odd:
                        kind = ODD
                    else:
                        names[count, 0], names[count, 1] = start, name_end - start
                        count += 1
                start, name_end = p + 1, int64(0)
            elif byte == uint8(1):
                if name_end:
                    kind = ODD
                name_end = p
            elif byte < uint8(32) or byte == uint8(34) or byte == uint8(92):
                kind = ODD
            elif byte >= uint8(128):
                kind = PLAIN_WIDE
            p += 1
        kinds[row] = int8(kind)
