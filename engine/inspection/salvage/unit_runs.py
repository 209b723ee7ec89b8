"""Whole units in any bytes, as runs: units that lie back to back and whose physical offsets do, too.

:mod:`engine.codec.block_search` gives rows of units, a block at a time; everything here looks at whole columns and only
then at the few places where a run ends. Memory is one block and the runs, whatever the size of an image.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.codec import dledger
from engine.codec.block_search import HEAD, Outcome, search_units
from engine.codec.columns import BAD, BUFFER_BYTES, CACHE_LINE_BYTES, CHUNK_BYTES, UnitColumns, Window, aligned_buffer
from engine.codec.message import MAX_UNIT_BYTES, check_frame
from engine.codec.proven_ends import are_ends_proven
from engine.codec.topic_table import TopicTable
from engine.codec.unit_flavours import PREFIX
from engine.codec.unit_search import FOLLOWING_BYTES, HEAD_BYTES, PAGE_BYTES, UnitHead, has_frame, judge_end, read_head
from engine.inspection.log_reader import LogReader
from engine.inspection.salvage.sources import Int64, Readable, Source, StoreUnits
from engine.inspection.salvage.store_comparison import StoreComparison

WINDOW_BYTES = BUFFER_BYTES
"""Bytes in memory at a time."""
_MARGIN_BYTES = 1 << 16
"""Bytes read behind a range: a unit that begins in it may end there."""
_ROWS = 8192
_INNER_ROWS = 256
_MIN_AHEAD_BYTES = 1 << 20
"""Bytes of a live run from which on what follows is compared before it is searched."""
_PROBES = 8
_ENTRY_BYTES = dledger.HEADER_SIZE
_FIRST_BYTES = np.arange(8)


class UnitRun(NamedTuple):
    """``unit_count`` whole units back to back in the source number ``source``, from ``position`` of the file on.

    ``physical_offset`` is that of the first one. ``is_live``: the store has the same bytes at that offset.
    ``in_damaged`` means that the bytes lie within a unit whose body CRC is wrong.
    """

    source: int
    position: int
    physical_offset: int
    size: int
    unit_count: int
    is_live: bool
    in_damaged: bool = False
    has_entries: bool = False
    """Between the units are the headers of their DLedger entries."""

    @property
    def shift(self) -> int:
        """Position minus physical offset: equal for all units of a file that is not fragmented."""
        return self.position - self.physical_offset

    @property
    def end_position(self) -> int:
        return self.position + self.size

    @property
    def end_offset(self) -> int:
        return self.physical_offset + self.size


class HeadFragment(NamedTuple):
    """The beginning of a unit whose other bytes do not follow; with ``is_bad_body`` they do, but the CRC is wrong."""

    source: int
    position: int
    head: UnitHead
    is_bad_body: bool = False
    in_damaged: bool = False


@dataclass(slots=True)
class Finds:
    """The result of the search of all sources."""

    runs: list[UnitRun] = field(default_factory=list)
    heads: list[HeadFragment] = field(default_factory=list)
    open_ends: list[UnitRun] = field(default_factory=list)
    """Single units with topic or properties in a page of which nothing proves that it is of the same file."""


class RunSearch:
    """Searches sources one after the other. Units that the store has at their offset become live runs."""

    def __init__(self, log: LogReader, units: StoreUnits) -> None:
        self._log, self._units = log, units
        self._topics = TopicTable()
        self._columns, self._checked = UnitColumns(_ROWS), UnitColumns(_ROWS)
        self._inner: list[UnitColumns] = []
        """Columns that no search within a unit uses at the moment."""
        self._buffer = aligned_buffer(WINDOW_BYTES)
        self._comparison = StoreComparison(log)
        self._checks_first = False
        """True if the bodies are checked in the first search: the units before were not those of the store."""
        self.finds = Finds()

    def search(self, source: Source, number: int, on_progress: Callable[[int], None]) -> None:
        """Add what the ranges of ``source`` hold; ``on_progress`` gets the bytes done of it."""
        done, position = 0, 0
        file = source.file
        descriptor = -1
        if file.reads_by_itself and source.bytes_to_search > WINDOW_BYTES:
            descriptor = file.descriptor()
        try:
            for start, stop in source.ranges:
                position = max(start, position)
                if position < stop:
                    base, before = position // PAGE_BYTES * PAGE_BYTES, done - start
                    window = Window(self._buffer, base, position - base, 0, descriptor, base, CHUNK_BYTES)
                    block = _Block(file, number, window, stop, base >= file.size, source.start_offset)
                    while self._search_block(block):
                        self._pass_over_live(block)
                        on_progress(before + min(window.base + window.cursor, stop))
                    position = max(stop, block.covered_to)
                done += stop - start
                on_progress(done)
        finally:
            self._comparison.close()
            if descriptor >= 0:
                os.close(descriptor)

    def _search_block(self, block: _Block) -> bool:
        """Search on in a block; False if its range is done."""
        window = block.window
        start, columns = window.cursor, self._columns
        outcome = self._search_units(block, columns, has_crc=self._checks_first)
        if columns.count:
            self._add_rows(block, start, columns)
        if outcome == "cut":
            return self._read_on(block)
        return outcome == "full"

    def _search_units(self, block: _Block, columns: UnitColumns, *, has_crc: bool) -> Outcome:
        window = block.window
        block.is_last = block.has_ended or window.file_position >= block.file.size
        stop = block.stop - window.base
        return search_units(window, stop, columns, self._topics, crc=has_crc, is_last=block.is_last)

    def _read_on(self, block: _Block) -> bool:
        """Read what follows in the file, so that the unit at the cursor is complete."""
        window = block.window
        capacity = len(window.buffer)
        if window.filled + CHUNK_BYTES > capacity:
            if window.cursor < CHUNK_BYTES + CACHE_LINE_BYTES:
                self._giant(block)
                return True
            block.shift()
        if window.descriptor >= 0 and not block.is_stuck(window.file_position):
            return True  # compiled code reads on
        size = min(CHUNK_BYTES, max(block.stop - window.file_position, 0) + _MARGIN_BYTES)
        view = window.buffer[window.filled : window.filled + size].data
        count = block.file.read_into(view, window.file_position)
        window.filled += count
        window.file_position += count
        block.has_ended = not count
        return True

    def _giant(self, block: _Block) -> None:
        """Read the unit at the cursor, which is longer than a block."""
        window, file = block.window, block.file
        position = window.base + window.cursor
        size = int.from_bytes(file.read(position, 4), "big")
        data = np.empty(0, np.uint8)
        if size <= MAX_UNIT_BYTES and has_frame(lambda start, count: file.read(position + start, count), size):
            data = np.empty(min(size + FOLLOWING_BYTES, file.size - position), np.uint8)
            data = data[: file.read_into(data.data, position)]
        unit_window = Window(data, position, 0, len(data))
        unit_block = _Block(file, block.source, unit_window, position + 1, True, block.start_offset)
        columns = self._borrow()
        self._search_units(unit_block, columns, has_crc=True)
        count = columns.count
        next_position = position + 1
        if count and columns.kind[0] != HEAD:
            self._add_rows(unit_block, 0, columns, has_crc=True)
            next_position = int(columns.offset[count - 1]) + int(columns.size[count - 1])
        else:
            head = read_head(window.buffer[: window.filled], window.cursor)
            if head is not None:
                self.finds.heads.append(HeadFragment(block.source, position, head))
        self._inner.append(columns)
        block.move_to(next_position)

    # -- rows

    def _add_rows(
        self, block: _Block, start: int, columns: UnitColumns, *, has_crc: bool | None = None, in_damaged: bool = False
    ) -> None:
        """Add the runs and heads of ``columns``, the result of a search from the position ``start`` of the block on."""
        count = int(np.searchsorted(columns["offset"], block.stop))
        heads = np.flatnonzero(columns.kind[:count] == HEAD)
        if count and columns.kind[count - 1] != HEAD:
            block.covered_to = int(columns.offset[count - 1]) + int(columns.size[count - 1])
        is_unit: slice | npt.NDArray[np.int64] = slice(0, count)
        if len(heads):
            self._add_heads(block, columns, heads, in_damaged=in_damaged)
            is_unit = np.flatnonzero(columns.kind[:count] != HEAD)
            if not len(is_unit):
                return
        elif not count:
            return
        offsets, physical = columns.offset[is_unit], columns.physical_offset[is_unit]
        sizes = columns.size[is_unit].astype(np.int64)
        live = self._live_rows(block, offsets, sizes, physical)
        is_all_live = live is not None and bool(live.all())
        if has_crc is None:
            has_crc, self._checks_first = self._checks_first, live is None or not live.any()
            if not has_crc and not is_all_live:
                columns = self._check(block, start, count)
        bad = None
        if not is_all_live:
            bad = (columns.crc[is_unit] == BAD) & (columns.body_crc[is_unit] != 0)  # 0: the writer stored none
            if live is not None:
                bad &= ~live
            if not bad.any():
                bad = None
        rows = _Rows(offsets, sizes, physical, live, bad)
        self._add_runs(block, rows, in_damaged=in_damaged)

    def _check(self, block: _Block, start: int, count: int) -> UnitColumns:
        """Return the first ``count`` rows from the position ``start`` on again, with their CRCs."""
        window, columns = block.window, self._checked
        again = Window(window.buffer, window.base, start, window.filled)
        self._search_units(_Block(block.file, block.source, again, block.stop, block.is_last), columns, has_crc=True)
        assert columns.count >= count
        return columns

    def _add_heads(self, block: _Block, columns: UnitColumns, rows: npt.NDArray[np.int64], *, in_damaged: bool) -> None:
        names = ("offset", "size", "physical_offset", "queue_id", "queue_offset", "store_timestamp")
        for position, *fields in zip(*(getattr(columns, name)[rows].tolist() for name in names), strict=True):
            fragment = HeadFragment(block.source, position, UnitHead(*fields), in_damaged=in_damaged)
            self.finds.heads.append(fragment)

    def _live_rows(self, block: _Block, offsets: Int64, sizes: Int64, physical: Int64) -> npt.NDArray[np.bool_] | None:
        """Return which rows the store has at their offset, byte by byte the same; None if it has none of them.

        Where a few rows of a block are probed and all differ, the others are taken to differ, too:
        :mod:`.salvage` compares again what it reports.
        """
        if not self._units.overlaps(int(physical.min()), int((physical + sizes).max())):
            return None
        live = self._units.covers(physical, physical + sizes)
        covered = np.flatnonzero(live)
        if not len(covered):
            return None
        window = block.window
        positions = offsets - window.base
        probes = covered[np.linspace(0, len(covered) - 1, min(len(covered), _PROBES)).astype(np.int64)]
        if not any(
            self._log.read(int(physical[row]), HEAD_BYTES)
            == window.buffer[positions[row] : positions[row] + HEAD_BYTES].tobytes()
            for row in probes.tolist()
        ):
            return None
        gaps = offsets[1:] - offsets[:-1] - sizes[:-1]
        together = live[1:] & live[:-1] & (physical[1:] - physical[:-1] == offsets[1:] - offsets[:-1])
        together &= (gaps == 0) | (gaps == _ENTRY_BYTES)
        breaks = (np.flatnonzero(~together) + 1).tolist()
        firsts = np.array([0, *breaks])
        lasts = np.array([*breaks, len(sizes)]) - 1
        groups = np.flatnonzero(live[firsts])
        firsts, lasts = firsts[groups], lasts[groups]
        data = window.buffer[: window.filled]
        lengths = physical[lasts] + sizes[lasts] - physical[firsts]
        same = self._comparison.are_equal(data, positions[firsts], physical[firsts], lengths)
        for first, last in zip(firsts[~same].tolist(), lasts[~same].tolist(), strict=True):
            rows = slice(first, last + 1)
            live[rows] = self._comparison.are_equal(data, positions[rows], physical[rows], sizes[rows])
        return live if live.any() else None

    def _pass_over_live(self, block: _Block) -> None:
        """Move the cursor behind what the store has, too, if a long live run ends there: comparing is all it takes.

        The store's walk knows how many units that are.
        """
        window, runs = block.window, self.finds.runs
        run = runs[-1] if runs else None
        if run is None or not run.is_live or run.source != block.source or run.size < _MIN_AHEAD_BYTES:
            return
        position, offset = run.end_position, run.end_offset
        if not 0 <= window.base + window.cursor - position <= _ENTRY_BYTES:
            return
        limit = min(self._units.end_of_range(offset) - offset, block.stop - position)
        if limit <= 0:
            return
        equal = self._comparison.count_equal(block.file, window.descriptor, position, offset, limit)
        _, count_before = self._units.whole_before(offset, self._log)
        end, count = self._units.whole_before(offset + equal, self._log)
        if end > offset:
            self._add_run(UnitRun(block.source, position, offset, end - offset, count - count_before, is_live=True))
            block.move_to(position + end - offset)

    def _add_runs(self, block: _Block, rows: _Rows, *, in_damaged: bool) -> None:
        breaks = rows.breaks(block.window)
        count = len(rows.sizes)
        proven = self._proven_ends(block, rows, breaks)
        firsts, ends = [0, *breaks], [*breaks, count]
        lasts = np.array(ends) - 1
        bytes_before = np.concatenate(([0], np.cumsum(rows.sizes))).tolist()
        columns = (rows.offsets[firsts], rows.physical[firsts], rows.offsets[lasts], rows.sizes[lasts])
        facts = zip(firsts, ends, proven, *(column.tolist() for column in columns), strict=True)
        for first, last, is_proven, position, physical_offset, last_position, last_size in facts:
            if rows.bad is not None and rows.bad[first]:
                self._add_damaged(block, position, int(rows.sizes[first]))
                continue
            if physical_offset < 0:
                continue
            is_live = rows.live is not None and bool(rows.live[first])
            stop, last_row = last, last - 1
            end = last_position + last_size
            if (
                not is_live
                and not is_proven
                and (last == count or not rows.is_chained(last))
                and not self._is_end_proven(block, last_position, last_size, int(rows.physical[last_row]))
            ):
                if last_row == first:
                    continue
                stop = last_row
                end = int(rows.offsets[stop - 1] + rows.sizes[stop - 1])
            has_entries = stop - first > 1 and end - position != bytes_before[stop] - bytes_before[first]
            self._add_run(
                UnitRun(
                    block.source,
                    position,
                    physical_offset,
                    end - position,
                    stop - first,
                    is_live,
                    in_damaged,
                    has_entries,
                )
            )

    def _proven_ends(self, block: _Block, rows: _Rows, breaks: list[int]) -> list[bool]:
        """Return for each run whether the end of its last unit is proven, as far as that is simple to see."""
        lasts = np.array([*breaks, len(rows.sizes)]) - 1
        if block.start_offset is not None:
            return [False] * len(lasts)
        positions = rows.offsets[lasts] - block.window.base
        proven = are_ends_proven(block.window, positions, rows.sizes[lasts], rows.physical[lasts])
        is_proven: list[bool] = proven.tolist()
        return is_proven

    def _add_damaged(self, block: _Block, offset: int, size: int) -> None:
        """Add a unit with a wrong body CRC, and the units within it."""
        start = offset - block.window.base
        head = read_head(block.window.buffer[: block.window.filled], start)
        if head is not None:
            self.finds.heads.append(HeadFragment(block.source, offset, head, is_bad_body=True))
        self._search_inside(block, start + 8, start + size, in_damaged=True)

    def _search_inside(self, block: _Block, start: int, stop: int, *, in_damaged: bool) -> None:
        """Add the units that begin in [start, stop) of the block; with ``in_damaged`` they end there, too."""
        window = block.window
        columns = self._borrow()
        inner_window = Window(window.buffer, window.base, start, stop if in_damaged else window.filled)
        inner = _Block(block.file, block.source, inner_window, window.base + stop, True, block.start_offset)
        while True:
            outcome = self._search_units(inner, columns, has_crc=True)
            if columns.count:
                self._add_rows(inner, start, columns, has_crc=True, in_damaged=in_damaged)
            if outcome != "full":
                break
        self._inner.append(columns)

    def _borrow(self) -> UnitColumns:
        return self._inner.pop() if self._inner else UnitColumns(_INNER_ROWS)

    def _is_end_proven(self, block: _Block, offset: int, size: int, physical_offset: int) -> bool:
        """Check the last unit of a run; one that may end with bytes of another file is a fragment."""
        window = block.window
        start = offset - window.base
        unit = window.buffer[start : start + size].tobytes()
        following = window.buffer[start + size : min(start + size + FOLLOWING_BYTES, window.filled)].tobytes()
        if len(following) < FOLLOWING_BYTES:
            following = block.file.read(offset + size, FOLLOWING_BYTES)
        moved_by = block.moved_by(offset, physical_offset)
        verdict = judge_end(unit, physical_offset, following, moved_by=moved_by)
        if verdict == "proven":
            return True
        if verdict == "open":
            self.finds.open_ends.append(UnitRun(block.source, offset, physical_offset, size, 1, is_live=False))
        head = read_head(unit, 0)
        if head is not None:
            self.finds.heads.append(HeadFragment(block.source, offset, head))
        inner_start = (physical_offset // PAGE_BYTES + 1) * PAGE_BYTES - physical_offset
        frame = check_frame(unit, 0, size)
        if not isinstance(frame, str):  # behind a body that matches its CRC units of another file may begin
            body_end = frame.body + frame.body_length
            has_crc = any(unit[8:12])
            inner_start = body_end if has_crc else min(inner_start, body_end)
        if inner_start < size and PREFIX in unit[inner_start:] + following[:8]:
            self._search_inside(block, start + inner_start, start + size, in_damaged=False)
        return False

    def _add_run(self, run: UnitRun) -> None:
        """Add a run, or lengthen the one before if the units go on there."""
        runs = self.finds.runs
        previous = runs[-1] if runs else None
        if (
            previous is not None
            and (previous.source, previous.is_live, previous.in_damaged) == (run.source, run.is_live, run.in_damaged)
            and previous.end_position == run.position
            and previous.end_offset == run.physical_offset
        ):
            size, count = previous.size + run.size, previous.unit_count + run.unit_count
            runs[-1] = previous._replace(size=size, unit_count=count)
        else:
            runs.append(run)


@dataclass(slots=True)
class _Rows:
    """Columns of the units in a block; ``live`` and ``bad`` are None if no row is."""

    offsets: Int64
    sizes: Int64
    physical: Int64
    live: npt.NDArray[np.bool_] | None
    bad: npt.NDArray[np.bool_] | None

    def breaks(self, window: Window) -> list[int]:
        """Return the rows at which a run begins, but for the first: there the units do not go on."""
        offsets, sizes, physical = self.offsets, self.sizes, self.physical
        chained = offsets[1:] == offsets[:-1] + sizes[:-1]
        if not chained.all():
            chained |= self._behind_entries(window)
        chained &= physical[1:] - physical[:-1] == offsets[1:] - offsets[:-1]
        if self.live is not None:
            chained &= self.live[1:] == self.live[:-1]
        if self.bad is not None:
            chained &= ~(self.bad[1:] | self.bad[:-1])
        return [] if chained.all() else (np.flatnonzero(~chained) + 1).tolist()

    def is_chained(self, row: int) -> bool:
        """Return True if the unit of ``row`` begins where the one before ends, here and in the log."""
        end, physical_end = self.offsets[row - 1] + self.sizes[row - 1], self.physical[row - 1] + self.sizes[row - 1]
        return bool(self.offsets[row] == end and self.physical[row] == physical_end)

    def _behind_entries(self, window: Window) -> npt.NDArray[np.bool_]:
        """Return which rows but the first have only the header of their DLedger entry in front of them."""
        has_entry = np.zeros(len(self.sizes) - 1, np.bool_)
        ends = self.offsets[:-1] + self.sizes[:-1]
        rows = np.flatnonzero(self.offsets[1:] == ends + _ENTRY_BYTES)
        if len(rows):
            starts = ends[rows] - window.base
            heads = np.ascontiguousarray(window.buffer[starts[:, None] + _FIRST_BYTES]).view(">i4")
            has_entry[rows] = (heads[:, 0] == dledger.MAGIC) & (heads[:, 1] == self.sizes[rows + 1] + _ENTRY_BYTES)
        return has_entry


@dataclass(slots=True)
class _Block:
    """A range of a file up to ``stop``, of which a part is in memory. ``has_ended``: nothing follows it."""

    file: Readable
    source: int
    window: Window
    stop: int
    has_ended: bool = False
    start_offset: int | None = None
    covered_to: int = 0
    """End of the last unit that begins in the range: it may lie behind ``stop``."""
    is_last: bool = False
    """True if the last search was told that nothing follows the bytes in memory."""
    _stuck_at: int = -1

    def moved_by(self, position: int, physical_offset: int) -> int:
        """Return by how many bytes a unit in a file of the store was moved, if no file system moves it so; else 0."""
        shift = self.start_offset + position - physical_offset if self.start_offset is not None else 0
        return shift if shift % PAGE_BYTES else 0

    def is_stuck(self, file_position: int) -> bool:
        """Return True if compiled code could not read from ``file_position`` on, or was not asked to."""
        is_stuck = self._stuck_at == file_position
        self._stuck_at = file_position
        return is_stuck

    def shift(self) -> None:
        """Move the bytes from the cursor on to the front."""
        window = self.window
        remaining = window.filled - window.cursor
        filled = -(-remaining // CACHE_LINE_BYTES) * CACHE_LINE_BYTES
        window.buffer[filled - remaining : filled] = window.buffer[window.cursor : window.filled].copy()
        window.base += window.cursor - (filled - remaining)
        window.cursor, window.filled = filled - remaining, filled

    def move_to(self, position: int) -> None:
        """Go on at ``position`` of the file, which may be behind the bytes in memory."""
        window = self.window
        if position - window.base <= window.filled:
            window.cursor = position - window.base
            return
        window.base = window.file_position = position // PAGE_BYTES * PAGE_BYTES
        window.cursor, window.filled = position - window.base, 0
