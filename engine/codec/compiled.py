"""Compiled twins: the walk over a block, the search for the next unit, and key hashes (docs/formats/commit-log.md,
docs/formats/index-file.md#insert).

Imported only to be compiled (:mod:`engine.codec.machine_code_build`), and by twins that build on them. Raw
addresses have no bounds check, so every length in the bytes is checked against the bytes that exist before
anything behind it is read.
"""

from __future__ import annotations

import numpy as np
from numba import int32, int64, njit, types, uint8, uint32, uint64

from engine.codec.dledger import HEADER_SIZE, MAGIC
from engine.codec.intrinsics import be16, be32, be64, equal32, le32, le64, lowest_bit, prefetch, put8, put32, put64, u8
from engine.codec.intrinsics_crc import crc32
from engine.codec.machine_code import FULL, GROW_TOPICS, MARKED_TAGS, PATCH, STOPPED
from engine.codec.message import MAGIC_BLANK
from engine.codec.unit_fields import COLUMNS
from engine.codec.unit_flavours import BY_MAGIC, MAGICS, MAX_PROPERTIES_BYTES
from engine.system_names import SCHEDULE_TOPIC

_V1, _V2 = (np.uint32(magic) for magic in MAGICS)
_LONGEST_V1, _LONGEST_V2 = (BY_MAGIC[magic].longest_topic for magic in MAGICS)
_BLANK = np.uint32(MAGIC_BLANK)
_MAX_UNIT_BYTES = 128 << 20
ENTRY_HEADER = HEADER_SIZE
_ENTRY_MAGIC = np.uint32(MAGIC)
_TAGS = np.uint32(int.from_bytes(b"TAGS", "little"))
_KEYS = np.uint32(int.from_bytes(b"KEYS", "little"))
_UNIQ_KEY = np.uint64(int.from_bytes(b"UNIQ_KEY", "little"))
_DELA = np.uint32(int.from_bytes(b"DELA", "little"))
_SCHEDULE = np.frombuffer(SCHEDULE_TOPIC.encode(), np.uint8).copy()
_MIX = np.uint64(0x9E3779B97F4A7C15)
_HIGH_BITS, _BYTE = np.uint64(0x8080808080808080), np.uint64(0xFF)
_31, _T, _NUMBER_SIGN = np.uint32(31), np.uint32(ord("T")), np.uint32(ord("#"))
_P2, _P3, _P4, _P5, _P6, _P7, _P8 = (np.uint64(31**n) for n in range(2, 9))

COUNT, POOL_USED, SCHEDULE, TOPIC_LIMIT = 0, 1, 2, 3
BODY_CRC, NAMES, ENTRIES = 1, 2, 4
_AT = {name: number for number, (name, _) in enumerate(COLUMNS)}
_OFFSET, _SIZE, _VERSION = _AT["offset"], _AT["size"], _AT["version"]
_KIND, _CRC = _AT["kind"], _AT["crc"]
_QUEUE_ID, _FLAG, _QUEUE_OFFSET, _SYS_FLAG = _AT["queue_id"], _AT["flag"], _AT["queue_offset"], _AT["sys_flag"]
_PHYSICAL, _BORN, _STORED = _AT["physical_offset"], _AT["born_timestamp"], _AT["store_timestamp"]
_RECONSUME, _PREPARED = _AT["reconsume_times"], _AT["prepared_transaction_offset"]
_BODY_CRC, _BODY_LENGTH, _BODY_POSITION = _AT["body_crc"], _AT["body_length"], _AT["body_position"]
_TOPIC_ID, _TAGS_CODE = _AT["topic_id"], _AT["tags_code"]
_PROPERTIES_POSITION, _PROPERTIES_LENGTH = _AT["properties_position"], _AT["properties_length"]
_AHEAD = 8  # rows whose texts are prefetched

_pread = types.ExternalFunction("pread", types.intp(types.int32, types.intp, types.uintp, types.int64))


@njit(cache=True, nogil=True, forceinline=True)
def _is_unit(magic):
    return bool(magic == _V1) | bool(magic == _V2)


@njit(cache=True, nogil=True)
def _is_entry(m, room, offset):
    """Return True for the header of a DLedger entry around a unit at the address ``m``, which is ``offset`` of the log
    (docs/formats/dledger.md).
    """
    if room < ENTRY_HEADER + 8 or be32(m) != _ENTRY_MAGIC:
        return False
    body = int64(int32(be32(m + 44)))
    return bool(
        int64(int32(be32(m + 4))) == ENTRY_HEADER + body
        and int64(be64(m + 24)) == offset
        and int64(be64(m + 8)) >= 0
        and int64(be64(m + 16)) >= 0
        and int64(int32(be32(m + ENTRY_HEADER))) == body
        and _is_unit(be32(m + ENTRY_HEADER + 4))
    )


