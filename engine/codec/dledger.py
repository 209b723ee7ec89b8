"""Files of the DLedger library: entry headers, index rows, checkpoint and vote (docs/formats/dledger.md).

Each message unit is the body of an entry with a header of 48 bytes, in ``dledger-<selfId>/data``; ``index`` beside it
has a row of 32 bytes per entry.

Pure: names, lengths and bytes come from the caller.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from engine.codec.unit_flavours import MAGICS
from engine.sentences import plural, sentence

FOLDER_PREFIX = "dledger-"
HEADER_SIZE = 48
INDEX_UNIT_SIZE = 32
INDEX_FILE_BYTES = 5 * 1024 * 1024 * INDEX_UNIT_SIZE
"""Length of an index file: no option of a broker changes it."""
HEAD_BYTES = HEADER_SIZE + 8
"""First bytes of a data file that :func:`dledger_log` needs."""
_HEADER = struct.Struct(">iiqqqiiii")
_INDEX_ROW = struct.Struct(">iqiqq")
_PAIR = struct.Struct(">ii")
MAGIC = 1
BLANK_MAGIC = -1
"""Magic code of the entry that fills the end of a data file; its size follows."""
BLANK_HEAD_BYTES = 8
REMAINS = sentence("remains of entries that a later leader replaced")
"""What the bytes behind :func:`find_remains_by` are."""
MAX_REMAINS_BYTES = 8 << 20
"""Bytes behind the newest entry that are searched for remains of older ones: more than the largest message."""
_NAME_DIGITS = 20
_NUMBER = re.compile(r"-?\d{1,19}")


class NamedFile(NamedTuple):
    """A file below a folder: its name relative to the folder (``data/00000000000000000000``) and its length in
    bytes.
    """

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
        """True if the lengths agree and the numbers are in range."""
        lengths_agree = self.body_size >= 0 and self.size == HEADER_SIZE + self.body_size
        return self.magic == MAGIC and lengths_agree and min(self.index, self.term, self.position) >= 0


@dataclass(frozen=True, slots=True)
class IndexRow:
    """A row of an index file (32 bytes); row ``index`` lies at byte ``index * 32`` of the index."""

    magic: int
    position: int
    size: int
    index: int
    term: int


@dataclass(frozen=True, slots=True)
class DLedgerCheckpoint:
    """The file ``checkpoint`` of a DLedger folder, written every few seconds; None for a missing number."""

    end_index: int | None
    committed_index: int | None


@dataclass(frozen=True, slots=True)
class Vote:
    """The file ``currterm`` of a DLedger folder: the newest term that the member knows, and its vote in this term."""

    term: int | None
    voted_for: str


@dataclass(frozen=True, slots=True)
class DLedgerLog:
    """The content of a DLedger folder in files and bytes; ``first_entry`` is the head of its oldest entry, if there is
    one.
    """

    self_id: str
    data_files: int
    data_bytes: int
    index_files: int
    index_bytes: int
    other_bytes: int
    first_entry: EntryHeader | None
    wraps_messages: bool  # a message unit follows the first header

    @property
    def words(self) -> str:
        """A sentence about the log."""
        oldest: str = ""
        if self.first_entry:
            template = ", oldest entry {entry:,} of term {term:,}"
            oldest = sentence(template, entry=self.first_entry.index, term=self.first_entry.term)
        return sentence(
            "DLedger log of member {member}: {files} with {n:,} bytes, {further} with {m:,} bytes{oldest}.",
            member=self.self_id or "?",
            files=plural("{n:,} data file", "{n:,} data files", n=self.data_files),
            n=self.data_bytes,
            further=plural("{n:,} index file", "{n:,} index files", n=self.index_files),
            m=self.index_bytes,
            oldest=oldest,
        )


def decode_header(buf: bytes | bytearray | memoryview, position: int = 0) -> EntryHeader | None:
    """Return the plausible entry header at ``buf[position]``, or None."""
    if len(buf) - position < HEADER_SIZE:
        return None
    header = unpack_header(buf, position)
    return header if header.plausible else None


def unpack_header(buf: bytes | bytearray | memoryview, position: int = 0) -> EntryHeader:
    """Return the 48 bytes at ``buf[position]`` as a header, plausible or not."""
    return EntryHeader(*_HEADER.unpack_from(buf, position))


def encode_header(header: EntryHeader) -> bytes:
    """Return the 48 bytes of ``header``."""
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


HEADER_FIELDS = (
    ("entryMagic", 0, 4),
    ("entrySize", 4, 4),
    ("entryIndex", 8, 8),
    ("entryTerm", 16, 8),
    ("entryPosition", 24, 8),
    ("entryChannel", 32, 4),
    ("entryChainCrc", 36, 4),
    ("entryBodyCrc", 40, 4),
    ("entryBodySize", 44, 4),
)
"""Name, position and length of each field of an entry's header."""


def decode_index_row(buf: bytes | bytearray | memoryview, position: int = 0) -> IndexRow:
    """Return the index row at ``buf[position]``."""
    return IndexRow(*_INDEX_ROW.unpack_from(buf, position))


