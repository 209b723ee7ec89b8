"""A write-ahead log of RocksDB, made here: rows that the next opening of the database puts over those that it has; and
the manifest of a new database without table files (RocksDB: ``db/log_format.h``, ``db/write_batch.cc``,
``db/version_edit.h``; docs/formats/repair.md#rocksdb).

Pure: rows in, bytes out. A log consists of records in blocks of 32 KiB. A record is a batch of writes; one that does
not fit into its block comes in pieces.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from engine.codec.crc32c import crc32c, masked

_BLOCK_BYTES = 32 << 10
_HEAD = struct.Struct("<IHB")
_BATCH_HEAD = struct.Struct("<QI")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_PUT_IN_FAMILY, _DELETE_IN_FAMILY = b"\x05", b"\x04"
_BATCH_BYTES = 1 << 20
_COMPARATOR, _LOG_NUMBER, _NEXT_FILE, _LAST_SEQUENCE = 1, 2, 3, 4
_COLUMN_FAMILY, _COLUMN_FAMILY_ADD, _MAX_COLUMN_FAMILY = 200, 201, 203
_BYTEWISE = b"leveldb.BytewiseComparator"


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row that is written: the number of its column family, key and value; without a value it is deleted."""

    family: int
    key: bytes
    value: bytes | None


def encode_log(rows: Iterable[RowChange], first_sequence: int) -> bytes:
    """Return the log that writes ``rows`` in their order; the first one is write number ``first_sequence``."""
    log = bytearray()
    for batch in _batches(rows, first_sequence):
        _append(log, batch)
    return bytes(log)


def encode_manifest(families: Sequence[str], next_file: int) -> bytes:
    """Return the manifest of a database that has no table file, with the column family ``default`` and ``families``,
    numbered from 1. ``next_file`` is the number of the next file that RocksDB makes.
    """
    first = (
        _varint(_COMPARATOR)
        + _string(_BYTEWISE)
        + b"".join(_varint(number) for number in (_LOG_NUMBER, 0, _NEXT_FILE, next_file, _LAST_SEQUENCE, 0))
    )
    manifest = bytearray()
    _append(manifest, first)
    for number, name in enumerate(families, 1):
        numbers = (_LOG_NUMBER, 0, _COLUMN_FAMILY, number, _MAX_COLUMN_FAMILY, number, _COLUMN_FAMILY_ADD)
        edit = _varint(_COMPARATOR) + _string(_BYTEWISE) + b"".join(_varint(number) for number in numbers)
        _append(manifest, edit + _string(name.encode("utf-8")))
    return bytes(manifest)


def _batches(rows: Iterable[RowChange], sequence: int) -> Iterator[bytes]:
    """Yield batches of about 1 MiB."""
    batch, count = bytearray(), 0
    for row in rows:
        batch += _DELETE_IN_FAMILY if row.value is None else _PUT_IN_FAMILY
        batch += _varint(row.family) + _string(row.key)
        if row.value is not None:
            batch += _string(row.value)
        count += 1
        if len(batch) >= _BATCH_BYTES:
            yield _BATCH_HEAD.pack(sequence, count) + batch
            sequence += count
            batch, count = bytearray(), 0
    if count:
        yield _BATCH_HEAD.pack(sequence, count) + batch


def _append(log: bytearray, record: bytes) -> None:
    position, is_first = 0, True
    while is_first or position < len(record):
        remaining = _BLOCK_BYTES - len(log) % _BLOCK_BYTES
        if remaining < _HEAD.size:
            log += bytes(remaining)
            remaining = _BLOCK_BYTES
        piece = record[position : position + remaining - _HEAD.size]
        position += len(piece)
        is_last = position == len(record)
        kind = {(True, True): _FULL, (True, False): _FIRST, (False, True): _LAST}.get((is_first, is_last), _MIDDLE)
        log += _HEAD.pack(masked(crc32c(bytes([kind]) + piece)), len(piece), kind) + piece
        is_first = False


def _string(data: bytes) -> bytes:
    return _varint(len(data)) + data


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
