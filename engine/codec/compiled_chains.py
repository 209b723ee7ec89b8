"""Compiled twin of the walk along the index chains of many keys at once (docs/formats/index-file.md#query); the plain
one is in the reader.

Imported late and only where :func:`engine.codec.columns.twin` has found that numba works.
"""

from __future__ import annotations

from numba import int32, int64, njit, uint64

from engine.codec.compiled import _pread
from engine.codec.intrinsics import be32, be64


@njit(cache=True, nogil=True)
def chains(
    descriptor,
    hashes,
    newest,
    key,
    slots,
    count,
    begin,
    low,
    high,
    most,
    state,
    out_key,
    out_offset,
    out_entry,
    filled,
    page,
):
    """Matching entries of the keys from number ``key`` on in one index file; gives (next key, filled).

    ``newest``: the slots' values where they are read already. Stops before a key that might not fit. ``state[key]`` is
    how a chain ended: 0 well, 1 a link leads upwards, 2 bytes could not be read. Numbers fall, so every walk ends.
    ``page``: 20 bytes to read into.
    """
    address, entries = page.ctypes.data, 40 + 4 * slots
    while key < hashes.shape[0] and filled + most <= out_key.shape[0]:
        wanted = int32(hashes[key])
        found, above = 0, int64(count) + 1
        if newest.shape[0]:
            number = int64(newest[key])
        elif _pread(int32(descriptor), address, uint64(4), int64(40 + 4 * (int64(wanted) % slots))) == 4:
            number = int64(int32(be32(address)))
        else:
            number = int64(0)
            state[key] = 2
        while 0 < number <= count and count > 1 and found < most:
            if number >= above:
                state[key] = 1
                break
            if _pread(int32(descriptor), address, uint64(20), int64(entries + 20 * number)) != 20:
                state[key] = 2
                break
            seconds = int64(int32(be32(address + 12)))
            if seconds < 0:
                break
            time = begin + seconds * 1000
            if int32(be32(address)) == wanted and low <= time <= high:
                out_key[filled], out_offset[filled], out_entry[filled] = key, int64(be64(address + 4)), number
                filled += 1
                found += 1
            if time < low:
                break
            above = number
            number = int64(int32(be32(address + 16)))
        key += 1
    return key, filled
