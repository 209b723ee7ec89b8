"""Compiled part of :mod:`engine.codec.log_copies`: hashes pages of a log, checks the rows of its walk, and follows a
copy of it in another file.

Imported only to be compiled (:mod:`engine.codec.machine_code_build`).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import int32, int64, njit, types, uint32, uint64
from numba.core import cgutils
from numba.extending import intrinsic

from engine.codec.columns import BAD, CACHE_LINE_BYTES
from engine.codec.intrinsics import be32, be64, le32, le64, u8
from engine.codec.log_copies import NOT_OPEN, PAGE_BYTES, SAME, UNREADABLE
from engine.codec.message import MIN_UNIT_SIZE
from engine.codec.unit_fields import COLUMNS
from engine.codec.unit_flavours import MAGICS

_AT = {name: number for number, (name, _) in enumerate(COLUMNS)}
_OFFSET, _SIZE, _CRC, _PHYSICAL = _AT["offset"], _AT["size"], _AT["crc"], _AT["physical_offset"]
_LANES, _SUMS = 8, 4
_KEYS = (
    0x9E3779B97F4A7C15,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
    0xD6E8FEB86659FD93,
    0xA0761D6478BD642F,
    0xE7037ED1A0B428DB,
)
_FIELD_BYTES = 36
"""Bytes of a unit up to the end of its physical offset."""
_V1, _V2 = (uint32(magic) for magic in MAGICS)
_memcmp = types.ExternalFunction("memcmp", types.int32(types.uintp, types.uintp, types.uintp))
_memmove = types.ExternalFunction("memmove", types.uintp(types.uintp, types.uintp, types.uintp))
_pread = types.ExternalFunction("pread", types.intp(types.int32, types.intp, types.uintp, types.int64))


@intrinsic
def digest_page(_typing: Any, _address: Any) -> Any:
    """Return a digest of the 4 KiB at an address; it is not 0.

    Each of 32 sums takes one word in 256 bytes: it adds the product of the halves of the word, mixed with itself and a
    key, as XXH3 does, and the word of its neighbour. So a sum depends on the order of its words, and no word is lost
    where a half is 0.
    """

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        vector = ir.VectorType(word, _LANES)

        def splat(number: int) -> Any:
            return ir.Constant(vector, [word(number)] * _LANES)

        keys = [
            ir.Constant(vector, [word(_KEYS[(lane + shift) % _LANES] ^ shift) for lane in range(_LANES)])
            for shift in range(_SUMS)
        ]
        sums = [cgutils.alloca_once_value(builder, key) for key in keys]
        swap = ir.Constant(ir.VectorType(ir.IntType(32), _LANES), [lane ^ 1 for lane in range(_LANES)])
        step = 8 * _LANES * _SUMS
        with cgutils.for_range(builder, word(PAGE_BYTES // step)) as loop:
            start = builder.add(args[0], builder.mul(loop.index, word(step)))
            for number, (total, key) in enumerate(zip(sums, keys, strict=True)):
                address = builder.add(start, word(number * 8 * _LANES))
                data = builder.load(builder.inttoptr(address, vector.as_pointer()), align=1)
                value = builder.load(total)
                mixed = builder.xor(data, builder.add(value, key))
                product = builder.mul(
                    builder.and_(mixed, splat(0xFFFFFFFF)),
                    builder.lshr(mixed, splat(32)),
                )
                neighbours = builder.shuffle_vector(data, ir.Constant(vector, ir.Undefined), swap)
                builder.store(builder.add(builder.add(value, product), neighbours), total)
        digest = word(_KEYS[0])
        for total in sums:
            value = builder.load(total)
            for lane in range(_LANES):
                digest = builder.xor(digest, builder.extract_element(value, ir.IntType(32)(lane)))
                digest = builder.mul(digest, word(_KEYS[lane]))
                digest = builder.xor(digest, builder.lshr(digest, word(29)))
        return builder.or_(digest, word(1))

    return types.int64(types.intp), generate


@njit(cache=True, nogil=True)
def digest_pages(address, digests):
    """Write the digests of the pages at an address."""
    for number in range(len(digests)):
        digests[number] = digest_page(address + number * PAGE_BYTES)


@njit(cache=True, nogil=True)
def count_whole_rows(columns, count, gap_bytes):
    """Return how many rows of a walk, from the first one on, are whole units at their own place, one behind the other
    or ``gap_bytes`` apart.
    """
    end = int64(-1)
    for i in range(count):
        offset = int64(le64(columns[_OFFSET] + 8 * i))
        gap = offset - end
        if i > 0 and gap != 0 and gap != gap_bytes:
            return int64(i)
        if u8(columns[_CRC] + i) == BAD or int64(le64(columns[_PHYSICAL] + 8 * i)) != offset:
            return int64(i)
        end = offset + int64(le32(columns[_SIZE] + 4 * i))
    return int64(count)


@njit(cache=True, nogil=True)
def find_first(numbers, number):
    """Return the index of the first of the ascending ``numbers`` that is not below ``number``."""
    low, high = int64(0), int64(len(numbers))
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def read_log(offset, size, file_starts, file_stops, descriptors, target):
    """Read at most ``size`` bytes of the log to the address ``target``; returns their number, or why none was read."""
    number = find_first(file_starts, offset + 1) - 1
    if number < 0 or file_stops[number] <= offset:
        return int64(UNREADABLE)
    if descriptors[number] < 0:
        return int64(NOT_OPEN)
    size = min(size, file_stops[number] - offset)
    return max(_pread(int32(descriptors[number]), target, uint64(size), offset - file_starts[number]), int64(0))


@njit(cache=True, nogil=True)
def _count_same(address, offset, size, file_starts, file_stops, descriptors, scratch):
    """Return how many bytes at an address are the log's from ``offset`` on, or why they cannot be compared."""
    count = read_log(offset, size, file_starts, file_stops, descriptors, scratch)
    if count < size and count >= 0 and file_stops[find_first(file_starts, offset + 1) - 1] < offset + size:
        return int64(UNREADABLE)  # they lie in two files
    if count <= 0 or _memcmp(address, scratch, uint64(count)) == 0:
        return count
    same = int64(0)
    while u8(address + same) == u8(scratch + same):
        same += 1
    return same


