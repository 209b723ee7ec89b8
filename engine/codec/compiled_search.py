"""Compiled twin of the search for units anywhere (:mod:`engine.codec.block_search`).

Imported only to be compiled (:mod:`engine.codec.machine_code_build`). Addresses have no bounds check: every length in
the bytes is checked against the bytes that exist before anything behind it is read.
"""

from __future__ import annotations

import numpy as np
from numba import int32, int64, njit, types, uint8, uint32, uint64

from engine.codec.block_search import CUT, DONE, HEAD, MAX_CUT_BYTES
from engine.codec.compiled import scan
from engine.codec.dledger import HEADER_SIZE, MAGIC
from engine.codec.intrinsics import be16, be32, be64, equal32, le32, le64, lowest_bit, put8, put32, put64, u8
from engine.codec.intrinsics_crc import crc32
from engine.codec.machine_code import FULL
from engine.codec.message import BORN_HOST_V6, MAGIC_BLANK, MAX_UNIT_BYTES, MIN_UNIT_SIZE, STORE_HOST_V6
from engine.codec.properties import CRC32, CRC_TAIL
from engine.codec.proven_ends import MAX_BORDERS, OTHER_BYTES, PROVEN
from engine.codec.unit_fields import COLUMNS
from engine.codec.unit_flavours import MAGICS, PREFIX
from engine.codec.unit_runs import BAD_BODY, FIELD_COUNT, GOES_ON, HAS_ENTRIES, HAS_ENTRIES_BEFORE_LAST, LIVE
from engine.codec.unit_search import (
    EARLIEST_MS,
    FOLLOWING_BYTES,
    HEAD_BYTES,
    LATEST_MS,
    PAGE_BYTES,
    STORE_HOST_END_BYTES,
)

_V1, _V2 = (np.uint32(magic) for magic in MAGICS)
_BLANK = np.uint32(MAGIC_BLANK)
_FIRST, _SECOND = np.uint8(PREFIX[0]), np.uint8(PREFIX[1])
_AT = {name: number for number, (name, _) in enumerate(COLUMNS)}
_OFFSET, _SIZE, _KIND, _CRC = _AT["offset"], _AT["size"], _AT["kind"], _AT["crc"]
_QUEUE_ID, _QUEUE_OFFSET = _AT["queue_id"], _AT["queue_offset"]
_BODY_POSITION, _BODY_LENGTH = _AT["body_position"], _AT["body_length"]
_PHYSICAL, _STORED, _BODY_CRC = _AT["physical_offset"], _AT["store_timestamp"], _AT["body_crc"]
_CRC_NAME = np.uint64(int.from_bytes(CRC32.encode(), "big"))
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
def runs(buffer, base, columns, count, live, table):
    """Write a row of ``table`` for each run of units (``unit_runs.find_runs``) and return their number."""
    offset, size, physical = columns[_OFFSET], columns[_SIZE], columns[_PHYSICAL]
    kind, crc, body_crc = columns[_KIND], columns[_CRC], columns[_BODY_CRC]
    body_position, body_length = columns[_BODY_POSITION], columns[_BODY_LENGTH]
    place, flags = int64(-FIELD_COUNT), int64(0)
    end, physical_end, was_live, was_bad = int64(-1), int64(-1), uint8(0), False
    for i in range(count):
        if u8(kind + i) == HEAD:
            continue
        position, log_offset = int64(le64(offset + 8 * i)), int64(le64(physical + 8 * i))
        unit_size = int64(le32(size + 4 * i))
        is_live, is_bad = live[i], False
        stored = le32(body_crc + 4 * i)
        if is_live == 0 and stored != 0:  # 0: the writer stored none
            state = u8(crc + i)
            if state == 0:
                length = int64(le32(body_length + 4 * i))
                body = buffer + int64(le64(body_position + 8 * i))
                matches = length == 0 or (crc32(body, length) & uint32(0x7FFFFFFF)) == stored
                state = uint8(1) if matches else uint8(2)
                put8(crc + i, state)
            is_bad = state == 2
        gap = position - end
        has_entry = False
        if place >= 0 and gap == HEADER_SIZE:
            header = buffer + end - base
            has_entry = be32(header) == uint32(MAGIC) and int64(int32(be32(header + 4))) == unit_size + HEADER_SIZE
        is_chained = (
            place >= 0
            and (gap == 0 or has_entry)
            and log_offset - physical_end == gap
            and is_live == was_live
            and not is_bad
            and not was_bad
        )
        if is_chained:
            if flags & HAS_ENTRIES:
                flags |= HAS_ENTRIES_BEFORE_LAST
            if has_entry:
                flags |= HAS_ENTRIES
            table[place + 8] = end
        else:
            if place >= 0:
                table[place + 9] = flags | (GOES_ON if gap == 0 and log_offset == physical_end else 0)
            place += FIELD_COUNT
            flags = (LIVE if is_live != 0 else 0) | (BAD_BODY if is_bad else 0)
            table[place], table[place + 2] = i, 0
            table[place + 3], table[place + 4], table[place + 8] = position, log_offset, position
        table[place + 1], table[place + 2] = i, table[place + 2] + 1
        table[place + 5], table[place + 6], table[place + 7] = position, unit_size, log_offset
        end, physical_end, was_live, was_bad = position + unit_size, log_offset + unit_size, is_live, is_bad
    if place >= 0:
        table[place + 9] = flags
    return (place + FIELD_COUNT) // FIELD_COUNT


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


