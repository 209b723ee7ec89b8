"""Puts units together whose bytes lie in several places: in several extents of a file, or in pages that were swapped.

A file system moves whole blocks, so a unit can only be cut where its offset in the log is a multiple of 4 KiB. Each run
of whole units shows which blocks of its source hold which pages of the log. For the pages between two runs these places
are tried: the next blocks, the next ones without blocks of other files, and blocks that other units name. The body CRC
decides, so no unit is put together that the writer did not write::

    log       | page 7        | page 8        | page 9        |
    image     | page 7 | other file | page 8 | page 9 |
    unit              [=======  …   ====]
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain, groupby, islice, takewhile
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.callbacks import Cancelled
from engine.codec import dledger
from engine.codec.compression import COMPRESSED, unpack
from engine.codec.crc import crc31
from engine.codec.message import BORN_HOST_V6, MAGIC_BLANK, STORE_HOST_V6, Frame, check_frame
from engine.codec.page_choice import MAX_COMBINATIONS, PageChoice, find_breaks, find_least_similar, raw_crc
from engine.codec.proven_ends import find_borders
from engine.codec.unit_flavours import BY_MAGIC
from engine.codec.unit_search import (
    FOLLOWING_BYTES,
    HEAD_BYTES,
    PAGE_BYTES,
    STORE_HOST_END_BYTES,
    EndVerdict,
    UnitHead,
    is_tail,
    judge_end,
    names_other_host,
    read_head,
)
from engine.inspection.salvage.searched_files import Source
from engine.inspection.salvage.store_units import StoreUnits
from engine.inspection.salvage.unit_tables import HeadFragment, HeadTable, Int64, RunTable, SearchResult, UnitRun

MAX_JUMPS = 4
MAX_SKIPPED_PAGES = 48
"""Blocks of other files between two of the log's, where nothing says how many there are."""
MAX_ATTEMPTS = 3000
"""Combinations of pages that are tried for one unit."""
_MAX_ATTEMPT_BYTES = 64 << 20
MAX_LEFT_OUT_PAGES = 512
"""Pages of other files between the first and the last page of a unit."""
_SMALL_SPAN_PAGES = 32
_MAX_LARGE_BYTES = 4 << 30
"""Bytes in which pages of large units are searched, in all: a bound for images with many units that are not whole."""
_MIN_SAMPLE_BYTES = 256
_MAX_CHOICES = 16
_MAX_PLAIN_SURPLUS = 1
_MAX_BREAKS = 40
_MORE_IF_PACKED = 5
"""A compressed body proves itself once more, so 32 times as many choices may be tried."""
_FEW_CHOICES = 1 << 12
_MAX_CACHED_PAGES = 4096
_OVERLAPPING_RUNS = 32
_MAX_DAMAGED_PAGES = 64
_NEAR_BYTES = 1 << 17
_MAX_BORDERS = 4
_MAX_PAGE_HEADS = 8
_SOURCE, _POSITION, _OFFSET, _SIZE, _UNIT_COUNT, _IS_LIVE, _IN_DAMAGED, _HAS_ENTRIES = range(8)
"""Columns of runs."""
_HEAD_SIZE, _HEAD_OFFSET = 2, 3
"""Columns of heads, which begin with their source and position, too."""
_JOINED_WIDTH = 2 + 2 * 3
_WITH_HEAD, _JOINED = 1, 2
"""Kinds of places where units begin; 0 is the end of a run."""
_I64 = struct.Struct(">q")
_ENTRY = dledger.MAGIC.to_bytes(4, "big")
_BLANK = MAGIC_BLANK.to_bytes(4, "big")


class PagePlace(NamedTuple):
    """The place of a page of the log: the source's number, and position in it minus offset in the log."""

    source: int
    shift: int


class Piece(NamedTuple):
    """Bytes of a unit: the source's number, the position in it, and their number."""

    source: int
    position: int
    size: int


class Reassembled(NamedTuple):
    """A whole unit at ``offset`` of the log that was put together; its body matches its CRC."""

    offset: int
    size: int
    pieces: tuple[Piece, ...]

    @property
    def end(self) -> int:
        return self.offset + self.size