@njit(cache=True, nogil=True)
def scan(buffer, n, position, base, columns, k, capacity, table, levels, columns_to_read):
    """Fill rows from row ``k`` with complete units from ``position`` on; returns (next position, rows, outcome).

    ``buffer`` is an address, ``columns`` the addresses of the columns in the order of ``columns.COLUMN_TYPES``. A tags
    code that only Python can compute is left as ``PATCH``. With ``ENTRIES`` headers of DLedger entries around the units
    are skipped. Addresses inside a unit: ``m`` its start, ``s``
    STORETIMESTAMP, ``r`` RECONSUMETIMES, ``t`` the topic, ``q`` the properties.

    """
    offset, size, version, queue_id = columns[_OFFSET], columns[_SIZE], columns[_VERSION], columns[_QUEUE_ID]
    flag, queue_offset, physical = columns[_FLAG], columns[_QUEUE_OFFSET], columns[_PHYSICAL]
    sys_flag, born, stored, reconsume = columns[_SYS_FLAG], columns[_BORN], columns[_STORED], columns[_RECONSUME]
    prepared, body_crc, body_length = columns[_PREPARED], columns[_BODY_CRC], columns[_BODY_LENGTH]
    body_position, topic_id, tags_code = columns[_BODY_POSITION], columns[_TOPIC_ID], columns[_TAGS_CODE]
    properties, properties_length = columns[_PROPERTIES_POSITION], columns[_PROPERTIES_LENGTH]
    kind, crc = columns[_KIND], columns[_CRC]
    while k < capacity:
        room = n - position
        if room < 88:
            return position, k, STOPPED
        m = buffer + position
        total = int64(int32(be32(m)))
        magic = be32(m + 4)
        if not _is_unit(magic) or total < 91 or total > _MAX_UNIT_BYTES or total > room:
            if columns_to_read & ENTRIES and _is_entry(m, room, base + position):
                position += ENTRY_HEADER
                continue
            return position, k, STOPPED
        prefetch(m + total)
        prefetch(m + total + 64)
        flags = be32(m + 36)
        s = m + (int64(68) if flags & uint32(16) else int64(56))
        r = s + (int64(28) if flags & uint32(32) else int64(16))
        wide = int64(1) if magic == _V1 else int64(2)
        variable_bytes = total - (r + 16 - m) - wide - 2  # body, topic and properties together
        if variable_bytes < 0:
            return position, k, STOPPED
        body = int64(int32(be32(r + 12)))
        if body < 0 or body > variable_bytes:
            return position, k, STOPPED
        t = r + 16 + body
        topic = int64(u8(t)) if magic == _V1 else int64(be16(t))
        if topic > variable_bytes - body or topic > (int64(_LONGEST_V1) if magic == _V1 else int64(_LONGEST_V2)):
            return position, k, STOPPED
        t += wide
        q = t + topic + 2
        if int64(be16(q - 2)) != variable_bytes - body - topic or variable_bytes - body - topic > MAX_PROPERTIES_BYTES:
            return position, k, STOPPED
        number = int64(-1)
        if columns_to_read & NAMES:
            number = _topic(t, topic, table)
            if number == -2:
                return position, k, GROW_TOPICS
            put32(topic_id + k * 4, int32(number))
            tag, tag_end = _tag(q, m + total, buffer + n)
            code = int64(0)
            if tag:
                h, well_formed = _hash(uint32(0), tag, tag_end)
                code = int64(int32(h)) if well_formed else int64(PATCH)
            if number >= 0 and number == int64(le64(table[6] + 8 * SCHEDULE)):
                code = _delivery(q, m + total, code, int64(be64(s)), levels)
            put64(tags_code + k * 8, code)
            put32(flag + k * 4, int32(be32(m + 16)))
            put64(born + k * 8, int64(be64(m + 40)))
            put32(reconsume + k * 4, int32(be32(r)))
            put64(prepared + k * 8, int64(be64(r + 4)))
        crc_state = uint8(0)
        if columns_to_read & BODY_CRC:
            crc_matches = body == 0 or (crc32(r + 16, body) & uint32(0x7FFFFFFF)) == be32(m + 8)
            crc_state = uint8(1) if crc_matches else uint8(2)
        put64(offset + k * 8, base + position)
        put32(size + k * 4, int32(total))
        put8(version + k, uint8(wide))
        put8(kind + k, uint8(0))
        put32(queue_id + k * 4, int32(be32(m + 12)))
        put64(queue_offset + k * 8, int64(be64(m + 20)))
        put64(physical + k * 8, int64(be64(m + 28)))
        put32(sys_flag + k * 4, int32(flags))
        put64(stored + k * 8, int64(be64(s)))
        put32(body_crc + k * 4, int32(be32(m + 8)))
        put32(body_length + k * 4, int32(body))
        put64(body_position + k * 8, r + 16 - buffer)
        put64(properties + k * 8, q - buffer)
        put32(properties_length + k * 4, int32(m + total - q))
        put8(crc + k, crc_state)
        k += 1
        position += total
    return position, k, FULL