@njit(cache=True, nogil=True)
def _body_position(m):
    flags = be32(m + 36)
    return (
        int64(88)
        + (int64(12) if flags & uint32(BORN_HOST_V6) else int64(0))
        + (int64(12) if flags & uint32(STORE_HOST_V6) else int64(0))
    )


@njit(cache=True, nogil=True)
def _has_plain_end(m, size):
    """Return True if the topic and the properties of the unit at ``m`` are ASCII text and pairs, to the byte."""
    body = _body_position(m)
    length = int64(int32(be32(m + body - 4)))
    width = int64(1) if be32(m + 4) == _V1 else int64(2)
    topic = body + length + width
    if length <= 0 or topic + 2 > size:
        return False
    topic_length = int64(u8(m + topic - 1)) if width == 1 else int64(be16(m + topic - 2))
    properties = topic + topic_length + 2
    if topic_length <= 0 or properties > size:
        return False
    for i in range(m + topic, m + topic + topic_length):
        if u8(i) < uint8(33) or u8(i) > uint8(126):
            return False
    if properties + int64(be16(m + properties - 2)) != size or size - properties > 32767:
        return False
    pair, separator, end = m + properties, int64(-1), m + size
    for i in range(pair, end):
        byte = u8(i)
        if byte == uint8(2):
            if separator < 0:
                return False
            pair, separator = i + 1, int64(-1)
        elif byte == uint8(1):
            if separator < 0:
                if i == pair:
                    return False
                separator = i
        elif (byte < uint8(32) and byte != uint8(9) and byte != uint8(10) and byte != uint8(13)) or byte > uint8(126):
            return False
    return pair == end or separator >= 0


@njit(cache=True, nogil=True)
def _is_proven(m, size, offset, following, count):
    """Return True if it is simple to see that ``unit_search.judge_end`` says ``proven``; the unit was not moved."""
    if not _has_plain_end(m, size):
        return False
    end = offset + size
    count = min(count, -end & int64(PAGE_BYTES - 1))
    if count < 8:
        body = _body_position(m)
        proven_to = offset + body + int64(int32(be32(m + body - 4)))
        return (proven_to - 1) // PAGE_BYTES == (end - 1) // PAGE_BYTES
    magic = be32(following + 4)
    if magic == _V1 or magic == _V2:  # noqa: SIM109  numba
        return count < FOLLOWING_BYTES or int64(be64(following + 28)) == end
    return magic == _BLANK


@njit(cache=True, nogil=True)
def _ends_with_other_bytes(m, size, following):
    """Return True if it is simple to see that the unit at ``m`` is a head with bytes of another file behind its body:
    a byte that no text has, no property CRC, and no magic code up to 8 bytes of what follows.
    """
    if be32(m + 8) == 0 or not _is_head(m):
        return False
    body = _body_position(m)
    start = body + int64(int32(be32(m + body - 4)))
    width = int64(1) if be32(m + 4) == _V1 else int64(2)
    topic_length = int64(u8(m + start)) if width == 1 else int64(be16(m + start))
    properties = start + width + topic_length + 2
    is_text = True
    for i in range(m + properties, m + size):
        byte = u8(i)
        if byte < uint8(32) and byte != 1 and byte != 2 and byte != 9 and byte != 10 and byte != 13:
            is_text = False
    if is_text:
        return False
    if be64(m + size - CRC_TAIL) == _CRC_NAME:
        return False
    for i in range(m + start, following + 6):  # noqa: SIM110  numba
        if u8(i) == _FIRST and u8(i + 1) == _SECOND:
            return False
    return True


