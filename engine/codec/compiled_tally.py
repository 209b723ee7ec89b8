"""Compiled twins of :mod:`engine.codec.tally`: sums of rows by key, and the texts of a row
(docs/formats/commit-log.md#properties).

Imported late and only through :func:`engine.codec.tally.twin`. Raw addresses have no bounds check: the walk that
filled the columns checked positions and lengths of the property texts.
"""

from __future__ import annotations

import numpy as np
from numba import int32, int64, njit, uint8, uint64

from engine.codec.compiled import _keys, _tag, _topic
from engine.codec.intrinsics import be32, le32, le64, prefetch, u8

_UNIQ_KEY = np.uint64(int.from_bytes(b"UNIQ_KEY", "little"))
_KEYS = np.uint32(int.from_bytes(b"KEYS", "little"))
_MIX = np.uint64(0x9E3779B97F4A7C15)
_FINAL_1, _FINAL_2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_PRECISION = 12
_BORN_HOST = 48
_AHEAD = 8


@njit(cache=True, nogil=True)
def add_rows(key, size, row, slots, keys, sums, groups):
    """Add count, bytes, smallest and largest of every row from ``row`` on to its key's group.

    Returns (row, groups): the row that has no room, else the number of rows.

    """
    mask = int64(slots.shape[0] - 1)
    rows, max_groups = key.shape[0], keys.shape[0]
    last_key, number = int64(0), int64(-1)
    while row < rows:
        row_key = key[row]
        if number < 0 or row_key != last_key:
            h = uint64(row_key) * _MIX
            h = (h ^ (h >> uint64(29))) * _MIX
            slot = int64(h >> uint64(32)) & mask
            number = int64(slots[slot]) - 1
            while number >= 0 and keys[number] != row_key:
                slot = (slot + 1) & mask
                number = int64(slots[slot]) - 1
            if number < 0:
                if groups >= max_groups:
                    return row, groups
                number = groups
                groups += 1
                slots[slot], keys[number] = groups, row_key
            last_key = row_key
        row_size = int64(size[row])
        sums[number, 0] += 1
        sums[number, 1] += row_size
        if sums[number, 0] == 1 or row_size < sums[number, 2]:
            sums[number, 2] = row_size
        if row_size > sums[number, 3]:  # noqa: PLR1730  saves a store in most rows
            sums[number, 3] = row_size
        row += 1
    return row, groups


@njit(cache=True, nogil=True)
def read_texts(
    buffer, n, row, rows, base, offset, sys_flag, topic_id, properties, properties_length, tags, tag, host, registers
):
    """Write each row's tag number (0 for none, −1 past the table's limit) and born host (−1: IPv6), and add its keys
    to the sketches.

    Returns the row before which the table of tags must grow, else ``rows``.

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
        tag_start, tag_end = _tag(q, stop, end)
        number = int64(0)
        if tag_start:
            number = _topic(tag_start, tag_end - tag_start, tags) + 1
            if number == -1:  # the table must grow
                return row
            if number == 0:  # past its limit
                number = int64(-1)
        tag[row] = int32(number)
        is_ipv6 = (sys_flag[row] & 16) != 0
        host[row] = int64(-1) if is_ipv6 else int64(be32(buffer + offset[row] - base + _BORN_HOST))
        sketch = int64(topic_id[row]) + 1
        if sketch >= sketches:
            sketch = 0
        unique, unique_end, keys, keys_end, _, _ = _keys(q, stop, end)
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


@njit(cache=True, nogil=True)
def match_keys(buffer, rows, properties, properties_length, slots, out):
    """Write to ``out`` the rows that have a UNIQ_KEY or piece of KEYS whose hash is in ``slots``; returns their
    number.

    ``slots`` is an open-addressing table in which 0 is free.

    """
    match_count = 0
    for row in range(rows):
        if row + _AHEAD < rows:
            ahead = buffer + properties[row + _AHEAD]
            prefetch(ahead)
            prefetch(ahead + 64)
        pair = buffer + properties[row]
        stop = pair + properties_length[row]
        hit = False
        while pair < stop and not hit:
            end = pair
            while end < stop and u8(end) != uint8(2):
                end += 1
            if end - pair > 9 and le64(pair) == _UNIQ_KEY and u8(pair + 8) == uint8(1):
                hit = _is_in(slots, _hash_of(pair + 9, end))
            elif end - pair > 5 and le32(pair) == _KEYS and u8(pair + 4) == uint8(1):
                key = pair + 5
                while key < end and not hit:
                    p = key
                    while p < end and u8(p) != uint8(32):
                        p += 1
                    hit = p > key and _is_in(slots, _hash_of(key, p))
                    key = p + 1
            pair = end + 1
        if hit:
            out[match_count] = row
            match_count += 1
    return match_count


@njit(cache=True, nogil=True)
def hash_texts(buffer, ends, slots):
    """Put the hashes of texts that lie back to back at ``buffer``, each up to its ``ends``, into free ``slots``."""
    begin, mask = int64(0), uint64(slots.shape[0] - 1)
    for i in range(ends.shape[0]):
        h = _hash_of(buffer + begin, buffer + ends[i])
        slot = h & mask
        while slots[int64(slot)] != uint64(0) and slots[int64(slot)] != h:
            slot = (slot + uint64(1)) & mask
        slots[int64(slot)] = h
        begin = ends[i]


@njit(cache=True, nogil=True, forceinline=True)
def _is_in(slots, h):
    mask = uint64(slots.shape[0] - 1)
    slot = h & mask
    while slots[int64(slot)] != uint64(0):
        if slots[int64(slot)] == h:
            return True
        slot = (slot + uint64(1)) & mask
    return False


@njit(cache=True, nogil=True, forceinline=True)
def _note(registers, sketch, kind, p, end):
    h = _hash_of(p, end)
    place = int64(h >> uint64(64 - _PRECISION))
    low_bits = h << uint64(_PRECISION)
    rank = uint8(1)
    while rank <= uint8(64 - _PRECISION) and low_bits >> uint64(63) == uint64(0):
        low_bits <<= uint64(1)
        rank = uint8(rank + 1)
    if rank > registers[sketch, kind, place]:  # noqa: PLR1730  max() of two types is no byte for numba
        registers[sketch, kind, place] = rank


@njit(cache=True, nogil=True, forceinline=True)
def _hash_of(p, end):
    """Return a hash of the bytes, never 0."""
    length = end - p
    h = uint64(length) * _MIX
    if length >= 8:
        last_word = end - 8
        while p < last_word:
            h = (h ^ le64(p)) * _MIX
            h ^= h >> uint64(29)
            p += 8
        h = (h ^ le64(last_word)) * _MIX
    else:
        while p < end:
            h = (h ^ uint64(u8(p))) * _MIX
            p += 1
    h ^= h >> uint64(33)
    h *= _FINAL_1
    h ^= h >> uint64(33)
    h *= _FINAL_2
    h ^= h >> uint64(33)
    return h if h != uint64(0) else uint64(1)
