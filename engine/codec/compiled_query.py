"""Compiled twins of queries by key: hashes, the chains of every index file, the units that they lead to (spec 4.4).

Imported late and only through :mod:`engine.codec.query_twin`. Addresses are the caller's to prove, numbers that come
out of a file are proven here. Each function has one signature, so that Python can call its machine code directly.
"""

from __future__ import annotations

import numpy as np
from numba import int32, int64, njit, typeof, types, uint32

from engine.codec.compiled import _hash, _positive
from engine.codec.intrinsics import be32, be64, prefetch

_HEADER = 40
_NONE, _SEVERAL = -1, -2
_FAR = 1 << 62
_TEXT = typeof(b"")
_ROW, _TABLE, _HASHES = types.int64[::1], types.int64[:, ::1], types.int32[::1]


@njit(nogil=True, forceinline=True)
def _hashed(h, text, start, stop):
    address = np.frombuffer(text, np.uint8).ctypes.data
    return _hash(uint32(h), address + start, address + stop)


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


@njit(types.int64(_TABLE, types.int64, _TEXT, types.int64, types.int64, types.int64), cache=True, nogil=True)
def find_one(files, h, text, low, high, most):
    """The offset that one key leads to; −1 where there is none, −2 where :func:`find_all` has to tell.

    ``h`` is the hash of what stands before ``text``, ASCII only; ``files`` are the rows of
    :class:`engine.codec.index_query.MappedFiles`.
    """
    wanted = _positive(_hashed(h, text, 0, len(text))[0])
    found, first = _walk(files, wanted, low, high, min(most, 2), files[0, :0])
    if found > 1 or (found == 1 and first < 0):
        return int64(_SEVERAL)
    return first


@njit(types.int64(_TABLE, types.int64, _TEXT, types.int64, types.int64, _ROW), cache=True, nogil=True)
def find_all(files, h, text, low, high, out):
    """Offsets that one key leads to, newest first, as many as ``out`` takes; gives how many."""
    wanted = _positive(_hashed(h, text, 0, len(text))[0])
    found, _ = _walk(files, wanted, low, high, out.shape[0], out)
    return int64(found)


@njit(types.int64(types.int64, _TEXT, _ROW, _HASHES), cache=True, nogil=True)
def hash_texts(h, text, ends, out):
    """Index hashes of UTF-8 texts that lie one behind the other, each after what has the hash ``h``; gives how many
    were done: one that is no UTF-8 stops it.
    """
    start = int64(0)
    for i in range(ends.shape[0]):
        value, known = _hashed(h, text, start, ends[i])
        if not known:
            return int64(i)
        out[i] = _positive(value)
        start = ends[i]
    return ends.shape[0]


@njit(types.void(_TABLE, _HASHES, types.int64, types.int64, _ROW, _TABLE), cache=True, nogil=True)
def find_keys(files, hashes, low, high, taken, out):
    """:func:`find_all` for many hashes: row ``i`` of ``out`` gets ``taken[i]`` offsets.

    Slots and first entries are asked for ahead of need: the memory answers all keys at once.
    """
    keys, most = hashes.shape[0], out.shape[1]
    taken[:] = 0
    for row in range(files.shape[0]):
        file = files[row]
        full = True
        if _asked(file, low, high):
            slots, table = file[1], file[0] + _HEADER
            for i in range(keys):
                prefetch(table + 4 * (int64(hashes[i]) % slots))
            for i in range(keys):
                number = int64(int32(be32(table + 4 * (int64(hashes[i]) % slots))))
                if 0 < number < file[2]:
                    prefetch(table + 4 * slots + 20 * number)
            for i in range(keys):
                if taken[i] < most:
                    found, _ = _chain(file, hashes[i], low, high, most - taken[i], out[i, taken[i] :])
                    taken[i] += found
        for i in range(keys):
            full = full and taken[i] >= most
        if full or file[3] < low:
            break


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


@njit(types.int64(_ROW, _TABLE, _TABLE, types.int64, _ROW, _TABLE, _ROW), cache=True, nogil=True)
def place_units(counts, offsets, spans, known, state, out, ends):
    """Units that begin at each key's offsets, in the order of the log, by what their first four bytes say.

    ``spans``: (start, stop, address) of the log, ``known`` of them, address 0 where nothing can be read. A unit's
    column of ``out`` is (offset, begin and end in its span, number of the span); ``ends[key]`` counts units. Gives the
    offset that no span holds, to be called again with one that does; −1 at the end. ``state``: (key, offsets done of
    it, units placed).
    """
    key, done, filled = state[0], state[1], state[2]
    span = int64(0)
    while key < counts.shape[0]:
        mine = offsets[key]
        if done == 0:
            _sort(mine, counts[key])
        while done < counts[key]:
            offset = mine[done]
            if not 0 <= offset < _FAR:
                done += 1
                continue
            if not spans[span, 0] <= offset < spans[span, 1]:
                span = int64(0)
                while span < known and not spans[span, 0] <= offset < spans[span, 1]:
                    span += 1
                if span >= known:
                    state[0], state[1], state[2] = key, done, filled
                    return offset
            done += 1
            at, room = offset - spans[span, 0], spans[span, 1] - offset
            if room < 4 or spans[span, 2] == 0:
                continue
            size = int64(int32(be32(spans[span, 2] + at)))
            if 4 < size <= room:
                out[0, filled], out[1, filled], out[2, filled], out[3, filled] = offset, at, at + size, span
                filled += 1
        ends[key] = filled
        key += 1
        done = int64(0)
    state[0], state[1], state[2] = key, done, filled
    return int64(-1)
