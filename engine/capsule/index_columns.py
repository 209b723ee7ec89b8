"""Slots and entries of an index file (docs/formats/capsule.md#index). Pure.

An entry leads to the previous entry of its slot, and a slot to its last entry: both follow from the hashes of all
entries. Only what differs from that is stored.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.capsule.numbers import BadColumns, ColumnReader, ColumnWriter
from engine.codec.dtypes import INDEX_ENTRY

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
HEADER_BYTES = 40
SLOT_BYTES = 4
ENTRY_BYTES = INDEX_ENTRY.itemsize
_HASH, _OFFSET, _TIME, _PREVIOUS = INDEX_ENTRY.names or ()


class Links(NamedTuple):
    """Numbers that follow from the hashes: last entry of each slot, previous entry of each entry; 0 for none."""

    slots: Int32
    previous: Int32


def links_of(hashes: Int32, slot_count: int) -> Links:
    """Return the links between the entries with ``hashes``; the first one is entry 0, which no file uses."""
    slots = np.zeros(slot_count, np.int32)
    previous = np.zeros(len(hashes), np.int32)
    numbers = np.flatnonzero(hashes >= 0)
    numbers = numbers[numbers > 0]
    slot = hashes[numbers] % slot_count
    order = np.argsort(slot, kind="stable")
    ordered_numbers, ordered_slots = numbers[order], slot[order]
    follows = np.flatnonzero(np.diff(ordered_slots) == 0) + 1
    previous[ordered_numbers[follows]] = ordered_numbers[follows - 1]
    slots[ordered_slots] = ordered_numbers  # of equal slots the last one counts
    return Links(slots, previous)


def encode_slots(data: bytes, expected: Int32) -> bytes:
    """Return what differs in the slots ``data`` from those ``expected``."""
    out = ColumnWriter()
    _encode_differences(out, np.frombuffer(data, ">i4").astype(np.int32), expected)
    return out.result()


def decode_slots(data: bytes, expected: Int32) -> bytes:
    """Return the bytes of the slots. Raises :class:`BadColumns`."""
    try:
        return _decode_differences(ColumnReader(data), expected).astype(">i4").tobytes()
    except (ValueError, IndexError, struct.error) as error:
        raise BadColumns from error


def encode_entries(data: bytes, expected_previous: Int32) -> bytes:
    """Return the columns of whole entries. The hashes come first: :func:`hashes_of` reads only them."""
    entries = np.frombuffer(data, INDEX_ENTRY)
    out = ColumnWriter()
    out.words(entries[_HASH].astype(np.int32))
    out.numbers(entries[_OFFSET].astype(np.int64))
    out.numbers(entries[_TIME].astype(np.int64))
    _encode_differences(out, entries[_PREVIOUS].astype(np.int32), expected_previous)
    return out.result()


def decode_entries(data: bytes, expected_previous: Int32) -> bytes:
    """Return the bytes of the entries. Raises :class:`BadColumns`."""
    try:
        columns, count = ColumnReader(data), len(expected_previous)
        entries = np.zeros(count, INDEX_ENTRY)
        entries[_HASH] = columns.words(count)
        entries[_OFFSET] = columns.numbers(count)
        entries[_TIME] = columns.numbers(count)
        entries[_PREVIOUS] = _decode_differences(columns, expected_previous)
    except (ValueError, IndexError, struct.error) as error:
        raise BadColumns from error
    return entries.tobytes()


def hashes_of(data: bytes, count: int) -> Int32:
    """Return the hashes of a block of ``count`` entries. Raises :class:`BadColumns`."""
    try:
        return ColumnReader(data).words(count)
    except (ValueError, IndexError, struct.error) as error:
        raise BadColumns from error


def _encode_differences(out: ColumnWriter, actual: Int32, expected: Int32) -> None:
    differing = np.flatnonzero(actual != expected)
    out.number(len(differing))
    out.numbers(differing.astype(np.int64))
    out.numbers(actual[differing].astype(np.int64))


def _decode_differences(columns: ColumnReader, expected: Int32) -> Int32:
    count = columns.number()
    if count > len(expected):
        raise BadColumns
    places = columns.numbers(count)
    values = expected.copy()
    values[places] = columns.numbers(count)
    return values
