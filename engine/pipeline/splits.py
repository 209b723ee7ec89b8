"""Splits of commit logs: small values that say which part of a file a task reads, and the reading
(docs/formats/commit-log.md).

A split has the items that *start* in [``start``, ``stop``): units, a blank, spans of damage. All splits of a file
together give the same items as one walk of the whole file, wherever the cuts are. So a cut has to find the first item
that starts at or behind it, as that walk would, without walking everything before it. It looks for an *anchor*: a
nearby unit that is whole, lies at its own physical offset, and is not hidden by an earlier unit or blank (a body may
contain bytes of units, and old bytes may stand behind a blank). From there the walk goes on to the cut.

An anchor is searched up to ``LOOK_BACK_BYTES`` back, more than RocketMQ's largest message. If everything there is
hidden, the search goes further back, to the beginning of the file if necessary. Two things would deceive it: a larger
unit whose body consists of units made for exactly this place, and a blank's magic in the middle of a file, further
back. :class:`SplitEnd` reveals both to jobs that read all splits: one split ends at another place than the next one
begins.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.codec.columns import BLANK, BLOCK_ROWS, BulkWalk, UnitColumns, scan_block
from engine.codec.message import DEFAULT_DELAY_LEVELS, Unit
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Blank, Damage, Decode, Stop, decode_entry_item, decode_item, walk_file
from engine.errors import CannotRead
from engine.pipeline.anchors import ErrorNotingFile, SplitBytes, find_anchor
from engine.pipeline.defaults import SPLIT_BYTES
from engine.pipeline.files import StorePlace, Unread, log_files, map_concurrently
from engine.pipeline.log_files import LogFile
from engine.pipeline.storage import open_path
from engine.sentences import sentence

MAX_SPLITS = 1 << 20
LOOK_BACK_BYTES = 5 << 20
NEAR_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Split:
    """The items that start at positions [``start``, ``stop``) of the log file at ``path``; positions are bytes in
    the file.

    ``file_start`` is the absolute offset of the file's first byte, ``file_size`` its length when it was listed.
    ``followed`` says that a later file of the log holds data; ``gap_to`` is where the next file begins if that is not
    right behind this one, and 0 on all but the last split of a file. ``exact``: something starts at ``start``.
    ``has_entries``: the file is one of a DLedger log. Items start where their units do, behind the entries' headers.
    """

    store: str
    broker: str | None
    path: str
    file_start: int
    start: int
    stop: int
    file_size: int
    followed: bool = True
    gap_to: int = 0
    exact: bool = False
    has_entries: bool = False

    @classmethod
    def of_file(cls, store: StorePlace, file: LogFile, start: int = 0, *, followed: bool = True) -> Split:
        """Return the split of ``file`` from position ``start`` on."""
        return cls(
            store.path,
            store.broker,
            file.path,
            file.start,
            start,
            file.size,
            file.size,
            followed,
            has_entries=file.has_entries,
        )

    @property
    def decode(self) -> Decode:
        """The decoder of the file's items."""
        return decode_entry_item if self.has_entries else decode_item

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class SplitEnd:
    """The end of a split that was read: absolute offsets of its first item and of the next split's, −1 if the
    file ended.

    ``why`` says why the log ends in this split, "" if it does not.
    """

    first_offset: int
    next_offset: int
    why: str = ""


Block = UnitColumns | Damage | SplitEnd


@dataclass(frozen=True, slots=True)
class SkippedRange:
    """Bytes of a file that need not be read, and why."""

    path: str
    bytes: int
    why: str


@dataclass(frozen=True, slots=True)
class Ranges:
    """Spans [low, high) of absolute offsets, in order; ``why`` says what is left out."""

    spans: tuple[tuple[int, int], ...]
    why: str


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """The splits to read, and the parts that are skipped; ``unread`` are stores that cannot be read, where the plan
    is made without them.
    """

    splits: tuple[Split, ...]
    skipped: tuple[SkippedRange, ...] = ()
    unread: tuple[Unread, ...] = ()

    @property
    def bytes(self) -> int:
        """The bytes of all splits."""
        return sum(split.stop - split.start for split in self.splits)


