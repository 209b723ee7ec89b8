"""Scans the commit log in blocks of columns: a bulk ``walk`` for everything that reads many units.

Only complete, unbroken ranges of units are walked by columns (:mod:`engine.codec.columns`). At the first invalid
item the log's own walk continues, so both report damage, gaps and the end alike. Uses the system's read-ahead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine import system
from engine.codec.columns import BLANK, BLOCK_ROWS, PAGE_BYTES, BulkWalk, UnitColumns, scan_block
from engine.codec.dledger import REMAINS
from engine.codec.message import DEFAULT_DELAY_LEVELS
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Blank, Damage, Item, Stop
from engine.errors import CannotRead
from engine.mapped.read_only import ReadOnlyFile
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.inspection.log_reader import LogReader


Block = UnitColumns | Damage | Stop


def scan_log(
    log: LogReader,
    start: int | None = None,
    stop: int | None = None,
    crc: bool = True,
    with_tags: bool = True,
    topics: TopicTable | None = None,
    levels: tuple[int, ...] = DEFAULT_DELAY_LEVELS,
    rows: int = BLOCK_ROWS,
) -> Iterator[Block]:
    """Every unit and blank from ``start`` to ``stop`` (exclusive) in blocks, damage in between, last a :class:`Stop`.

    The same items in the same order as ``log.walk``. A block and its buffer are valid until the next one is requested.
    Needs memory for one block and one buffer, whatever the log's size. A file that shrinks meanwhile ends the scan with
    a value.
    """
    scan = _Scan(log, BulkWalk(crc, with_tags, topics, levels, rows))
    offset = scan.end = log.min_offset if start is None else start
    limit = log.remains_from
    ends_at_remains = limit is not None and (stop is None or stop > limit)
    stop = limit if ends_at_remains else stop
    while stop is None or offset < stop:
        file = log.sequence.find(offset)
        for block in scan.blocks(file, offset, stop) if file else ():
            yield block
            offset = scan.next_offset
        if stop is not None and offset >= stop:
            break
        for item in _next_items(log, offset, stop, crc):
            if isinstance(item, Stop):
                yield Stop(scan.end, item.kind, item.reason)
                return
            if isinstance(item, Damage):
                yield item
                offset = item.offset + item.size
            else:
                yield scan.single(item)
                offset = scan.next_offset
    if ends_at_remains:
        yield Stop(scan.end, "zero", REMAINS)
    else:
        yield Stop(scan.end, "limit", sentence("end of the range"))


def _next_items(log: LogReader, offset: int, stop: int | None, crc: bool) -> list[Item | Stop]:
    """Return the item that the log's own walk yields at ``offset``, and the stop if the log ends right behind it."""
    walk = log.walk(offset, stop, crc)
    items = [next(walk)]
    if isinstance(items[0], Damage):
        following = next(walk)
        if isinstance(following, Stop):
            items.append(following)
    return items


@dataclass(frozen=True, slots=True)
class _Source:
    """``descriptor`` is −1 where only the door may read."""

    file: ReadOnlyFile
    descriptor: int

    def read_into(self, view: memoryview, position: int) -> int:
        return self.file.read_into(view, position)


class _Scan:
    """The walk and the position of a scan."""

    def __init__(self, log: LogReader, walk: BulkWalk) -> None:
        self._log = log
        self._walk = walk
        self.next_offset = 0
        self.end = 0

    def blocks(self, file: ReadOnlyFile, offset: int, stop: int | None) -> Iterator[UnitColumns]:
        """Blocks of ``file`` from ``offset`` up to the first item that is no unit; none if that is the first item."""
        try:
            descriptor = file.descriptor()
        except CannotRead:
            return  # the log's own walk meets the same error and reports it
        try:
            system.advise_sequential(descriptor, (offset - file.start_offset) // PAGE_BYTES * PAGE_BYTES)
            plain_end = None if file.reads_by_itself else file.plain_end
            source = _Source(file, descriptor if plain_end is None or plain_end(0) >= 0 else -1)
            start, has_entries = file.start_offset, self._log.has_entries(file)
            for block in self._walk.iter_blocks(
                source, start, offset - start, stop, has_entries=has_entries, plain_end=plain_end
            ):
                self._note(file)
                yield block
        except CannotRead:
            return
        finally:
            os.close(descriptor)

    def single(self, item: Item) -> UnitColumns:
        """The block of one item that the log's own walk had to read."""
        if isinstance(item, Blank):
            self._walk.out.count = 0
            self._walk.out.add_blank(item.offset, item.size, 0)
            self._note_file(item.offset)
            return self._walk.out
        crc, with_tags, levels = self._walk.options
        data = self._log.read(item.offset, item.size)
        scan_block(data, len(data), item.offset, 0, self._walk.out, self._walk.topics, crc, with_tags, levels)
        self._note_file(item.offset)
        return self._walk.out

    def _note_file(self, offset: int) -> None:
        file = self._log.sequence.find(offset)
        if file is not None and self._walk.out.count:
            self._note(file)

    def _note(self, file: ReadOnlyFile) -> None:
        """Note the next offset behind the block's last row and the end of the readable part so far
        (docs/formats/recovery.md#log).
        """
        out = self._walk.out
        last_row = out.count - 1
        self.next_offset = self.end = int(out.offset[last_row]) + int(out.size[last_row])
        if out.kind[last_row] == BLANK:
            self.next_offset = self._log.sequence.end_of(file)
            number = self._log.sequence.position_of(file.start_offset) + 1
            files = self._log.files
            self.end = files[number].start_offset if number < len(files) else int(out.offset[last_row])
