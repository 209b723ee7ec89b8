"""Compiled twins of queries by key: hashes, the chains of every index file, the units that they lead to
(docs/formats/index-file.md#query).

Imported late and only through :mod:`engine.codec.index_query`. Addresses are the caller's to prove, numbers that come
out of a file are proven here. Each function has one signature, so that Python can call its machine code directly.
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
def _hashed(h, text):
    address = np.frombuffer(text, np.uint8).ctypes.data
    return _positive(_hash(uint32(h), address, address + len(text))[0])


@njit(nogil=True, forceinline=True)
def _asked(file, low, high):
    """Whether the window takes the index file in: RocketMQ's isTimeMatched."""
    begin, end = file[3], file[4]
    return file[2] > 0 and ((low < begin and high > end) or begin <= low <= end or begin <= high <= end)


@njit(nogil=True, forceinline=True)
def _chain(file, wanted, low, high, most, out):
    """(how many, offset of the first) of the matching entries of one file; ``out`` takes as many as it has room for.

    Numbers fall along a chain, so every walk ends.
    """
    slots, above, begin = file[1], file[2], file[3]
    table = file[0] + _HEADER
    entries = table + 4 * slots
    found, first = 0, int64(_NONE)
    number = int64(int32(be32(table + 4 * (int64(wanted) % slots))))
    while 0 < number < above and found < most:
        p = entries + 20 * number
        seconds = int64(int32(be32(p + 12)))
        if seconds < 0:
            break
        time = begin + seconds * 1000
        if int32(be32(p)) == wanted and low <= time <= high:
            offset = int64(be64(p + 4))
            if found == 0:
                first = offset
            if found < out.shape[0]:
                out[found] = offset
            found += 1
        if time < low:
            break
        above = number
        number = int64(int32(be32(p + 16)))
    return found, first


@njit(nogil=True, forceinline=True)
def _walk(files, wanted, low, high, most, out):
    """:func:`_chain` over the files, newest first, as far as the window goes back."""
    found, first = 0, int64(_NONE)
    for row in range(files.shape[0]):
        file = files[row]
        if _asked(file, low, high):
            more, one = _chain(file, wanted, low, high, most - found, out[found:])
            first = first if found else one
            found += more
        if found >= most or file[3] < low:
            break
    return found, first


@njit(nogil=True, forceinline=True)
def _has_zero(v):
    return ((v - _ONES) & ~v & _HIGH_BITS) != uint64(0)


@njit(nogil=True, forceinline=True)
def _sort(values, count):
    """In ascending order; they come newest first, so turning them round is most of it."""
    for i in range(count // 2):
        values[i], values[count - 1 - i] = values[count - 1 - i], values[i]
    for i in range(1, count):
        value, j = values[i], i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


@njit(types.int64(_TABLE, types.int64, _TEXT, types.int64, types.int64, types.int64), cache=True, nogil=True)
def find_one(files, h, text, low, high, most):
    """The offset that one key leads to; −1 where there is none, −2 where :func:`find_all` has to tell.

    ``h`` is the hash of what stands before ``text``, ASCII only; ``files`` are the rows of
    :class:`engine.codec.index_query.MappedFiles`.
    """
    wanted = _hashed(h, text)
    found, first = _walk(files, wanted, low, high, min(most, 2), files[0, :0])
    if found > 1 or (found == 1 and first < 0):
        return int64(_SEVERAL)
    return first


@njit(types.int64(_TABLE, types.int64, _TEXT, types.int64, types.int64, _ROW), cache=True, nogil=True)
def find_all(files, h, text, low, high, out):
    """Offsets that one key leads to, newest first, as many as ``out`` takes; gives how many."""
    wanted = _hashed(h, text)
    found, _ = _walk(files, wanted, low, high, out.shape[0], out)
    return int64(found)


@njit(types.int64(types.int64, _TEXT, _HASHES), cache=True, nogil=True)
def hash_texts(h, text, out):
    """Index hashes of UTF-8 texts with a byte 0 between each two, all behind what has the hash ``h``; gives how many
    texts there are, which may be more than ``out`` takes.
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
def find_keys(files, hashes, low, high, most, ends, out, ahead):
    """Offsets that each key leads to, at most ``most``, in ascending order and one key's behind the other's,
    ``ends[i]`` of them up to key ``i``; gives how many.

    In the newest ``ahead`` files slots and first entries are asked for ahead of need: the memory answers all keys at
    once.
    """
    keys = hashes.shape[0]
    for row in range(min(ahead, files.shape[0])):
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
        mine = out[filled:]
        found, _ = _walk(files, hashes[i], low, high, most, mine)
        _sort(mine, found)
        filled += found
        ends[i] = filled
    return filled


@njit(types.int64(_ROW, types.int64, types.int64, _TEXT, types.int64, _TABLE), cache=True, nogil=True)
def place_units(offsets, start, stop, data, span, out):
    """Where the units lie that begin in [start, stop) of the log, whose bytes are ``data``, by what their first four
    bytes say: columns of ``out`` are begin and end in ``data`` and ``span``; end 0 where there is none.

    Gives the number of an offset that no span has taken in yet, −1 for none. ``span`` −1 comes before the first.
    """
    address, size = np.frombuffer(data, np.uint8).ctypes.data, int64(len(data))
    left = int64(_NONE)
    for i in range(offsets.shape[0]):
        if span < 0:
            out[1, i] = _NONE if 0 <= offsets[i] < _FAR else 0
        if start <= offsets[i] < stop:
            prefetch(address + offsets[i] - start)
    for i in range(offsets.shape[0]):
        if out[1, i] != _NONE:
            continue
        if start <= offsets[i] < stop:
            at = offsets[i] - start
            end = at + int64(int32(be32(address + at))) if at + 4 <= size else int64(0)
            out[0, i], out[1, i], out[2, i] = at, end if at + 4 < end <= size else int64(0), span
        elif left == _NONE:
            left = int64(i)
    return left
