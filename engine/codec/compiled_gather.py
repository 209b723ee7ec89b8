"""Compiled twin of gathering: the fields of message objects into columns, by the interpreter's own C functions.

Imported late and only through :mod:`engine.codec.gather`. The interpreter's lock is held all the time, so objects stay
what and where they are. Of the memory of an object only its type and the slots of a message are read, at places that
:mod:`engine.codec.gather` has found on a message that it knows; all else is asked of the interpreter.
"""

from __future__ import annotations

from numba import int32, int64, njit, types, uint8

from engine.codec.gather_job import DONE, NAMES, NO_ROOM, REFUSED
from engine.codec.intrinsics import le64, put8, put32, put64, u8
from engine.codec.intrinsics_write import copy_bytes

_get_item = types.ExternalFunction("PyList_GetItem", types.intp(types.intp, types.intp))
_bytes_at = types.ExternalFunction("PyBytes_AsString", types.intp(types.intp))
_bytes_size = types.ExternalFunction("PyBytes_Size", types.intp(types.intp))
_text_at = types.ExternalFunction("PyUnicode_AsUTF8AndSize", types.intp(types.intp, types.intp))
_next_pair = types.ExternalFunction("PyDict_Next", types.int32(types.intp, types.intp, types.intp, types.intp))
_number = types.ExternalFunction("PyLong_AsLongLongAndOverflow", types.int64(types.intp, types.intp))
_forget_error = types.ExternalFunction("PyErr_Clear", types.void())

_AT = {name: 8 * number for number, name in enumerate(NAMES)}
_MESSAGES, _ROWS, _MESSAGE_TYPE, _BYTES = _AT["messages"], _AT["rows"], _AT["message_type"], _AT["bytes_type"]
_STR, _DICT, _INT, _NONE, _ZERO = _AT["str_type"], _AT["dict_type"], _AT["int_type"], _AT["none"], _AT["zero"]
_BODY, _BORN_HOST, _BORN, _FLAG = _AT["body"], _AT["born_host"], _AT["born_timestamp"], _AT["flag"]
_PREPARED, _PROPERTIES, _RAW = _AT["prepared_transaction_offset"], _AT["properties"], _AT["properties_raw"]
_QUEUE_ID, _RECONSUME, _STORE_HOST = _AT["queue_id"], _AT["reconsume_times"], _AT["store_host"]
_SYS_FLAG, _TOPIC = _AT["sys_flag"], _AT["topic"]
_NAMES, _NAME_COUNT, _NAME_TEXT, _NAME_ENDS = _AT["names"], _AT["name_count"], _AT["name_text"], _AT["name_ends"]
_BODY_LENGTHS, _TEXT_LENGTHS = _AT["body_lengths"], _AT["text_lengths"]
_QUEUE_IDS, _BORN_TIMESTAMPS = _AT["queue_ids"], _AT["born_timestamps"]
_BODIES, _BODIES_ROOM, _TEXTS, _TEXTS_ROOM = _AT["bodies"], _AT["bodies_room"], _AT["texts"], _AT["texts_room"]
_BODIES_SIZE, _TEXTS_SIZE = _AT["bodies_size"], _AT["texts_size"]
_ONE_TOPIC, _ONE_HOST, _ALL_BORN = _AT["one_topic"], _AT["one_host"], _AT["born"]
_POSITION, _KEY, _VALUE = _AT["scratch_1"], _AT["scratch_2"], _AT["scratch_3"]
_TYPE = 8  # of an object: where its type stands
_MOST = 0x7FFFFFFF


@njit(cache=True, forceinline=True)
def _get(sheet, at):
    return int64(le64(sheet + at))


@njit(cache=True, forceinline=True)
def _field(sheet, message, at):
    return int64(le64(message + int64(le64(sheet + at))))


@njit(cache=True, forceinline=True)
def _is(sheet, thing, kind):
    """Whether ``thing`` is just of the type that the sheet has at ``kind``."""
    return int64(le64(thing + _TYPE)) == int64(le64(sheet + kind))


@njit(cache=True)
def _count_2(start, size):
    count = int64(0)
    for at in range(size):
        count += int64(u8(start + at) == uint8(2))
    return count


