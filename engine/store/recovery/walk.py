"""The walk of the commit log that recovery makes: from a start file on to the first unit that fails
(docs/formats/recovery.md#log).

Blocks go through the numpy columns; what they refuse is looked at singly by
:func:`engine.rules.unit_check.check`, whose word is final. Memory is one block, whatever the log's size.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.codec import dledger
from engine.codec.columns import BAD, BLANK, UnitColumns, scan_block
from engine.codec.message import MAGIC_BLANK
from engine.codec.topic_table import TopicTable
from engine.codec.unit_flavours import MAGICS, READ_BY, unread_versions
from engine.errors import CannotRead
from engine.mapped.read_only import ReadOnlyFile
from engine.releases import rules_of
from engine.rules import unit_check
from engine.rules.unit_check import Answer, NeedsMoreBytes, Refusal, Request, Rules
from engine.sentences import sentence
from engine.store.recovery.source import Watch

BLOCK = 8 << 20
ROWS = 1 << 15
MAX_READ_BYTES = 256 << 20
_LINE = 64
_PAIR = struct.Struct(">iI")
NO_FILE = sentence("no file of the log holds this byte")
OUT_OF_MEMORY = sentence("a unit has a length that no Java array can have, and the dispatch thread dies of it")
NO_SUCH_ARRAY = (1 << 31) - 2
"""A Java array of so many bytes cannot be made, whatever the heap."""


@dataclass(frozen=True, slots=True)
class WalkResult:
    """Result of a walk: ``end_offset`` is the end of the log as recovery takes it.

    ``last_unit`` is the start of the last good unit, −1 without one.
    """

    end_offset: int
    reason: str
    last_unit: int
    units: int
    bytes_read: int


class Dispatcher(Protocol):
    """Takes good units in the order of the log."""

    def take_rows(self, columns: UnitColumns, topics: TopicTable, rows: int) -> None:
        """Dispatch the first ``rows`` rows of ``columns``."""

    def take(self, place: int, request: Request) -> None:
        """Dispatch one unit that stands at ``place``."""


class LogWalk:
    """Hands every good unit from a start on to ``sink``; the block buffer is reused."""

    def __init__(
        self,
        files: list[ReadOnlyFile],
        rules: Rules,
        sink: Dispatcher,
        watch: Watch | None = None,
        *,
        has_entries: bool = False,
    ) -> None:
        self._watch = watch
        self._has_entries = has_entries  # the files are those of a DLedger log
        self.end_without_headers = 0
        """In a DLedger log: the end of the walk as a broker computes it, from the start of its file and its units."""
        self._from = 0
        self._files = files
        self._rules = rules
        self._sink = sink
        self._topics = TopicTable()
        self._columns = UnitColumns(ROWS)
        self._buffer = _room(BLOCK)
        self._units = 0
        self._bytes = 0
        self._last = -1

    def run(self, first_number: int, start: int = 0) -> WalkResult:
        """Walk from byte ``start`` of file number ``first_number`` to the first unit that fails, as recovery does."""
        self._from = self._files[first_number].start_offset if first_number < len(self._files) else 0
        for number in range(first_number, len(self._files)):
            file = self._files[number]
            position, reason = self._walk_file(file, start if number == first_number else 0, file.size)
            if reason != unit_check.BLANK:
                return self._walked(file.start_offset + position, reason)
            if number + 1 == len(self._files):
                return self._walked(file.start_offset + position, sentence("the last file ends with a blank unit"))
        return self._walked(0, sentence("there are no files"))

    def run_dispatch(self, start: int, end: int, *, cross: bool = True) -> WalkResult:
        """Walk [start, end) as the dispatch thread does: from what it cannot read to the next file
        (docs/formats/writing.md#dispatch).

        Without ``cross`` as RocketMQ's own thread, which stands still forever where no file holds the byte it is at:
        the walk ends there, before ``end``.
        """
        offset = start
        for file in self._files:
            if file.end_offset <= offset or file.start_offset >= end:
                continue
            if file.start_offset > offset and not cross:
                return self._walked(offset, NO_FILE)
            room = min(file.end_offset, end) - file.start_offset
            position, reason = self._walk_file(file, max(offset - file.start_offset, 0), room, body=False)
            if not cross and reason != unit_check.BLANK and asked_for(file, position, self._rules) >= NO_SUCH_ARRAY:
                return self._walked(file.start_offset + position, OUT_OF_MEMORY)
            offset = file.end_offset
        return self._walked(end if cross or offset >= end else offset, "" if cross or offset >= end else NO_FILE)

    def _walked(self, end: int, reason: str) -> WalkResult:
        return WalkResult(end, reason, self._last, self._units, self._bytes)

    def _walk_file(self, file: ReadOnlyFile, position: int, size: int, body: bool = True) -> tuple[int, str]:
        """Return (position of what stops the walk, reason); the reason is ``blank`` at a file's end."""
        self.end_without_headers = file.start_offset
        bulk = not (self._rules.property_crc or self._rules.dup_info or self._rules.own_offset)
        read_size = BLOCK
        while True:
            block, block_size = self._block(file, position, min(read_size, size - position))
            unit_position = 0
            while True:
                if bulk:
                    unit_position = self._rows(block, block_size, unit_position, file.start_offset + position, body)
                header_bytes = self._header_bytes(block, block_size, unit_position)
                unit_position += header_bytes
                answer = unit_check.check(
                    block.data[:block_size], unit_position, size - position - unit_position, self._rules, body
                )
                if header_bytes < 0 or (header_bytes and not isinstance(answer, Request)):
                    unit_position -= header_bytes
                    answer = _with_header(answer) if header_bytes > 0 else unit_check.BLANK
                if isinstance(answer, Request) and self._rules.own_offset:
                    answer = _within(file, answer)
                if not isinstance(answer, Request):
                    break
                self._single(file.start_offset + position + unit_position, answer)
                unit_position += answer.size
            self._bytes += unit_position
            position += unit_position
            if self._watch is not None:
                self._watch(self._from, file.start_offset + position, self._files[-1].end_offset)
            if isinstance(answer, NeedsMoreBytes):
                if block_size < min(read_size, size - position + unit_position):
                    raise CannotRead(sentence("the file is shorter than it was"), file=file.path, offset=position)
                if answer.size > MAX_READ_BYTES:
                    return position, sentence("the file is shorter than it was")
                read_size = max(BLOCK, answer.size)
                continue
            if isinstance(answer, Refusal):
                return position, answer.reason
            return position, unit_check.BLANK

    def _header_bytes(self, block: NDArray[np.uint8], block_size: int, position: int) -> int:
        """Bytes of the entry's header in front of the unit at ``position``, as a broker decides it: 0 if the unit
        itself begins, −1 for a blank entry.
        """
        if not self._has_entries or block_size - position < _PAIR.size:
            return 0
        size, magic = _PAIR.unpack_from(block.data, position)
        if magic == MAGIC_BLANK or magic in MAGICS:
            return 0
        return -1 if size == dledger.BLANK_MAGIC else dledger.HEADER_SIZE

    def _block(self, file: ReadOnlyFile, position: int, length: int) -> tuple[NDArray[np.uint8], int]:
        """``length`` bytes of the file from ``position`` on, lent or read, and how many of them there are."""
        if length <= 0:
            return self._buffer, 0
        lent = file.lend(position, length)
        if lent is not None:
            block = np.frombuffer(lent, np.uint8)
            block.flags.writeable = False  # the next block comes elsewhere: these bytes may be read later, too
            return block, length
        if length > len(self._buffer):
            self._buffer = _room(length)
        return self._buffer, file.read_into(self._buffer.data[:length], position)

    def _rows(self, block: NDArray[np.uint8], block_size: int, position: int, base: int, body: bool) -> int:
        """Dispatch what the columns read from ``position`` on; returns the position of the first unit that needs a
        look.
        """
        columns = self._columns
        while True:
            crc = body and self._rules.crc
            levels, has_entries = self._rules.delay_levels, self._has_entries
            scan = scan_block(
                block, block_size, base, position, columns, self._topics, crc, True, levels, has_entries=has_entries
            )
            rows = columns.count - int(columns.count > 0 and columns.kind[columns.count - 1] == BLANK)
            good = self._good_rows(rows)
            if good:
                self._units += good
                self._last = int(columns.offset[good - 1])
                self.end_without_headers += int(columns.size[:good].sum())
                self._sink.take_rows(columns, self._topics, good)
                position = int(columns.offset[good - 1]) - base + int(columns.size[good - 1])
            if good < rows or scan.stopped != "full":
                return position

    def _good_rows(self, rows: int) -> int:
        """Number of rows up to the first that a broker may not take."""
        columns = self._columns
        wrong = (columns.crc[:rows] == BAD) & (columns.body_length[:rows] > 0)
        for version in unread_versions(self._rules.release):
            wrong |= columns.version[:rows] == version
        wrong |= columns.topic_id[:rows] < 0
        bad = np.flatnonzero(wrong)
        return int(bad[0]) if len(bad) else rows

    def _single(self, place: int, request: Request) -> None:
        self._units += 1
        self._last = place
        self.end_without_headers += request.size
        self._sink.take(place, request)


def _with_header(answer: Answer) -> Answer:
    """The answer about an entry, of which ``answer`` is about the unit inside."""
    return NeedsMoreBytes(answer.size + dledger.HEADER_SIZE) if isinstance(answer, NeedsMoreBytes) else answer


def _within(file: ReadOnlyFile, request: Request) -> Request | Refusal:
    """Refuse a unit whose PHYSICALOFFSET is outside of its file (checkCommitLogOffsetOnRecover)."""
    if file.start_offset <= request.physical_offset <= file.end_offset:
        return request
    return Refusal(-1, sentence("the message's PHYSICALOFFSET is {at:,}, in another file", at=request.physical_offset))


def asked_for(file: ReadOnlyFile, position: int, rules: Rules) -> int:
    """Return the bytes of heap that the check asks for at bytes that are no unit: 4.9 makes an array of the length
    field's size before it looks at what is left of the file; 0 if it asks for nothing.
    """
    head = file.read(position, _PAIR.size)
    if not rules_of(rules.release).allocates_by_length_field or len(head) < _PAIR.size:
        return 0
    total, magic = _PAIR.unpack(head)
    return max(int(total), 0) if magic in READ_BY[rules.release] else 0


def _room(length: int) -> NDArray[np.uint8]:
    """A buffer that begins at a cache line: the kernel copies several times slower into others."""
    raw = np.zeros(length + _LINE, np.uint8)
    start = -raw.ctypes.data % _LINE
    return raw[start : start + length]
