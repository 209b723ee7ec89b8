"""RocksDB's files in a store: its folders are recognised and measured (docs/formats/files.md#folders,
docs/formats/consume-queue.md#rocksdb), and its manifest shows which table files belong to which column family. Rows are
read by :mod:`engine.rocksdb`.

Pure: names, lengths and the text of ``CURRENT`` come from the caller.

A manifest is a log in blocks of 32 KiB. Each physical record has a head of 7 bytes (crc, length, type), or of 11
bytes in a recycled log. A record is complete or comes in pieces. Each complete record is a version edit: a row of
tags, each with its fields (RocksDB: ``db/log_format.h``, ``db/version_edit.h``).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from engine.codec.dledger import NamedFile

_MANIFEST = re.compile(r"MANIFEST-\d+", re.ASCII)
_TABLE = re.compile(r"\d+\.(sst|ldb)", re.ASCII)
_WRITE_AHEAD = re.compile(r"\d+\.log", re.ASCII)
_CURRENT_TEXT = re.compile(rb"MANIFEST-\d+\n?")


@dataclass(frozen=True, slots=True)
class RocksFolder:
    """The content of a RocksDB folder in files and bytes. ``is_valid``: CURRENT names a manifest that exists."""

    folder: str
    manifest: str | None
    tables: int
    table_bytes: int
    write_ahead_logs: int
    write_ahead_bytes: int
    other_bytes: int
    is_valid: bool


def rocks_folder(folder: str, files: Iterable[NamedFile], current: bytes | None = None) -> RocksFolder | None:
    """Return the content of the folder (its path below the store), or None if it is no RocksDB folder.

    It is one if CURRENT is beside a manifest, or table files beside either. ``current`` is CURRENT's content.

    """
    all_files = list(files)
    names = {file.name for file in all_files}
    manifests = sorted(name for name in names if _MANIFEST.fullmatch(name))
    tables = [file for file in all_files if _TABLE.fullmatch(file.name)]
    logs = [file for file in all_files if _WRITE_AHEAD.fullmatch(file.name)]
    if sum(("CURRENT" in names, bool(manifests), bool(tables))) < 2:
        return None
    current_manifest = None
    if current is not None and _CURRENT_TEXT.fullmatch(current):
        current_manifest = current.strip().decode("ascii")
    table_bytes, log_bytes = sum(file.size for file in tables), sum(file.size for file in logs)
    return RocksFolder(
        folder,
        current_manifest or (manifests[-1] if manifests else None),
        len(tables),
        table_bytes,
        len(logs),
        log_bytes,
        sum(file.size for file in all_files) - table_bytes - log_bytes,
        "CURRENT" in names and (current_manifest in names if current is not None else bool(manifests)),
    )


_BLOCK_BYTES = 32 << 10
_HEAD = struct.Struct("<IHB")
_BATCH_HEAD_BYTES = 12
_RECYCLED_HEAD_BYTES = 4
_FIRST_RECYCLED_TYPE = 5
_FULL_FRAGMENT, _FIRST_FRAGMENT, _MIDDLE_FRAGMENT, _LAST_FRAGMENT = 1, 2, 3, 4
_COMPARATOR = 1
_LOG_NUMBER, _NEXT_FILE, _LAST_SEQUENCE = 2, 3, 4
_NUMBERS = frozenset(
    {9, 10, 203, 300}
)  # previous log, least log to keep, largest family, atomic group; one varint each
_COMPACT_POINTER = 5
_DELETED_FILE = 6
_COLUMN_FAMILY = 200
_COLUMN_FAMILY_ADD = 201
_COLUMN_FAMILY_DROP = 202
_NEW_FILE = 103
_BLOB_FILE, _BLOB_GARBAGE = 400, 401
_END_OF_FIELDS = 1
_SKIPPABLE = 1 << 13
"""A tag with this bit carries its length, so a reader that does not know it can skip it."""
_MAX_VARINT_BITS = 64


@dataclass(slots=True)
class Manifest:
    """Names of the column families, and the live table files of each: number → bytes."""

    families: dict[int, str] = field(default_factory=lambda: {0: "default"})
    files: dict[int, dict[int, int]] = field(default_factory=dict)
    log_numbers: dict[int, int] = field(default_factory=dict)
    """Family → number of its first write-ahead log that is not in table files yet."""
    last_sequence: int = 0
    """Sequence number of a write: all of the table files are at or below it."""
    next_file_number: int = 0
    """Number of the next file of the database, when the manifest was written."""

    @property
    def first_log_number(self) -> int:
        """Number of the oldest write-ahead log that counts."""
        return min((self.log_numbers.get(number, 0) for number in self.families), default=0)

    def live_files(self) -> dict[int, int]:
        """The table files of all families: number → bytes."""
        return {number: size for files in self.files.values() for number, size in files.items()}

    def bytes_by_family(self) -> dict[str, int]:
        """Bytes of the live table files of each family that has one."""
        return {
            self.families.get(number, str(number)): sum(files.values()) for number, files in self.files.items() if files
        }


def decode(data: bytes) -> Manifest | None:
    """Return the sum of the manifest's edits; None if they cannot be decoded."""
    manifest = Manifest()
    try:
        edits = list(_records(data))
        for edit in edits:
            _apply(manifest, edit)
    except (ValueError, IndexError, struct.error):
        return None
    return manifest if edits else None


