"""Splits of commit logs: small values that say which part of a file a task reads, and the reading
(docs/formats/commit-log.md).

A split has the things that *start* in [``start``, ``stop``): units, a blank, spans of damage. Over all splits of a file
these are what one walk of the whole file yields, wherever the cuts are. For that a cut has to find the first thing that
starts at or behind it, as that walk would, without walking all that lies before. It takes an *anchor*: a unit near by
that is whole, lies where it says that it lies, and that no other unit and no blank before it hides, for a body may hold
units too, and behind a blank a file may hold what was written there before. From there the walk goes on to the cut.

How far back an anchor is looked at is ``LOOK_BACK``, more than RocketMQ's largest message; where all that lies so near
is hidden, the search goes on further back, to the beginning of the file if it has to be. What would deceive it: a unit
larger than that whose body consists of units made for just this place; a blank's magic in the middle of a file, further
back. :class:`SplitEnd` tells of both, for jobs that read all splits: one ends there and the next begins elsewhere.
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
from engine.codec.unit_scan import Blank, Damage, Stop, walk_file
from engine.errors import CannotRead
from engine.pipeline.anchors import Heard, SplitBytes, anchor
from engine.pipeline.defaults import SPLIT_BYTES
from engine.pipeline.files import LogFile, StorePlace, Unread, at_once, log_files
from engine.pipeline.storage import opened

MOST_SPLITS = 1 << 20
LOOK_BACK = 5 << 20
NEAR = 1 << 16


@dataclass(frozen=True, slots=True)
class Split:
    """What starts at positions [``start``, ``stop``) of the log file at ``path``; positions are bytes in the file.

    ``file_start`` is the absolute offset of the file's first byte, ``file_size`` its length when it was listed.
    ``followed`` says that a later file of the log holds data; ``gap_to`` is where the next file begins if that is not
    right behind this one, and 0 on all but the last split of a file. ``exact``: something starts at ``start``.
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

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class SplitEnd:
    """How a split was read: absolute offsets of its first thing and of the next split's, −1 where the file ended.

    ``why`` says why the log ends in this split, "" where it does not.
    """

    first: int
    behind: int
    why: str = ""


Block = UnitColumns | Damage | SplitEnd


