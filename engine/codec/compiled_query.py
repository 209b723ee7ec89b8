"""Compiled twins of queries by key: hashes, the chains of every index file, the units that they lead to
(docs/formats/index-file.md#query).

Imported late and only through :mod:`engine.codec.index_query`. The caller checks addresses; numbers that come out
of a file are checked here. Each function has one signature, so that Python can call its machine code directly.
"""

from __future__ import annotations

import numpy as np
from numba import int32, int64, njit, typeof, types, uint32, uint64

from engine.codec.compiled import _hash, _positive
from engine.codec.intrinsics import be32, be64, le64, prefetch, u8

_HEADER = 40
_NONE, _SEVERAL = -1, -2
_FAR = 1 << 62
_ONES, _HIGH_BITS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_TEXT = typeof(b"")
_ROW, _TABLE, _HASHES = types.int64[::1], types.int64[:, ::1], types.int32[::1]


@njit(nogil=True, forceinline=True)
def _hash_text(h, text):
    address = np.frombuffer(text, np.uint8).ctypes.data
    return _positive(_hash(uint32(h), address, address + len(text))[0])


@njit(nogil=True, forceinline=True)
def _is_time_matched(file, begin_time, end_time):
    """Return True if the time window touches the index file: RocketMQ's isTimeMatched."""
    file_begin, file_end = file[3], file[4]
    return file[2] > 0 and (
        (begin_time < file_begin and end_time > file_end)
        or file_begin <= begin_time <= file_end
        or file_begin <= end_time <= file_end
    )


@njit(nogil=True, forceinline=True)
def _walk_chain(file, key_hash, begin_time, end_time, max_matches, out):
    """Return (number, offset of the first) of the matching entries of one file; ``out`` gets as many as fit.

    Numbers fall along a chain, so every walk ends.
    """
    slots, previous_number, begin = file[1], file[2], file[3]
    table = file[0] + _HEADER
    entries = table + 4 * slots
    match_count, first_offset = 0, int64(_NONE)
    number = int64(int32(be32(table + 4 * (int64(key_hash) % slots))))
    while 0 < number < previous_number and match_count < max_matches:
        p = entries + 20 * number
        seconds = int64(int32(be32(p + 12)))
        if seconds < 0:
            break
        time = begin + seconds * 1000
        if int32(be32(p)) == key_hash and begin_time <= time <= end_time:
            offset = int64(be64(p + 4))
            if match_count == 0:
                first_offset = offset
            if match_count < out.shape[0]:
                out[match_count] = offset
            match_count += 1
        if time < begin_time:
            break
        previous_number = number
        number = int64(int32(be32(p + 16)))
    return match_count, first_offset


@njit(nogil=True, forceinline=True)
def _walk_files(files, key_hash, begin_time, end_time, max_matches, out):
    """Run :func:`_walk_chain` over the files, newest first, back to the begin of the time window."""
    match_count, first_offset = 0, int64(_NONE)
    for row in range(files.shape[0]):
        file = files[row]
        if _is_time_matched(file, begin_time, end_time):
            file_matches, file_first_offset = _walk_chain(
                file, key_hash, begin_time, end_time, max_matches - match_count, out[match_count:]
            )
            first_offset = first_offset if match_count else file_first_offset
            match_count += file_matches
        if match_count >= max_matches or file[3] < begin_time:
            break
    return match_count, first_offset


@njit(nogil=True, forceinline=True)
def _has_zero(v):
    return ((v - _ONES) & ~v & _HIGH_BITS) != uint64(0)


