"""The start of a broker on a DLedger log: which entries it keeps, and what becomes of the queues
(docs/formats/dledger.md#start).

The library checks the headers of the newest three data files against each other and against the index files. It reads
no body. A broker then walks the messages after a crash, and counts their bytes without the headers around them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from engine.codec.dledger import (
    HEADER_SIZE,
    INDEX_UNIT_SIZE,
    MAGIC,
    EntryHeader,
    IndexRow,
    decode_blank,
    decode_index_row,
    encode_index_row,
    unpack_header,
)
from engine.mapped.read_only import FileSequence, ReadOnlyFile
from engine.sentences import sentence

CHECKED_FILES = 3
"""Data files whose entries a start checks; more if the first entry of the oldest of them is not that of the index."""
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class DLedgerSource:
    """A DLedger log as recovery sees it. ``committed_index`` is that of its checkpoint, None without one.
    ``has_other_members``: its group has further members, by the configuration or by the member's vote.
    ``remains_from``: the end of the entries if bytes of entries follow that a leader replaced, else None.
    """

    files: tuple[ReadOnlyFile, ...]
    index: FileSequence
    folder: Path
    committed_index: int | None = None
    has_other_members: bool = False
    remains_from: int | None = None


@dataclass(frozen=True, slots=True)
class EntryFault:
    """The entry at ``offset`` at which a start ends the log, and why."""

    offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class RecoveredEntries:
    """The entries that a start keeps: up to ``last_index`` (−1 for none), which ends at ``end_offset``.

    ``fault`` is None if nothing was written behind the end. Index rows from ``index_rebuilt_from`` on are written again
    (None: all fit). ``committed_end`` is the end of the newest entry that the checkpoint calls committed, −1 if
    unknown. ``refusal`` says why the broker would not start.
    """

    start_number: int
    end_offset: int
    entries: int
    last_index: int
    last_term: int
    fault: EntryFault | None
    index_rebuilt_from: int | None
    committed_end: int
    refusal: tuple[str, str, str] | None = None
    """Sentence, line of the broker's log, and file."""


def recover_entries(source: DLedgerSource) -> RecoveredEntries:
    """Return the entries that a start keeps. Raises :class:`engine.errors.CannotRead`."""
    files = source.files
    size = files[0].size
    for previous_file, file in pairwise(files):
        if file.start_offset - previous_file.start_offset != size:
            text = sentence(
                "{path}: expected the file that begins at {n:,}, found {m:,}",
                path=file.path,
                n=previous_file.start_offset + size,
                m=file.start_offset,
            )
            refusal = (text, "check data file order failed before recovery", file.path)
            return RecoveredEntries(0, previous_file.end_offset, 0, -1, -1, None, None, -1, refusal)
    number = _start_file(source)
    return _walk(source, number)


def _start_file(source: DLedgerSource) -> int:
    """The data file at which the check begins: the third-last, or an older one if the index does not know its first
    entry.
    """
    number = max(len(source.files) - CHECKED_FILES, 0)
    while number > 0 and not _begins_as_in_index(source, source.files[number]):
        number -= 1
    return number


def _begins_as_in_index(source: DLedgerSource, file: ReadOnlyFile) -> bool:
    head = file.read(0, HEADER_SIZE)
    if len(head) < HEADER_SIZE:
        return False
    header = unpack_header(head)
    fits = (
        header.magic >= MAGIC
        and header.size > HEADER_SIZE
        and header.position == file.start_offset
        and header.body_size + HEADER_SIZE == header.size
    )
    return fits and index_fits(source.index, header)


def index_row(index: FileSequence, number: int) -> IndexRow | None:
    """Return the index row of entry ``number``, or None if no file holds it."""
    data = index.read(number * INDEX_UNIT_SIZE, INDEX_UNIT_SIZE) if number >= 0 else b""
    return decode_index_row(data) if len(data) == INDEX_UNIT_SIZE else None


def index_fits(index: FileSequence, header: EntryHeader) -> bool:
    """Return True if the index has the row of this entry."""
    row = index_row(index, header.index)
    return row == IndexRow(header.magic, header.position, header.size, header.index, header.term)


class IndexRows:
    """Index rows read in blocks."""

    def __init__(self, index: FileSequence) -> None:
        self._index = index
        self._start = 0
        self._data = b""

    def row(self, number: int) -> bytes:
        """The row of entry ``number``; short where no file holds it."""
        position = number * INDEX_UNIT_SIZE - self._start
        if not 0 <= position <= len(self._data) - INDEX_UNIT_SIZE:
            self._start = number * INDEX_UNIT_SIZE
            self._data = self._index.read(self._start, _BLOCK_BYTES) if number >= 0 else b""
            position = 0
        return self._data[position : position + INDEX_UNIT_SIZE]


