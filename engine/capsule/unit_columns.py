"""Consecutive units of a commit log as columns, without their bodies (docs/formats/capsule.md#units). Pure.

What can be computed is not stored: offsets follow from the lengths, the number in the queue follows from the previous
unit of the queue, and a body is its length and its checksum (:mod:`engine.codec.stand_in_bodies`).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.capsule.numbers import BadColumns, ColumnReader, ColumnWriter
from engine.codec.message import BORN_HOST_V6, STORE_HOST_V6
from engine.codec.stand_in_bodies import FILLER, MIN_STAND_IN_BYTES, last_bytes
from engine.codec.unit_flavours import BY_MAGIC

Int64 = npt.NDArray[np.int64]
UInt8 = npt.NDArray[np.uint8]
UInt32 = npt.NDArray[np.uint32]
_HOST_BYTES, _HOST_V6_BYTES = 8, 20
_BORN_HOST = 48
_AFTER_HOSTS = 16
"""Bytes from the reconsume times to the body."""
_NO_SEPARATOR = b"\0"
"""Marks a piece of the properties without a separator between name and value."""
_MAX_ROWS = 1 << 20


class UnitRows(NamedTuple):
    """Units that follow each other in ``data``: where each begins, its body, and the CRC-32 of that.

    ``has_body`` marks units whose body is stored.
    """

    data: UInt8
    start: Int64
    body: Int64
    body_length: Int64
    body_crc: UInt32
    has_body: npt.NDArray[np.bool_]


def encode(rows: UnitRows, base: int) -> bytes:
    """Return the columns of ``rows``; ``base`` is the physical offset of ``rows.data[0]``."""
    out = ColumnWriter()
    write_units(out, rows, base)
    return out.result()


def write_units(out: ColumnWriter, rows: UnitRows, base: int) -> None:
    """Write the columns of ``rows`` as :func:`encode` does."""
    data, start, count = rows.data, rows.start, len(rows.start)
    out.number(count)
    magic = _read(data, start + 4, ">u4")
    sys_flag = _read(data, start + 36, ">i4")
    topics, properties = _texts_of(rows, magic)
    topic_names = list(dict.fromkeys(topics))
    topic_numbers = {name: number for number, name in enumerate(topic_names)}
    topic = np.array([topic_numbers[name] for name in topics], np.int64)
    out.number(len(topic_names))
    for name in topic_names:
        out.blob(name)
    queue = _read(data, start + 12, ">i4")
    store_time, store_host, after_hosts = _host_places(start, sys_flag)
    stored_at = _read(data, store_time, ">i8")
    for column in (magic, sys_flag, topic, queue, _read(data, start + 16, ">i4")):
        out.numbers(column)
    out.numbers(_differences_in_queue(topic, queue, _read(data, start + 20, ">i8")))
    out.numbers(_read(data, start + 28, ">i8") - start - base)
    out.numbers(stored_at)
    out.numbers(stored_at - _read(data, start + 40, ">i8"))
    out.texts(_slices(data, start + _BORN_HOST, store_time))
    out.texts(_slices(data, store_host, after_hosts))
    out.numbers(_read(data, after_hosts, ">i4"))
    out.numbers(_read(data, after_hosts + 4, ">i8"))
    out.numbers(rows.body_length)
    _encode_bodies(out, rows)
    _encode_properties(out, properties)


def decode(data: bytes, length: int, base: int) -> bytes:
    """Return the ``length`` bytes of the units from ``base`` on, with stand-ins for their bodies.

    Raises :class:`BadColumns`.
    """
    try:
        units, _, _ = read_units(ColumnReader(data), length, base)
    except (ValueError, LookupError, OverflowError, MemoryError, RecursionError, struct.error) as error:
        raise BadColumns from error
    return units.tobytes()


def read_units(columns: ColumnReader, length: int, base: int, *, header_bytes: int = 0) -> tuple[UInt8, Int64, Int64]:
    """Return ``length`` bytes with the units, and where each begins and its size. ``header_bytes`` in front of each
    unit are left free.

    Raises :class:`BadColumns`, and what a decoder raises for bytes that are no columns.
    """
    count = columns.number()
    if not 0 < count <= min(length, _MAX_ROWS):
        raise BadColumns
    topic_names = [columns.blob() for _ in range(columns.number())]
    magic, sys_flag, topic, queue, flag = (columns.numbers(count) for _ in range(5))
    queue_offset = _sums_in_queue(topic, queue, columns.numbers(count))
    displacement = columns.numbers(count)
    stored_at = columns.numbers(count)
    born_at = stored_at - columns.numbers(count)
    born_host, store_host = columns.texts(count), columns.texts(count)
    reconsume, prepared, body_length = (columns.numbers(count) for _ in range(3))
    stored_crc, actual_crc, has_body, stored_bodies = _decode_bodies(columns, body_length)
    properties = _decode_properties(columns, count)
    topic_bytes = [topic_names[number] for number in topic.tolist()]
    topic_width = np.array([BY_MAGIC[number].topic_width for number in magic.tolist()], np.int64)
    topic_length, property_length = _lengths(topic_bytes), _lengths(properties)
    places = np.zeros(count, np.int64)
    store_time, store_host_place, after_hosts = _host_places(places, sys_flag)
    body_place = after_hosts + _AFTER_HOSTS
    sizes = body_place + body_length + topic_width + topic_length + 2 + property_length
    start = np.cumsum(sizes + header_bytes) - sizes
    if int(body_length.min()) < 0 or int((sizes + header_bytes).sum()) != length:
        raise BadColumns
    unit = np.full(length, FILLER[0], np.uint8)
    for column, place, form in (
        (sizes, start, ">i4"),
        (magic, start + 4, ">u4"),
        (stored_crc, start + 8, ">u4"),
        (queue, start + 12, ">i4"),
        (flag, start + 16, ">i4"),
        (queue_offset, start + 20, ">i8"),
        (start + base + displacement, start + 28, ">i8"),
        (sys_flag, start + 36, ">i4"),
        (born_at, start + 40, ">i8"),
        (stored_at, start + store_time, ">i8"),
        (reconsume, start + after_hosts, ">i4"),
        (prepared, start + after_hosts + 4, ">i8"),
        (body_length, start + body_place - 4, ">i4"),
        (property_length, start + sizes - property_length - 2, ">u2"),
    ):
        _write(unit, place, column, form)
    _write_texts(unit, start + _BORN_HOST, born_host)
    _write_texts(unit, start + store_host_place, store_host)
    body = start + body_place
    standing_in = ~has_body & (body_length >= MIN_STAND_IN_BYTES)
    tails = last_bytes(body_length[standing_in], actual_crc[standing_in])
    ends = (body + body_length)[standing_in] - MIN_STAND_IN_BYTES
    unit[ends[:, None] + np.arange(MIN_STAND_IN_BYTES)] = tails
    _write_texts(unit, body[has_body], stored_bodies)
    topic_place = body + body_length
    for width in np.unique(topic_width):
        rows = topic_width == width
        _write(unit, topic_place[rows], topic_length[rows], f">u{width}")
    _write_texts(unit, topic_place + topic_width, topic_bytes)
    _write_texts(unit, start + sizes - property_length, properties)
    return unit, start, sizes


# -- bodies


def _encode_bodies(out: ColumnWriter, rows: UnitRows) -> None:
    stored = _read(rows.data, rows.start + 8, ">u4").astype(np.uint32)
    out.flags(rows.has_body)
    for plane in stored.astype(">u4").view(np.uint8).reshape(-1, 4).T:
        out.blob(plane.tobytes())
    out.flags(rows.body_crc >> np.uint32(31) == 1)
    differing = np.flatnonzero((stored ^ rows.body_crc) & np.uint32(0x7FFFFFFF))
    out.number(len(differing))
    out.numbers(differing.astype(np.int64))
    out.numbers(rows.body_crc[differing].astype(np.int64))
    begin, end = rows.body[rows.has_body], (rows.body + rows.body_length)[rows.has_body]
    out.blob(b"".join(_slices(rows.data, begin, end)))


def _decode_bodies(
    columns: ColumnReader, body_length: Int64
) -> tuple[UInt32, UInt32, npt.NDArray[np.bool_], list[bytes]]:
    """Return the stored and the actual CRC-32 of the bodies, which are stored, and these."""
    count = len(body_length)
    has_body = columns.flags(count)
    planes = [np.frombuffer(columns.blob(), np.uint8) for _ in range(4)]
    stored = np.ascontiguousarray(np.vstack(planes).T).view(">u4").reshape(count).astype(np.uint32)
    actual = stored & np.uint32(0x7FFFFFFF) | columns.flags(count).astype(np.uint32) << np.uint32(31)
    differing_count = columns.number()
    differing = columns.numbers(differing_count)
    actual[differing] = columns.numbers(differing_count).astype(np.uint32)
    blob, bodies, position = columns.blob(), [], 0
    for length in body_length[has_body].tolist():
        bodies.append(blob[position : position + length])
        position += length
    if position != len(blob):
        raise BadColumns
    return stored, actual, has_body, bodies


# -- properties


def _encode_properties(out: ColumnWriter, properties: Sequence[bytes]) -> None:
    """Write the names that occur together as shapes, and the values of each name as a column."""
    shapes: dict[tuple[bytes, ...], int] = {}
    shape_numbers: list[int] = []
    values: dict[bytes, list[bytes]] = {}
    for text in properties:
        names = []
        for piece in text.split(b"\x02"):
            name, separator, value = piece.partition(b"\x01")
            if separator:
                names.append(name)
                values.setdefault(name, []).append(value)
            else:
                names.append(_NO_SEPARATOR + name)
        shape_numbers.append(shapes.setdefault(tuple(names), len(shapes)))
    out.number(len(shapes))
    for shape in shapes:
        out.number(len(shape))
        for name in shape:
            out.blob(name)
    out.numbers(np.array(shape_numbers, np.int64))
    out.number(len(values))
    for name, column in values.items():
        out.blob(name)
        out.number(len(column))
        out.texts(column)


def _decode_properties(columns: ColumnReader, count: int) -> list[bytes]:
    shapes = [[columns.blob() for _ in range(columns.number())] for _ in range(columns.number())]
    shape_numbers = columns.numbers(count).tolist()
    values = {}
    for _ in range(columns.number()):
        name = columns.blob()
        values[name] = columns.texts(columns.number())
    names = [name for name in shapes[0] if not name.startswith(_NO_SEPARATOR)] if len(shapes) == 1 else []
    if names and len(set(names)) == len(names):  # most blocks: each unit has the same names
        if any(shape_numbers) or any(len(values[name]) != count for name in names):
            raise BadColumns
        form = b"\x02".join(
            name[len(_NO_SEPARATOR) :] if name.startswith(_NO_SEPARATOR) else name + b"\x01%b"
            for name in (name.replace(b"%", b"%%") for name in shapes[0])
        )
        return [form % texts for texts in zip(*(values[name] for name in names), strict=True)]
    iterators = {name: iter(column) for name, column in values.items()}
    parts = [
        [
            (name[len(_NO_SEPARATOR) :], None) if name.startswith(_NO_SEPARATOR) else (name + b"\x01", iterators[name])
            for name in shape
        ]
        for shape in shapes
    ]
    try:
        return [
            b"\x02".join([name if column is None else name + next(column) for name, column in parts[number]])
            for number in shape_numbers
        ]
    except StopIteration:
        raise BadColumns from None


# -- places


def _host_places(start: Int64, sys_flag: Int64) -> tuple[Int64, Int64, Int64]:
    """Return where the store time, the store host, and the field behind that are."""
    born = np.where(sys_flag & BORN_HOST_V6, _HOST_V6_BYTES, _HOST_BYTES)
    stored = np.where(sys_flag & STORE_HOST_V6, _HOST_V6_BYTES, _HOST_BYTES)
    store_time = start + _BORN_HOST + born
    return store_time, store_time + 8, store_time + 8 + stored


def sizes_of(rows: UnitRows) -> Int64:
    """Return the sizes of the units."""
    return _read(rows.data, rows.start, ">i4")


def _texts_of(rows: UnitRows, magic: Int64) -> tuple[list[bytes], list[bytes]]:
    """Return the topics and the property texts."""
    sizes = sizes_of(rows)
    topic_place = rows.body + rows.body_length
    width = np.array([BY_MAGIC[number].topic_width for number in magic.tolist()], np.int64)
    high_byte = rows.data[topic_place].astype(np.int64)
    low_byte = rows.data[topic_place + width - 1].astype(np.int64)
    length = np.where(width == 1, low_byte, (high_byte << 8) | low_byte)
    begin = topic_place + width
    return (
        _slices(rows.data, begin, begin + length),
        _slices(rows.data, begin + length + 2, rows.start + sizes),
    )


def _differences_in_queue(topic: Int64, queue: Int64, queue_offset: Int64) -> Int64:
    """Return each queue offset minus the one that follows from the previous unit of the same queue."""
    order, is_first = _queue_order(topic, queue)
    ordered = queue_offset[order]
    expected = np.where(is_first, 0, np.roll(ordered, 1) + 1)
    differences = np.empty(len(order), np.int64)
    differences[order] = ordered - expected
    return differences


def _sums_in_queue(topic: Int64, queue: Int64, differences: Int64) -> Int64:
    """Return the queue offsets of :func:`_differences_in_queue`."""
    order, is_first = _queue_order(topic, queue)
    steps = differences[order] + np.where(is_first, 0, 1)
    sums = np.cumsum(steps)
    first_rows = np.flatnonzero(is_first)
    sums_of_earlier_queues = np.concatenate((np.zeros(1, np.int64), sums))[first_rows]
    lengths = np.diff(np.append(first_rows, len(order)))
    queue_offset = np.empty(len(order), np.int64)
    queue_offset[order] = sums - np.repeat(sums_of_earlier_queues, lengths)
    return queue_offset


def _queue_order(topic: Int64, queue: Int64) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Return the rows ordered by queue, each queue's in their order, and which is the first of its queue."""
    order = np.lexsort((queue, topic))
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (np.diff(topic[order]) != 0) | (np.diff(queue[order]) != 0)
    return order, is_first


def _read(data: UInt8, places: Int64, form: str) -> Int64:
    width = np.dtype(form).itemsize
    rows: UInt8 = np.ascontiguousarray(data[places[:, None] + np.arange(width)])
    return rows.view(form).reshape(len(places)).astype(np.int64)


def _write(data: UInt8, places: Int64, values: npt.NDArray[np.integer], form: str) -> None:
    width = np.dtype(form).itemsize
    data[places[:, None] + np.arange(width)] = values.astype(form).view(np.uint8).reshape(len(places), width)


def _write_texts(data: UInt8, places: Int64, texts: Sequence[bytes]) -> None:
    view = data.data
    for place, text in zip(places.tolist(), texts, strict=True):
        view[place : place + len(text)] = text


def _slices(data: UInt8, begin: Int64, end: Int64) -> list[bytes]:
    view = data.data
    return [bytes(view[start:stop]) for start, stop in zip(begin.tolist(), end.tolist(), strict=True)]


def _lengths(texts: Sequence[bytes]) -> Int64:
    return np.fromiter(map(len, texts), np.int64, len(texts))