class Reassembly:
    """Puts units together that begin where a run ends, or of which the head was found."""

    def __init__(self, sources: Sequence[Source], units: StoreUnits, result: SearchResult) -> None:
        self._sources, self._units, self._result = sources, units, result
        self._runs = _sorted_runs(result.runs)
        rows = self._runs.rows
        self._starts: list[int] = rows[:, _OFFSET].tolist()
        self._max_ends: list[int] = np.maximum.accumulate(rows[:, _OFFSET] + rows[:, _SIZE]).tolist()
        self._heads = _distinct_heads(result.heads)
        self._head_offsets: list[int] = self._heads.rows[:, _HEAD_OFFSET].tolist()
        self._claimed: dict[int, tuple[list[int], list[int]]] = {}
        self._large_bytes = 0
        self._pages: dict[tuple[int, int], bytes] = {}
        """Pages that were read, by their source and position."""
        self._damaged_page_positions: dict[int, list[int]] = {}
        self._joined = np.empty((0, _JOINED_WIDTH), np.int64)
        self._joined_numbers: dict[int, int] = {}
        """The row of each unit that was joined, by its offset."""
        self._single_units: list[Reassembled] = []
        self._reassembled_heads: set[UnitHead | None] = set()
        self.open_ends: list[Reassembled] = []
        """Units with topic or properties in a page of which nothing proves that it is of the same file."""
        self.offsets: set[int] = set()
        """Offsets of the units that were put together."""

    @property
    def unit_count(self) -> int:
        """The number of units that were put together."""
        return len(self._joined) + len(self._single_units)

    @cached_property
    def units(self) -> list[Reassembled]:
        """The units that :meth:`run` put together."""
        return [_reassembled(row) for row in self._joined.tolist()] + self._single_units

    @cached_property
    def _page_heads(self) -> tuple[list[int], HeadTable]:
        """The pages in which heads begin, ascending, and the heads in this order."""
        heads = HeadTable()
        heads.append(len(self._result.heads), *self._result.heads.rows.T)
        pages = heads.rows[:, _HEAD_OFFSET] // PAGE_BYTES
        order = np.argsort(pages, kind="stable")
        heads.reorder(order)
        return pages[order].tolist(), heads

    def _heads_in_page(self, page: int) -> list[PagePlace]:
        """Return the places that the first few heads in ``page`` of the log name for it."""
        pages, heads = self._page_heads
        start = bisect_left(pages, page)
        stop = min(bisect_right(pages, page), start + _MAX_PAGE_HEADS)
        return [_place_of(heads[number]) for number in range(start, stop)]

    def _find_head(self, offset: int, place: PagePlace) -> UnitHead | None:
        """Return the head that the search found at ``place`` for the unit at ``offset``."""
        for number in range(bisect_left(self._head_offsets, offset), bisect_right(self._head_offsets, offset)):
            if _place_of(self._heads[number]) == place:
                return self._heads[number].head
        return None

    def run(self, on_progress: Callable[[int, int], None], cancelled: Cancelled | None = None) -> None:
        """Fill :attr:`units`. ``on_progress`` gets the places done and their number."""
        starts = self._expected_starts(*self._join_in_bulk())
        for number, (offset, place) in enumerate(starts):
            on_progress(number, len(starts))
            if cancelled is not None and cancelled():
                return
            next_offset, next_place = offset, place
            while True:
                if self._join_at_head(next_offset, next_place):
                    break  # a run goes on there
                unit = self._reassemble(next_offset, next_place)
                if unit is None:
                    break
                last_piece = unit.pieces[-1]
                next_offset = unit.end
                next_place = PagePlace(last_piece.source, last_piece.position + last_piece.size - next_offset)

    def _join_in_bulk(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Put together, at once, the units that begin in one place of an image and end where a run begins.

        Such a unit has two pieces: the first begins with a head, or at the end of a run if the cut is in the head; the
        second ends where the next run begins. A unit is left to :meth:`_reassemble` if another one may lie at its
        offset. Returns for each run whether the unit behind it was put together, and the same for each head.
        """
        heads, runs = self._heads.rows, self._runs.rows
        is_joined = np.zeros(len(runs) + len(heads), np.bool_)
        starts, head_offsets = runs[:, _OFFSET], heads[:, _HEAD_OFFSET]
        offsets = np.concatenate((starts + runs[:, _SIZE], head_offsets))
        next_starts = np.append(starts, 0)[np.searchsorted(starts, offsets[: len(runs)])]
        ends = np.concatenate((next_starts, head_offsets + heads[:, _HEAD_SIZE]))
        sources = np.concatenate((runs[:, _SOURCE], heads[:, _SOURCE]))
        positions = np.concatenate((runs[:, _POSITION] + runs[:, _SIZE], heads[:, _POSITION]))
        is_candidate = self._is_only_start(offsets, ends)
        is_candidate &= np.searchsorted(starts, ends, "right") - np.searchsorted(starts, ends) == 1
        numbers = np.flatnonzero(is_candidate)
        offsets, ends, sources, positions = (column[numbers] for column in (offsets, ends, sources, positions))
        previous_runs = np.searchsorted(starts, offsets, "right") - 1
        is_elsewhere = (previous_runs >= 0) & (np.array(self._max_ends)[previous_runs] > offsets)
        is_elsewhere |= self._units.overlap(offsets, offsets + 1)
        next_runs = runs[np.searchsorted(starts, ends)]
        moved_by = next_runs[:, _POSITION] - ends - (positions - offsets)
        is_other_page = (moved_by != 0) & (moved_by % PAGE_BYTES == 0)
        is_usable = ~is_elsewhere & (next_runs[:, _IS_LIVE] == 0)
        is_usable &= (next_runs[:, _SOURCE] != sources) | is_other_page
        is_image = np.array([item.start_offset is None and item.file.reads_by_itself for item in self._sources])
        is_usable &= is_image[sources] & is_image[next_runs[:, _SOURCE]]
        numbers, next_runs = numbers[is_usable], next_runs[is_usable]
        offsets, ends, sources, positions = (column[is_usable] for column in (offsets, ends, sources, positions))
        tail_sources, tail_ends = next_runs[:, _SOURCE], next_runs[:, _POSITION]
        borders = self._find_borders(sources, positions, tail_sources, tail_ends, offsets, ends - offsets)
        tail_sizes = ends - borders
        pieces = sources, positions, borders - offsets, tail_sources, tail_ends - tail_sizes, tail_sizes
        is_proven = borders >= 0
        self._joined = np.stack((offsets, ends - offsets, *pieces), axis=1)[is_proven]
        self._joined_numbers = {offset: number for number, offset in enumerate(self._joined[:, 0].tolist())}
        self.offsets.update(self._joined_numbers)
        is_joined[numbers[is_proven]] = True
        return is_joined[: len(runs)], is_joined[len(runs) :]

    def _is_only_start(self, offsets: Int64, ends: Int64) -> npt.NDArray[np.bool_]:
        """Return which units are the only ones that may begin at their offset: no other head or end of a run is there.

        The units behind runs come first, then those with a head. Between two runs no head may lie.
        """
        run_ends, head_offsets = np.split(offsets, [len(self._runs)])
        sorted_ends = np.sort(run_ends)
        end_counts = np.searchsorted(sorted_ends, run_ends, "right") - np.searchsorted(sorted_ends, run_ends)
        head_counts = np.searchsorted(head_offsets, ends[: len(run_ends)]) - np.searchsorted(head_offsets, run_ends)
        same_heads = np.searchsorted(head_offsets, head_offsets, "right") - np.searchsorted(head_offsets, head_offsets)
        return np.concatenate(((end_counts == 1) & (head_counts == 0), same_heads == 1))

    def _find_borders(
        self, sources: Int64, positions: Int64, run_sources: Int64, run_positions: Int64, offsets: Int64, sizes: Int64
    ) -> Int64:
        """Return where the second piece of each unit begins: as the search saw it, else as the files are read again
        (:func:`engine.codec.proven_ends.find_borders`).
        """
        columns = sources, positions, run_sources, run_positions, offsets, sizes
        borders = self._known_borders(*columns)
        unknown = np.flatnonzero(borders < 0)
        sources, positions, run_sources, run_positions, offsets, sizes = (column[unknown] for column in columns)
        descriptors = np.full(len(self._sources), -1, np.int64)
        try:
            for number in np.unique((sources, run_sources)).tolist():
                descriptors[number] = self._sources[number].file.descriptor()
            columns = descriptors[sources], positions, descriptors[run_sources], run_positions, offsets, sizes
            borders[unknown] = find_borders(*(np.ascontiguousarray(column) for column in columns))
            return borders
        finally:
            for descriptor in descriptors[descriptors >= 0].tolist():
                os.close(descriptor)

    def _known_borders(
        self, sources: Int64, positions: Int64, run_sources: Int64, run_positions: Int64, offsets: Int64, sizes: Int64
    ) -> Int64:
        """Return the borders of the units that were joined while they were in memory, −1 for the others."""
        joins = self._result.joins.rows
        borders = np.full(len(sizes), -1, np.int64)
        if not len(joins):
            return borders
        joins = joins[np.lexsort((joins[:, 1], joins[:, 0]))]
        source_starts = np.searchsorted(joins[:, 0], np.arange(len(self._sources) + 1))
        for number in range(len(self._sources)):
            source_joins = joins[source_starts[number] : source_starts[number + 1]]
            in_source = np.flatnonzero((sources == number) & (run_sources == number))
            if len(source_joins) and len(in_source):
                rows = source_joins[
                    np.minimum(np.searchsorted(source_joins[:, 1], positions[in_source]), len(source_joins) - 1)
                ]
                wanted = np.stack((positions, run_positions, offsets, sizes), axis=1)[in_source]
                borders[in_source] = np.where((rows[:, 1:5] == wanted).all(axis=1), rows[:, 5], -1)
        return borders

    def read(self, unit: Reassembled) -> bytes:
        """Return the bytes of a unit that was put together."""
        return b"".join(self._sources[source].file.read(position, size) for source, position, size in unit.pieces)

    def _expected_starts(
        self, is_joined: npt.NDArray[np.bool_], has_joined_head: npt.NDArray[np.bool_]
    ) -> list[tuple[int, PagePlace]]:
        """Return where units begin that are not whole nor joined: behind a run, or where a head is.

        Nothing is missing where the store has a unit, or where a run begins and no head of an image lies at that place.
        """
        runs, heads = self._runs.rows, self._heads.rows
        offsets = np.concatenate((runs[:, _OFFSET] + runs[:, _SIZE], heads[:, _HEAD_OFFSET]))
        sources = np.concatenate((runs[:, _SOURCE], heads[:, _SOURCE]))
        shifts = np.concatenate((runs[:, _POSITION] - runs[:, _OFFSET], heads[:, _POSITION] - heads[:, _HEAD_OFFSET]))
        kinds = np.concatenate((_JOINED * is_joined, np.where(has_joined_head, _JOINED, _WITH_HEAD)))
        order = np.lexsort((shifts, sources, offsets))
        places, kinds = np.stack((offsets, sources, shifts), axis=1)[order], kinds[order]
        if not len(places):
            return []
        firsts = np.flatnonzero(np.concatenate(([True], (places[1:] != places[:-1]).any(axis=1))))
        places, kinds = places[firsts], np.maximum.reduceat(kinds, firsts)
        offsets, sources = places[:, 0], places[:, 1]
        is_image = np.array([source.start_offset is None for source in self._sources])
        goes_on = is_image[sources] & (kinds == 0)
        if len(runs):
            index = np.searchsorted(runs[:, _OFFSET], offsets)
            following = runs[np.minimum(index, len(runs) - 1)]
            goes_on &= (following[:, _OFFSET] == offsets) & (following[:, _IN_DAMAGED] == 0)
        is_missing = (kinds != _JOINED) & ~goes_on & ~self._units.overlap(offsets, offsets + 1)
        return [(offset, PagePlace(*place)) for offset, *place in places[is_missing].tolist()]

    # -- one unit

    def _join_at_head(self, offset: int, place: PagePlace) -> bool:
        """Put the unit at ``offset`` together if its head was found and a run begins where it ends: the common case.

        Returns True if that was done.
        """
        head = self._find_head(offset, place)
        if head is None or self._is_reassembled_head(head):
            return False
        size = head.size
        end = offset + size
        index = bisect_left(self._starts, end)
        borders = range((offset // PAGE_BYTES + 1) * PAGE_BYTES, end, PAGE_BYTES)[:_MAX_BORDERS]
        while index < len(self._runs) and self._starts[index] == end:
            run = self._runs[index]
            index += 1
            run_place = PagePlace(run.source, run.shift)
            if run_place == place or not _is_aligned(run_place, place) or self._is_whole_elsewhere(offset, place):
                continue
            head_file, tail_file = self._sources[place.source].file, self._sources[run.source].file
            for border in borders:
                head_size, tail_size = border - offset, end - border
                tail = tail_file.read(border + run.shift, tail_size + STORE_HOST_END_BYTES)
                data = head_file.read(offset + place.shift, head_size) + tail[:tail_size]
                frame = _frame_of_unit(data, offset, size)
                following = tail[tail_size:]
                if (
                    frame is not None
                    and judge_end(data, offset, following[:FOLLOWING_BYTES], frame) == "proven"
                    and not names_other_host(data, offset, following, frame, self._units.hosts)
                ):
                    pieces = (
                        Piece(place.source, offset + place.shift, head_size),
                        Piece(run.source, border + run.shift, tail_size),
                    )
                    self._add(Reassembled(offset, size, pieces), data)
                    return True
        return False

    def _reassemble(self, offset: int, place: PagePlace) -> Reassembled | None:
        """Put the unit at ``offset`` together, the first page of which probably lies at ``place``."""
        if self._is_reassembled(offset, place) or self._is_whole_elsewhere(offset, place):
            return None
        following = self._sources[place.source].file.read(offset + place.shift, 8)
        if following[4:] == _BLANK:
            return None
        if following[:4] == _ENTRY:
            offset += dledger.HEADER_SIZE
            if self._is_reassembled(offset, place) or self._is_whole_elsewhere(offset, place):
                return None
        for places in self._iter_places(offset, HEAD_BYTES, place, MAX_ATTEMPTS):
            head = read_head(self._bytes(offset, HEAD_BYTES, places), 0)
            if head is not None and head.physical_offset == offset:
                unit = self._reassemble_from_head(offset, head.size, places)
                if unit is not None:
                    return unit
        return None

    def _iter_places(
        self, offset: int, size: int, first_place: PagePlace, limit: int, first_places: Sequence[PagePlace] = ()
    ) -> Iterator[list[PagePlace]]:
        """Yield at most ``limit`` combinations of places for the pages, the likeliest first: few changes, and to
        places that a run names.
        """
        attempts = 0
        for is_blind in (False, True):
            for jumps in range(is_blind, MAX_JUMPS + 1):
                for places in self._iter_paths(
                    offset, offset + size, first_place, jumps, first_places, is_blind=is_blind
                ):
                    attempts += 1
                    if attempts > limit:
                        return
                    yield places

    def _reassemble_from_head(self, offset: int, size: int, head_places: list[PagePlace]) -> Reassembled | None:
        for choices in (
            self._iter_middles(offset, size, head_places),
            self._iter_any_places(offset, size, head_places),
        ):
            unit = self._find_proven(offset, size, choices)
            if unit is not None:
                return unit
        return None

    def _iter_any_places(self, offset: int, size: int, head_places: list[PagePlace]) -> Iterator[list[PagePlace]]:
        limit = max(min(MAX_ATTEMPTS, _MAX_ATTEMPT_BYTES // size), 8)
        return self._iter_places(offset, size, head_places[0], limit, head_places)

    def _find_proven(self, offset: int, size: int, choices: Iterator[list[PagePlace]]) -> Reassembled | None:
        for places in choices:
            data = self._bytes(offset, size, places)
            if _frame_of_unit(data, offset, size) is None:
                continue
            verdict = self._judge_end(data, offset, places[-1])
            unit = Reassembled(offset, size, tuple(self._pieces(offset, size, places)))
            if verdict == "proven":
                self._add(unit, data)
                return unit
            if verdict == "open" and len(unit.pieces) > 1:
                self.open_ends.append(unit)
        return None

    # -- the middle of a body

    def _iter_middles(self, offset: int, size: int, head_places: list[PagePlace]) -> Iterator[list[PagePlace]]:
        """Yield places for the pages of a unit whose beginning is at ``head_places``. Its body matches its CRC.

        The other pages of the body lie, in their order, between the head and a tail that fits.
        """
        first_page, page_count = offset // PAGE_BYTES, len(head_places)
        head = self._bytes(offset, (first_page + page_count) * PAGE_BYTES - offset, head_places)
        body, length, stored_crc = _body_of(head)
        middle = (offset + body + length) // PAGE_BYTES - first_page - page_count
        if body > len(head) or not 0 < length <= size - body or not stored_crc or middle < 1:
            return
        body_end = offset + body + length
        tail_size = body_end % PAGE_BYTES
        for tail_places in self._iter_tails(body_end, offset + size, head_places[-1], head):
            tail = self._bytes(body_end - tail_size, tail_size, tail_places)
            head_place, tail_place = head_places[-1], tail_places[0]
            position = (first_page + page_count) * PAGE_BYTES + head_place.shift
            span = ((body_end - tail_size) + tail_place.shift - position) // PAGE_BYTES
            if head_place.source != tail_place.source or not middle <= span <= middle + MAX_LEFT_OUT_PAGES:
                continue
            if span > _SMALL_SPAN_PAGES:
                self._large_bytes += span * PAGE_BYTES
                if self._large_bytes > _MAX_LARGE_BYTES:
                    return
            for numbers in self._iter_page_choices(
                head_place.source, position, span, middle, (head[body:], tail), stored_crc, head
            ):
                middle_places = [
                    PagePlace(head_place.source, head_place.shift + (number - index) * PAGE_BYTES)
                    for index, number in enumerate(numbers)
                ]
                yield [*head_places, *middle_places, *tail_places]

    def _iter_tails(self, body_end: int, end: int, head_place: PagePlace, head: bytes) -> Iterator[list[PagePlace]]:
        """Yield places for the pages from the one with the body's end on, where a topic and properties fit."""
        first_page, last_page = body_end // PAGE_BYTES, (end - 1) // PAGE_BYTES
        count = last_page - first_page + 1
        width = BY_MAGIC[int.from_bytes(head[4:8], "big")].topic_width
        index = bisect_left(self._starts, end)
        runs = (self._runs[number] for number in range(index, bisect_right(self._starts, end)))
        named = [PagePlace(run.source, run.shift) for run in runs]
        named += self._heads_in_page(end // PAGE_BYTES)
        is_likely = {place for place in named if _is_aligned(place, head_place)}
        blind = (
            PagePlace(head_place.source, head_place.shift + skip * PAGE_BYTES)
            for skip in range(1, MAX_LEFT_OUT_PAGES + 1)
        )
        size = self._sources[head_place.source].file.size
        for place in dict.fromkeys([*is_likely, *takewhile(lambda place: body_end + place.shift < size, blind)]):
            before_places = [place]
            if count > 1 and place.source == head_place.source and place in is_likely:
                skips = range(1, min((place.shift - head_place.shift) // PAGE_BYTES, MAX_SKIPPED_PAGES) + 1)
                before_places += [PagePlace(place.source, place.shift - skip * PAGE_BYTES) for skip in skips]
            for before_place in before_places:
                for cut in range(1, count) if before_place != place else (0,):
                    places = [*[before_place] * cut, *[place] * (count - cut)]
                    if is_tail(self._bytes(body_end, end - body_end, places), width):
                        yield places

    def _iter_page_choices(
        self,
        source: int,
        position: int,
        span: int,
        count: int,
        ends: tuple[bytes, bytes],
        body_crc: int,
        head: bytes,
    ) -> Iterator[list[int]]:
        """Yield ``count`` numbers of pages of the ``span`` from ``position`` on, if the body matches its CRC with this
        choice only.

        Pages that are known to be of other files are left out first, then zeros, then those that are least like the
        body's bytes, then any.
        """
        data = np.frombuffer(
            self._sources[source].file.read(position, span * PAGE_BYTES).ljust(span * PAGE_BYTES, b"\0"), np.uint8
        ).reshape(span, PAGE_BYTES)
        registers = np.array([raw_crc(page) for page in data], np.uint32)  # type: ignore[arg-type]
        everything = set(range(span))
        other_files = self._claimed_pages(source, position, span)
        zeros = set(np.flatnonzero(~data.any(axis=1)).tolist())
        sample = np.frombuffer(ends[0] + ends[1], np.uint8)
        candidates = [everything - other_files, everything - other_files - zeros]
        for usable in (everything, everything - other_files):
            numbers = sorted(usable)
            if len(numbers) > count and len(sample) >= _MIN_SAMPLE_BYTES:
                unlike = find_least_similar(data[numbers], sample, len(numbers) - count)
                candidates.append(usable - {numbers[number] for number in unlike})
        candidates.append(everything)
        sys_flag = int.from_bytes(head[36:40], "big")
        limit = MAX_COMBINATIONS << (_MORE_IF_PACKED if sys_flag & COMPRESSED else 0)
        tried: list[set[int]] = []
        for usable in candidates:
            if len(usable) < count or usable in tried:
                continue
            tried.append(usable)
            numbers = sorted(usable)
            choice = PageChoice(registers[numbers], count, *ends, body_crc)
            choices = choice.iter_choices(limit)
            if len(numbers) - count > _MAX_PLAIN_SURPLUS:
                breaks = find_breaks(data[numbers])
                if len(breaks) <= _MAX_BREAKS:
                    choices = chain(choice.iter_choices_at(breaks), choices)
            pages = {tuple(numbers[number] for number in chosen) for chosen in islice(choices, _MAX_CHOICES)}
            contents = {data[list(chosen)].tobytes(): chosen for chosen in pages}
            if sys_flag & COMPRESSED:
                contents = {
                    content: chosen
                    for content, chosen in contents.items()
                    if unpack(ends[0] + content + ends[1], sys_flag).note is None or choice.combinations < _FEW_CHOICES
                }
            if len(contents) == 1:
                yield list(next(iter(contents.values())))
                return

    def _claimed_pages(self, source: int, position: int, span: int) -> set[int]:
        """Return the numbers of the pages that hold units or heads: those of a body hold none, unless it is a log."""
        if source not in self._claimed:
            runs, heads = self._result.runs.rows, self._result.heads.rows
            runs, heads = runs[runs[:, _SOURCE] == source], heads[heads[:, _SOURCE] == source]
            places = np.concatenate((runs[:, _POSITION], heads[:, _POSITION]))
            stops = np.concatenate((runs[:, _POSITION] + runs[:, _SIZE], heads[:, _POSITION] + HEAD_BYTES))
            order = np.argsort(places, kind="stable")
            self._claimed[source] = places[order].tolist(), np.maximum.accumulate(stops[order]).tolist()
        starts, ends = self._claimed[source]
        stop = position + span * PAGE_BYTES
        pages: set[int] = set()
        for index in range(bisect_left(ends, position + 1), bisect_left(starts, stop)):
            first_page, last_page = ((byte - position) // PAGE_BYTES for byte in (starts[index], ends[index] - 1))
            pages.update(range(max(first_page, 0), min(last_page, span - 1) + 1))
        return pages

    def _judge_end(self, data: bytes, offset: int, last_place: PagePlace) -> EndVerdict:
        position = offset + len(data) + last_place.shift
        following = self._sources[last_place.source].file.read(position, STORE_HOST_END_BYTES)
        frame = check_frame(data, 0, len(data))
        verdict = judge_end(data, offset, following[:FOLLOWING_BYTES], frame)
        if (
            verdict == "proven"
            and isinstance(frame, Frame)
            and names_other_host(data, offset, following, frame, self._units.hosts)
        ):
            return "open"
        return verdict

    def _add(self, unit: Reassembled, data: bytes) -> None:
        self._single_units.append(unit)
        self.offsets.add(unit.offset)
        self._reassembled_heads.add(read_head(data, 0))

    def _is_reassembled(self, offset: int, place: PagePlace) -> bool:
        """Return True if the unit whose head is at ``place`` was put together: two logs may have one at ``offset``."""
        if offset not in self.offsets:
            return False
        head = self._head_at(offset, place)
        return head is None or self._is_reassembled_head(head)

    def _is_reassembled_head(self, head: UnitHead) -> bool:
        number = self._joined_numbers.get(head.physical_offset)
        if number is not None and read_head(self.read(_reassembled(self._joined[number].tolist())), 0) == head:
            return True
        return head in self._reassembled_heads

    def _is_whole_elsewhere(self, offset: int, place: PagePlace | None = None) -> bool:
        """Return True if the store or a run has a unit that begins at ``offset``; with ``place`` only the one whose
        head is there: another log may have another unit.
        """
        if self._units.overlaps(offset, offset + 1):
            return True
        head = None if place is None else self._head_at(offset, place)
        for run in self._overlapping(offset, offset + 1):
            run_head = self._head_at(offset, PagePlace(run.source, run.shift))
            if run_head is not None and (head is None or run_head == head):
                return True
        return False

    def _head_at(self, offset: int, place: PagePlace) -> UnitHead | None:
        head = read_head(self._sources[place.source].file.read(offset + place.shift, HEAD_BYTES), 0)
        return head if head is not None and head.physical_offset == offset else None

    # -- pages

    def _iter_paths(
        self,
        start: int,
        stop: int,
        first_place: PagePlace,
        jumps: int,
        first_places: Sequence[PagePlace],
        *,
        is_blind: bool,
    ) -> Iterator[list[PagePlace]]:
        """Yield places for the pages of [start, stop) with exactly ``jumps`` changes from one page to the next.

        The first pages are ``first_places``; a page that begins at ``start`` may lie elsewhere than ``first_place``.
        """
        pages = list(range(start // PAGE_BYTES, (stop - 1) // PAGE_BYTES + 1))
        yield from self._extend_path(pages, list(first_places) or [first_place], jumps, stop, is_blind=is_blind)
        if not first_places and start % PAGE_BYTES == 0 and jumps:
            for place in self._iter_other_places(pages[0], first_place, stop, is_blind=is_blind):
                yield from self._extend_path(pages, [place], jumps - 1, stop, is_blind=is_blind)

    def _extend_path(
        self, pages: list[int], places: list[PagePlace], jumps: int, stop: int, *, is_blind: bool
    ) -> Iterator[list[PagePlace]]:
        remaining = len(pages) - len(places)
        if jumps == 0 or remaining <= 0:
            if jumps == 0:
                yield [*places, *[places[-1]] * remaining]
            return
        for count in range(remaining):  # pages that follow before the next change
            path = [*places, *[places[-1]] * count]
            for place in self._iter_other_places(pages[len(path)], path[-1], stop, is_blind=is_blind):
                yield from self._extend_path(pages, [*path, place], jumps - 1, stop, is_blind=is_blind)

    def _iter_other_places(self, page: int, previous: PagePlace, stop: int, *, is_blind: bool) -> Iterator[PagePlace]:
        """Yield the places where ``page`` may lie, if it does not follow the page before: those that runs name, and
        with ``is_blind`` others, too: what runs name may be pages of another log.
        """
        start = page * PAGE_BYTES
        named = [PagePlace(run.source, run.shift) for run in self._overlapping(start, start + PAGE_BYTES)]
        named += self._heads_in_page(page)
        hints = [PagePlace(run.source, run.shift) for run in self._overlapping(stop, stop + 1)]
        hints += self._heads_in_page(stop // PAGE_BYTES)
        likely = [
            place for place in dict.fromkeys([*named, *hints]) if place != previous and _is_aligned(place, previous)
        ]
        yield from (place for place in likely if place != previous)
        if not is_blind or previous in named:
            return
        number, shift = previous
        if self._sources[number].start_offset is not None:  # pages of the store's own file that were swapped
            yield from (PagePlace(number, position - start) for position in self._damaged_pages(number))
            return
        ends = [
            (place.shift - shift) // PAGE_BYTES for place in likely if place.source == number and place.shift > shift
        ]
        ends += [(run_shift - shift) // PAGE_BYTES + 1 for run_shift in self._shifts_behind(stop, previous)]
        for skip in range(1, min([MAX_SKIPPED_PAGES + 1, *ends])):
            yield PagePlace(number, shift + skip * PAGE_BYTES)

    def _shifts_behind(self, stop: int, previous: PagePlace) -> list[int]:
        """Return the shift of the next run near behind ``stop`` in the same source, behind which no page lies.

        It is that of ``previous`` where nothing lies between: then the page is where it was, overwritten.
        """
        index = bisect_left(self._starts, stop)
        for number in range(index, min(index + _MAX_PAGE_HEADS, len(self._runs))):
            run = self._runs[number]
            if run.physical_offset > stop + _NEAR_BYTES:
                break
            if run.source == previous.source and run.shift >= previous.shift:
                return [run.shift]
        return []

    def _damaged_pages(self, number: int) -> list[int]:
        """Positions of the pages in the ranges to search, which hold no whole unit of this place."""
        if number not in self._damaged_page_positions:
            pages = [
                page * PAGE_BYTES
                for start, stop in self._sources[number].ranges[:_MAX_DAMAGED_PAGES]
                for page in range(start // PAGE_BYTES, min((stop - 1) // PAGE_BYTES + 1, start // PAGE_BYTES + 16))
            ]
            self._damaged_page_positions[number] = list(dict.fromkeys(pages))[:_MAX_DAMAGED_PAGES]
        return self._damaged_page_positions[number]

    def _overlapping(self, start: int, stop: int) -> list[UnitRun]:
        """Runs that hold bytes of [start, stop) of the log; a few of the nearest."""
        overlapping: list[UnitRun] = []
        index = bisect_left(self._starts, stop) - 1
        for number in range(index, max(index - _OVERLAPPING_RUNS, -1), -1):
            if self._max_ends[number] <= start:
                break
            run = self._runs[number]
            if run.end_offset > start:
                overlapping.append(run)
        return overlapping

    def _bytes(self, offset: int, size: int, places: list[PagePlace]) -> bytes:
        """Return [offset, offset + size) of the log from the places of its pages."""
        first_page = offset // PAGE_BYTES
        data = b"".join(self._page(place, first_page + number) for number, place in enumerate(places))
        skip = offset - first_page * PAGE_BYTES
        return data[skip : skip + size]

    def _page(self, place: PagePlace, page: int) -> bytes:
        position = page * PAGE_BYTES + place.shift
        key = place.source, position  # of many units the same few pages are tried
        data = self._pages.get(key)
        if data is None:
            missing = max(-position, 0)
            data = self._sources[place.source].file.read(max(position, 0), max(PAGE_BYTES - missing, 0))
            data = (bytes(missing) + data).ljust(PAGE_BYTES, b"\0")
            if len(self._pages) >= _MAX_CACHED_PAGES:
                self._pages.clear()
            self._pages[key] = data
        return data

    def _pieces(self, offset: int, size: int, places: list[PagePlace]) -> Iterator[Piece]:
        page, end = offset // PAGE_BYTES, offset + size
        for place, group in groupby(places):
            count = len(list(group))
            start, stop = max(page * PAGE_BYTES, offset), min((page + count) * PAGE_BYTES, end)
            yield Piece(place.source, start + place.shift, stop - start)
            page += count


def _sorted_runs(table: RunTable) -> RunTable:
    """Return the runs by their offsets in the log."""
    runs = RunTable()
    runs.append(len(table), *table.rows.T)
    runs.reorder(np.argsort(runs.rows[:, _OFFSET], kind="stable"))
    return runs


def _distinct_heads(table: HeadTable) -> HeadTable:
    """Return one row for each place with a head, by their offsets in the log."""
    heads = HeadTable()
    order = np.lexsort((table.rows[:, _POSITION], table.rows[:, _SOURCE], table.rows[:, _HEAD_OFFSET]))
    rows = table.rows[order]
    is_other = (rows[1:, [_HEAD_OFFSET, _SOURCE, _POSITION]] != rows[:-1, [_HEAD_OFFSET, _SOURCE, _POSITION]]).any(
        axis=1
    )
    distinct = rows[np.concatenate(([True], is_other))] if len(rows) else rows
    heads.append(len(distinct), *distinct.T)
    return heads


def _reassembled(row: list[int]) -> Reassembled:
    offset, size, *pieces = row
    return Reassembled(offset, size, (Piece(*pieces[:3]), Piece(*pieces[3:])))


def _place_of(fragment: HeadFragment) -> PagePlace:
    return PagePlace(fragment.source, fragment.position - fragment.head.physical_offset)


def _frame_of_unit(data: bytes, offset: int, size: int) -> Frame | None:
    """Return the frame of ``data`` if it is a unit of ``size`` bytes at ``offset`` whose body matches its CRC."""
    if len(data) != size or _I64.unpack_from(data, 28)[0] != offset:
        return None
    start, length, stored_crc = _body_of(data)
    if length and crc31(data[start : start + max(length, 0)]) != stored_crc:
        return None
    frame = check_frame(data, 0, size)
    return None if isinstance(frame, str) or frame.size != size else frame


def _body_of(head: bytes) -> tuple[int, int, int]:
    """Return the position and length of a unit's body, and the CRC that is stored for it."""
    sys_flag = int.from_bytes(head[36:40], "big")
    start = 88 + (12 if sys_flag & BORN_HOST_V6 else 0) + (12 if sys_flag & STORE_HOST_V6 else 0)
    length = int.from_bytes(head[start - 4 : start], "big", signed=True)
    return start, length, int.from_bytes(head[8:12], "big")


def _is_aligned(place: PagePlace, previous: PagePlace) -> bool:
    """Return False for a page of the same source that no file system puts there: a copy in a message's body."""
    return place.source != previous.source or (place.shift - previous.shift) % PAGE_BYTES == 0
