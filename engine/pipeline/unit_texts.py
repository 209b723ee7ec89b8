"""Texts and bytes of units as Arrow columns: bodies, properties, hosts, ids (docs/formats/commit-log.md#properties,
#message-ids).

Whole columns at a time, from the bytes as they lie in a block; what whole columns cannot tell (malformed UTF-8, a name
that stands twice in one unit) is read unit by unit, by the codec, with the same answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from engine.codec import message, properties
from engine.codec.columns import BAD, OK, UNCHECKED, UnitColumns
from engine.codec.java import utf8
from engine.codec.topic_table import TopicTable
from engine.pipeline import schema

if TYPE_CHECKING:
    import pyarrow as pa

Rows = npt.NDArray[np.intp]
Longs = npt.NDArray[np.int64]

_HOSTS = 48
"""Bytes in front of the born host."""
_MAX_INT32 = (1 << 31) - 1
_CRC = {UNCHECKED: "unchecked", OK: "ok", BAD: "bad"}
_HEX = np.frombuffer("".join(f"{byte:02X}" for byte in range(256)).encode(), np.uint8).reshape(256, 2)


@dataclass(frozen=True, slots=True)
class Texts:
    """All properties of each unit, and those that have columns of their own."""

    properties: pa.Array
    tags: pa.Array
    keys: pa.Array
    unique_key: pa.Array


@dataclass(frozen=True, slots=True)
class Hosts:
    """Born host and store host of each unit as ``ip:port``, and the id that the broker gives it."""

    born: pa.Array
    stored: pa.Array
    ids: pa.Array


def bodies(block: UnitColumns, rows: Rows) -> pa.Array:
    """Return bodies as stored."""
    return _ranges(block.buffer, block.body_position[rows], block.body_length[rows])


def raw_properties(block: UnitColumns, rows: Rows) -> pa.Array:
    """Return property texts as stored."""
    return _ranges(block.buffer, block.properties_position[rows], block.properties_length[rows])


class TopicTexts:
    """Topics of blocks by the numbers of ``table``; where it was full, by the bytes of each unit."""

    def __init__(self, table: TopicTable) -> None:
        self._table = table
        self._names: pa.Array | None = None

    def of(self, block: UnitColumns, rows: Rows) -> pa.Array:
        """Return the topics of ``rows``."""
        import pyarrow as pa

        numbers = block.topic_id[rows]
        if numbers.min(initial=0) < 0:
            return schema.text_array([utf8(block.raw_topic(row)) for row in rows.tolist()], pa.string())
        if self._names is None or len(self._names) != len(self._table):
            self._names = schema.text_array(self._table.names, pa.string())
        if len(numbers) and numbers.max() == numbers[0] == numbers.min():  # a condition named it
            return pa.repeat(self._names[int(numbers[0])], len(numbers))
        return self._names.take(pa.array(numbers))


def crc_words(block: UnitColumns, rows: Rows) -> pa.Array:
    """Return True if the body's CRC is right, in words."""
    import pyarrow as pa

    return pa.array([_CRC[code] for code in range(3)]).take(pa.array(block.crc[rows]))


def hosts(block: UnitColumns, rows: Rows) -> Hosts:
    """Return hosts and ids."""
    flags = block.sys_flag[rows]
    host_start = block.offset[rows] - block.base + _HOSTS
    born_size = np.where(flags & message.BORN_HOST_V6, 20, 8)
    store_size = np.where(flags & message.STORE_HOST_V6, 20, 8)
    raw = _ranges(block.buffer, host_start + born_size + 8, store_size)
    return Hosts(
        _host_texts(_ranges(block.buffer, host_start, born_size)),
        _host_texts(raw),
        _ids(raw, block.physical_offset[rows]),
    )


def texts(raw: pa.Array) -> Texts:
    """Decode the property texts ``raw``."""
    import pyarrow as pa

    try:
        decoded = _in_bulk(raw.cast(pa.string()))
    except pa.ArrowInvalid:  # not UTF-8
        decoded = None
    return decoded or texts_by_unit(raw.to_pylist())


def texts_by_unit(raw: list[bytes]) -> Texts:
    """Decode as :func:`texts` does, but each unit for itself."""
    import pyarrow as pa

    decoded = [properties.decode(text) for text in raw]
    text = pa.string()
    return Texts(
        schema.text_array([list(unit_properties.items()) for unit_properties in decoded], pa.map_(text, text)),
        schema.text_array([unit_properties.get(properties.TAGS) for unit_properties in decoded], text),
        schema.text_array(
            [properties.split_keys(unit_properties.get(properties.KEYS)) for unit_properties in decoded], pa.list_(text)
        ),
        schema.text_array([unit_properties.get(properties.UNIQUE_KEY) for unit_properties in decoded], text),
    )


