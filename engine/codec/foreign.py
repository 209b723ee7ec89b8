"""A commit log that the DLedger library keeps: recognised and sized, not decoded (docs/formats/files.md#folders).

Each message unit stands inside a log entry with a header of 48 bytes, in ``dledger-<selfId>/data``; ``index`` beside it
has a unit of 32 bytes per entry. Pure: names, lengths and first bytes come from the caller.

Folders that RocksDB keeps for a broker: recognised and sized, not decoded (docs/formats/files.md#folders,
docs/formats/consume-queue.md#rocksdb).

Pure: names, lengths and the text of ``CURRENT`` come from the caller.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from engine.codec.unit_flavours import MAGICS

FOLDER_PREFIX = "dledger-"
HEADER_SIZE = 48
INDEX_UNIT_SIZE = 32
HEAD_BYTES = HEADER_SIZE + 8
"""First bytes of a data file that :func:`recognise` wants to see."""
_HEADER = struct.Struct(">iiqqqiiii")
_MAGIC = 1
_BLANK_MAGIC = -1
_NAME_DIGITS = 20


class NamedFile(NamedTuple):
    """A file below a folder: its name as seen from there (``data/00000000000000000000``) and its length in bytes."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class EntryHeader:
    """The head of one DLedger entry. ``position`` is its offset in the entry log, bytes."""

    magic: int
    size: int  # header and body
    index: int
    term: int
    position: int
    channel: int
    chain_crc: int
    body_crc: int
    body_size: int

    @property
    def plausible(self) -> bool:
        """The lengths agree and the numbers are of their kind."""
        lengths_agree = self.body_size >= 0 and self.size == HEADER_SIZE + self.body_size
        return self.magic == _MAGIC and lengths_agree and min(self.index, self.term, self.position) >= 0


@dataclass(frozen=True, slots=True)
class DLedgerLog:
    """What a DLedger folder holds, in files and bytes; ``first`` is the head of its oldest entry where one was seen."""

    self_id: str
    data_files: int
    data_bytes: int
    index_files: int
    index_bytes: int
    other_bytes: int
    first: EntryHeader | None
    wraps_messages: bool  # a message unit stands behind the first header

    @property
    def words(self) -> str:
        """What was found, and what this program does not do with it."""
        start = f", oldest entry {self.first.index:,} of term {self.first.term:,}" if self.first else ""
        return (
            f"DLedger log of member {self.self_id or '?'}: {self.data_files} data files with {self.data_bytes:,} bytes"
            f", {self.index_files} index files with {self.index_bytes:,} bytes{start}. "
            "The entries of DLedger are not decoded: messages inside them are not listed."
        )


def decode_header(buf: bytes | bytearray | memoryview, at: int = 0) -> EntryHeader | None:
    """The plausible entry header at ``buf[at]``, or None."""
    if len(buf) - at < HEADER_SIZE:
        return None
    header = EntryHeader(*_HEADER.unpack_from(buf, at))
    return header if header.plausible else None


def encode_header(header: EntryHeader) -> bytes:
    """The 48 bytes of ``header``."""
    return _HEADER.pack(
        header.magic,
        header.size,
        header.index,
        header.term,
        header.position,
        header.channel,
        header.chain_crc,
        header.body_crc,
        header.body_size,
    )


def wraps_message(head: bytes | bytearray | memoryview) -> bool:
    """A plausible header with a message unit behind it: the first bytes of a DLedger data file of a broker."""
    header = decode_header(head)
    if header is None or len(head) < HEAD_BYTES:
        return False
    size, magic = struct.unpack_from(">iI", head, HEADER_SIZE)
    return magic in MAGICS and size == header.body_size


def dledger_log(folder: str, files: Iterable[NamedFile], head: bytes = b"") -> DLedgerLog | None:
    """What the folder called ``folder`` holds, or None where it is no DLedger log.

    It is one by its name, or because its oldest data file begins (``head``) with an entry around a message.
    """
    known = list(files)
    data = [file for file in known if _is_queue_file(file.name, "data")]
    index = [file for file in known if _is_queue_file(file.name, "index")]
    wraps = wraps_message(head)
    if not folder.startswith(FOLDER_PREFIX) and not (data and wraps):
        return None
    data_bytes, index_bytes = sum(file.size for file in data), sum(file.size for file in index)
    return DLedgerLog(
        folder.removeprefix(FOLDER_PREFIX) if folder.startswith(FOLDER_PREFIX) else "",
        len(data),
        data_bytes,
        len(index),
        index_bytes,
        sum(file.size for file in known) - data_bytes - index_bytes,
        decode_header(head),
        wraps,
    )


def _is_queue_file(name: str, folder: str) -> bool:
    parent, _, file = name.rpartition("/")
    return parent == folder and len(file) == _NAME_DIGITS and file.isascii() and file.isdigit()


_MANIFEST = re.compile(r"MANIFEST-\d+", re.ASCII)
_TABLE = re.compile(r"\d+\.(sst|ldb)", re.ASCII)
_WRITE_AHEAD = re.compile(r"\d+\.log", re.ASCII)
_CURRENT_TEXT = re.compile(rb"MANIFEST-\d+\n?")


@dataclass(frozen=True, slots=True)
class RocksFolder:
    """What a RocksDB folder holds, in files and bytes. ``sound``: CURRENT names a manifest that is there."""

    folder: str
    manifest: str | None
    tables: int
    table_bytes: int
    write_ahead_logs: int
    write_ahead_bytes: int
    other_bytes: int
    sound: bool


def rocks_folder(folder: str, files: Iterable[NamedFile], current: bytes | None = None) -> RocksFolder | None:
    """What the folder (its path below the store) holds, or None where it is no RocksDB.

    It is one where CURRENT stands beside a manifest, or table files beside either. ``current`` is CURRENT's content.
    """
    known = list(files)
    names = {file.name for file in known}
    manifests = sorted(name for name in names if _MANIFEST.fullmatch(name))
    tables = [file for file in known if _TABLE.fullmatch(file.name)]
    logs = [file for file in known if _WRITE_AHEAD.fullmatch(file.name)]
    if sum(("CURRENT" in names, bool(manifests), bool(tables))) < 2:
        return None
    named = None
    if current is not None and _CURRENT_TEXT.fullmatch(current):
        named = current.strip().decode("ascii")
    table_bytes, log_bytes = sum(file.size for file in tables), sum(file.size for file in logs)
    return RocksFolder(
        folder,
        named or (manifests[-1] if manifests else None),
        len(tables),
        table_bytes,
        len(logs),
        log_bytes,
        sum(file.size for file in known) - table_bytes - log_bytes,
        "CURRENT" in names and (named in names if current is not None else bool(manifests)),
    )
