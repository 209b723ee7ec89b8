"""Compiled twin of writing many units of the commit log in one run (docs/formats/commit-log.md#unit, #append).

Imported late and only through :mod:`engine.codec.message_columns`. Raw addresses have no bounds check: the caller
checks that the columns have their rows and the blobs their bytes; numbers that point into tables are checked
here.
"""

from __future__ import annotations

import numpy as np
from numba import int16, int32, int64, njit, uint32

from engine.codec.intrinsics import be32, be64, copy_bytes, le32, le64, put64, put_be16, put_be32, put_be64
from engine.codec.intrinsics_crc import crc32
from engine.codec.unit_flavours import MAX_PROPERTIES_BYTES
from engine.codec.write_job import DONE, NAMES, NO_PLACE, NO_ROOM, RULED

_AT = {name: 8 * number for number, name in enumerate(NAMES)}
_ROW, _POSITION, _BODY, _PROPERTIES = _AT["row"], _AT["position"], _AT["body"], _AT["properties"]
_TARGET, _LIMIT, _BASE, _NOW, _ROWS = _AT["target"], _AT["limit"], _AT["base"], _AT["now"], _AT["rows"]
_TOPIC_ID, _QUEUE_ID, _FLAG, _SYS_FLAG = _AT["topic_id"], _AT["queue_id"], _AT["flag"], _AT["sys_flag"]
_BORN, _BORN_HOST, _STORE_HOST = _AT["born_timestamp"], _AT["born_host"], _AT["store_host"]
_RECONSUME, _PREPARED = _AT["reconsume_times"], _AT["prepared_transaction_offset"]
_BODY_LENGTH, _PROPERTIES_LENGTH = _AT["body_length"], _AT["properties_length"]
_TOPICS, _TOPIC_COUNT, _HOSTS, _HOST_COUNT = _AT["topics"], _AT["topic_count"], _AT["hosts"], _AT["host_count"]
_NUMBERS, _STORE_DEFAULT = _AT["numbers"], _AT["store_default"]
_OUT_OFFSET, _OUT_QUEUE_OFFSET, _OUT_SIZE = _AT["out_offset"], _AT["out_queue_offset"], _AT["out_size"]
_MAX_BODY_BYTES = _AT["longest_body"]

_RULED_BITS = np.uint32(0x10 | 0x20 | 0x40 | 0x80)
_OUTSIDE_QUEUES = np.uint32(0x4)  # set in PREPARED (0x4) and ROLLBACK (0xC), not in COMMIT (0x8)
_BORN_V6, _STORE_V6 = np.uint32(0x10), np.uint32(0x20)
_MASK = np.uint32(0x7FFFFFFF)


@njit(cache=True, nogil=True, forceinline=True)
def _get(sheet, position):
    return int64(le64(sheet + position))


@njit(cache=True, nogil=True, forceinline=True)
def _i32(column, row):
    return int32(le32(column + 4 * row)) if column else int32(0)


@njit(cache=True, nogil=True, forceinline=True)
def _i64(column, row):
    return int64(le64(column + 8 * row)) if column else int64(0)


@njit(cache=True, nogil=True, forceinline=True)
def _put_host(target, source, size):
    """Write a raw host of 8 or 20 bytes."""
    put_be64(target, int64(be64(source)))
    if size == 20:
        put_be64(target + 8, int64(be64(source + 8)))
        put_be32(target + 16, int32(be32(source + 16)))


@njit(cache=True, nogil=True, forceinline=True)
def put_hosts_and_time(s, born_raw, born_size, now, store_raw, store_size):
    """Write BORNHOST, STORETIMESTAMP and STOREHOST at ``s``; returns the address behind them."""
    _put_host(s, born_raw, born_size)
    put_be64(s + born_size, now)
    _put_host(s + born_size + 8, store_raw, store_size)
    return s + born_size + 8 + store_size


@njit(cache=True, nogil=True, forceinline=True)
def put_head(p, total, magic, queue, flag, queue_offset, offset, flags, born_at):
    """Write a unit's fields up to BORNTIMESTAMP at ``p``, except its CRC."""
    put_be32(p, int32(total))
    put_be32(p + 4, int32(magic))
    put_be32(p + 12, int32(queue))
    put_be32(p + 16, int32(flag))
    put_be64(p + 20, queue_offset)
    put_be64(p + 28, offset)
    put_be32(p + 36, int32(flags))
    put_be64(p + 40, born_at)


@njit(cache=True, nogil=True, forceinline=True)
def put_body(p, s, reconsume, prepared, body, size, field, field_size):
    """Write RECONSUMETIMES to the topic at ``s``, and the body's CRC into the unit at ``p``; returns the address
    behind.
    """
    put_be32(s, int32(reconsume))
    put_be64(s + 4, prepared)
    put_be32(s + 12, int32(size))
    s += 16
    copy_bytes(s, body, size)  # the CRC reads sixteen bytes before its end: of a short body, those of the copy
    put_be32(p + 8, int32(crc32(body if size >= 16 else s, size) & _MASK) if size else int32(0))
    s += size
    copy_bytes(s, field, field_size)
    return s + field_size


