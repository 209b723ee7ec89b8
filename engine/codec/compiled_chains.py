"""Compiled twin of the walk along the index chains of many keys at once (docs/formats/index-file.md#query); the
plain one is in the reader.

Imported late and only after :func:`engine.codec.columns.twin` has established that numba works.
"""

from __future__ import annotations

from numba import int32, int64, njit, uint64

from engine.codec.compiled import _pread
from engine.codec.intrinsics import be32, be64


@njit(cache=True, nogil=True)
def chains(
    descriptor,
    hashes,
    newest_entries,
    key,
    slots,
    count,
    begin,
    begin_time,
    end_time,
    max_matches,
    state,
    out_key,
    out_offset,
    out_entry,
    filled,
    page,
):
    """Write the matching entries of the keys from number ``key`` on in one index file; returns (next key, filled).

    ``newest_entries`` are the slots' values if they are already read. Stops before a key that might not fit.
    ``state[key]`` is how a chain ended: 0 normally, 1 a link leads upwards, 2 bytes could not be read. Entry
    numbers fall along a chain, so every walk ends. ``page`` is a buffer of 20 bytes to read into.

    """
    address, entries = page.ctypes.data, 40 + 4 * slots
    while key < hashes.shape[0] and filled + max_matches <= out_key.shape[0]:
        key_hash = int32(hashes[key])
        match_count, previous_number = 0, int64(count) + 1
        if newest_entries.shape[0]:
            number = int64(newest_entries[key])
        elif _pread(int32(descriptor), address, uint64(4), int64(40 + 4 * (int64(key_hash) % slots))) == 4:
            number = int64(int32(be32(address)))
        else:
            number = int64(0)
            state[key] = 2
        while 0 < number <= count and count > 1 and match_count < max_matches:
            if number >= previous_number:
                state[key] = 1
                break
            if _pread(int32(descriptor), address, uint64(20), int64(entries + 20 * number)) != 20:
                state[key] = 2
                break
            seconds = int64(int32(be32(address + 12)))
            if seconds < 0:
                break
            time = begin + seconds * 1000
            if int32(be32(address)) == key_hash and begin_time <= time <= end_time:
                out_key[filled], out_offset[filled], out_entry[filled] = key, int64(be64(address + 4)), number
                filled += 1
                match_count += 1
            if time < begin_time:
                break
            previous_number = number
            number = int64(int32(be32(address + 16)))
        key += 1
    return key, filled
