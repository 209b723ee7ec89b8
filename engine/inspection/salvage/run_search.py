"""Searches images for runs of whole units: units that lie back to back and whose physical offsets do, too.

:mod:`engine.codec.unit_survey` passes over what is simple to see, in one call for many blocks. For the rest,
:mod:`engine.codec.block_search` finds the units of a block, and :mod:`engine.codec.unit_runs` groups them into runs.
What follows looks only at the ends of runs, all those of a block at once. Memory is one block and the tables of the
result, whatever the size of an image.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine.codec import dledger
from engine.codec.block_search import HEAD, Outcome, search_units
from engine.codec.columns import BUFFER_BYTES, CACHE_LINE_BYTES, CHUNK_BYTES, UnitColumns, Window, aligned_buffer
from engine.codec.message import MAX_UNIT_BYTES, check_frame
from engine.codec.proven_ends import OTHER_BYTES, judge_ends
from engine.codec.topic_table import TopicTable
from engine.codec.unit_flavours import PREFIX
from engine.codec.unit_runs import BAD_BODY, GOES_ON, HAS_ENTRIES, HAS_ENTRIES_BEFORE_LAST, LIVE, BlockRuns, find_runs
from engine.codec.unit_search import FOLLOWING_BYTES, HEAD_BYTES, PAGE_BYTES, has_frame, judge_end, read_head
from engine.codec.unit_survey import CLOSED_FILE, DAMAGED_UNIT, OPEN_END, PAUSED, Surveyor
from engine.inspection.log_reader import LogReader
from engine.inspection.salvage.searched_files import Readable, Source
from engine.inspection.salvage.store_comparison import StoreComparison
from engine.inspection.salvage.store_units import Int64, StoreUnits
from engine.inspection.salvage.unit_tables import HeadFragment, RunTable, SearchResult, UnitRun

WINDOW_BYTES = BUFFER_BYTES
"""Bytes in memory at a time."""
_MARGIN_BYTES = 1 << 16
"""Bytes read behind a range: a unit that begins in it may end there."""
_SURVEY_BYTES = 1 << 26
"""Bytes after which the progress is reported."""
_HEAD_FIELDS = struct.Struct(">iIiiiqq")
_ROWS = 8192
_INNER_ROWS = 256
_MIN_AHEAD_BYTES = 1 << 20
"""Bytes of a live run from which on what follows is compared before it is searched."""
_PROBES = 8
_ENTRY_BYTES = dledger.HEADER_SIZE
_HEAD_COLUMNS = ("offset", "size", "physical_offset", "queue_id", "queue_offset", "store_timestamp")


class RunSearch:
    """Searches sources one after the other. Units that the store has at their offset become live runs."""

    def __init__(self, log: LogReader, units: StoreUnits) -> None:
        self._log, self._units = log, units
        self._topics = TopicTable()
        self._columns = UnitColumns(_ROWS)
        self._live = np.empty(max(_ROWS, _INNER_ROWS), np.uint8)
        self._inner: list[UnitColumns] = []
        """Columns that no search within a unit uses at the moment."""
        self._buffer = aligned_buffer(WINDOW_BYTES)
        self._surveyor = Surveyor()
        self._comparison = StoreComparison(log)
        self._checks_first = False
        """True if the bodies are checked in the first search: the units before were not those of the store."""
        self._result = SearchResult()
        self._inner_runs = RunTable()
        """Runs within other units."""

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
                    base, done_before = position // PAGE_BYTES * PAGE_BYTES, done - start
                    window = Window(self._buffer, base, position - base, 0, descriptor, base, CHUNK_BYTES)
                    block = _Block(file, number, window, stop, base >= file.size, source.start_offset)
                    while self._search_on(block):
                        on_progress(done_before + min(window.base + window.cursor, stop))
                    position = max(stop, block.covered_to)
                done += stop - start
                on_progress(done)
        finally:
            self._comparison.close()
            if descriptor >= 0:
                os.close(descriptor)

    def result(self) -> SearchResult:
        """Return what all searches found; runs by their places."""
        runs, inner = self._result.runs, self._inner_runs
        if len(inner):
            runs.append(len(inner), *inner.rows.T)
            runs.reorder(np.lexsort((runs.rows[:, 1], runs.rows[:, 0])))
            self._inner_runs = RunTable()
        return self._result

    def _search_on(self, block: _Block) -> bool:
        """Search on in a block; False if its range is done."""
        if self._survey(block):
            return True
        has_more = self._search_block(block)
        if has_more:
            self._pass_over_live(block)
        return has_more

    def _survey(self, block: _Block) -> bool:
        """Pass over the units that are simple to see; False if a search must go on at the cursor."""
        window = block.window
        if block.start_offset is not None or window.descriptor < 0:
            return False
        start = window.base + window.cursor
        stop = min(start + _SURVEY_BYTES, block.stop)
        survey = self._surveyor.survey(window, stop, self._comparison.log_bytes(self._units), self._topics)
        if survey is None:
            return False
        self._result.runs.append_runs(len(survey.runs), block.source, *survey.runs.T, False, False)
        self._result.heads.append(len(survey.heads), block.source, *survey.heads.T, False, False)
        self._result.joins.append(len(survey.joins), block.source, *survey.joins.T)
        if survey.reason in (OPEN_END, DAMAGED_UNIT):
            self._add_unit_at_cursor(block, is_damaged=survey.reason == DAMAGED_UNIT)
            return True
        if survey.reason == CLOSED_FILE:
            self._comparison.open_file(survey.wanted_offset)
            return True
        return survey.reason == PAUSED and start < window.base + window.cursor < block.stop

    def _add_unit_at_cursor(self, block: _Block, *, is_damaged: bool) -> None:
        """Add the unit at the cursor: it is damaged, or its end must be judged."""
        window = block.window
        position = window.base + window.cursor
        size, _, _, _, _, _, offset = _HEAD_FIELDS.unpack_from(window.buffer.data, window.cursor)
        if is_damaged:
            self._add_damaged(block, position, size)
        elif self._is_end_proven(block, position, size, offset):
            self._result.runs.append_runs(1, block.source, position, offset, size, 1, False, False, False)
        window.cursor += size
        block.covered_to = position + size

    def _search_block(self, block: _Block) -> bool:
        """Search on in a block; False if its range is done."""
        columns = self._columns
        outcome = self._search_units(block, columns, has_crc=self._checks_first)
        self._add_rows(block, columns, has_crc=self._checks_first)
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
            self._add_rows(unit_block, columns, has_crc=True)
            next_position = int(columns.offset[count - 1]) + int(columns.size[count - 1])
        else:
            head = read_head(window.buffer[: window.filled], window.cursor)
            if head is not None:
                self._result.heads.append_head(HeadFragment(block.source, position, head))
        self._inner.append(columns)
        block.move_to(next_position)

    # -- rows

    def _add_rows(self, block: _Block, columns: UnitColumns, *, has_crc: bool, in_damaged: bool = False) -> None:
        """Add the runs and heads of ``columns``, the result of a search of the block, which checked CRCs or not."""
        count = int(np.searchsorted(columns["offset"], block.stop))
        if not count:
            return
        heads = np.flatnonzero(columns.kind[:count] == HEAD)
        self._add_heads(block, columns, heads, in_damaged=in_damaged)
        if len(heads) == count:
            return
        if columns.kind[count - 1] != HEAD:
            block.covered_to = int(columns.offset[count - 1]) + int(columns.size[count - 1])
        self._live[:count] = not has_crc  # live units need no CRC
        runs = find_runs(columns, count, self._live)
        log_ends = runs.physical_offset + runs.end_position - runs.position
        overlaps = bool(self._units.overlap(runs.physical_offset, log_ends).any())
        if overlaps and has_crc:
            self._live[:count] = 1  # so runs end only where the units do not go on
            runs = find_runs(columns, count, self._live)
        is_any_live = overlaps and self._note_live(block, columns, runs)
        if not is_any_live:
            self._live[:count] = 0
        if (overlaps or not has_crc) and not self._live[:count].all():
            runs = find_runs(columns, count, self._live)
        if block.is_outer:
            self._checks_first = not is_any_live
        self._add_runs(block, columns, runs, in_damaged=in_damaged)

    def _note_live(self, block: _Block, columns: UnitColumns, runs: BlockRuns) -> bool:
        """Note which rows the store has at their offset, byte by byte the same; all were. Returns whether any is.

        Where a few rows of a block are probed and all differ, the others are taken to differ, too:
        :mod:`.salvage_search` compares again what it reports.
        """
        offsets, sizes = runs.physical_offset, runs.end_position - runs.position
        stops = offsets + sizes
        numbers = np.flatnonzero(self._units.overlap(offsets, stops))
        if not self._has_equal_probe(block, columns, runs, numbers):
            return False
        candidates = np.flatnonzero(self._units.covers(offsets, stops))
        data = block.window.buffer[: block.window.filled]
        positions = runs.position - block.window.base
        equal = np.zeros(len(offsets), np.int64)
        equal[candidates] = self._comparison.count_equal_ranges(
            data, positions[candidates], offsets[candidates], sizes[candidates]
        )
        different = np.flatnonzero(equal != sizes)
        if not len(different):
            return True
        rows = np.concatenate(
            [np.arange(runs.first_row[number], runs.last_row[number] + 1) for number in different.tolist()]
        )
        equal_to = np.repeat((runs.position + equal)[different], (runs.last_row - runs.first_row + 1)[different])
        row_positions, row_offsets = columns.offset[rows], columns.physical_offset[rows]
        row_sizes = columns.size[rows].astype(np.int64)
        is_live = row_positions + row_sizes <= equal_to
        unproven = np.flatnonzero(~is_live & self._units.covers(row_offsets, row_offsets + row_sizes))
        unproven = unproven[columns.kind[rows[unproven]] != HEAD]
        ranges = row_positions[unproven] - block.window.base, row_offsets[unproven], row_sizes[unproven]
        is_live[unproven] = self._comparison.count_equal_ranges(data, *ranges) == ranges[2]
        self._live[rows] = is_live
        return len(different) < len(sizes) or bool(is_live.any())

    def _has_equal_probe(self, block: _Block, columns: UnitColumns, runs: BlockRuns, numbers: Int64) -> bool:
        """Return True if the store has the beginning of one of a few units, spread over the runs ``numbers``."""
        counts = (runs.last_row - runs.first_row + 1)[numbers]
        row_ends = np.cumsum(counts)
        picks = np.linspace(0, row_ends[-1] - 1, min(int(row_ends[-1]), _PROBES)).astype(np.int64)
        indexes = np.searchsorted(row_ends, picks, "right")
        rows = runs.first_row[numbers][indexes] + picks - (row_ends - counts)[indexes]
        window = block.window
        for row in rows.tolist():
            position = int(columns.offset[row]) - window.base
            head = window.buffer[position : position + HEAD_BYTES].tobytes()
            if self._log.read(int(columns.physical_offset[row]), HEAD_BYTES) == head:
                return True
        return False

    def _pass_over_live(self, block: _Block) -> None:
        """Move the cursor behind what the store has, too, if a long live run ends there: comparing is all it takes.

        The store's walk knows how many units that are.
        """
        window, runs = block.window, self._result.runs
        run = runs[len(runs) - 1] if len(runs) else None
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
            runs.append_runs(1, block.source, position, offset, end - offset, count - count_before, True, False, False)
            block.move_to(position + end - offset)

    def _add_runs(self, block: _Block, columns: UnitColumns, runs: BlockRuns, *, in_damaged: bool) -> None:
        is_live, is_bad = (runs.flags & LIVE) != 0, (runs.flags & BAD_BODY) != 0
        is_good = ~is_bad & (runs.physical_offset >= 0)
        is_doubtful = is_good & ~is_live & ((runs.flags & GOES_ON) == 0)
        is_cut = np.zeros(len(is_good), np.bool_)
        if block.start_offset is None and is_doubtful.any():
            positions = runs.last_position - block.window.base
            verdicts = judge_ends(block.window, positions, runs.last_size, runs.last_physical_offset)
            is_cut = is_doubtful & (verdicts == OTHER_BYTES)
            is_doubtful &= verdicts == 0
            self._add_heads(block, columns, runs.last_row[is_cut])
        for number in np.flatnonzero(is_doubtful | is_bad).tolist():
            if is_bad[number]:
                self._add_damaged(block, int(runs.position[number]), int(runs.last_size[number]))
                continue
            position, size = int(runs.last_position[number]), int(runs.last_size[number])
            is_cut[number] = not self._is_end_proven(block, position, size, int(runs.last_physical_offset[number]))
        ends, counts = np.where(is_cut, runs.end_before_last, runs.end_position), runs.unit_count - is_cut
        has_entries = (runs.flags & np.where(is_cut, HAS_ENTRIES_BEFORE_LAST, HAS_ENTRIES)) != 0
        is_kept = is_good & (counts > 0)
        fields = runs.position, runs.physical_offset, ends - runs.position, counts, is_live, is_kept, has_entries
        if not is_kept.all():
            fields = tuple(column[is_kept] for column in fields)
        positions, offsets, sizes, counts, is_live, _, has_entries = fields
        table = self._result.runs if block.is_outer else self._inner_runs
        columns_of_runs = positions, offsets, sizes, counts, is_live, in_damaged, has_entries
        table.append_runs(len(positions), block.source, *columns_of_runs)

    def _add_heads(self, block: _Block, columns: UnitColumns, rows: Int64, *, in_damaged: bool = False) -> None:
        if len(rows):
            fields = (getattr(columns, name)[rows] for name in _HEAD_COLUMNS)
            self._result.heads.append(len(rows), block.source, *fields, False, in_damaged)

    def _add_damaged(self, block: _Block, offset: int, size: int) -> None:
        """Add a unit with a wrong body CRC, and the units within it."""
        start = offset - block.window.base
        head = read_head(block.window.buffer[: block.window.filled], start)
        if head is not None:
            self._result.heads.append_head(HeadFragment(block.source, offset, head, is_bad_body=True))
        self._search_inside(block, start + 8, start + size, in_damaged=True)

    def _search_inside(self, block: _Block, start: int, stop: int, *, in_damaged: bool) -> None:
        """Add the units that begin in [start, stop) of the block; with ``in_damaged`` they end there, too."""
        window = block.window
        columns = self._borrow()
        inner_window = Window(window.buffer, window.base, start, stop if in_damaged else window.filled)
        inner = _Block(
            block.file, block.source, inner_window, window.base + stop, True, block.start_offset, is_outer=False
        )
        while True:
            outcome = self._search_units(inner, columns, has_crc=True)
            self._add_rows(inner, columns, has_crc=True, in_damaged=in_damaged)
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
            self._result.open_ends.append(UnitRun(block.source, offset, physical_offset, size, 1, is_live=False))
        head = read_head(unit, 0)
        if head is not None:
            self._result.heads.append_head(HeadFragment(block.source, offset, head))
        inner_start = (physical_offset // PAGE_BYTES + 1) * PAGE_BYTES - physical_offset
        frame = check_frame(unit, 0, size)
        if not isinstance(frame, str):  # behind a body that matches its CRC units of another file may begin
            body_end = frame.body + frame.body_length
            has_crc = any(unit[8:12])
            inner_start = body_end if has_crc else min(inner_start, body_end)
        if inner_start < size and PREFIX in unit[inner_start:] + following[:8]:
            self._search_inside(block, start + inner_start, start + size, in_damaged=False)
        return False


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
    is_outer: bool = True
    """False for a range within a unit."""
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