@njit(cache=True, nogil=True, forceinline=True)
def _take_offset(flags, queue, places, place_count, numbers):
    """Take the next queue offset for a message: 0 if it stays outside queues, −1 if the queue has no place."""
    if flags & _OUTSIDE_QUEUES:
        return int64(0)
    place = int64(le64(places + 8 * queue)) if queue < place_count else int64(-1)
    if place < 0:
        return int64(-1)
    queue_offset = int64(le64(numbers + 8 * place))
    put64(numbers + 8 * place, queue_offset + 1)
    return queue_offset


@njit(cache=True, nogil=True)
def encode_rows(sheet):
    """Write units of the rows from ``row`` on at ``position``; returns why it stopped, all other results are in the
    sheet.
    """
    row, position, body, text = _get(sheet, _ROW), _get(sheet, _POSITION), _get(sheet, _BODY), _get(sheet, _PROPERTIES)
    target, limit, base = _get(sheet, _TARGET), _get(sheet, _LIMIT), _get(sheet, _BASE)
    now, rows = _get(sheet, _NOW), _get(sheet, _ROWS)
    topic_id, queue_id, flag = _get(sheet, _TOPIC_ID), _get(sheet, _QUEUE_ID), _get(sheet, _FLAG)
    sys_flag, born, born_host = _get(sheet, _SYS_FLAG), _get(sheet, _BORN), _get(sheet, _BORN_HOST)
    store_host, reconsume, prepared = _get(sheet, _STORE_HOST), _get(sheet, _RECONSUME), _get(sheet, _PREPARED)
    body_length, text_length = _get(sheet, _BODY_LENGTH), _get(sheet, _PROPERTIES_LENGTH)
    topics, topic_count = _get(sheet, _TOPICS), _get(sheet, _TOPIC_COUNT)
    hosts, host_count, numbers = _get(sheet, _HOSTS), _get(sheet, _HOST_COUNT), _get(sheet, _NUMBERS)
    out_offset, out_queue_offset = _get(sheet, _OUT_OFFSET), _get(sheet, _OUT_QUEUE_OFFSET)
    out_size, store_default = _get(sheet, _OUT_SIZE), _get(sheet, _STORE_DEFAULT)
    longest = _get(sheet, _MAX_BODY_BYTES)
    cached_topic, cached_born_host, cached_store_host, outcome = int64(-1), int64(-1), int64(-1), DONE
    field, field_size, magic, places, place_count = int64(0), int64(0), int32(0), int64(0), int64(0)
    born_raw, store_raw, born_size, store_size, host_bits = int64(0), int64(0), int64(0), int64(0), uint32(0)
    while row < rows:
        flags = uint32(_i32(sys_flag, row))
        size = int64(_i32(body_length, row))
        properties_size = int64(_i32(text_length, row))
        topic, queue = int64(_i32(topic_id, row)), int64(_i32(queue_id, row))
        born_host_id, store_host_id = (
            int64(_i32(born_host, row)),
            int64(_i32(store_host, row)) if store_host else store_default,
        )
        if size > longest or properties_size > MAX_PROPERTIES_BYTES or queue < 0 or flags & _RULED_BITS:
            outcome = RULED
            break
        if (
            topic != cached_topic or born_host_id != cached_born_host or store_host_id != cached_store_host
        ):  # rare: these values stay in registers
            if (
                topic < 0
                or topic >= topic_count
                or born_host_id < 0
                or born_host_id >= host_count
                or store_host_id < 0
                or store_host_id >= host_count
            ):
                outcome = RULED
                break
            cached_topic, cached_born_host, cached_store_host = topic, born_host_id, store_host_id
            entry, born_raw, store_raw = topics + 40 * topic, hosts + 24 * born_host_id, hosts + 24 * store_host_id
            field, field_size, magic = int64(le64(entry)), int64(le64(entry + 8)), int32(le64(entry + 16))
            places, place_count = int64(le64(entry + 24)), int64(le64(entry + 32))
            born_size, store_size = int64(le32(born_raw + 20)), int64(le32(store_raw + 20))
            host_bits = (_BORN_V6 if born_size == 20 else uint32(0)) | (_STORE_V6 if store_size == 20 else uint32(0))
        if field_size <= 0:  # the topic must not be stored
            outcome = RULED
            break
        total = 74 + born_size + store_size + size + field_size + properties_size
        if total + 8 > limit - position:
            outcome = NO_ROOM
            break
        queue_offset = _take_offset(flags, queue, places, place_count, numbers)
        if queue_offset < 0:
            outcome = NO_PLACE
            break
        p = target + position
        put_head(
            p,
            total,
            magic,
            queue,
            int64(_i32(flag, row)),
            queue_offset,
            base + position,
            int64(flags | host_bits),
            int64(le64(born + 8 * row)) if born else now,
        )
        s = put_hosts_and_time(p + 48, born_raw, born_size, now, store_raw, store_size)
        s = put_body(p, s, int64(_i32(reconsume, row)), _i64(prepared, row), body, size, field, field_size)
        put_be16(s, int16(properties_size))
        copy_bytes(s + 2, text, properties_size)
        put64(out_offset + 8 * row, base + position)
        put64(out_queue_offset + 8 * row, queue_offset)
        put64(out_size + 8 * row, total)
        position += total
        body += size
        text += properties_size
        row += 1
    put64(sheet + _ROW, row)
    put64(sheet + _POSITION, position)
    put64(sheet + _BODY, body)
    put64(sheet + _PROPERTIES, text)
    return outcome