def encode_index_row(row: IndexRow) -> bytes:
    """Return the 32 bytes of ``row``."""
    return _INDEX_ROW.pack(row.magic, row.position, row.size, row.index, row.term)


def decode_blank(buf: bytes | bytearray | memoryview, position: int = 0) -> int | None:
    """Return the size of the blank entry at ``buf[position]``, or None if there is none."""
    if len(buf) - position < BLANK_HEAD_BYTES:
        return None
    magic, size = _PAIR.unpack_from(buf, position)
    return size if magic == BLANK_MAGIC else None


def encode_blank(size: int) -> bytes:
    """Return the first 8 bytes of a blank entry of ``size`` bytes; zero bytes follow."""
    return _PAIR.pack(BLANK_MAGIC, size)


def decode_checkpoint(data: bytes) -> DLedgerCheckpoint:
    """Return the numbers of a DLedger folder's ``checkpoint``: Java properties, written without escapes."""
    pairs = _pairs(data)
    return DLedgerCheckpoint(_number(pairs.get("endIndex")), _number(pairs.get("committedIndex")))


def decode_vote(data: bytes) -> Vote:
    """Return the content of a DLedger folder's ``currterm``."""
    pairs = _pairs(data)
    return Vote(_number(pairs.get("currTerm")), pairs.get("voteLeader", ""))


def _pairs(data: bytes) -> dict[str, str]:
    lines = (line.partition("=") for line in data.decode("utf-8", "replace").splitlines() if not line.startswith("#"))
    return {key.strip(): value.strip() for key, _, value in lines}


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and _NUMBER.fullmatch(text) else None


def find_remains_by(
    checkpoint: DLedgerCheckpoint | None,
    vote: Vote | None,
    index_row: Callable[[int], IndexRow | None],
    header_at: Callable[[int], EntryHeader | None],
    next_header: Callable[[int], EntryHeader | None],
) -> int | None:
    """Return the end of the entries, if older entries that a leader replaced follow it; None without such remains.

    A leader that replaces entries of a member writes its own over them and clears nothing: what was longer stays behind
    the newest entry. An entry behind it with an older term, or with the number of an entry before, is such a remain.
    Entries up to the committed index are never replaced.

    Args:
        checkpoint: that of the member.
        vote: that of the member.
        index_row: returns the row of an entry's number, None if no file holds it.
        header_at: returns the header of the entry at an offset of the log, None if there is none.
        next_header: returns the first header with a unit behind it at or behind an offset of the log, None for none.
    """
    if checkpoint is None:
        return None
    number = -1 if checkpoint.committed_index is None else checkpoint.committed_index
    if number < 0:
        number = -1 if checkpoint.end_index is None else checkpoint.end_index
    row = index_row(number) if number >= 0 else None
    if row is None or row.magic != MAGIC or row.index != number:
        return None
    while (following := index_row(number + 1)) is not None:
        if following.magic != MAGIC or following.index != number + 1 or following.term < row.term:
            break
        number, row = number + 1, following
    if vote is not None and (vote.term or 0) < row.term:
        return None
    newest = header_at(row.position)
    if newest is None or (newest.index, newest.term, newest.size) != (number, row.term, row.size):
        return None
    end = row.position + row.size
    header = next_header(end)
    return end if header is not None and (header.term < row.term or header.index <= number) else None


def wraps_message(head: bytes | bytearray | memoryview) -> bool:
    """Return True for a plausible header followed by a message unit: the first bytes of a broker's DLedger data
    file.
    """
    header = decode_header(head)
    if header is None or len(head) < HEAD_BYTES:
        return False
    size, magic = struct.unpack_from(">iI", head, HEADER_SIZE)
    return magic in MAGICS and size == header.body_size


def begins_with_unit(head: bytes | bytearray | memoryview) -> bool:
    """Return True if ``head`` is the size and magic code of a message unit."""
    if len(head) < 8:
        return False
    size, magic = struct.unpack_from(">iI", head)
    return size > 0 and magic in MAGICS


def dledger_log(folder: str, files: Iterable[NamedFile], head: bytes = b"") -> DLedgerLog | None:
    """Return the content of the folder named ``folder``, or None if it is no DLedger log.

    It is one by its name, or because its oldest data file begins (``head``) with an entry around a message.

    """
    all_files = list(files)
    data = [file for file in all_files if _is_queue_file(file.name, "data")]
    index = [file for file in all_files if _is_queue_file(file.name, "index")]
    wraps_messages = wraps_message(head)
    if not folder.startswith(FOLDER_PREFIX) and not (data and wraps_messages):
        return None
    data_bytes, index_bytes = sum(file.size for file in data), sum(file.size for file in index)
    return DLedgerLog(
        folder.removeprefix(FOLDER_PREFIX) if folder.startswith(FOLDER_PREFIX) else "",
        len(data),
        data_bytes,
        len(index),
        index_bytes,
        sum(file.size for file in all_files) - data_bytes - index_bytes,
        decode_header(head),
        wraps_messages,
    )


def _is_queue_file(name: str, folder: str) -> bool:
    parent, _, file = name.rpartition("/")
    return parent == folder and len(file) == _NAME_DIGITS and file.isascii() and file.isdigit()
