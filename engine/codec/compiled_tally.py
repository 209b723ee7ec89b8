"""Compiled twins of :mod:`engine.codec.tally`: rows added up by a number, and what a row's texts say of it (spec 2.4).

Imported late and only through :func:`engine.codec.tally.twin`. Raw addresses know no bounds: places and lengths of the
property texts were proven by the walk that filled the columns.
"""

from __future__ import annotations

import numpy as np
from numba import int32, int64, njit, uint8, uint64

from engine.codec.compiled import _keys, _tag, _topic
from engine.codec.intrinsics import be32, le64, prefetch, u8

_MIX = np.uint64(0x9E3779B97F4A7C15)
_FINAL_1, _FINAL_2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_PRECISION = 12
_BORN_HOST = 48
_AHEAD = 8


@njit(cache=True, nogil=True)
def add_rows(key, size, row, slots, keys, sums, groups):
    """Count and bytes of every row from ``row`` on into its key's group; gives (row, groups): the row that found no
    room, else the number of rows.
    """
    mask = int64(slots.shape[0] - 1)
    rows, room = key.shape[0], keys.shape[0]
    last_key, number = int64(0), int64(-1)
    while row < rows:
        wanted = key[row]
        if number < 0 or wanted != last_key:
            h = uint64(wanted) * _MIX
            h = (h ^ (h >> uint64(29))) * _MIX
            at = int64(h >> uint64(32)) & mask
            number = int64(slots[at]) - 1
            while number >= 0 and keys[number] != wanted:
                at = (at + 1) & mask
                number = int64(slots[at]) - 1
            if number < 0:
                if groups >= room:
                    return row, groups
                number = groups
                groups += 1
                slots[at], keys[number] = groups, wanted
            last_key = wanted
        sums[number, 0] += 1
        sums[number, 1] += int64(size[row])
        row += 1
    return row, groups


@njit(cache=True, nogil=True)
def read_texts(
    buffer, n, row, rows, base, offset, sys_flag, topic_id, properties, properties_length, tags, tag, host, registers
):
    """Number of each row's tag (0 without one, −1 past the table's limit), its born host as a number (−1: IPv6), and
    its keys in the sketches; gives the row before which the table of tags must grow, else ``rows``.
    """
    end, sketches = buffer + n, int64(registers.shape[0])
    while row < rows:
        if row + _AHEAD < rows:
            ahead = buffer + properties[row + _AHEAD]
            prefetch(ahead)
            prefetch(ahead + 64)
            prefetch(buffer + offset[row + _AHEAD] - base + _BORN_HOST)
        q = buffer + properties[row]
        stop = q + properties_length[row]
        first, last = _tag(q, stop, end)
        number = int64(0)
        if first:
            number = _topic(first, last - first, tags) + 1
            if number == -1:  # the table must grow
                return row
            if number == 0:  # past its limit
                number = int64(-1)
        tag[row] = int32(number)
        wide = (sys_flag[row] & 16) != 0
        host[row] = int64(-1) if wide else int64(be32(buffer + offset[row] - base + _BORN_HOST))
        sketch = int64(topic_id[row]) + 1
        if sketch >= sketches:
            sketch = 0
        unique, unique_end, keys, keys_end = _keys(q, stop, end)
        if unique:
            _note(registers, sketch, 0, unique, unique_end)
        while keys < keys_end:
            p = keys
            while p < keys_end and u8(p) != uint8(32):
                p += 1
            if p > keys:
                _note(registers, sketch, 1, keys, p)
            keys = p + 1
        row += 1
    return row


@njit(cache=True, nogil=True, forceinline=True)
def _note(registers, sketch, kind, p, end):
    length = end - p
    h = uint64(length) * _MIX
    if length >= 8:
        last = end - 8
        while p < last:
            h = (h ^ le64(p)) * _MIX
            h ^= h >> uint64(29)
            p += 8
        h = (h ^ le64(last)) * _MIX
    else:
        while p < end:
            h = (h ^ uint64(u8(p))) * _MIX
            p += 1
    h ^= h >> uint64(33)
    h *= _FINAL_1
    h ^= h >> uint64(33)
    h *= _FINAL_2
    h ^= h >> uint64(33)
    place = int64(h >> uint64(64 - _PRECISION))
    rest = h << uint64(_PRECISION)
    rank = uint8(1)
    while rank <= uint8(64 - _PRECISION) and rest >> uint64(63) == uint64(0):
        rest <<= uint64(1)
        rank = uint8(rank + 1)
    if rank > registers[sketch, kind, place]:  # noqa: PLR1730  max() of two types is no byte for numba
        registers[sketch, kind, place] = rank
