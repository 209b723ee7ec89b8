"""Compiled twin of a put: write a message object's unit at the end of the log, by the interpreter's C functions
(docs/formats/commit-log.md#unit, #append).

Imported late and only through :mod:`engine.codec.machine_code_build`; :mod:`engine.codec.object_put` describes
the sheet. The interpreter's lock is held all the time, so no object changes or moves. Only an object's type and a
message's slots are read from memory directly; everything else goes through the interpreter's functions. Nothing
is written before the message is known to be plain and to fit.

"""

from __future__ import annotations

from numba import int16, int32, int64, njit, types, uint8, uint32

from engine.codec.compiled_write import put_body, put_head, put_hosts_and_time
from engine.codec.intrinsics import copy_bytes, le64, put8, put64, put_be16, u8
from engine.codec.object_put import (
    HOST_WIDTH,
    NAMES,
    NO_PLACE,
    NO_ROOM,
    NOT_PLAIN,
    OTHER_MAP,
    TOPIC_WIDTH,
    UNKNOWN_TOPIC_OR_HOST,
)
from engine.codec.unit_flavours import MAX_PROPERTIES_BYTES

_get_item = types.ExternalFunction("PyList_GetItem", types.intp(types.intp, types.intp))
_bytes_at = types.ExternalFunction("PyBytes_AsString", types.intp(types.intp))
_bytes_size = types.ExternalFunction("PyBytes_Size", types.intp(types.intp))
_text_at = types.ExternalFunction("PyUnicode_AsUTF8AndSize", types.intp(types.intp, types.intp))
_next_pair = types.ExternalFunction("PyDict_Next", types.int32(types.intp, types.intp, types.intp, types.intp))
_number = types.ExternalFunction("PyLong_AsLongLongAndOverflow", types.int64(types.intp, types.intp))
_object_of = types.ExternalFunction("PyLong_FromLongLong", types.intp(types.int64))
_compare = types.ExternalFunction("PyUnicode_Compare", types.int32(types.intp, types.intp))
_contains = types.ExternalFunction("PySet_Contains", types.int32(types.intp, types.intp))
_forget_error = types.ExternalFunction("PyErr_Clear", types.void())

_AT = {name: 8 * number for number, name in enumerate(NAMES)}
_MESSAGE_TYPE, _BYTES, _STR, _DICT, _INT = (
    _AT["message_type"],
    _AT["bytes_type"],
    _AT["str_type"],
    _AT["dict_type"],
    _AT["int_type"],
)
_NONE, _ZERO, _RULED = _AT["none"], _AT["zero"], _AT["ruled"]
_BODY, _BORN_HOST, _BORN, _FLAG = _AT["body"], _AT["born_host"], _AT["born_timestamp"], _AT["flag"]
_PREPARED, _PROPERTIES, _RAW = _AT["prepared_transaction_offset"], _AT["properties"], _AT["properties_raw"]
_QUEUE_ID, _RECONSUME, _STORE_HOST = _AT["queue_id"], _AT["reconsume_times"], _AT["store_host"]
_SYS_FLAG, _TOPIC = _AT["sys_flag"], _AT["topic"]
_SHAPE, _NAME_COUNT, _NAME_TEXT, _NAME_ENDS = _AT["names"], _AT["name_count"], _AT["name_text"], _AT["name_ends"]
_TOPICS, _TOPIC_COUNT, _HOSTS, _HOST_COUNT = _AT["topics"], _AT["topic_count"], _AT["hosts"], _AT["host_count"]
_STORE_RAW, _STORE_SIZE = _AT["store_raw"], _AT["store_size"]
_NUMBERS, _TARGET, _BASE, _LIMIT = _AT["numbers"], _AT["target"], _AT["base"], _AT["limit"]
_LONGEST, _NOW, _POSITION = _AT["longest_body"], _AT["now"], _AT["position"]
_QUEUE_OFFSET = _AT["queue_offset"]
_ROW, _ROWS, _OUT_OFFSET, _OUT_QUEUE_OFFSET, _OUT_SIZE = (
    _AT["row"],
    _AT["rows"],
    _AT["out_offset"],
    _AT["out_queue_offset"],
    _AT["out_size"],
)
_AT_PAIR, _KEY, _VALUE = _AT["scratch_1"], _AT["scratch_2"], _AT["scratch_3"]
_TYPE = 8  # bytes from an object's address to its type
_NONE_OF_32 = -(1 << 40)
_RULED_BITS = 0x10 | 0x20 | 0x40 | 0x80
_OUTSIDE_QUEUES = 0x4  # set in PREPARED (0x4) and ROLLBACK (0xC), not in COMMIT (0x8)
_MASK = uint32(0x7FFFFFFF)


@njit(cache=True, forceinline=True)
def _get(sheet, position):
    return int64(le64(sheet + position))


@njit(cache=True, forceinline=True)
def _field(sheet, message, position):
    return int64(le64(message + int64(le64(sheet + position))))