@njit(cache=True, nogil=True)
def judge_unit(unit, size, offset, byte_count):
    """Return the verdict for the end of the unit at the address ``unit``, behind which ``byte_count`` bytes are in
    memory.
    """
    if byte_count >= FOLLOWING_BYTES:
        if _is_proven(unit, size, offset, unit + size, int64(FOLLOWING_BYTES)):
            return uint8(PROVEN)
        if _ends_with_other_bytes(unit, size, unit + size):
            return uint8(OTHER_BYTES)
    return uint8(0)


@njit(cache=True, nogil=True)
def judge(buffer, filled, positions, sizes, offsets, verdicts):
    """Write a verdict for the end of each unit in memory (``proven_ends.judge_ends``)."""
    for i in range(len(sizes)):
        end = positions[i] + sizes[i]
        verdicts[i] = judge_unit(buffer + positions[i], sizes[i], offsets[i], filled - end)


@njit(cache=True, nogil=True)
def _has_other_host(m, following):
    """Return True if the units at ``m`` and at ``following`` name different store hosts."""
    first = int64(76) if be32(m + 36) & uint32(BORN_HOST_V6) else int64(64)
    second = int64(76) if be32(following + 36) & uint32(BORN_HOST_V6) else int64(64)
    first_size = int64(20) if be32(m + 36) & uint32(STORE_HOST_V6) else int64(8)
    second_size = int64(20) if be32(following + 36) & uint32(STORE_HOST_V6) else int64(8)
    return first_size != second_size or _memcmp(m + first, following + second, uint64(first_size)) != 0


@njit(cache=True, nogil=True)
def find_border(first, unit, size, offset):
    """Return the offset at which the second piece of a unit begins, −1 if that is not simple to see.

    The first piece begins at the address ``first``. The second one ends at ``unit + size``, where the next unit begins;
    the bytes in front of it are replaced by those of the first piece.
    """
    border, done = (offset // PAGE_BYTES + 1) * PAGE_BYTES, int64(0)
    for _ in range(MAX_BORDERS):
        if border >= offset + size:
            return int64(-1)
        copy_bytes_up(unit + done, first + done, border - offset - done)
        done = border - offset
        if int64(int32(be32(unit))) == size and int64(be64(unit + 28)) == offset:
            body = _body_position(unit)
            length = int64(int32(be32(unit + body - 4)))
            if 0 < length <= size - body and (crc32(unit + body, length) & uint32(0x7FFFFFFF)) == be32(unit + 8):
                is_proven = not _has_other_host(unit, unit + size) and _is_proven(
                    unit, size, offset, unit + size, int64(FOLLOWING_BYTES)
                )
                return border if is_proven else int64(-1)
        border += PAGE_BYTES
    return int64(-1)


@njit(cache=True, nogil=True)
def join(descriptors, positions, run_descriptors, run_positions, offsets, sizes, buffer, capacity, borders):
    """Write for each unit the offset at which its second piece begins, −1 if that is not simple to see.

    Its beginning is at ``positions``; at ``run_positions`` begins the unit behind it. ``buffer`` has room for twice
    ``capacity`` bytes.
    """
    for i in range(len(sizes)):
        borders[i] = -1
        size, unit = sizes[i], buffer + capacity
        room = size + STORE_HOST_END_BYTES
        start = run_positions[i] - size
        if room > capacity or size < MIN_UNIT_SIZE or start < 0:
            continue
        if _pread(int32(descriptors[i]), buffer, uint64(size), positions[i]) <= 0:
            continue
        if _pread(int32(run_descriptors[i]), unit, uint64(room), start) == room:
            borders[i] = find_border(buffer, unit, size, offsets[i])


@njit(cache=True, nogil=True)
def copy_bytes_up(target, source, count):
    for i in range(count):
        put8(target + i, u8(source + i))