@dataclass(frozen=True, slots=True)
class Skipped:
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
    """What is to be read, and what is not; ``unread`` are stores that cannot be, where the plan is made without
    them.
    """

    splits: tuple[Split, ...]
    skipped: tuple[Skipped, ...] = ()
    unread: tuple[Unread, ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes of all splits."""
        return sum(split.stop - split.start for split in self.splits)


def plan(
    stores: Iterable[StorePlace],
    split_bytes: int = SPLIT_BYTES,
    want: Mapping[str, Ranges] | None = None,
    without_unread: bool = False,
) -> SplitPlan:
    """Splits of at most ``split_bytes`` bytes over the logs of ``stores``, in the order of the logs.

    ``want`` names the parts that are needed, by the path of the store; a store that it does not name is read whole.
    Only folders are listed and the newest file of each log is looked at, of several stores at once. Zero bytes behind
    its last unit are one split, however many there are. Where there would be more than ``MOST_SPLITS``, they are twice
    as long, or four times, at most whole files: the driver holds them all. Raises :class:`CannotRead` where a folder
    cannot be listed, unless the plan is made ``without_unread`` stores; of a file that cannot be read there is one
    split then, however it would be cut or asked for: its task tells it, once.
    """
    splits: list[Split] = []
    skipped: list[Skipped] = []
    unread: list[Unread] = []
    parts: list[tuple[Split, int]] = []
    for store, wholes in at_once(_files_or_error, stores):
        if isinstance(wholes, CannotRead):
            if not without_unread:
                raise wholes
            unread.append(Unread.of(store, wholes))
            continue
        ranges = (want or {}).get(store.path)
        for whole in wholes:
            wanted, left_out = _wanted(whole, ranges)
            cut = left_out > 0 or whole.file_size > split_bytes
            if without_unread and wanted and cut and not _can_be_opened(whole):
                parts.append((whole, -1))
                continue
            edge = whole.file_size
            if not whole.followed and whole.file_size > split_bytes:
                edge = edge_of_zeros(whole)
            parts += [(part, edge) for part in wanted]
            if left_out and ranges is not None:
                skipped.append(Skipped(whole.path, left_out, ranges.why))
    while sum(-(-(part.stop - part.start) // split_bytes) for part, _ in parts) > max(MOST_SPLITS, len(parts)):
        split_bytes *= 2
    for part, edge in parts:
        if edge < 0:
            splits.append(part)
        elif part.start == part.stop:
            splits += [part] if part.gap_to else []
        elif part.start // split_bytes == (part.stop - 1) // split_bytes and edge >= part.stop:
            splits.append(part)
        else:
            splits += cut_up(part, split_bytes, edge)
    return SplitPlan(tuple(splits), tuple(skipped), tuple(unread))


def _files_or_error(store: StorePlace) -> list[Split] | CannotRead:
    try:
        return whole_files(store)
    except CannotRead as error:
        return error


def _can_be_opened(whole: Split) -> bool:
    return _opening(whole) is None


def _opening(split: Split) -> CannotRead | None:
    try:
        with opened(split.path):
            return None
    except CannotRead as error:
        return error


def unread_files(splits: Iterable[Split]) -> Iterator[Unread]:
    """The files of ``splits`` that cannot be opened."""
    for split, error in at_once(_opening, {split.path: split for split in splits}.values()):
        if error is not None:
            yield Unread(split.store, split.broker, error.file or split.path, error.what)


def whole_files(store: StorePlace) -> list[Split]:
    """One split for each file of the log that holds something."""
    files = log_files(store)
    last = _last_with_data(files)
    if last < 0:
        return [_whole(store, files, 0, False)] if files else []
    wholes = [_whole(store, files, number, number < last) for number in range(last + 1)]
    # Files behind it begin with zero bytes: the walk comes to them where the log does not end before.
    for number in range(last + 1, len(files)):
        if not _goes_on(wholes[-1]):
            break
        wholes.append(_whole(store, files, number, False))
    else:
        return wholes
    wholes[-1] = dataclasses.replace(wholes[-1], gap_to=0)
    return wholes


def cut_up(split: Split, split_bytes: int, edge: int | None = None) -> Iterator[Split]:
    """``split`` in pieces of at most ``split_bytes`` bytes, cut at multiples of it; from position ``edge`` on in
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
    want_tags: bool = True,
    topics: TopicTable | None = None,
    levels: tuple[int, ...] = DEFAULT_DELAY_LEVELS,
    rows: int = BLOCK_ROWS,
    look_back: int = LOOK_BACK,
    fail: bool = False,
) -> Iterator[Block]:
    """The units and the blank of ``split`` in blocks, its damage in between, last a :class:`SplitEnd`.

    A block and its buffer are good until the next one is asked for; memory is one of each, and one unit where it is
    larger. A file that is gone or cannot be read is one span of damage over the split; with ``fail`` raises
    :class:`CannotRead` for it, and for a part of it.
    """
    walk = BulkWalk(crc, want_tags, topics, levels, rows)
    try:
        with opened(split.path) as lent:
            file = Heard(lent)
            yield from _Reading(split, file, walk).blocks(look_back)
        if fail and file.error is not None:
            raise file.error
    except CannotRead as error:
        if fail:
            raise
        offset = split.file_start + split.start
        yield Damage(offset, split.stop - split.start, str(error), unread=True)
        yield SplitEnd(offset, split.file_start + split.stop, str(error))


def first_in(split: Split, look_back: int = LOOK_BACK) -> int:
    """Absolute offset of the first thing that starts at or behind ``split.start``, −1 where the file ends before."""
    with opened(split.path) as file:
        return _Reading(split, Heard(file), BulkWalk(False, False)).first(look_back)


def broken_seams(ends: Sequence[tuple[Split, SplitEnd]]) -> list[str]:
    """Paths of files whose splits, given in order, do not join: to be read again as one split each."""
    broken: dict[str, None] = {}
    for (split, end), (following, begin) in itertools.pairwise(ends):
        if split.path == following.path and split.stop == following.start and end.behind != begin.first:
            broken[split.path] = None
    return list(broken)