@njit(cache=True, forceinline=True)
def _is(sheet, address, type_position):
    """Return True if the object's type is exactly the type that the sheet has at ``type_position``."""
    return int64(le64(address + _TYPE)) == int64(le64(sheet + type_position))


@njit(cache=True, forceinline=True)
def _int32(sheet, message, position):
    """Return a field that is a number of 32 bits; _NONE_OF_32 if it is something else."""
    value = _field(sheet, message, position)
    if value == _get(sheet, _ZERO):
        return int64(0)
    if value == 0 or not _is(sheet, value, _INT):
        return int64(_NONE_OF_32)
    number = int64(_number(value, sheet + _KEY))  # −1 for a number that does not fit 64 bits
    if int32(le64(sheet + _KEY)) != 0 or number > 0x7FFFFFFF or number < -0x80000000:
        return int64(_NONE_OF_32)
    return number


@njit(cache=True)
def _map_size(sheet, properties):
    """Return the size of a map's property text; OTHER_MAP for other names, REFUSED if it has no valid text."""
    shape, count = _get(sheet, _SHAPE), _get(sheet, _NAME_COUNT)
    put64(sheet + _AT_PAIR, 0)
    size, number = int64(0), int64(0)
    while _next_pair(properties, sheet + _AT_PAIR, sheet + _KEY, sheet + _VALUE):
        value = _get(sheet, _VALUE)
        if number >= count or _get(sheet, _KEY) != int64(le64(shape + 8 * number)):
            return OTHER_MAP
        if not _is(sheet, value, _STR):
            return NOT_PLAIN
        start = _text_at(value, sheet + _VALUE)
        if start == 0:  # a lone surrogate
            _forget_error()
            return NOT_PLAIN
        value_size = _get(sheet, _VALUE)
        for index in range(value_size):
            if u8(start + index) == uint8(2):  # would end the property
                return NOT_PLAIN
        size += value_size + 1
        number += 1
    if number == 0:
        return int64(0)
    return size + int64(le64(_get(sheet, _NAME_ENDS) + 8 * count - 8)) if number == count else OTHER_MAP


@njit(cache=True)
def _unruled(sheet, properties):
    """Return True if ``properties`` is a map without any of the names that put has rules for; its text is given
    separately.
    """
    if properties == 0 or not _is(sheet, properties, _DICT):
        return False
    put64(sheet + _AT_PAIR, 0)
    while _next_pair(properties, sheet + _AT_PAIR, sheet + _KEY, sheet + _VALUE):
        name = _get(sheet, _KEY)
        if not _is(sheet, name, _STR) or _contains(_get(sheet, _RULED), name) != 0:
            return False
    return True


@njit(cache=True)
def _put_map(sheet, properties, target):
    """Write the property text of a map that :func:`_map_size` has measured."""
    name_text, name_ends = _get(sheet, _NAME_TEXT), _get(sheet, _NAME_ENDS)
    put64(sheet + _AT_PAIR, 0)
    number, name_start = int64(0), int64(0)
    while _next_pair(properties, sheet + _AT_PAIR, sheet + _KEY, sheet + _VALUE):
        start = _text_at(_get(sheet, _VALUE), sheet + _VALUE)
        value_size, name_end = _get(sheet, _VALUE), int64(le64(name_ends + 8 * number))
        copy_bytes(target, name_text + name_start, name_end - name_start)
        target += name_end - name_start
        copy_bytes(target, start, value_size)
        put8(target + value_size, uint8(2))
        target += value_size + 1
        name_start = name_end
        number += 1


@njit(cache=True, forceinline=True)
def _find(table, count, width, text):
    """Return the address of the row of ``table`` whose first word is the text object ``text`` or an equal one; 0 for
    none.
    """
    for row in range(count):
        if int64(le64(table + row * width)) == text:
            return table + row * width
    for row in range(count):
        if _compare(int64(le64(table + row * width)), text) == 0:
            return table + row * width
    return int64(0)