@njit(cache=True, nogil=True)
def read_and_scan(
    descriptor,
    file_position,
    chunk,
    buffer,
    filled,
    capacity_bytes,
    position,
    base,
    columns,
    k,
    capacity,
    table,
    levels,
    columns_to_read,
):
    """Run :func:`scan`; whenever it stops for lack of bytes, read ``chunk`` more from ``file_position`` while there
    is room.

    So every byte is walked while it is still in the nearest cache. Returns (next position, rows, outcome, filled,
    file position).
    """
    while True:
        position, k, outcome = scan(
            buffer, filled, position, base, columns, k, capacity, table, levels, columns_to_read
        )
        if outcome != STOPPED or chunk <= 0 or filled + chunk > capacity_bytes:
            return position, k, outcome, filled, file_position
        byte_count = _pread(int32(descriptor), buffer + filled, uint64(chunk), file_position)
        if byte_count <= 0:
            return position, k, outcome, filled, file_position
        filled += byte_count
        file_position += byte_count


@njit(cache=True, nogil=True, forceinline=True)
def _topic(address, length, table):
    """Return the number of a topic, adding a new one. −1 past the table's limit, −2 if the table must grow first.

    ``table`` is the tuple from ``TopicTable.table``: arrays as arguments would cost more than the look-up.
    """
    slots, mask, hashes, places, lengths, pool = table[0], table[1], table[2], table[3], table[4], table[5]
    h = uint64(length) * _MIX
    if length >= 8:
        p, last_word = address, address + length - 8
        while p < last_word:
            h = (h ^ le64(p)) * _MIX
            h ^= h >> uint64(29)
            p += 8
        h = (h ^ le64(last_word)) * _MIX
    else:
        for i in range(length):
            h = (h ^ uint64(u8(address + i))) * _MIX
    h ^= h >> uint64(32)
    slot = int64(h) & mask
    number = int64(le32(slots + slot * 4)) - 1
    while number >= 0:
        same_hash = le64(hashes + number * 8) == h and int64(le32(lengths + number * 4)) == length
        if same_hash and _same(address, pool + int64(le64(places + number * 8)), length):
            return number
        slot = (slot + 1) & mask
        number = int64(le32(slots + slot * 4)) - 1
    return _new_topic(address, length, h, slot, table)


@njit(cache=True, nogil=True)
def _new_topic(address, length, h, slot, table):
    slots, hashes, places, lengths, pool, state = table[0], table[2], table[3], table[4], table[5], table[6]
    number, place = int64(le64(state + 8 * COUNT)), int64(le64(state + 8 * POOL_USED))
    if number >= int64(le64(state + 8 * TOPIC_LIMIT)):
        return int64(-1)
    if number >= table[7] or place + length > table[8]:
        return int64(-2)
    for i in range(length):
        put8(pool + place + i, u8(address + i))
    put32(slots + slot * 4, int32(number + 1))
    put64(hashes + number * 8, int64(h))
    put64(places + number * 8, place)
    put32(lengths + number * 4, int32(length))
    put64(state + 8 * COUNT, number + 1)
    put64(state + 8 * POOL_USED, place + length)
    if length == _SCHEDULE.shape[0] and _same(address, _SCHEDULE.ctypes.data, length):
        put64(state + 8 * SCHEDULE, number)
    return number


@njit(cache=True, nogil=True, forceinline=True)
def _same(address, other_address, length):
    if length < 8:
        for i in range(length):  # noqa: SIM110  numba compiles no generators
            if u8(address + i) != u8(other_address + i):
                return False
        return True
    last_word = length - 8
    for i in range(0, last_word, 8):
        if le64(address + i) != le64(other_address + i):
            return False
    return le64(address + last_word) == le64(other_address + last_word)