class _Reading:
    """One split being read."""

    def __init__(self, split: Split, file: Heard, walk: BulkWalk) -> None:
        self._split = split
        self._file = file
        self._walk = walk
        self._bytes = SplitBytes(split, file)
        self._why = ""

    def blocks(self, look_back: int) -> Iterator[Block]:
        """All of the split."""
        split = self._split
        first = self.first(look_back) if split.start < split.stop else -1
        behind = first
        if 0 <= first < split.file_start + split.stop:
            behind = -1
            for block in self._items(self._walk, first, split.file_start + split.stop):
                if isinstance(block, int):
                    behind = block
                else:
                    yield block
        if split.gap_to and not self._why:
            end = split.file_start + split.file_size
            yield Damage(end, split.gap_to - end, "no file holds these bytes")
        yield SplitEnd(first, behind, self._why)

    def first(self, look_back: int) -> int:
        """Absolute offset of the first thing at or behind the split's start, −1 where the file ends before."""
        split = self._split
        cut = split.file_start + split.start
        if split.exact or not split.start:
            return cut
        at = split.file_start + anchor(split, self._file, split.start, look_back, NEAR)
        if at == cut:
            return cut
        plain = BulkWalk(False, False, self._walk.topics, rows=min(len(self._walk.out.offset), 1024))
        for block in self._items(plain, at, None):
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
        """−1: the file ends; raises :class:`CannotRead` where that is only because nobody can read on."""
        if self._file.error is not None:
            raise self._file.error
        return -1

    def _items(self, walk: BulkWalk, offset: int, stop: int | None) -> Iterator[UnitColumns | Damage | int]:
        """What the walk from ``offset`` on sees up to ``stop``; last, where it comes so far, the next thing's place,
        or −1.
        """
        start = self._split.file_start
        end = start + self._split.file_size
        while offset < end and (stop is None or offset < stop):
            out = walk.out
            with contextlib.suppress(CannotRead):  # the file's own walk meets it again and puts it in words
                for block in walk.iter_blocks(self._file, start, offset - start, stop):
                    last = out.count - 1
                    over = out.kind[last] == BLANK
                    offset = end if over else int(out.offset[last]) + int(out.size[last])
                    yield block
                    if over:
                        yield -1
                        return
            if offset >= end or (stop is not None and offset >= stop):
                break
            for item in self._next(offset, walk):
                if isinstance(item, Stop):
                    self._why = item.reason
                    yield -1
                    return
                yield item
                if isinstance(item, Damage):
                    offset = item.offset + item.size
                elif item.kind[0] == BLANK:
                    yield -1
                    return
                else:
                    offset = int(item.offset[0]) + int(item.size[0])
        yield offset if offset < end else -1

    def _next(self, offset: int, walk: BulkWalk) -> Iterator[UnitColumns | Damage | Stop]:
        """What the file's own walk sees at ``offset``: one thing, and the stop where the log ends right behind it."""
        story = walk_file(self._bytes, offset, None, walk.options[0])
        seen = next(story, None)
        if seen is None:
            raise CannotRead("the file ends here", file=self._split.path, offset=offset)
        if isinstance(seen, Unit | Blank):
            position = offset - self._split.file_start
            data = self._file.read(position, seen.size if isinstance(seen, Unit) else 8)
            crc, want_tags, levels = walk.options
            scan_block(data, len(data), offset, 0, walk.out, walk.topics, crc, want_tags, levels)
            yield walk.out
            return
        following = next(story, None) if isinstance(seen, Damage) else None
        if isinstance(seen, Stop) and seen.kind != "zero":  # the file was cut short, or cannot be read
            size = self._split.file_start + self._split.file_size - seen.offset
            yield Damage(seen.offset, size, seen.reason, unread=self._file.error is not None)
        yield seen
        if isinstance(following, Stop):
            yield following


def _whole(store: StorePlace, files: Sequence[LogFile], number: int, followed: bool) -> Split:
    file = files[number]
    gap_to = files[number + 1].start if number + 1 < len(files) and files[number + 1].start > file.end else 0
    return Split(store.path, store.broker, file.path, file.start, 0, file.size, file.size, followed, gap_to, True)


def _last_with_data(files: Sequence[LogFile]) -> int:
    for number in range(len(files) - 1, -1, -1):
        try:
            with opened(files[number].path) as file:
                if any(file.read(0, 8)):
                    return number
        except CannotRead:  # it may hold data: whoever reads it tells that nobody knows
            return number
    return -1


def _goes_on(whole: Split) -> bool:
    """Whether the walk of the last file with data comes to its end, so that the log may go on in the next file."""
    if not whole.file_size:
        return True
    tail = dataclasses.replace(whole, start=max(whole.file_size - 1, 0), exact=False, gap_to=0)
    end = [block for block in read_split(tail, crc=False, want_tags=False) if isinstance(block, SplitEnd)][-1]
    return not end.why


def edge_of_zeros(whole: Split) -> int:
    """A position near the end of what was written: found by halving, so a guess where zeros lie in between."""
    low, high = 0, whole.file_size // NEAR
    try:
        with opened(whole.path) as file:
            while low < high:
                middle = (low + high) // 2
                if any(file.read(middle * NEAR, NEAR)):
                    low = middle + 1
                else:
                    high = middle
    except CannotRead:
        return whole.file_size
    return min((low + 1) * NEAR, whole.file_size)


def _wanted(whole: Split, want: Ranges | None) -> tuple[list[Split], int]:
    """The parts of a file that ``want`` asks for, and how many bytes are left out.

    What no file holds begins at the file's end: it is wanted where that is, though nothing else of the file may be.
    """
    if want is None:
        return [whole], 0
    parts = []
    end = whole.file_start + whole.file_size
    for low, high in want.spans:
        start, stop = max(low - whole.file_start, 0), min(high - whole.file_start, whole.file_size)
        gap_to = whole.gap_to if low <= end < high else 0
        if start < stop or gap_to:
            start = min(start, whole.file_size)
            parts.append(dataclasses.replace(whole, start=start, stop=stop, exact=start == 0, gap_to=gap_to))
    return parts, whole.file_size - sum(part.stop - part.start for part in parts)