@njit(cache=True)
def _text(sheet, found, target, room):
    """The property text of a map at ``target``, as far as there is ``room``; gives its length, −1 for a refusal."""
    names, count = _get(sheet, _NAMES), _get(sheet, _NAME_COUNT)
    name_text, name_ends = _get(sheet, _NAME_TEXT), _get(sheet, _NAME_ENDS)
    put64(sheet + _POSITION, 0)
    size, number, before = int64(0), int64(0), int64(0)
    while _next_pair(found, sheet + _POSITION, sheet + _KEY, sheet + _VALUE):
        value = _get(sheet, _VALUE)
        if number >= count or _get(sheet, _KEY) != int64(le64(names + 8 * number)) or not _is(sheet, value, _STR):
            return int64(-1)
        start = _text_at(value, sheet + _VALUE)
        if start == 0:  # a lone surrogate
            _forget_error()
            return int64(-1)
        long, end = _get(sheet, _VALUE), int64(le64(name_ends + 8 * number))
        more = end - before + long + 1
        if size + more <= room:
            copy_bytes(target + size, name_text + before, end - before)
            copy_bytes(target + size + end - before, start, long)
            put8(target + size + more - 1, uint8(2))
        size += more
        before = end
        number += 1
    if number != count or (size <= room and _count_2(target, size) != count):
        return int64(-1)
    return size


@njit(cache=True)
def gather_rows(sheet):
    """All fields of all messages into the columns and blobs of ``sheet``; gives how it ended."""
    messages, rows, none, zero = _get(sheet, _MESSAGES), _get(sheet, _ROWS), _get(sheet, _NONE), _get(sheet, _ZERO)
    body_lengths, text_lengths = _get(sheet, _BODY_LENGTHS), _get(sheet, _TEXT_LENGTHS)
    queue_ids, born_timestamps = _get(sheet, _QUEUE_IDS), _get(sheet, _BORN_TIMESTAMPS)
    bodies, bodies_room = _get(sheet, _BODIES), _get(sheet, _BODIES_ROOM)
    texts, texts_room = _get(sheet, _TEXTS), _get(sheet, _TEXTS_ROOM)
    one_topic, one_host, born_count = int64(1), int64(1), int64(0)
    topic, host = int64(0), int64(0)
    body_at, text_at = int64(0), int64(0)
    for row in range(rows):
        message = int64(_get_item(messages, row))
        if not _is(sheet, message, _MESSAGE_TYPE):
            return REFUSED
        if (
            _field(sheet, message, _FLAG) != zero
            or _field(sheet, message, _SYS_FLAG) != zero
            or _field(sheet, message, _RECONSUME) != zero
            or _field(sheet, message, _PREPARED) != zero
            or _field(sheet, message, _STORE_HOST) != none
        ):
            return REFUSED
        body, queue = _field(sheet, message, _BODY), _field(sheet, message, _QUEUE_ID)
        if body == 0 or queue == 0 or not _is(sheet, body, _BYTES) or not _is(sheet, queue, _INT):
            return REFUSED
        number = _number(queue, sheet + _KEY)
        if number < 0 or number > _MOST:  # of what does not fit 64 bits this is −1
            return REFUSED
        put32(queue_ids + 4 * row, int32(number))
        size = int64(_bytes_size(body))
        if body_at + size <= bodies_room:
            copy_bytes(bodies + body_at, _bytes_at(body), size)
        put32(body_lengths + 4 * row, int32(size))
        body_at += size
        raw, found = _field(sheet, message, _RAW), _field(sheet, message, _PROPERTIES)
        size = int64(0)
        if raw == none:
            if found != none:
                if found == 0 or not _is(sheet, found, _DICT):
                    return REFUSED
                size = _text(sheet, found, texts + text_at, texts_room - text_at)
                if size < 0:
                    return REFUSED
        else:
            if found != none or raw == 0 or not _is(sheet, raw, _BYTES):
                return REFUSED
            size = int64(_bytes_size(raw))
            if text_at + size <= texts_room:
                copy_bytes(texts + text_at, _bytes_at(raw), size)
        put32(text_lengths + 4 * row, int32(size))
        text_at += size
        born = _field(sheet, message, _BORN)
        if born != none:
            if born == 0 or not _is(sheet, born, _INT):
                return REFUSED
            number = _number(born, sheet + _KEY)
            if int32(le64(sheet + _KEY)) != 0:
                return REFUSED
            put64(born_timestamps + 8 * row, number)
            born_count += 1
        if row == 0:
            topic, host = _field(sheet, message, _TOPIC), _field(sheet, message, _BORN_HOST)
        one_topic &= int64(_field(sheet, message, _TOPIC) == topic)
        one_host &= int64(_field(sheet, message, _BORN_HOST) == host)
    if 0 < born_count < rows or topic == 0 or host == 0:
        return REFUSED
    put64(sheet + _BODIES_SIZE, body_at)
    put64(sheet + _TEXTS_SIZE, text_at)
    put64(sheet + _ONE_TOPIC, one_topic)
    put64(sheet + _ONE_HOST, one_host)
    put64(sheet + _ALL_BORN, int64(born_count > 0))
    return DONE if body_at <= bodies_room and text_at <= texts_room else NO_ROOM


@njit(cache=True)
def word(address):
    """The 64 bits at an address."""
    return int64(le64(address))