@njit(cache=True, nogil=True, forceinline=True)
def _pair_ends(p, end):
    """Return a bit mask of the bytes among the 32 at ``p`` that close a property; bytes from ``end`` on do not
    exist.
    """
    if p + 32 <= end:
        return equal32(p, uint8(2))
    mask = uint32(0)
    for i in range(end - p):
        if u8(p + i) == uint8(2):
            mask |= uint32(1) << uint32(i)
    return mask


@njit(cache=True, nogil=True, forceinline=True)
def _tag(q, stop, end):
    """Return (begin, end) of the last TAGS value of the properties from ``q`` to ``stop``; (0, 0) if there is none."""
    tag, tag_end = int64(0), int64(0)
    p, pair = q, q
    while p < stop:
        mask = _pair_ends(p, end)
        if stop - p < 32:
            mask &= (uint32(1) << uint32(stop - p)) - uint32(1)
        while mask:
            t = p + lowest_bit(mask)
            mask &= mask - uint32(1)
            if t - pair > 5 and le32(pair) == _TAGS and u8(pair + 4) == uint8(1):
                tag, tag_end = pair + 5, t
            pair = t + 1
        p += 32
    if stop - pair > 5 and le32(pair) == _TAGS and u8(pair + 4) == uint8(1):
        tag, tag_end = pair + 5, stop
    return tag, tag_end


@njit(cache=True, nogil=True, forceinline=True)
def _hash(h, q, end):
    """Continue Java's string hash ``h`` over the UTF-8 text in [q, end); returns (hash, is the text well-formed).

    Takes eight ASCII characters at a time, so only one multiplication in eight waits for the previous one.
    """
    while q < end:
        if q + 8 <= end:
            v = le64(q)
            if v & _HIGH_BITS == uint64(0):
                a = (v & _BYTE) * _P7 + ((v >> uint64(8)) & _BYTE) * _P6 + ((v >> uint64(16)) & _BYTE) * _P5
                b = ((v >> uint64(24)) & _BYTE) * _P4 + ((v >> uint64(32)) & _BYTE) * _P3
                w = ((v >> uint64(40)) & _BYTE) * _P2 + ((v >> uint64(48)) & _BYTE) * uint64(31) + (v >> uint64(56))
                h = uint32(uint64(h) * _P8 + (a + b + w))
                q += 8
                continue
        c = uint32(u8(q))
        if c < uint32(0x80):
            h = uint32(h * uint32(31) + c)
            q += 1
            continue
        continuation_bytes = int64(1) if c < uint32(0xE0) else (int64(2) if c < uint32(0xF0) else int64(3))
        if c < uint32(0xC2) or c > uint32(0xF4) or q + continuation_bytes >= end:
            return h, False
        d = uint32(u8(q + 1))
        lower_bound = uint32(0xA0) if c == uint32(0xE0) else (uint32(0x90) if c == uint32(0xF0) else uint32(0x80))
        upper_bound = uint32(0x9F) if c == uint32(0xED) else (uint32(0x8F) if c == uint32(0xF4) else uint32(0xBF))
        if d < lower_bound or d > upper_bound:
            return h, False
        c = (c & (uint32(0x3F) >> uint32(continuation_bytes))) << uint32(6) | (d & uint32(0x3F))
        for i in range(2, continuation_bytes + 1):
            d = uint32(u8(q + i))
            if d & uint32(0xC0) != uint32(0x80):
                return h, False
            c = c << uint32(6) | (d & uint32(0x3F))
        if c >= uint32(0x10000):
            c -= uint32(0x10000)
            h = uint32(h * uint32(31) + (uint32(0xD800) | c >> uint32(10)))
            c = uint32(0xDC00) | (c & uint32(0x3FF))
        h = uint32(h * uint32(31) + c)
        q += continuation_bytes + 1
    return h, True


@njit(cache=True, nogil=True)
def _delivery(q, stop, code, stored, levels):
    """Return the tags code of a unit in the schedule topic: its delivery time, ``code`` without a DELAY, or PATCH."""
    level = int64(-1)
    while q < stop:
        p = q
        while p < stop and u8(p) != uint8(2):
            p += 1
        if p - q > 6 and le32(q) == _DELA and u8(q + 4) == uint8(89) and u8(q + 5) == uint8(1):
            level = 0
            if p - q > 15:
                level = int64(-2)
            for i in range(q + 6, p):
                digit = int64(u8(i)) - 48
                if digit < 0 or digit > 9:
                    level = int64(-2)
                if level >= 0:
                    level = level * 10 + digit
        q = p + 1
    if level == -2:
        return int64(PATCH)
    if level > 0 and levels.shape[0] > 0:
        return stored + levels[min(level, levels.shape[0]) - 1]
    return code