def _in_bulk(raw: pa.Array) -> Texts | None:
    """Decode well-formed text as :func:`texts` does; None if a name stands twice in a unit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    count = len(raw)
    pieces = pc.split_pattern(raw, properties.PAIR_END)
    unit = pc.list_parent_indices(pieces).to_numpy()
    halves = pc.split_pattern(pieces.flatten(), properties.NAME_END, max_splits=1)
    complete = np.flatnonzero(pc.list_value_length(halves).to_numpy() == 2)
    halves, unit = halves.take(pa.array(complete)).flatten(), unit[complete]
    names, values = (halves.take(pa.array(np.arange(side, 2 * len(complete), 2))) for side in (0, 1))
    full = (pc.binary_length(names).to_numpy() > 0) & (pc.binary_length(values).to_numpy() > 0)
    if not full.all():
        mask = pa.array(full)
        names, values, unit = names.filter(mask), values.filter(mask), unit[full]
    coded = names.dictionary_encode()
    codes = coded.indices.to_numpy()
    name_codes = {name: number for number, name in enumerate(coded.dictionary.to_pylist())}
    if len(np.unique(unit * max(1, len(name_codes)) + codes)) < len(unit):
        return None

    def one(name: str) -> pa.Array:
        pairs = np.flatnonzero(codes == name_codes.get(name, -1))
        pair_index = np.full(count, -1, np.int64)
        pair_index[unit[pairs]] = pairs
        return values.take(pa.array(pair_index, mask=pair_index < 0))

    ends = _offsets(np.bincount(unit, minlength=count))
    return Texts(
        pa.MapArray.from_arrays(ends, names, values),
        one(properties.TAGS),
        _split_keys(one(properties.KEYS)),
        one(properties.UNIQUE_KEY),
    )


def _split_keys(keys: pa.Array) -> pa.Array:
    """:func:`engine.codec.properties.split_keys` of each; none where there is no KEYS."""
    import pyarrow as pa
    import pyarrow.compute as pc

    pieces = pc.split_pattern(pc.fill_null(keys, ""), " ")
    unit, flat = pc.list_parent_indices(pieces).to_numpy(), pieces.flatten()
    full = pc.binary_length(flat).to_numpy() > 0
    counts = np.bincount(unit[full], minlength=len(keys))
    return pa.ListArray.from_arrays(_offsets(counts), flat.filter(pa.array(full)))


def _offsets(counts: npt.NDArray[np.intp]) -> pa.Array:
    import pyarrow as pa

    return pa.array(np.concatenate(([0], np.cumsum(counts))).astype(np.int32))


def _host_texts(raw: pa.Array) -> pa.Array:
    import pyarrow as pa

    coded = raw.dictionary_encode()
    return pa.array([message.host_text(host) for host in coded.dictionary.to_pylist()], pa.string()).take(coded.indices)


def _ids(raw: pa.Array, physical: Longs) -> pa.Array:
    """Ids (docs/formats/commit-log.md#message-ids) of the store hosts ``raw`` and the offsets that units say they
    have.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    widths = pc.binary_length(raw).to_numpy()
    count, width = len(raw), int(widths[0]) if len(raw) else 8
    if not (widths == width).all():
        pairs = zip(raw.to_pylist(), physical.tolist(), strict=True)
        return pa.array([message.offset_message_id(host, offset) for host, offset in pairs], pa.string())
    host = np.frombuffer(raw.buffers()[2] or b"", np.uint8)[: count * width].reshape(count, width)
    offset = physical.astype(">i8").view(np.uint8).reshape(count, 8)
    digits = np.ascontiguousarray(_HEX[np.hstack((host, offset))]).reshape(-1)
    ends = np.arange(count + 1, dtype=np.int32) * np.int32(2 * (width + 8))
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(ends), pa.py_buffer(digits)])


def _ranges(
    buffer: npt.NDArray[np.uint8], starts: npt.NDArray[np.integer[Any]], lengths: npt.NDArray[np.integer[Any]]
) -> pa.Array:
    """Copy ranges of ``buffer``: take them from a view in which every other piece is one of them."""
    import pyarrow as pa

    count = len(starts)
    if not count:
        return pa.array([], pa.binary())
    base = int(starts[0])
    cuts = np.empty(2 * count, np.int64)
    cuts[0::2] = starts - base
    cuts[1::2] = cuts[0::2] + lengths
    if int(cuts[-1]) > _MAX_INT32 or (np.diff(cuts) < 0).any():
        pairs = zip(starts.tolist(), lengths.tolist(), strict=True)
        return pa.array([buffer[start : start + length].tobytes() for start, length in pairs], pa.binary())
    buffers = [None, pa.py_buffer(cuts.astype(np.int32)), pa.py_buffer(buffer[base : base + int(cuts[-1])])]
    pieces = pa.Array.from_buffers(pa.binary(), 2 * count - 1, buffers)
    return pieces.take(pa.array(np.arange(0, 2 * count - 1, 2)))