@njit(cache=True)
def _put_unit(sheet, message):
    """Write the unit of ``message`` at ``position``, which advances; returns its size, or why nothing was written."""
    zero, none = _get(sheet, _ZERO), _get(sheet, _NONE)
    if not _is(sheet, message, _MESSAGE_TYPE):
        return NOT_PLAIN
    topic, host = _field(sheet, message, _TOPIC), _field(sheet, message, _BORN_HOST)
    if topic == 0 or host == 0 or not _is(sheet, topic, _STR) or not _is(sheet, host, _STR):
        return NOT_PLAIN
    topic = _find(_get(sheet, _TOPICS), _get(sheet, _TOPIC_COUNT), TOPIC_WIDTH, topic)
    host = _find(_get(sheet, _HOSTS), _get(sheet, _HOST_COUNT), HOST_WIDTH, host)
    if topic == 0 or host == 0:
        return UNKNOWN_TOPIC_OR_HOST
    flag, sys_flag = _int32(sheet, message, _FLAG), _int32(sheet, message, _SYS_FLAG)
    reconsume, queue = _int32(sheet, message, _RECONSUME), _int32(sheet, message, _QUEUE_ID)
    if flag == _NONE_OF_32 or reconsume == _NONE_OF_32 or queue < 0 or sys_flag < 0 or sys_flag & _RULED_BITS:
        return NOT_PLAIN
    body = _field(sheet, message, _BODY)
    if body == 0 or not _is(sheet, body, _BYTES) or _field(sheet, message, _STORE_HOST) != none:
        return NOT_PLAIN
    prepared, prepared_offset = _field(sheet, message, _PREPARED), int64(0)
    if prepared != zero:
        if prepared == 0 or not _is(sheet, prepared, _INT):
            return NOT_PLAIN
        prepared_offset = _number(prepared, sheet + _KEY)
        if int32(le64(sheet + _KEY)) != 0:
            return NOT_PLAIN
    now = _get(sheet, _NOW)
    born, born_time = _field(sheet, message, _BORN), now
    if born != none:
        if born == 0 or not _is(sheet, born, _INT):
            return NOT_PLAIN
        born_time = _number(born, sheet + _KEY)
        if int32(le64(sheet + _KEY)) != 0:
            return NOT_PLAIN
    raw, properties, properties_size = _field(sheet, message, _RAW), _field(sheet, message, _PROPERTIES), int64(0)
    if raw == none:
        if properties != none:
            if properties == 0 or not _is(sheet, properties, _DICT):
                return NOT_PLAIN
            properties_size = _map_size(sheet, properties)
            if properties_size < 0:
                return properties_size
    else:
        if raw == 0 or not _is(sheet, raw, _BYTES) or (properties != none and not _unruled(sheet, properties)):
            return NOT_PLAIN
        properties_size = int64(_bytes_size(raw))
    size = int64(_bytes_size(body))
    if size > _get(sheet, _LONGEST) or properties_size > MAX_PROPERTIES_BYTES:
        return NOT_PLAIN
    # Row of a topic: text, address and length of the field, magic, address and length of the places.
    # Row of a host: text, address and length of the raw host, SYSFLAG bits.
    field_size, born_size, store_size = int64(le64(topic + 16)), int64(le64(host + 16)), _get(sheet, _STORE_SIZE)
    total = 74 + born_size + store_size + size + field_size + properties_size
    position = _get(sheet, _POSITION)
    if total > _get(sheet, _LIMIT) - position:
        return NO_ROOM
    number_address, queue_offset = int64(0), int64(0)
    if not sys_flag & _OUTSIDE_QUEUES:
        place = int64(le64(int64(le64(topic + 32)) + 8 * queue)) if queue < int64(le64(topic + 40)) else int64(-1)
        if place < 0:
            return NO_PLACE
        number_address = _get(sheet, _NUMBERS) + 8 * place
        queue_offset = int64(le64(number_address))
    p = _get(sheet, _TARGET) + position
    put_head(
        p,
        total,
        int64(le64(topic + 24)),
        queue,
        flag,
        queue_offset,
        _get(sheet, _BASE) + position,
        sys_flag | int64(le64(host + 24)),
        born_time,
    )
    s = put_hosts_and_time(
        p + 48, int64(le64(host + 8)), born_size, now, _get(sheet, _STORE_RAW), _get(sheet, _STORE_SIZE)
    )
    s = put_body(p, s, reconsume, prepared_offset, int64(_bytes_at(body)), size, int64(le64(topic + 8)), field_size)
    put_be16(s, int16(properties_size))
    if raw != none:
        copy_bytes(s + 2, _bytes_at(raw), properties_size)
    elif properties_size:
        _put_map(sheet, properties, s + 2)
    put64(sheet + _QUEUE_OFFSET, queue_offset)
    if number_address:
        put64(number_address, queue_offset + 1)
    put64(sheet + _POSITION, position + total)
    return total


@njit(cache=True)
def put_one(sheet, message):
    """Call :func:`_put_unit` and return the result as an object of the interpreter."""
    return _object_of(_put_unit(sheet, message))


@njit(cache=True)
def put_many(sheet, messages):
    """Write the units of a list's messages from ``row`` on, one after the other; returns 0 when all are written,
    else why the next one is not. Advances ``row`` and ``position`` in the sheet.
    """
    row, base = _get(sheet, _ROW), _get(sheet, _BASE)
    offsets, queue_offsets, sizes = _get(sheet, _OUT_OFFSET), _get(sheet, _OUT_QUEUE_OFFSET), _get(sheet, _OUT_SIZE)
    outcome = int64(0)
    while row < _get(sheet, _ROWS):
        total = _put_unit(sheet, int64(_get_item(messages, row)))
        if total <= 0:
            outcome = total
            break
        put64(offsets + 8 * row, base + _get(sheet, _POSITION) - total)
        put64(queue_offsets + 8 * row, _get(sheet, _QUEUE_OFFSET))
        put64(sizes + 8 * row, total)
        row += 1
        put64(sheet + _ROW, row)
    return _object_of(outcome)