def plan(
    stores: Iterable[StorePlace],
    split_bytes: int = SPLIT_BYTES,
    wanted_ranges: Mapping[str, Ranges] | None = None,
    without_unread: bool = False,
) -> SplitPlan:
    """Return splits of at most ``split_bytes`` bytes over the logs of ``stores``, in the order of the logs.

    ``wanted_ranges`` names the parts that are needed, by the path of the store; any other store is read whole.
    Only folders are listed and the newest file of each log is looked at, of several stores at once. Zero bytes behind
    its last unit are one split, however many there are. Where there would be more than ``MAX_SPLITS``, they are twice
    as long, or four times, at most whole files: the driver holds them all. Raises :class:`CannotRead` if a folder
    cannot be listed, unless the plan is made ``without_unread`` stores; of a file that cannot be read there is one
    split then, however it would be cut or asked for: its task reports it, once.
    """
    splits: list[Split] = []
    skipped: list[SkippedRange] = []
    unread: list[Unread] = []
    parts: list[tuple[Split, int]] = []
    for store, file_splits in map_concurrently(_files_or_error, stores):
        if isinstance(file_splits, CannotRead):
            if not without_unread:
                raise file_splits
            unread.append(Unread.of(store, file_splits))
            continue
        ranges = (wanted_ranges or {}).get(store.path)
        for file_split in file_splits:
            wanted_parts, left_out = _wanted(file_split, ranges)
            cut = left_out > 0 or file_split.file_size > split_bytes
            if without_unread and wanted_parts and cut and not _can_be_opened(file_split):
                parts.append((file_split, -1))
                continue
            edge = file_split.file_size
            if not file_split.followed and file_split.file_size > split_bytes:
                edge = edge_of_zeros(file_split)
            parts += [(part, edge) for part in wanted_parts]
            if left_out and ranges is not None:
                skipped.append(SkippedRange(file_split.path, left_out, ranges.why))
    while sum(-(-(part.stop - part.start) // split_bytes) for part, _ in parts) > max(MAX_SPLITS, len(parts)):
        split_bytes *= 2
    for part, edge in parts:
        if edge < 0:
            splits.append(part)
        elif part.start == part.stop:
            splits += [part] if part.gap_to else []
        elif part.start // split_bytes == (part.stop - 1) // split_bytes and edge >= part.stop:
            splits.append(part)
        else:
            splits += cut_split(part, split_bytes, edge)
    return SplitPlan(tuple(splits), tuple(skipped), tuple(unread))


def _files_or_error(store: StorePlace) -> list[Split] | CannotRead:
    try:
        return whole_files(store)
    except CannotRead as error:
        return error


def _can_be_opened(file_split: Split) -> bool:
    return _opening(file_split) is None


def _opening(split: Split) -> CannotRead | None:
    try:
        with open_path(split.path):
            return None
    except CannotRead as error:
        return error


def unread_files(splits: Iterable[Split]) -> Iterator[Unread]:
    """Return the files of ``splits`` that cannot be opened."""
    for split, error in map_concurrently(_opening, {split.path: split for split in splits}.values()):
        if error is not None:
            yield Unread(split.store, split.broker, error.file or split.path, error.what)


def whole_files(store: StorePlace) -> list[Split]:
    """Return one split for each file of the log that holds something."""
    files = log_files(store)
    last_number = _last_with_data(files)
    if last_number < 0:
        return [_file_split(store, files, 0, False)] if files else []
    file_splits = [_file_split(store, files, number, number < last_number) for number in range(last_number + 1)]
    # Files behind it begin with zero bytes: the walk comes to them where the log does not end before.
    for number in range(last_number + 1, len(files)):
        if not _reaches_file_end(file_splits[-1]):
            break
        file_splits.append(_file_split(store, files, number, False))
    else:
        return file_splits
    file_splits[-1] = dataclasses.replace(file_splits[-1], gap_to=0)
    return file_splits


def cut_split(split: Split, split_bytes: int, edge: int | None = None) -> Iterator[Split]:
    """Return ``split`` in pieces of at most ``split_bytes`` bytes, cut at multiples of it; from position ``edge`` on in
    one.
    """
    start = split.start
    while start < split.stop:
        stop = min((start // split_bytes + 1) * split_bytes, split.stop)
        if edge is not None:
            stop = split.stop if start >= edge else min(stop, max(edge, start + 1))
        yield dataclasses.replace(
            split,
            start=start,
            stop=stop,
            gap_to=split.gap_to if stop == split.stop else 0,
            exact=split.exact and start == split.start,
        )
        start = stop


def read_split(
    split: Split,
    crc: bool = True,
    with_tags: bool = True,
    topics: TopicTable | None = None,
    levels: tuple[int, ...] = DEFAULT_DELAY_LEVELS,
    rows: int = BLOCK_ROWS,
    look_back: int = LOOK_BACK_BYTES,
    fail: bool = False,
) -> Iterator[Block]:
    """Yield the units and the blank of ``split`` in blocks, its damage in between, and last a :class:`SplitEnd`.

    A block and its buffer are valid until the next one is requested. Memory is one block, and one unit if that is
    larger. A file that is gone or cannot be read is one span of damage over the split; with ``fail`` this raises
    :class:`CannotRead` instead, also for a part of the file.
    """
    walk = BulkWalk(crc, with_tags, topics, levels, rows)
    try:
        with open_path(split.path) as opened_file:
            file = ErrorNotingFile(opened_file)
            yield from _Reading(split, file, walk).blocks(look_back)
        if fail and file.error is not None:
            raise file.error
    except CannotRead as error:
        if fail:
            raise
        offset = split.file_start + split.start
        yield Damage(offset, split.stop - split.start, str(error), unread=True)
        yield SplitEnd(offset, split.file_start + split.stop, str(error))


def first_in(split: Split, look_back: int = LOOK_BACK_BYTES) -> int:
    """Return the offset of the first item that starts at or behind ``split.start``, −1 if there is none."""
    with open_path(split.path) as file:
        return _Reading(split, ErrorNotingFile(file), BulkWalk(False, False)).first(look_back)


def broken_seams(ends: Sequence[tuple[Split, SplitEnd]]) -> list[str]:
    """Return the paths of files whose splits, given in order, do not join: each must be read again as one split."""
    broken: dict[str, None] = {}
    for (split, end), (following, begin) in itertools.pairwise(ends):
        if split.path == following.path and split.stop == following.start and end.next_offset != begin.first_offset:
            broken[split.path] = None
    return list(broken)


class _Reading:
    """The reader of one split."""

    def __init__(self, split: Split, file: ErrorNotingFile, walk: BulkWalk) -> None:
        self._split = split
        self._file = file
        self._walk = walk
        self._bytes = SplitBytes(split, file)
        self._why = ""

    def blocks(self, look_back: int) -> Iterator[Block]:
        """Yield all of the split."""
        split = self._split
        first_offset = self.first(look_back) if split.start < split.stop else -1
        next_offset = first_offset
        if 0 <= first_offset < split.file_start + split.stop:
            next_offset = -1
            for block in self._items(self._walk, first_offset, split.file_start + split.stop):
                if isinstance(block, int):
                    next_offset = block
                else:
                    yield block
        if split.gap_to and not self._why:
            end = split.file_start + split.file_size
            yield Damage(end, split.gap_to - end, sentence("no file holds these bytes"))
        yield SplitEnd(first_offset, next_offset, self._why)

    def first(self, look_back: int) -> int:
        """Return the absolute offset of the first item at or behind the split's start, −1 if the file ends
        before.
        """
        split = self._split
        cut = split.file_start + split.start
        if split.exact or not split.start:
            return cut
        anchor_offset = split.file_start + find_anchor(split, self._file, split.start, look_back, NEAR_BYTES)
        if anchor_offset == cut:
            return cut
        plain = BulkWalk(False, False, self._walk.topics, rows=min(len(self._walk.out.offset), 1024))
        for block in self._items(plain, anchor_offset, None):
            if isinstance(block, int):
                return self._no_more()
            if isinstance(block, Damage):
                if block.offset >= cut:
                    return block.offset
                continue
            offsets = block["offset"]
            row = int(np.searchsorted(offsets, cut))
            if row < len(offsets):
                return int(offsets[row])
        return self._no_more()

    def _no_more(self) -> int:
        """Return −1 for the end of the file. Raises :class:`CannotRead` if it ends only because the rest cannot be
        read.
        """
        if self._file.error is not None:
            raise self._file.error
        return -1

    def _items(self, walk: BulkWalk, offset: int, stop: int | None) -> Iterator[UnitColumns | Damage | int]:
        """Yield what the walk from ``offset`` on reads up to ``stop``; last, where it comes so far, the next item's
        offset, or −1.
        """
        start = self._split.file_start
        end = start + self._split.file_size
        while offset < end and (stop is None or offset < stop):
            out = walk.out
            with contextlib.suppress(CannotRead):  # the file's own walk meets it again and puts it in words
                entries = self._split.has_entries
                for block in walk.iter_blocks(self._file, start, offset - start, stop, has_entries=entries):
                    last_row = out.count - 1
                    is_blank = out.kind[last_row] == BLANK
                    offset = end if is_blank else int(out.offset[last_row]) + int(out.size[last_row])
                    yield block
                    if is_blank:
                        yield -1
                        return
            if offset >= end or (stop is not None and offset >= stop):
                break
            for item in self._next(offset, walk):
                if isinstance(item, Stop):
                    self._why = item.reason
                    yield -1
                    return
                item_offset = item.offset if isinstance(item, Damage) else int(item.offset[0])
                if stop is not None and item_offset >= stop:  # the cut is inside the header of an entry
                    yield item_offset
                    return
                yield item
                if isinstance(item, Damage):
                    offset = item.offset + item.size
                elif item.kind[0] == BLANK:
                    yield -1
                    return
                else:
                    offset = int(item.offset[0]) + int(item.size[0])
        yield self._item_at(offset) if offset < end else -1

    def _item_at(self, offset: int) -> int:
        """Return where the item at ``offset`` begins: in a DLedger log behind the header of its entry."""
        if not self._split.has_entries:
            return offset
        item = next(walk_file(self._bytes, offset, None, crc=False, decode=self._split.decode), None)
        return item.offset if isinstance(item, Unit) else offset

    def _next(self, offset: int, walk: BulkWalk) -> Iterator[UnitColumns | Damage | Stop]:
        """Yield what the file's own walk reads at ``offset``: one item, and the stop where the log ends right behind
        it.
        """
        story = walk_file(self._bytes, offset, None, walk.options[0], decode=self._split.decode)
        item = next(story, None)
        if item is None:
            raise CannotRead(sentence("the file ends here"), file=self._split.path, offset=offset)
        if isinstance(item, Unit | Blank):
            if isinstance(item, Blank):
                walk.out.count = 0
                walk.out.add_blank(item.offset, item.size, 0)
            else:
                data = self._file.read(item.offset - self._split.file_start, item.size)
                crc, with_tags, levels = walk.options
                scan_block(data, len(data), item.offset, 0, walk.out, walk.topics, crc, with_tags, levels)
            yield walk.out
            return
        following = next(story, None) if isinstance(item, Damage) else None
        if isinstance(item, Stop) and item.kind != "zero":  # the file was cut short, or cannot be read
            size = self._split.file_start + self._split.file_size - item.offset
            yield Damage(item.offset, size, item.reason, unread=self._file.error is not None)
        yield item
        if isinstance(following, Stop):
            yield following


def _file_split(store: StorePlace, files: Sequence[LogFile], number: int, followed: bool) -> Split:
    file = files[number]
    gap_to = files[number + 1].start if number + 1 < len(files) and files[number + 1].start > file.end else 0
    return dataclasses.replace(Split.of_file(store, file, followed=followed), gap_to=gap_to, exact=True)


def _last_with_data(files: Sequence[LogFile]) -> int:
    for number in range(len(files) - 1, -1, -1):
        try:
            with open_path(files[number].path) as file:
                if any(file.read(0, 8)):
                    return number
        except CannotRead:  # it may hold data: the reader of this split reports that it is unknown
            return number
    return -1


def _reaches_file_end(file_split: Split) -> bool:
    """Return True if the walk of the last file with data reaches its end, so that the log may continue in the next
    file.
    """
    if not file_split.file_size:
        return True
    tail = dataclasses.replace(file_split, start=max(file_split.file_size - 1, 0), exact=False, gap_to=0)
    end = [block for block in read_split(tail, crc=False, with_tags=False) if isinstance(block, SplitEnd)][-1]
    return not end.why


def edge_of_zeros(file_split: Split) -> int:
    """Return a position near the end of the written bytes, by bisection: a guess where zeros lie in between."""
    lower, upper = 0, file_split.file_size // NEAR_BYTES
    try:
        with open_path(file_split.path) as file:
            while lower < upper:
                middle = (lower + upper) // 2
                if any(file.read(middle * NEAR_BYTES, NEAR_BYTES)):
                    lower = middle + 1
                else:
                    upper = middle
    except CannotRead:
        return file_split.file_size
    return min((lower + 1) * NEAR_BYTES, file_split.file_size)


def _wanted(file_split: Split, wanted_ranges: Ranges | None) -> tuple[list[Split], int]:
    """Return the parts of a file that ``wanted_ranges`` asks for, and how many bytes are left out.

    What no file holds begins at the file's end: it is wanted where that is, though nothing else of the file may be.
    """
    if wanted_ranges is None:
        return [file_split], 0
    parts = []
    end = file_split.file_start + file_split.file_size
    for span_start, span_end in wanted_ranges.spans:
        start, stop = (
            max(span_start - file_split.file_start, 0),
            min(span_end - file_split.file_start, file_split.file_size),
        )
        gap_to = file_split.gap_to if span_start <= end < span_end else 0
        if start < stop or gap_to:
            start = min(start, file_split.file_size)
            parts.append(dataclasses.replace(file_split, start=start, stop=stop, exact=start == 0, gap_to=gap_to))
    return parts, file_split.file_size - sum(part.stop - part.start for part in parts)
