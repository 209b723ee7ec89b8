"""Compiled twins of asking texts in a block: where a property's value stands, and what a text of bytes answers.

Imported late and only through :mod:`engine.codec.block_texts`. Addresses are the caller's to prove: each text lies in
``buffer`` … ``end``. Loads of 32 bytes end before ``end``; what they see behind a text is masked out.
"""

from __future__ import annotations

import numpy as np
from numba import int8, int32, int64, njit, uint8, uint32

from engine.codec.intrinsics import equal32, lowest_bit, u8

EQUAL, CONTAINS, STARTS, ENDS = 0, 1, 2, 3
NULL, FALSE, TRUE = -1, 0, 1
NUMBER, NO_NUMBER, UNSURE = 0, 1, 2
ODD, PLAIN, PLAIN_WIDE = 0, 1, 2
_WIDE = 32
_DIGITS = 18
_ALL = np.uint32(0xFFFFFFFF)


@njit(cache=True, nogil=True, forceinline=True)
def _find(p, stop, end, byte):
    """The first address in [p, stop) that holds ``byte``, ``stop`` where none does; nothing from ``end`` on is read."""
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
    """Of each property text (position in ``buffer``, length): where the value of ``name`` stands, −1 without one.

    As :func:`engine.codec.properties.decode`: pairs without a name or a value are none, the last of several counts.
    """
    first = u8(name)
    for row in range(positions.shape[0]):
        p = buffer + positions[row]
        stop = p + lengths[row]
        start, size = int64(-1), int64(0)
        while p < stop:
            stopped = _find(p, stop, end, uint8(2))
            value = p + name_length + 1
            if value < stopped and u8(p) == first and u8(value - 1) == uint8(1) and _same(p, name, name_length):
                start, size = value - buffer, stopped - value
            p = stopped + 1
        starts[row] = start
        sizes[row] = size


@njit(cache=True, nogil=True, forceinline=True)
def _holds(p, stop, end, sought, count, a, b):
    """Whether the ``count`` bytes at ``sought`` stand in [p, stop); those at ``a`` and ``b`` are asked first."""
    last = stop - count  # the last place where they fit
    if count == 0:
        return last >= p
    one, other = u8(sought + a), u8(sought + b)
    while p <= last and p + b + _WIDE <= end and p + a + _WIDE <= end:
        mask = equal32(p + a, one) & equal32(p + b, other)
        if last - p < _WIDE - 1:
            mask &= _ALL >> uint32(_WIDE - 1 - (last - p))
        while mask:
            if _same(p + lowest_bit(mask), sought, count):
                return True
            mask &= mask - uint32(1)
        p += _WIDE
    while p <= last:
        if u8(p) == u8(sought) and _same(p, sought, count):
            return True
        p += 1
    return False


@njit(cache=True, nogil=True, forceinline=True)
def _answer(p, stop, end, how, sought, count, a, b):
    if stop - p < count or (how == EQUAL and stop - p != count):
        return False
    if how == CONTAINS:
        return _holds(p, stop, end, sought, count, a, b)
    return _same(stop - count if how == ENDS else p, sought, count)


@njit(cache=True, nogil=True)
def ask(buffer, end, starts, sizes, how, sought, count, a, b, answers):
    """What each text (position in ``buffer``, −1 for none, length) answers to ``how`` and the bytes at ``sought``."""
    for row in range(starts.shape[0]):
        p = buffer + starts[row]
        if starts[row] < 0:
            answers[row] = int8(NULL)
        else:
            answers[row] = int8(_answer(p, p + sizes[row], end, how, sought, count, a, b))


@njit(cache=True, nogil=True)
def ask_keys(buffer, end, starts, sizes, how, sought, count, a, b, answers):
    """:func:`ask` of the keys in each text, which single spaces part: whether one of them does. No key is no list."""
    for row in range(starts.shape[0]):
        answer = NULL
        p = buffer + starts[row]
        stop = p + sizes[row] if starts[row] >= 0 else p
        while p < stop and answer != TRUE:
            stopped = _find(p, stop, end, uint8(32))
            if stopped > p:
                answer = TRUE if _answer(p, stopped, end, how, sought, count, a, b) else FALSE
            p = stopped + 1
        answers[row] = int8(answer)


@njit(cache=True, nogil=True)
def read_numbers(buffer, starts, sizes, values, states):
    """The whole number that each text is, blanks around it left out; texts that only Python can tell are UNSURE."""
    for row in range(starts.shape[0]):
        values[row], states[row] = 0, int8(NO_NUMBER)
        if starts[row] < 0:
            continue
        p = buffer + starts[row]
        stop = p + sizes[row]
        odd = False
        for at in range(p, stop):
            odd |= u8(at) >= uint8(128)
        while p < stop and _is_blank(u8(p)):
            p += 1
        while p < stop and _is_blank(u8(stop - 1)):
            stop -= 1
        minus = p < stop and u8(p) == uint8(45)
        if p < stop and (minus or u8(p) == uint8(43)):
            p += 1
        value, good = int64(0), p < stop
        if stop - p > _DIGITS:
            odd = True
        else:
            while p < stop:
                digit = int64(u8(p)) - 48
                good &= 0 <= digit <= 9
                value = value * 10 + digit
                p += 1
        if odd:
            states[row] = int8(UNSURE)
        elif good:
            values[row], states[row] = -value if minus else value, int8(NUMBER)


@njit(cache=True, nogil=True, forceinline=True)
def _is_blank(byte):
    """What a regular expression takes for a blank, of ASCII."""
    return byte == uint8(32) or uint8(9) <= byte <= uint8(13) or uint8(28) <= byte <= uint8(31)


@njit(cache=True, nogil=True)
def compare(buffer, starts, sizes, sought, count, signs, plain):
    """The sign of each text against the bytes at ``sought``; ``plain`` where it is ASCII, whose order is the bytes'."""
    for row in range(starts.shape[0]):
        sign, ascii_only = 0, True
        if starts[row] >= 0:
            p, size = buffer + starts[row], int64(sizes[row])
            for at in range(p, p + size):
                ascii_only &= u8(at) < uint8(128)
            for i in range(min(size, count)):
                mine, other = int32(u8(p + i)), int32(u8(sought + i))
                if mine != other:
                    sign = -1 if mine < other else 1
                    break
            if sign == 0 and size != count:
                sign = -1 if size < count else 1
        signs[row], plain[row] = int8(sign), ascii_only


@njit(cache=True, nogil=True)
def judge_pairs(positions, lengths, buffer, names, kinds):
    """Whether each property text is pairs of which each has a name of its own and a value, without quotes, backslashes
    and other control characters: PLAIN, PLAIN_WIDE where not all of it is ASCII, else ODD.

    ``names`` is room for where the names of one text begin and end.
    """
    for row in range(positions.shape[0]):
        p = buffer + positions[row]
        stop = p + lengths[row]
        kind, count, name_end, start = PLAIN, 0, int64(0), p
        while p <= stop and kind != ODD:
            byte = u8(p) if p < stop else uint8(2)
            if byte == uint8(2):
                if p < stop or start < stop:
                    odd = name_end <= start or p <= name_end + 1 or count == names.shape[0]
                    for i in range(count if not odd else 0):
                        long = names[i, 1]
                        odd |= long == name_end - start and _same(names[i, 0], start, long)
                    if odd:
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