def first_sequence(write_ahead_log: bytes) -> int | None:
    """Return the sequence number of the first write in a write-ahead log; None in a log without a complete one.

    ``write_ahead_log`` may be only its beginning. Each record is a batch of writes: sequence number (8 bytes), count (4
    bytes), writes (RocksDB: ``db/write_batch.cc``).
    """
    try:
        batch = next(_records(write_ahead_log), b"")
    except ValueError:
        return None
    return int.from_bytes(batch[:8], "little") if len(batch) >= _BATCH_HEAD_BYTES else None


def _records(data: bytes) -> Iterator[bytes]:
    position = 0
    pieces = b""
    while position + _HEAD.size <= len(data):
        left_in_block = _BLOCK_BYTES - position % _BLOCK_BYTES
        if left_in_block < _HEAD.size:
            position += left_in_block
            continue
        _, length, kind = _HEAD.unpack_from(data, position)
        if not length and not kind:
            return  # zeros: nothing was written here
        position += _HEAD.size
        if kind >= _FIRST_RECYCLED_TYPE:
            position += _RECYCLED_HEAD_BYTES
            kind -= _FIRST_RECYCLED_TYPE - _FULL_FRAGMENT
        if position + length > len(data):
            return  # torn by a crash: the previous edit counts
        payload = data[position : position + length]
        position += length
        if kind == _FULL_FRAGMENT:
            yield payload
        elif kind == _FIRST_FRAGMENT:
            pieces = payload
        elif kind == _MIDDLE_FRAGMENT:
            pieces += payload
        elif kind == _LAST_FRAGMENT:
            yield pieces + payload
        else:
            raise ValueError(f"unknown kind of record {kind}")


class _Fields:
    """Varints and strings of one edit, in their order."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def has_more(self) -> bool:
        return self._position < len(self._data)

    def number(self) -> int:
        value = shift = 0
        while shift < _MAX_VARINT_BITS:
            byte = self._data[self._position]
            self._position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise ValueError("a varint of more than 64 bits")

    def string(self) -> bytes:
        length = self.number()
        start = self._position
        if start + length > len(self._data):
            raise ValueError("a string beyond its edit")
        self._position += length
        return self._data[start : self._position]


def _apply(manifest: Manifest, edit: bytes) -> None:
    """Apply an edit: remove deleted files before adding new ones, as RocksDB does."""
    fields = _Fields(edit)
    family, name, dropped, log_number = 0, None, False, None
    deleted: list[int] = []
    added: dict[int, int] = {}
    while fields.has_more:
        tag = fields.number()
        if tag == _COMPARATOR:
            fields.string()
        elif tag == _LOG_NUMBER:
            log_number = fields.number()
        elif tag == _LAST_SEQUENCE:
            manifest.last_sequence = fields.number()
        elif tag == _NEXT_FILE:
            manifest.next_file_number = fields.number()
        elif tag in _NUMBERS:
            fields.number()
        elif tag == _COMPACT_POINTER:
            fields.number()
            fields.string()
        elif tag == _DELETED_FILE:
            fields.number()
            deleted.append(fields.number())
        elif tag == _COLUMN_FAMILY:
            family = fields.number()
        elif tag == _COLUMN_FAMILY_ADD:
            name = fields.string().decode("utf-8", "replace")
        elif tag == _COLUMN_FAMILY_DROP:
            dropped = True
        elif tag == _NEW_FILE:
            number, size = _new_file(fields)
            added[number] = size
        elif tag in {_BLOB_FILE, _BLOB_GARBAGE}:
            _skip_blob_file(fields, has_checksum=tag == _BLOB_FILE)
        elif tag & _SKIPPABLE:
            fields.string()
        else:
            raise ValueError(f"unknown tag {tag}")
    if name is not None:
        manifest.families[family] = name
    if dropped:
        manifest.families.pop(family, None)
        manifest.files.pop(family, None)
        manifest.log_numbers.pop(family, None)
        return
    if log_number is not None:
        manifest.log_numbers[family] = log_number
    files = manifest.files.setdefault(family, {})
    for number in deleted:
        files.pop(number, None)
    files.update(added)


def _skip_blob_file(fields: _Fields, *, has_checksum: bool) -> None:
    """Skip a blob file, or its garbage: number, count, bytes; then custom fields up to a zero."""
    for _ in range(3):
        fields.number()
    if has_checksum:
        fields.string()
        fields.string()
    while fields.number():
        fields.string()


def _new_file(fields: _Fields) -> tuple[int, int]:
    """Return number and bytes of a table file (``kNewFile4``)."""
    fields.number()  # level
    number, size = fields.number(), fields.number()
    fields.string()  # smallest key
    fields.string()  # largest key
    fields.number()  # smallest sequence number
    fields.number()  # largest sequence number
    while fields.number() != _END_OF_FIELDS:
        fields.string()
    return number, size
