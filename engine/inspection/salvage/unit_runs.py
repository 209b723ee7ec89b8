"""Whole units in any bytes, as runs: units that lie back to back and whose physical offsets do, too.

A magic number is searched for with numpy; from there on the compiled walk goes from unit to unit until something is no
unit. So sound bytes are read at the speed of the log's walk, and foreign bytes at that of the search. Memory is one
window and the runs, whatever the size of an image.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from engine.codec.columns import BAD, BLANK, UnitColumns, scan_block
from engine.codec.topic_table import TopicTable
from engine.codec.unit_search import (
    FOLLOWING_BYTES,
    HEAD_BYTES,
    PAGE_BYTES,
    PIECE_BYTES,
    UnitHead,
    find_magics,
    judge_end,
    read_head,
)
from engine.inspection.log_reader import LogReader
from engine.inspection.salvage.sources import Readable, Source, StoreUnits

WINDOW_BYTES = 1 << 20
"""Bytes read at a time: they stay in the second-level cache until they are searched."""
_MARGIN_BYTES = 1 << 16
"""Bytes read behind a range: a unit that begins in it may end there."""
_ROWS = 4096


@dataclass(frozen=True, slots=True)
class UnitRun:
    """``count`` whole units back to back in the source number ``source``, from ``position`` of the file on.

    ``physical_offset`` is that of the first one. ``is_live``: the store has the same bytes at that offset.
    ``in_damaged`` means that the bytes lie within a unit whose body CRC is wrong.
    """

    source: int
    position: int
    physical_offset: int
    size: int
    count: int
    is_live: bool
    in_damaged: bool = False

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


@dataclass(frozen=True, slots=True)
class HeadFragment:
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
        self._window = np.empty(WINDOW_BYTES, np.uint8)
        self._checks_first = False
        """True if the bodies are checked in the first walk: the units before were not those of the store."""
        self.finds = Finds()

    def search(self, source: Source, number: int, on_progress: Callable[[int], None]) -> None:
        """Add what the ranges of ``source`` hold; ``on_progress`` gets the bytes done of it."""
        done, position = 0, 0
        for start, stop in source.ranges:
            position = max(start, position)
            while position < stop:
                size = min(WINDOW_BYTES, stop - position + _MARGIN_BYTES)
                filled = source.file.read_into(self._window[:size].data, position)
                if filled <= 0:
                    break
                is_last = position + filled >= source.file.size
                window = _Window(source.file, self._window, filled, position, number, is_last)
                cursor = self._search_window(window, 0, min(stop - position, filled))
                position += cursor or self._giant(source, number, position)
                on_progress(done + min(position, stop) - start)
            done += stop - start

    def _search_window(self, window: _Window, cursor: int, stop: int, *, in_damaged: bool = False) -> int:
        """Add the units that begin in [cursor, stop) of the window; returns the position at which the next one begins.

        It is 0 if the first unit is longer than the window.
        """
        data = window.data[: window.filled]
        is_cut = not window.is_last and not in_damaged
        while cursor < stop:
            piece_stop = min(cursor + PIECE_BYTES, stop)
            for magic in find_magics(data, cursor + 4, piece_stop + 4).tolist():
                start = int(magic) - 4
                if start < cursor:
                    continue
                end = self._walk(window, start, stop if in_damaged else window.filled, in_damaged=in_damaged)
                if end > start:
                    cursor = end
                    continue
                if is_cut and start + HEAD_BYTES > window.filled:
                    return start
                head = read_head(data, start)
                if head is None:
                    continue
                if is_cut and start + head.size > window.filled:
                    return start
                fragment = HeadFragment(window.source, window.position + start, head, in_damaged=in_damaged)
                self.finds.heads.append(fragment)
            cursor = max(cursor, piece_stop)
        return max(cursor, 1)

    def _walk(self, window: _Window, start: int, stop: int, *, in_damaged: bool) -> int:
        """Add the units that lie back to back from ``start`` on and end before ``stop``; returns their end."""
        position = start
        while True:
            result = scan_block(
                window.data,
                stop,
                window.position,
                position,
                self._columns,
                self._topics,
                crc=self._checks_first,
                with_tags=False,
            )
            rows = self._columns.count
            if rows and self._columns.kind[rows - 1] == BLANK:
                rows -= 1
            if not rows:
                return position
            live = self._live_rows(window, self._columns, rows)
            columns = self._columns
            has_checked, self._checks_first = self._checks_first, not live.any()
            if not has_checked and not live.all():
                columns = self._checked
                scan_block(window.data, stop, window.position, position, columns, self._topics, with_tags=False)
            offsets, sizes = columns.offset[:rows].copy(), columns.size[:rows].astype(np.int64)
            physical = columns.physical_offset[:rows].copy()
            bad = (columns.crc[:rows] == BAD) & (columns.body_crc[:rows] != 0) & ~live  # 0: the writer stored none
            self._add_runs(window, offsets, sizes, physical, live, bad, in_damaged=in_damaged)
            for row in np.flatnonzero(bad).tolist():
                unit_start = int(offsets[row]) - window.position
                head = read_head(window.data[: window.filled], unit_start)
                if head is not None:
                    self.finds.heads.append(HeadFragment(window.source, int(offsets[row]), head, is_bad_body=True))
                self._search_window(window, unit_start + 8, unit_start + int(sizes[row]), in_damaged=True)
            position = int(offsets[-1] + sizes[-1]) - window.position
            if result.stopped != "full":
                return position

    def _live_rows(self, window: _Window, columns: UnitColumns, rows: int) -> npt.NDArray[np.bool_]:
        """Return which rows the store has at their offset, byte by byte the same."""
        physical, sizes = columns.physical_offset[:rows], columns.size[:rows].astype(np.int64)
        live = self._units.covers(physical, physical + sizes)
        if not live.any():
            return live
        positions = columns.offset[:rows] - window.position
        together = live[1:] & live[:-1] & (physical[1:] == physical[:-1] + sizes[:-1])
        breaks = (np.flatnonzero(~together) + 1).tolist()
        for first, last in zip([0, *breaks], [*breaks, rows], strict=True):
            if not live[first]:
                continue
            begin, size = int(positions[first]), int(physical[last - 1] + sizes[last - 1] - physical[first])
            stored, here = self._log.read(int(physical[first]), size), window.data[begin : begin + size].tobytes()
            if stored == here:
                continue
            for row in range(first, last):
                start, stop = int(positions[row]) - begin, int(positions[row] + sizes[row]) - begin
                live[row] = stored[start:stop] == here[start:stop]
        return live

    def _add_runs(
        self,
        window: _Window,
        offsets: npt.NDArray[np.int64],
        sizes: npt.NDArray[np.int64],
        physical: npt.NDArray[np.int64],
        live: npt.NDArray[np.bool_],
        bad: npt.NDArray[np.bool_],
        *,
        in_damaged: bool,
    ) -> None:
        chained = physical[1:] == physical[:-1] + sizes[:-1]
        breaks = (np.flatnonzero(~chained | (live[1:] != live[:-1]) | bad[1:] | bad[:-1]) + 1).tolist()
        for first, last in zip([0, *breaks], [*breaks, len(sizes)], strict=True):
            if bad[first] or physical[first] < 0:
                continue
            stop = last
            if not live[first] and (last == len(sizes) or not chained[last - 1]):
                row = last - 1
                stop -= not self._is_end_proven(window, int(offsets[row]), int(sizes[row]), int(physical[row]))
            if stop == first:
                continue
            size = int(sizes[first:stop].sum())
            run = UnitRun(
                window.source,
                int(offsets[first]),
                int(physical[first]),
                size,
                stop - first,
                bool(live[first]),
                in_damaged,
            )
            self._add_run(run)

    def _is_end_proven(self, window: _Window, offset: int, size: int, physical_offset: int) -> bool:
        """Check the last unit of a run; one that may end with bytes of another file is a fragment."""
        start = offset - window.position
        unit = window.data[start : start + size].tobytes()
        following = window.data[start + size : min(start + size + FOLLOWING_BYTES, window.filled)].tobytes()
        if len(following) < FOLLOWING_BYTES:
            following = window.file.read(offset + size, FOLLOWING_BYTES)
        verdict = judge_end(unit, physical_offset, following)
        if verdict == "proven":
            return True
        if verdict == "open":
            self.finds.open_ends.append(UnitRun(window.source, offset, physical_offset, size, 1, is_live=False))
        head = read_head(unit, 0)
        if head is not None:
            self.finds.heads.append(HeadFragment(window.source, offset, head))
        page_start = (physical_offset // PAGE_BYTES + 1) * PAGE_BYTES - physical_offset
        self._search_window(window, start + min(page_start, size), start + size)  # units of the other file
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
            size, count = previous.size + run.size, previous.count + run.count
            runs[-1] = replace(previous, size=size, count=count)
        else:
            runs.append(run)

    def _giant(self, source: Source, number: int, position: int) -> int:
        """Read a unit that is longer than the window; returns the bytes to go on."""
        head = read_head(self._window, 0)
        assert head is not None
        data = np.empty(min(head.size, source.file.size - position), np.uint8)
        filled = source.file.read_into(data.data, position)
        window = _Window(source.file, data, filled, position, number, is_last=True)
        end = self._walk(window, 0, filled, in_damaged=False)
        if end == 0:
            self.finds.heads.append(HeadFragment(number, position, head))
        return end or 8


@dataclass(slots=True)
class _Window:
    """``filled`` bytes of a file from ``position`` on; with ``is_last`` none follow that are searched."""

    file: Readable
    data: npt.NDArray[np.uint8]
    filled: int
    position: int
    source: int
    is_last: bool