@njit(cache=True, nogil=True)
def key_hashes(
    buffer, n, row, rows, topic_id, properties, properties_length, prefixes, out_row, out_hash, filled, tags
):
    """Write index hashes of rows from ``row`` on; returns (row, filled): the row that needs Python or more room,
    else ``rows``.
    """
    end = buffer + n
    while row < rows:
        if row + _AHEAD < rows:
            ahead = buffer + properties[row + _AHEAD]
            prefetch(ahead)
            prefetch(ahead + 64)
        stop = buffer + properties[row] + properties_length[row]
        unique, unique_end, keys, keys_end, all_tags, tags_end = _keys(buffer + properties[row], stop, end)
        max_keys = (keys_end - keys + 1) // 2 + 2
        if topic_id[row] < 0 or filled + max_keys > out_row.shape[0]:
            return row, filled
        out_index = filled
        prefix = prefixes[topic_id[row]]
        if unique:
            h, well_formed = _hash(prefix, unique, unique_end)
            if not well_formed:
                return row, filled
            out_row[out_index], out_hash[out_index] = row, _positive(h)
            out_index += 1
        while keys < keys_end:
            p = keys
            while p < keys_end and u8(p) != uint8(32):
                p += 1
            if p > keys:
                h, well_formed = _hash(prefix, keys, p)
                if not well_formed:
                    return row, filled
                out_row[out_index], out_hash[out_index] = row, _positive(h)
                out_index += 1
            keys = p + 1
        if tags and all_tags:
            h, well_formed = _hash(uint32(uint32(prefix * _31 + _T) * _31 + _NUMBER_SIGN), all_tags, tags_end)
            if not well_formed:
                return row, filled
            out_row[out_index], out_hash[out_index] = (~row if tags == MARKED_TAGS else row), _positive(h)
            out_index += 1
        filled = out_index
        row += 1
    return row, filled


@njit(cache=True, nogil=True)
def _positive(h):
    value = int64(int32(h))
    value = -value if value < 0 else value
    return int32(0) if value > 2147483647 else int32(value)


@njit(cache=True, nogil=True)
def _keys(q, stop, end):
    """Return (begin, end) addresses of the last UNIQ_KEY value, the last KEYS value and the last TAGS value; 0 for
    none.
    """
    unique, unique_end, keys, keys_end = int64(0), int64(0), int64(0), int64(0)
    tags, tags_end = int64(0), int64(0)
    p, pair = q, q
    while p < stop or pair < stop:
        mask = uint32(0)
        if p < stop:
            mask = _pair_ends(p, end)
            if stop - p < 32:
                mask &= (uint32(1) << uint32(stop - p)) - uint32(1)
        is_last_chunk = p + 32 >= stop
        while mask or (is_last_chunk and pair < stop):
            t = stop
            if mask:
                t = p + lowest_bit(mask)
                mask &= mask - uint32(1)
            if t - pair > 5 and u8(pair + 4) == uint8(1):
                name = le32(pair)
                if name == _KEYS:
                    keys, keys_end = pair + 5, t
                if name == _TAGS:
                    tags, tags_end = pair + 5, t
            if t - pair > 9 and le64(pair) == _UNIQ_KEY and u8(pair + 8) == uint8(1):
                unique, unique_end = pair + 9, t
            pair = t + 1
        p += 32
    return unique, unique_end, keys, keys_end, tags, tags_end


@njit(cache=True, nogil=True)
def find_candidate(buffer, n, start, base, file_end):
    """Return the position of the next bytes that pass the cheap tests of ``unit_scan.find_unit``, or −1."""
    p = start + 4  # position of a magic number, which begins with 0xDA or 0xCB
    while p + 4 <= n:
        mask = uint32(0)
        if p + 32 <= n:
            mask = equal32(buffer + p, uint8(0xDA)) | equal32(buffer + p, uint8(0xCB))
        else:
            for i in range(n - p):
                if u8(buffer + p + i) == uint8(0xDA) or u8(buffer + p + i) == uint8(0xCB):
                    mask |= uint32(1) << uint32(i)
        while mask:
            candidate = p + lowest_bit(mask) - 4
            mask &= mask - uint32(1)
            if candidate + 8 > n:
                break
            magic = be32(buffer + candidate + 4)
            total = int64(int32(be32(buffer + candidate)))
            if magic == _BLANK and base + candidate + total == file_end:
                return candidate
            fits = candidate + 36 <= n and total >= 91 and base + candidate + total <= file_end
            if _is_unit(magic) and fits and int64(be64(buffer + candidate + 28)) == base + candidate:
                return candidate
        p += 32
    return int64(-1)
