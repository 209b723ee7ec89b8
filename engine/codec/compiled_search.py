"""Compiled twin of the search for units anywhere (:mod:`engine.codec.block_search`).

Imported only to be compiled (:mod:`engine.codec.machine_code_build`). Addresses have no bounds check: every length in
the bytes is checked against the bytes that exist before anything behind it is read.
"""

from __future__ import annotations

import numpy as np
from numba import int32, int64, njit, types, uint8, uint32, uint64

from engine.codec.block_search import CUT, DONE, HEAD, MAX_CUT_BYTES
from engine.codec.compiled import scan
from engine.codec.intrinsics import be32, be64, equal32, lowest_bit, put8, put32, put64, u8
from engine.codec.machine_code import FULL
from engine.codec.message import MAX_UNIT_BYTES, MIN_UNIT_SIZE
from engine.codec.unit_fields import COLUMNS
from engine.codec.unit_flavours import MAGICS, PREFIX
from engine.codec.unit_search import EARLIEST_MS, HEAD_BYTES, LATEST_MS

_V1, _V2 = (np.uint32(magic) for magic in MAGICS)
_FIRST, _SECOND = np.uint8(PREFIX[0]), np.uint8(PREFIX[1])
_AT = {name: number for number, (name, _) in enumerate(COLUMNS)}
_OFFSET, _SIZE, _KIND, _CRC = _AT["offset"], _AT["size"], _AT["kind"], _AT["crc"]
_QUEUE_ID, _QUEUE_OFFSET = _AT["queue_id"], _AT["queue_offset"]
_PHYSICAL, _STORED, _BODY_CRC = _AT["physical_offset"], _AT["store_timestamp"], _AT["body_crc"]
_memcmp = types.ExternalFunction("memcmp", types.int32(types.uintp, types.uintp, types.uintp))
_pread = types.ExternalFunction("pread", types.intp(types.int32, types.intp, types.uintp, types.int64))


@njit(cache=True, nogil=True)
def _next_magic(buffer, position, limit, end):
    """Return the first position in [position, limit) at which a unit's size may be: a magic code follows; −1 if none
    does. Bytes from ``end`` on do not exist.
    """
    p, last = buffer + position + 4, buffer + limit + 4
    while p < last:
        mask = uint32(0)
        if p + 33 <= buffer + end:
            mask = equal32(p, _FIRST) & equal32(p + 1, _SECOND)
        else:
            for i in range(min(int64(32), buffer + end - 3 - p)):
                if u8(p + i) == _FIRST and u8(p + i + 1) == _SECOND:
                    mask |= uint32(1) << uint32(i)
        while mask:
            candidate = p + lowest_bit(mask)
            mask &= mask - uint32(1)
            if candidate >= last or candidate + 4 > buffer + end:
                break
            magic = be32(candidate)
            if magic == _V1 or magic == _V2:  # noqa: SIM109  numba
                return candidate - 4 - buffer
        p += 32
    return int64(-1)


@njit(cache=True, nogil=True)
def _is_head(m):
    """Return True if the fields at the address ``m`` are what a broker writes (``unit_search.read_head``)."""
    size, flags = int64(int32(be32(m))), be32(m + 36)
    if size < MIN_UNIT_SIZE or size > MAX_UNIT_BYTES or flags > uint32(0x7FF):
        return False
    if int32(be32(m + 8)) < 0 or int32(be32(m + 12)) < 0 or int64(be64(m + 20)) < 0 or int64(be64(m + 28)) < 0:
        return False
    born = int64(be64(m + 40))
    stored = int64(be64(m + (int64(68) if flags & uint32(16) else int64(56))))
    return EARLIEST_MS <= born <= LATEST_MS and EARLIEST_MS <= stored <= LATEST_MS


@njit(cache=True, nogil=True)
def search(
    descriptor,
    file_position,
    chunk,
    buffer,
    filled,
    capacity_bytes,
    position,
    base,
    columns,
    capacity,
    table,
    levels,
    columns_to_read,
    stop,
    is_last,
):
    """Fill rows with the units that begin in [position, stop), and with heads; returns (next position, rows, outcome,
    filled, file position).

    With a descriptor ``chunk`` bytes are read at a time, so they are searched while they are in the nearest cache.
    With ``is_last`` no byte follows those that are ``filled``.
    """
    k = int64(0)
    while True:
        limit = min(stop, filled - HEAD_BYTES + 1)
        candidate = int64(-1)
        if position < limit:
            candidate = _next_magic(buffer, position, limit, filled)
            if candidate < 0:
                position = limit
        if candidate < 0 and position >= stop:
            return position, k, DONE, filled, file_position
        needs_more = candidate < 0
        if candidate >= 0:
            position = candidate
            if k >= capacity:
                return position, k, FULL, filled, file_position
            next_position, rows, _ = scan(
                buffer, filled, position, base, columns, k, capacity, table, levels, columns_to_read
            )
            if rows > k:
                position, k = next_position, rows
                continue
            m = buffer + position
            size, is_head = int64(int32(be32(m))), _is_head(m)
            if size > filled - position:
                needs_more = is_head or MIN_UNIT_SIZE <= size <= MAX_CUT_BYTES
            if is_head and (is_last or not needs_more):
                put64(columns[_OFFSET] + k * 8, base + position)
                put32(columns[_SIZE] + k * 4, int32(size))
                put8(columns[_KIND] + k, uint8(HEAD))
                put8(columns[_CRC] + k, uint8(0))
                put32(columns[_QUEUE_ID] + k * 4, int32(be32(m + 12)))
                put64(columns[_QUEUE_OFFSET] + k * 8, int64(be64(m + 20)))
                put64(columns[_PHYSICAL] + k * 8, int64(be64(m + 28)))
                stored = m + (int64(68) if be32(m + 36) & uint32(16) else int64(56))
                put64(columns[_STORED] + k * 8, int64(be64(stored)))
                put32(columns[_BODY_CRC] + k * 4, int32(be32(m + 8)))
                k += 1
            if is_last or not needs_more:
                position += 1
                continue
        if is_last:
            return max(position, stop), k, DONE, filled, file_position
        if chunk <= 0 or filled + chunk > capacity_bytes:
            return position, k, CUT, filled, file_position
        byte_count = _pread(int32(descriptor), buffer + filled, uint64(chunk), file_position)
        if byte_count <= 0:
            return position, k, CUT, filled, file_position
        filled += byte_count
        file_position += byte_count


@njit(cache=True, nogil=True)
def compare(descriptor, other_descriptor, positions, other_positions, sizes, buffer, chunk, equal):
    """Write how many bytes of each range are the same in both files (``byte_compare.count_equal``).

    Without a descriptor, a negative one, ``positions`` are addresses in memory. ``buffer`` has room for two chunks.
    """
    for i in range(len(sizes)):
        done, size = int64(0), sizes[i]
        while done < size:
            count = min(chunk, size - done)
            first = buffer
            if descriptor < 0:
                first = positions[i] + done
            else:
                count = _pread(int32(descriptor), first, uint64(count), positions[i] + done)
            other = buffer + chunk
            if count > 0:
                count = _pread(int32(other_descriptor), other, uint64(count), other_positions[i] + done)
            if count <= 0:
                break
            if _memcmp(first, other, uint64(count)) != 0:
                same = int64(0)
                while u8(first + same) == u8(other + same):
                    same += 1
                done += same
                break
            done += count
        equal[i] = done
