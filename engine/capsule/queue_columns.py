"""Entries of a consume queue as columns (docs/formats/capsule.md#queue-entries, #from-units). Pure."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt

from engine.capsule.log_facts import LogFacts, QueueName, QueueStream, read_matches, write_matches
from engine.capsule.numbers import BadColumns, ColumnReader, ColumnWriter
from engine.codec.dtypes import CQ_UNIT

Int64 = npt.NDArray[np.int64]
ENTRY_BYTES = CQ_UNIT.itemsize
_OFFSET, _SIZE, _TAGS_CODE = CQ_UNIT.names or ()


def encode(data: bytes) -> bytes:
    """Return the columns of ``data``, which is a number of whole entries."""
    out = ColumnWriter()
    _write(out, np.frombuffer(data, CQ_UNIT))
    return out.result()


def decode(data: bytes, length: int) -> bytes:
    """Return the ``length`` bytes of the entries. Raises :class:`BadColumns`."""
    try:
        return _read(ColumnReader(data), length // ENTRY_BYTES).tobytes()
    except (ValueError, IndexError, struct.error) as error:
        raise BadColumns from error


def encode_from_units(data: bytes, facts: LogFacts, queue: QueueName) -> bytes | None:
    """Return what differs in the entries from what follows from the units of ``queue``, or of the log; None if most
    do not follow from units.
    """
    entries = np.frombuffer(data, CQ_UNIT)
    offsets = entries[_OFFSET].astype(np.int64)
    is_used = entries[_SIZE] != 0
    for stream in (QueueStream(queue), QueueStream(None)):
        places, sizes, tags_codes = facts.rows_around(offsets[is_used], stream)
        matches = np.searchsorted(places, offsets).astype(np.int64)
        matches[matches == len(places)] = -1
        differs = matches < 0
        if len(places):
            differs |= (places[matches] != offsets) | (sizes[matches] != entries[_SIZE])
        matches[differs] = -1
        if 2 * int(np.count_nonzero(matches >= 0)) >= max(int(np.count_nonzero(is_used)), 1):
            break
    else:
        return None
    out = ColumnWriter()
    out.number(stream.queue is None)
    others = write_matches(out, places, matches)
    is_matched = ~differs
    actual = entries[_TAGS_CODE][is_matched].astype(np.int64)
    differences = actual - tags_codes[matches[is_matched]]
    has_tags = 2 * int(np.count_nonzero(differences)) <= len(differences)
    out.number(has_tags)
    out.codes(differences if has_tags else actual)
    _write(out, entries[others])
    out.number(zlib.crc32(data))
    return out.result()


def decode_from_units(data: bytes, length: int, facts: LogFacts, queue: QueueName) -> bytes:
    """Return the ``length`` bytes of the entries. Raises :class:`BadColumns`."""
    try:
        columns = ColumnReader(data)
        entries = np.zeros(length // ENTRY_BYTES, CQ_UNIT)
        stream = QueueStream(None if columns.number() else queue)
        (places, sizes, tags_codes), matched, others = read_matches(columns, facts, stream, len(entries))
        has_tags = columns.number()
        actual = columns.codes(len(matched))
        entries[_OFFSET][matched], entries[_SIZE][matched] = places, sizes
        entries[_TAGS_CODE][matched] = actual + tags_codes if has_tags else actual
        entries[others] = _read(columns, len(others))
        checksum = columns.number()
    except (ValueError, LookupError, OverflowError, MemoryError, struct.error) as error:
        raise BadColumns from error
    result = entries.tobytes()
    if zlib.crc32(result) != checksum:
        raise BadColumns
    return result


def _write(out: ColumnWriter, entries: npt.NDArray[np.void]) -> None:
    for name in CQ_UNIT.names or ():
        out.codes(entries[name].astype(np.int64))


def _read(columns: ColumnReader, count: int) -> npt.NDArray[np.void]:
    entries = np.zeros(count, CQ_UNIT)
    for name in CQ_UNIT.names or ():
        entries[name] = columns.codes(count)
    return entries