@njit(nogil=True, forceinline=True)
def _sort(values, count):
    """Sort in ascending order. Values come newest first, so reversing them does most of the work."""
    for i in range(count // 2):
        values[i], values[count - 1 - i] = values[count - 1 - i], values[i]
    for i in range(1, count):
        value, j = values[i], i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


@njit(types.int64(_TABLE, types.int64, _TEXT, types.int64, types.int64, types.int64), cache=True, nogil=True)
def find_one(files, h, text, begin_time, end_time, max_matches):
    """Return the offset that one key leads to; −1 for none, −2 if :func:`find_all` must be called.

    ``h`` is the hash of the text before ``text``; ``text`` is ASCII only. ``files`` are the rows of
    :class:`engine.codec.index_query.MappedFiles`.

    """
    key_hash = _hash_text(h, text)
    match_count, first_offset = _walk_files(files, key_hash, begin_time, end_time, min(max_matches, 2), files[0, :0])
    if match_count > 1 or (match_count == 1 and first_offset < 0):
        return int64(_SEVERAL)
    return first_offset


@njit(types.int64(_TABLE, types.int64, _TEXT, types.int64, types.int64, _ROW), cache=True, nogil=True)
def find_all(files, h, text, begin_time, end_time, out):
    """Write the offsets that one key leads to, newest first, as many as fit into ``out``; returns their number."""
    key_hash = _hash_text(h, text)
    match_count, _ = _walk_files(files, key_hash, begin_time, end_time, out.shape[0], out)
    return int64(match_count)


@njit(types.int64(types.int64, _TEXT, _HASHES), cache=True, nogil=True)
def hash_texts(h, text, out):
    """Write index hashes of UTF-8 texts that are separated by a zero byte; ``h`` is the hash of their common
    beginning.

    Returns the number of texts, which may be more than ``out`` holds.

    """
    address = np.frombuffer(text, np.uint8).ctypes.data
    start, end = address, address + len(text)
    stop, count = start, 0
    while True:
        while stop + 8 <= end and not _has_zero(le64(stop)):
            stop += 8
        while stop < end and u8(stop) != 0:
            stop += 1
        if count < out.shape[0]:
            out[count] = _positive(_hash(uint32(h), start, stop)[0])
        count += 1
        if stop >= end:
            return int64(count)
        stop += 1
        start = stop


@njit(
    types.int64(_TABLE, _HASHES, types.int64, types.int64, types.int64, _ROW, _ROW, types.int64),
    cache=True,
    nogil=True,
)
def find_keys(files, hashes, begin_time, end_time, max_matches, ends, out, prefetch_files):
    """Write the offsets that each key leads to, at most ``max_matches`` per key in ascending order, one key after
    the other.

    ``ends[i]`` is the number of offsets up to key ``i``; returns the number of all. In the newest
    ``prefetch_files`` files, slots and first entries are prefetched: the memory serves all keys at once.

    """
    keys = hashes.shape[0]
    for row in range(min(prefetch_files, files.shape[0])):
        file = files[row]
        slots, table = file[1], file[0] + _HEADER
        for i in range(keys):
            prefetch(table + 4 * (int64(hashes[i]) % slots))
        for i in range(keys):
            number = int64(int32(be32(table + 4 * (int64(hashes[i]) % slots))))
            if 0 < number < file[2]:
                prefetch(table + 4 * slots + 20 * number)
    filled = int64(0)
    for i in range(keys):
        key_offsets = out[filled:]
        match_count, _ = _walk_files(files, hashes[i], begin_time, end_time, max_matches, key_offsets)
        _sort(key_offsets, match_count)
        filled += match_count
        ends[i] = filled
    return filled


@njit(types.int64(_ROW, types.int64, types.int64, _TEXT, types.int64, _TABLE), cache=True, nogil=True)
def place_units(offsets, start, stop, data, span, out):
    """Locate the units that begin in [start, stop) of the log, whose bytes are ``data``, by their first four bytes.

    Columns of ``out`` are begin and end in ``data``, and ``span``; end 0 if there is no unit. Returns the index
    of an offset that no span has covered yet, −1 for none. ``span`` −1 comes before the first.

    """
    address, size = np.frombuffer(data, np.uint8).ctypes.data, int64(len(data))
    missing_index = int64(_NONE)
    for i in range(offsets.shape[0]):
        if span < 0:
            out[1, i] = _NONE if 0 <= offsets[i] < _FAR else 0
        if start <= offsets[i] < stop:
            prefetch(address + offsets[i] - start)
    for i in range(offsets.shape[0]):
        if out[1, i] != _NONE:
            continue
        if start <= offsets[i] < stop:
            position = offsets[i] - start
            end = position + int64(int32(be32(address + position))) if position + 4 <= size else int64(0)
            out[0, i], out[1, i], out[2, i] = position, end if position + 4 < end <= size else int64(0), span
        elif missing_index == _NONE:
            missing_index = int64(i)
    return missing_index