@njit(cache=True, nogil=True)
def follow_copy(
    descriptor,
    file_position,
    buffer,
    filled,
    capacity_bytes,
    position,
    base,
    offset,
    stop,
    live_stop,
    first_page,
    digests,
    file_starts,
    file_stops,
    descriptors,
    scratch,
):
    """Pass over the units from ``position`` on whose bytes are those of the log from ``offset`` up to ``live_stop``.

    Reads on in the file. Returns (position of the next unit, unit count, filled, file position, base, first valid byte
    of the buffer, and SAME, or why the log cannot be read). ``stop`` counts from the beginning of the file, as the
    result's position does.
    """
    shift = base + position - offset
    unit = equal = base + position
    end, unit_end, unit_count = live_stop + shift, int64(-1), int64(0)
    valid_from, is_last, outcome = int64(-1), False, int64(SAME)
    while True:
        filled_to, is_over = base + filled, False
        while equal < min(end, filled_to) and not is_over:
            log_offset = equal - shift
            size = min(PAGE_BYTES - (log_offset & (PAGE_BYTES - 1)), end - equal)
            if equal + size > filled_to:
                if not is_last:
                    break
                size = filled_to - equal
            address, page = buffer + equal - base, log_offset // PAGE_BYTES - first_page
            if size == PAGE_BYTES and 0 <= page < len(digests) and digests[page] == digest_page(address):
                equal += size
                continue
            same = _count_same(address, log_offset, size, file_starts, file_stops, descriptors, scratch)
            if same < 0:
                outcome, same = same, int64(0)
            equal += same
            is_over = same < size
        while unit < stop:
            if unit_end < 0:
                if equal < unit + _FIELD_BYTES:
                    break
                m = buffer + unit - base
                size, magic = int64(int32(be32(m))), be32(m + 4)
                is_unit = magic == _V1 or magic == _V2  # numba compiles no tuple of these
                if not is_unit or size < MIN_UNIT_SIZE or int64(be64(m + 28)) != unit - shift:
                    is_over = True
                    break
                unit_end = unit + size
            if equal < unit_end:
                break
            unit, unit_end = unit_end, int64(-1)
            unit_count += 1
        if is_over or equal >= end or unit >= stop or is_last:
            break
        first = equal if unit_end >= 0 and filled_to - unit > capacity_bytes // 4 else unit
        kept = filled_to - first
        start = -kept & int64(CACHE_LINE_BYTES - 1)
        _memmove(buffer + start, buffer + first - base, uint64(kept))
        base, filled, valid_from = first - start, start + kept, first
        room = min(capacity_bytes // 8, capacity_bytes - filled)
        count = _pread(int32(descriptor), buffer + filled, uint64(room), file_position)
        if count <= 0:
            is_last = True
        else:
            filled += count
            file_position += count
    if valid_from > unit:  # the beginning of a unit longer than the buffer
        base = unit // PAGE_BYTES * PAGE_BYTES
        file_position, filled, valid_from = base, int64(0), unit
    return unit, unit_count, filled, file_position, base, valid_from, outcome
