"""Slots and entries of an index file (docs/formats/capsule.md#index, #from-units). Pure.

An entry leads to the previous entry of its slot, and a slot to its last entry: both follow from the hashes of all
entries. An entry itself follows from a key of a unit. Only what differs from that is stored.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.capsule.log_facts import IndexStream, LogFacts, read_matches, write_matches
from engine.capsule.numbers import BadColumns, ColumnReader, ColumnWriter
from engine.codec.dtypes import INDEX_ENTRY
from engine.codec.index_builder import MAX_DIFFERENCE_S

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


def has_other_value(data: bytes, number: int) -> bool:
    """Return True if slot ``number`` of a block has not the value that follows. Raises :class:`BadColumns`."""
    try:
        columns = ColumnReader(data)
        return number in columns.numbers(columns.number())
    except (ValueError, IndexError, struct.error) as error:
        raise BadColumns from error


def encode_entries(data: bytes, expected_previous: Int32) -> bytes:
    """Return the columns of whole entries. The hashes come first: :func:`hashes_of` reads only them."""
    entries = np.frombuffer(data, INDEX_ENTRY)
    out = ColumnWriter()
    _write(out, entries)
    _encode_differences(out, entries[_PREVIOUS].astype(np.int32), expected_previous)
    return out.result()


def decode_entries(data: bytes, expected_previous: Int32) -> bytes:
    """Return the bytes of the entries. Raises :class:`BadColumns`."""
    try:
        columns = ColumnReader(data)
        entries = _read(columns, len(expected_previous))
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


def encode_from_units(data: bytes, expected_previous: Int32, facts: LogFacts, begin_timestamp: int) -> bytes | None:
    """Return what differs in whole entries from what follows from the keys of the units; None if most do not follow
    from any. ``begin_timestamp`` is that of the file's header.
    """
    entries = np.frombuffer(data, INDEX_ENTRY)
    offsets = entries[_OFFSET].astype(np.int64)
    trials = []
    for stream in (IndexStream(with_tags=True), IndexStream(with_tags=False)):
        keys = facts.rows_around(offsets, stream)
        matches = _matches(entries[_HASH], offsets, *keys[:2])
        chosen = matches[matches >= 0]
        trials.append((len(entries) - len(chosen), np.count_nonzero(np.diff(chosen) != 1), stream, keys, matches))
    _, _, stream, (places, _, store_times), matches = min(trials, key=lambda trial: trial[:2])
    is_matched = matches >= 0
    if 2 * int(np.count_nonzero(is_matched)) < len(entries):
        return None
    out = ColumnWriter()
    out.number(stream.with_tags)
    others = write_matches(out, places, matches)
    out.long(begin_timestamp)
    expected = _expected_times(store_times[matches[is_matched]], begin_timestamp)
    out.numbers(entries[_TIME][is_matched] - expected)
    _write(out, entries[others])
    out.number(_checksum(entries))
    _encode_differences(out, entries[_PREVIOUS].astype(np.int32), expected_previous)
    return out.result()


def decode_from_units(data: bytes, expected_previous: Int32, facts: LogFacts) -> bytes:
    """Return the bytes of the entries. Raises :class:`BadColumns`."""
    try:
        columns = ColumnReader(data)
        entries = _read_from_units(columns, len(expected_previous), facts)
        entries[_PREVIOUS] = _decode_differences(columns, expected_previous)
    except (ValueError, LookupError, OverflowError, MemoryError, struct.error) as error:
        raise BadColumns from error
    return entries.tobytes()


def tail_hashes(data: bytes) -> Int32:
    """Return the hashes of entries as they are. Raises :class:`BadColumns`."""
    try:
        return np.frombuffer(data, INDEX_ENTRY)[_HASH].astype(np.int32)
    except ValueError as error:
        raise BadColumns from error


def hashes_from_units(data: bytes, count: int, facts: LogFacts) -> Int32:
    """Return the hashes of a block of ``count`` entries. Raises :class:`BadColumns`."""
    try:
        return _read_from_units(ColumnReader(data), count, facts)[_HASH].astype(np.int32)
    except (ValueError, LookupError, OverflowError, MemoryError, struct.error) as error:
        raise BadColumns from error


def _matches(hashes: Int32, offsets: Int64, places: Int64, key_hashes: Int64) -> Int64:
    """Return for each entry the number of the key that it follows from, −1 for none: entries of a unit follow each
    other in the order of its keys.
    """
    starts = np.flatnonzero(np.diff(offsets, prepend=offsets[:1] - 1))
    numbers = np.arange(len(offsets))
    rank = numbers - np.repeat(starts, np.diff(starts, append=len(offsets)))
    matches = np.searchsorted(places, offsets).astype(np.int64) + rank
    first_length = int(starts[1]) if len(starts) > 1 else len(offsets)
    if len(offsets):  # the first keys of the first unit may be before these entries
        first_keys = key_hashes[matches[0] : np.searchsorted(places, offsets[0], "right")]
        matches[:first_length] += np.argmax(first_keys == hashes[0]) if len(first_keys) else 0
    matches[matches >= len(places)] = -1
    if len(places):
        matches[(places[matches] != offsets) | (key_hashes[matches] != hashes)] = -1
    return matches


def _expected_times(store_times: Int64, begin_timestamp: int) -> Int64:
    if begin_timestamp <= 0:
        return np.zeros(len(store_times), np.int64)
    return np.clip((store_times - begin_timestamp) // 1000, 0, MAX_DIFFERENCE_S)


def _checksum(entries: npt.NDArray[np.void]) -> int:
    """Return a checksum of the entries without their links."""
    return zlib.crc32(b"".join(entries[name].tobytes() for name in (_HASH, _OFFSET, _TIME)))


def _read_from_units(columns: ColumnReader, count: int, facts: LogFacts) -> npt.NDArray[np.void]:
    entries = np.zeros(count, INDEX_ENTRY)
    stream = IndexStream(bool(columns.number()))
    (places, hashes, store_times), matched, others = read_matches(columns, facts, stream, count)
    begin_timestamp = columns.long()
    entries[_HASH][matched], entries[_OFFSET][matched] = hashes, places
    entries[_TIME][matched] = _expected_times(store_times, begin_timestamp) + columns.numbers(len(matched))
    entries[others] = _read(columns, len(others))
    if _checksum(entries) != columns.number():
        raise BadColumns
    return entries


def _write(out: ColumnWriter, entries: npt.NDArray[np.void]) -> None:
    out.words(entries[_HASH].astype(np.int32))
    out.numbers(entries[_OFFSET].astype(np.int64))
    out.numbers(entries[_TIME].astype(np.int64))


def _read(columns: ColumnReader, count: int) -> npt.NDArray[np.void]:
    """Return the entries without their links."""
    entries = np.zeros(count, INDEX_ENTRY)
    entries[_HASH] = columns.words(count)
    entries[_OFFSET] = columns.numbers(count)
    entries[_TIME] = columns.numbers(count)
    return entries


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