def headers(file: ReadOnlyFile, position: int = 0) -> Iterator[tuple[int, EntryHeader | int | None]]:
    """Yield position and header of each entry of a data file, as a start reads them: without a look at what they say.

    Last comes the size of a blank entry, or None at the end of the file's bytes. The caller ends the walk at a header
    that is wrong.
    """
    start, data = position, b""
    while True:
        index = position - start
        if index < 0 or len(data) - index < HEADER_SIZE:
            start, data, index = position, file.read(position, _BLOCK_BYTES), 0
        blank_size = decode_blank(data, index)
        if blank_size is not None:
            yield position, blank_size
            return
        if len(data) - index < HEADER_SIZE:
            yield position, None
            return
        header = unpack_header(data, index)
        yield position, header
        if header.size <= 0:
            return
        position += header.size


def _walk(source: DLedgerSource, start_number: int) -> RecoveredEntries:
    rows = IndexRows(source.index)
    last_header: EntryHeader | None = None
    end = source.files[start_number].start_offset
    count = 0
    rebuilt_from: int | None = None
    fault: EntryFault | None = None
    for number in range(start_number, len(source.files)):
        file = source.files[number]
        end = file.start_offset
        is_full = False
        for position, header in headers(file):
            offset = file.start_offset + position
            if isinstance(header, int):
                is_full = True
                end = file.end_offset
                break
            reason = entry_fault(header, offset, file, last_header)
            if reason is not None or header is None:
                was_written = header is not None and (header.magic, header.size) != (0, 0)
                fault = EntryFault(offset, reason or "") if was_written else None
                break
            if rebuilt_from is None and rows.row(header.index) != row_of(header):
                rebuilt_from = header.index
            last_header, end, count = header, offset + header.size, count + 1
        if not is_full:
            break
    refusal = None
    newest = source.files[-1]
    if newest.start_offset - end > newest.size:
        text = sentence(
            "The entries end at {end:,}, more than one file before the last data file: the broker ends itself", end=end
        )
        refusal = (text, "[MONITOR]The processOffset is too small, you should check it manually", newest.path)
    last_index, last_term = (last_header.index, last_header.term) if last_header is not None else (-1, -1)
    committed_end = _committed_end(source, last_header, rebuilt_from)
    return RecoveredEntries(
        start_number, end, count, last_index, last_term, fault, rebuilt_from, committed_end, refusal
    )


def row_of(header: EntryHeader) -> bytes:
    """Return the index row of an entry."""
    return encode_index_row(IndexRow(header.magic, header.position, header.size, header.index, header.term))


def entry_fault(
    header: EntryHeader | None, offset: int, file: ReadOnlyFile, last_header: EntryHeader | None
) -> str | None:
    """Why a start ends the log at this header; None if it takes the entry."""
    if header is None:
        return sentence("end of the file")
    if header.size == 0:
        return sentence("no size")
    if header.position != offset:
        return sentence("its position says {n:,}", n=header.position)
    if header.body_size + HEADER_SIZE != header.size:
        return sentence("its size {n:,} is not that of the body and the header", n=header.size)
    if header.size < 0 or offset + header.size > file.end_offset:
        return sentence("its size {n:,} leads beyond the file", n=header.size)
    if header.magic != MAGIC:
        return sentence("magic code {n}", n=header.magic)
    if last_header is not None and header.index != last_header.index + 1:
        return sentence("its index is {n:,}, expected {m:,}", n=header.index, m=last_header.index + 1)
    if last_header is not None and header.term < last_header.term:
        return sentence("its term is {n:,}, that of the entry before {m:,}", n=header.term, m=last_header.term)
    if header.size <= HEADER_SIZE:
        return sentence("it has no body")
    return None


def _committed_end(source: DLedgerSource, last_header: EntryHeader | None, rebuilt_from: int | None) -> int:
    committed = source.committed_index
    if committed is None or committed == -1 or last_header is None:
        return -1
    if committed >= last_header.index:
        return last_header.position + last_header.size
    if rebuilt_from is not None and committed >= rebuilt_from:
        return -1 if (header := _find(source, committed)) is None else header.position + header.size
    row = index_row(source.index, committed)
    return row.position + row.size if row is not None else -1


def _find(source: DLedgerSource, number: int) -> EntryHeader | None:
    for file in reversed(source.files):
        for _, header in headers(file):
            if not isinstance(header, EntryHeader) or header.index > number:
                break
            if header.index == number:
                return header
    return None
