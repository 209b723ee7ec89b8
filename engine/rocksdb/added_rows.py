"""Rows for a RocksDB of a store, as a new write-ahead log beside its files; or the files of a new database
(docs/formats/repair.md#rocksdb).

Nothing is written here. A database that is opened reads its write-ahead logs in the order of their numbers, and puts
their rows over those of its table files: a new log with a higher number changes rows, and no file that is there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.codec import rocksdb
from engine.codec.rocksdb_log import RowChange, encode_log, encode_manifest
from engine.mapped.reading import Reading
from engine.rocksdb.database import RocksDatabase

MAX_MANIFEST_BYTES = 256 << 20
_DEFAULT = "default"
_NUMBER = re.compile(r"(?:MANIFEST-|OPTIONS-)?(\d+)(?:\..*)?", re.ASCII)
Row = tuple[bytes, bytes | None]
"""Key and value; None deletes the row."""


@dataclass(frozen=True, slots=True)
class AddedLog:
    """A write-ahead log: its file name in the database's folder, its bytes, and the rows that it writes."""

    name: str
    content: bytes
    rows: int


def added_log(database: RocksDatabase, reading: Reading, rows: Mapping[str, Sequence[Row]]) -> AddedLog | None:
    """Return the log that writes ``rows``, keys and values by column family, over those of ``database``; None if its
    manifest cannot be decoded or lacks a family.

    Raises :class:`engine.errors.CannotRead`.
    """
    folder = database.folder
    current = (reading.small(folder / "CURRENT", 4096) or b"").strip().decode("ascii", "replace")
    manifest = rocksdb.decode(reading.small(folder / current, MAX_MANIFEST_BYTES) or b"")
    if manifest is None:
        return None
    numbers = {name: number for number, name in manifest.families.items()}
    if not rows.keys() <= numbers.keys():
        return None
    names = [entry.name for entry in reading.entries(folder, listed=True)]
    used = [int(match[1]) for name in names if (match := _NUMBER.fullmatch(name)) is not None]
    number = max(*used, manifest.next_file_number - 1) + 1
    changes = [RowChange(numbers[family], key, value) for family, pairs in rows.items() for key, value in pairs]
    return AddedLog(f"{number:06d}.log", encode_log(changes, database.latest_sequence() + 1), len(changes))


def new_database(rows: Mapping[str, Sequence[Row]]) -> dict[str, bytes]:
    """Return the files of a new database that has the families of ``rows``, ``default`` among them, and these rows:
    name → bytes. All rows are in its write-ahead log.
    """
    others = [name for name in rows if name != _DEFAULT]
    numbers = {_DEFAULT: 0, **{name: number for number, name in enumerate(others, 1)}}
    changes = [RowChange(numbers[family], key, value) for family, pairs in rows.items() for key, value in pairs]
    return {
        "000002.log": encode_log(changes, 1),
        "MANIFEST-000001": encode_manifest(others, 3),
        "CURRENT": b"MANIFEST-000001\n",
    }
