"""Entries and index rows of a DLedger log as columns (docs/formats/capsule.md#dledger). Pure.

The header of an entry follows from the unit in it and from the entry before it. Only what differs is stored.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

from engine.capsule import unit_columns
from engine.capsule.numbers import BadColumns, ColumnReader, ColumnWriter
from engine.capsule.unit_columns import UnitRows
from engine.codec.dledger import HEADER_SIZE, INDEX_UNIT_SIZE, MAGIC

Int64 = npt.NDArray[np.int64]
_HEADER = np.dtype(
    [
        ("magic", ">i4"),
        ("size", ">i4"),
        ("index", ">i8"),
        ("term", ">i8"),
        ("position", ">i8"),
        ("channel", ">i4"),
        ("chain_crc", ">i4"),
        ("body_crc", ">i4"),
        ("body_size", ">i4"),
    ]
)
_INDEX_ROW = np.dtype([("magic", ">i4"), ("position", ">i8"), ("size", ">i4"), ("index", ">i8"), ("term", ">i8")])
assert (_HEADER.itemsize, _INDEX_ROW.itemsize) == (HEADER_SIZE, INDEX_UNIT_SIZE)


def encode_entries(rows: UnitRows, base: int) -> bytes:
    """Return the columns of entries that follow each other in ``rows.data``; ``rows`` are the units in them, and
    ``base`` is the offset of the first entry.
    """
    out = ColumnWriter()
    unit_columns.write_units(out, rows, base)
    places = (rows.start - HEADER_SIZE)[:, None] + np.arange(HEADER_SIZE)
    headers = np.ascontiguousarray(rows.data[places]).view(_HEADER).reshape(-1)
    expected = _expected_headers(rows.start, unit_columns.sizes_of(rows), base)
    for name in _HEADER.names or ():
        out.numbers(headers[name].astype(np.int64) - expected[name])
    return out.result()


def decode_entries(data: bytes, length: int, base: int) -> bytes:
    """Return the ``length`` bytes of the entries, with stand-ins for the bodies. Raises :class:`BadColumns`."""
    try:
        columns = ColumnReader(data)
        entries, unit_start, unit_size = unit_columns.read_units(columns, length, base, header_bytes=HEADER_SIZE)
        headers = np.zeros(len(unit_start), _HEADER)
        expected = _expected_headers(unit_start, unit_size, base)
        for name in _HEADER.names or ():
            headers[name] = columns.numbers(len(headers)) + expected[name]
    except (ValueError, LookupError, OverflowError, MemoryError, RecursionError, struct.error) as error:
        raise BadColumns from error
    places = (unit_start - HEADER_SIZE)[:, None] + np.arange(HEADER_SIZE)
    entries[places] = headers.view(np.uint8).reshape(-1, HEADER_SIZE)
    return entries.tobytes()


def _expected_headers(unit_start: Int64, unit_size: Int64, base: int) -> dict[str, Int64]:
    """Return the fields of the headers in front of the units, as RocketMQ writes them; of the index and the term only
    that they grow evenly.
    """
    numbers, zeros = np.arange(len(unit_start), dtype=np.int64), np.zeros(len(unit_start), np.int64)
    return {
        "magic": zeros + MAGIC,
        "size": unit_size + HEADER_SIZE,
        "index": numbers,
        "term": zeros,
        "position": base + unit_start - HEADER_SIZE,
        "channel": zeros,
        "chain_crc": zeros,
        "body_crc": zeros,
        "body_size": unit_size,
    }


def encode_index(data: bytes) -> bytes:
    """Return the columns of whole index rows."""
    rows = np.frombuffer(data, _INDEX_ROW)
    out = ColumnWriter()
    position, size = rows["position"].astype(np.int64), rows["size"].astype(np.int64)
    for name in ("magic", "index", "term", "size"):
        out.numbers(rows[name].astype(np.int64))
    out.numbers(position - _expected_positions(size))
    return out.result()


def decode_index(data: bytes, length: int) -> bytes:
    """Return the ``length`` bytes of the index rows. Raises :class:`BadColumns`."""
    try:
        columns = ColumnReader(data)
        rows = np.zeros(length // INDEX_UNIT_SIZE, _INDEX_ROW)
        for name in ("magic", "index", "term", "size"):
            rows[name] = columns.numbers(len(rows))
        rows["position"] = columns.numbers(len(rows)) + _expected_positions(rows["size"].astype(np.int64))
    except (ValueError, IndexError, OverflowError, struct.error) as error:
        raise BadColumns from error
    return rows.tobytes()


def _expected_positions(size: Int64) -> Int64:
    """Return the position of each entry less that of the first one, if the entries follow each other."""
    return np.cumsum(size) - size
