"""The bytes of a commit log by what they are: units by topic, queue, day, tag and producer; blanks, damage, zero tail.

One walk by columns, file by file. What is kept grows with the numbers of topics, queues, days, tags and hosts, each
bounded, never with the log. Whatever the walk did not name is the rest of its file, so every file's parts add up to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from engine.codec import properties
from engine.codec.columns import BLANK, UnitColumns
from engine.codec.message import BORN_HOST_V6, COMPRESSED, SCHEDULE_TOPIC
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage, Stop
from engine.errors import CannotRead
from engine.inspection.block_scan import scan_log
from engine.mapped.sparse import last_byte

if TYPE_CHECKING:
    from engine.inspection.log_reader import LogReader
    from engine.mapped.read_only import ReadOnlyFile

Cancelled = Callable[[], bool]
Progress = Callable[[int, int], None]

MOST_NAMES = 20_000
"""Tags, and producers, that are counted by name; further ones together."""
EXACT_TAGS = 200_000
"""Units whose tag text is read one by one; of later ones, one of each hash code in a block."""
OTHERS = "\x00others"
"""Stands for the names beyond :data:`MOST_NAMES`."""
MOST_TOPICS = 60_000
"""As :data:`MOST_NAMES`, for topics; a number of this size fits beside the others in 63 bits."""
_TAGS = b"TAGS\x01"
_BORN_HOST = 48
_QUARTER = 900_000
_NOWHERE = 1 << 62
_LATEST = 253_402_300_799_000


@dataclass(slots=True)
class Count:
    """Bytes and messages."""

    bytes: int = 0
    messages: int = 0

    def add(self, size: int, messages: int) -> None:
        self.bytes += size
        self.messages += messages


@dataclass(slots=True)
class LogFileSpace:
    """One file of the log: its parts in bytes add up to ``size``; times in ms, 0 where no unit told one."""

    name: str
    path: str
    start_offset: int
    size: int
    units: int = 0
    stale: int = 0
    beyond: int = 0
    blank: int = 0
    unreadable: int = 0
    zero: int = 0
    spans: int = 0
    messages: int = 0
    first_time: int = 0
    last_time: int = 0
    topics: dict[str, int] = field(default_factory=dict)

    @property
    def written(self) -> int:
        """Bytes of units of every kind."""
        return self.units + self.stale + self.beyond


@dataclass(slots=True)
class LogSpace:
    """What a walk found. ``cells``: (topic, queue id, day or None, part) → count; ``tags``: (topic, tag or None);
    ``producers``: (host, topic); ``compressed``: topic → count.
    """

    files: list[LogFileSpace] = field(default_factory=list)
    cells: dict[tuple[str, int, str | None, str], Count] = field(default_factory=dict)
    tags: dict[tuple[str, str | None], Count] = field(default_factory=dict)
    producers: dict[tuple[str, str], Count] = field(default_factory=dict)
    compressed: dict[str, Count] = field(default_factory=dict)
    first_of: dict[str, int] = field(default_factory=dict)
    complete: bool = False


class Accounts(Protocol):
    """Where accounts of files of a log are kept from one walk to the next."""

    def take(self, file: ReadOnlyFile) -> LogSpace | None: ...
    def stamp(self, file: ReadOnlyFile) -> list[Any]: ...
    def keep(self, file: ReadOnlyFile, found: LogSpace, stamp: list[Any]) -> None: ...
    def save(self) -> None: ...


def walk_space(
    log: LogReader,
    cancelled: Cancelled | None = None,
    progress: Progress | None = None,
    *,
    live: bool = False,
    cache: Accounts | None = None,
) -> LogSpace:
    """Account for every byte of the log's files; units behind the log's end are ``beyond``.

    With ``live`` a broker writes meanwhile: nothing is behind the end then, and what came behind the walk is in no
    part, as what was not looked at.

    Files that ``cache`` knows are not walked; all but the last one, and what lies behind the log's end, are kept there.

    Stopped by ``cancelled`` it tells what it saw, the rest as not looked at, as what could not be read. Raises nothing
    for what the store holds.
    """
    try:
        end = _NOWHERE if live else log.max_offset
    except CannotRead:
        end = _NOWHERE
    walk, found = _Walk(end, live), LogSpace()
    files = list(log.files)
    total, done = sum(file.size for file in files), 0
    complete = whole = True
    for number, file in enumerate(files):
        last = number + 1 == len(files)
        stop = file.end_offset if last else min(file.end_offset, files[number + 1].start_offset)
        kept = cache if cache is not None and not last and stop <= end else None
        known = kept.take(file) if kept is not None else None
        if known is None:
            stamp = kept.stamp(file) if kept is not None else None
            one = LogFileSpace(file.name, file.path, file.start_offset, file.size)
            for at in walk.file(log, file, one, stop):
                if progress is not None:
                    progress(done + at - file.start_offset, total)
                if cancelled is not None and cancelled():
                    complete = False
                    break
            known = walk.take(one)
            whole &= not walk.unread
            if kept is not None and stamp is not None and complete and not walk.unread:
                kept.keep(file, known, stamp)
        else:
            walk.skip(known.files[0].messages)
            complete = cancelled is None or not cancelled()
        _merge(found, known)
        if not complete:
            break
        done += file.size
    if cache is not None:
        cache.save()
    if progress is not None and complete:
        progress(total, total)
    found.complete = complete and whole
    return found


def _merge(found: LogSpace, one: LogSpace) -> None:
    """Add the account of one file."""
    found.files += one.files
    for cell, count in one.cells.items():
        found.cells.setdefault(cell, Count()).add(count.bytes, count.messages)
    for (topic, tag), count in one.tags.items():
        named = (topic, tag) if (topic, tag) in found.tags or len(found.tags) < MOST_NAMES else (topic, OTHERS)
        found.tags.setdefault(named, Count()).add(count.bytes, count.messages)
    for (host, topic), count in one.producers.items():
        full = (host, topic) not in found.producers and len(found.producers) >= MOST_NAMES
        found.producers.setdefault((OTHERS if full else host, topic), Count()).add(count.bytes, count.messages)
    for topic, count in one.compressed.items():
        found.compressed.setdefault(topic, Count()).add(count.bytes, count.messages)
    for topic, offset in one.first_of.items():
        found.first_of[topic] = min(offset, found.first_of.get(topic, offset))


class _Walk:
    """Adds the blocks of one file up, then of the next: names and days have the same numbers in all of them."""

    def __init__(self, end: int, live: bool) -> None:
        self._end, self._live = end, live
        self._topics = TopicTable(MOST_TOPICS)
        self._begin()
        self._tag_names: dict[tuple[int, int], str | None] = {}
        self._days: list[str | None] = [None]
        self._day_numbers: dict[str, int] = {}
        self._quarters: dict[int, int] = {}
        self._read = 0
        self.unread = 0
        """Bytes of the file that was walked last which could not be read."""

    def _begin(self) -> None:
        self._cells: dict[int, Count] = {}
        self._tags: dict[tuple[int, str | None], Count] = {}
        self._hosts: dict[tuple[str, int], Count] = {}
        self._packed: dict[int, Count] = {}
        self._first: dict[int, int] = {}

    def skip(self, messages: int) -> None:
        """So many units were counted before."""
        self._read += messages

    def file(self, log: LogReader, file: ReadOnlyFile, one: LogFileSpace, stop: int) -> Iterator[int]:
        """Walk one file; yields the offset reached after each block."""
        at = file.start_offset
        self.unread = 0
        by_topic: dict[int, int] = {}
        for block in scan_log(log, at, stop, crc=False, topics=self._topics):
            if isinstance(block, Stop):
                break
            if isinstance(block, Damage):
                size = max(min(block.offset + block.size, file.end_offset) - max(block.offset, at), 0)
                if block.unread:
                    self.unread += size
                else:
                    one.unreadable += size
                    one.spans += 1
                at = max(at, block.offset + size)
            else:
                at = self._block(block, one, by_topic, min(stop, file.end_offset))
            yield at
        self._rest(file, one, at)
        names = self._topics.names
        one.topics = {_name(names, number): size for number, size in by_topic.items()}

    def _rest(self, file: ReadOnlyFile, one: LogFileSpace, at: int) -> None:
        """What the walk did not name: bytes that say something, then zeros."""
        left = file.size - one.units - one.stale - one.beyond - one.blank - one.unreadable - self.unread
        if left <= 0:
            return
        position = min(max(at - file.start_offset, 0), file.size)
        try:
            written = min(max(last_byte(file, position) - position, 0), left)
        except CannotRead:
            self.unread += left
            return
        if not self._live:
            one.unreadable += written
            one.spans += written > 0
        one.zero += left - written

    def _block(self, block: UnitColumns, one: LogFileSpace, by_topic: dict[int, int], stop: int) -> int:
        count = block.count
        if not count:
            return one.start_offset
        units = np.nonzero(block["kind"] != BLANK)[0]
        last = count - 1
        at = int(block.offset[last]) + int(block.size[last])
        if block.kind[last] == BLANK:
            one.blank += max(stop - int(block.offset[last]), 0)
            at = stop
        if len(units):
            self._units(block, units, one, by_topic)
        return at

    def _units(
        self, block: UnitColumns, rows: npt.NDArray[np.intp], one: LogFileSpace, by_topic: dict[int, int]
    ) -> None:
        sizes = block.size[rows].astype(np.int64)
        offsets = block.offset[rows]
        topics = block.topic_id[rows].astype(np.int64)
        part = np.where(block.physical_offset[rows] != offsets, 1, np.where(offsets >= self._end, 2, 0))
        days = self._day_of(block.store_timestamp[rows])
        queues = block.queue_id[rows].astype(np.int64) + (1 << 31)
        key = (((topics + 1) << 13 | days) << 2 | part) << 32 | queues
        for value, size, number in _sums(key, sizes):
            self._cells.setdefault(value, Count()).add(size, number)
        for topic, size, _ in _sums(topics, sizes):
            by_topic[topic] = by_topic.get(topic, 0) + size
        parts = np.bincount(part, sizes, minlength=3).astype(np.int64)
        one.units += int(parts[0])
        one.stale += int(parts[1])
        one.beyond += int(parts[2])
        one.messages += len(rows)
        times = block.store_timestamp[rows]
        one.first_time = one.first_time or int(times[0])
        one.last_time = int(times[-1])
        self._note_first(topics, offsets)
        self._note_packed(block, rows, topics, sizes)
        self._note_tags(block, rows, topics, sizes)
        self._note_hosts(block, rows, topics, sizes)

    def _day_of(self, times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Number of the local day of each time; 0 where it is none a calendar knows."""
        low, high = int(times.min()), int(times.max())
        if low // _QUARTER == high // _QUARTER:
            return np.full(len(times), self._day_number(low // _QUARTER), np.int64)
        quarters, where = np.unique(times // _QUARTER, return_inverse=True)
        numbers = np.array([self._day_number(int(quarter)) for quarter in quarters], np.int64)
        return numbers[where]

    def _day_number(self, quarter: int) -> int:
        """Local days change at quarters of an hour, in every zone there is."""
        number = self._quarters.get(quarter)
        if number is None:
            day = local_day(quarter * _QUARTER)
            if day is not None and day not in self._day_numbers and len(self._days) < 8000:
                self._day_numbers[day] = len(self._days)
                self._days.append(day)
            number = self._day_numbers.get(day, 0) if day is not None else 0
            if len(self._quarters) < 1 << 20:
                self._quarters[quarter] = number
        return number

    def _note_first(self, topics: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64]) -> None:
        found, first = np.unique(topics, return_index=True)
        for topic, row in zip(found.tolist(), first.tolist(), strict=True):
            if topic not in self._first:
                self._first[topic] = int(offsets[row])

    def _note_packed(
        self,
        block: UnitColumns,
        rows: npt.NDArray[np.intp],
        topics: npt.NDArray[np.int64],
        sizes: npt.NDArray[np.int64],
    ) -> None:
        packed = (block.sys_flag[rows] & COMPRESSED) != 0
        if packed.any():
            for topic, size, number in _sums(topics[packed], sizes[packed]):
                self._packed.setdefault(topic, Count()).add(size, number)

    # -- tags

    def _note_tags(
        self,
        block: UnitColumns,
        rows: npt.NDArray[np.intp],
        topics: npt.NDArray[np.int64],
        sizes: npt.NDArray[np.int64],
    ) -> None:
        if self._read < EXACT_TAGS:
            self._read += len(rows)
            for row, topic, size in zip(rows.tolist(), topics.tolist(), sizes.tolist(), strict=True):
                self._count_tag(topic, tag_of(block.raw_properties(row)), size, 1)
            return
        codes = block.tags_code[rows]
        delayed = topics == self._topics.find(SCHEDULE_TOPIC)  # their code is a time
        for row, topic, size in zip(
            rows[delayed].tolist(), topics[delayed].tolist(), sizes[delayed].tolist(), strict=True
        ):
            self._count_tag(topic, tag_of(block.raw_properties(row)), size, 1)
        rest = ~delayed
        key = (topics[rest] << 32) | (codes[rest] & 0xFFFFFFFF)
        found, first = np.unique(key, return_index=True)
        places = rows[rest][first]
        for value, row in zip(found.tolist(), places.tolist(), strict=True):
            name = (value >> 32, value & 0xFFFFFFFF)
            if name not in self._tag_names and len(self._tag_names) < MOST_NAMES:
                self._tag_names[name] = tag_of(block.raw_properties(row))
        for value, size, number in _sums(key, sizes[rest]):
            topic = value >> 32
            self._count_tag(topic, self._tag_names.get((topic, value & 0xFFFFFFFF), OTHERS), size, number)

    def _count_tag(self, topic: int, tag: str | None, size: int, messages: int) -> None:
        key = (topic, tag)
        if key not in self._tags and len(self._tags) >= MOST_NAMES:
            key = (topic, OTHERS)
        self._tags.setdefault(key, Count()).add(size, messages)

    # -- producers

    def _note_hosts(
        self,
        block: UnitColumns,
        rows: npt.NDArray[np.intp],
        topics: npt.NDArray[np.int64],
        sizes: npt.NDArray[np.int64],
    ) -> None:
        places = block.offset[rows] - block.base + _BORN_HOST
        wide = (block.sys_flag[rows] & BORN_HOST_V6) != 0
        narrow = ~wide
        if narrow.any():
            raw = block.buffer[places[narrow][:, None] + np.arange(4)].astype(np.int64)
            host = raw[:, 0] << 24 | raw[:, 1] << 16 | raw[:, 2] << 8 | raw[:, 3]
            for value, size, number in _sums(host << 24 | (topics[narrow] + 1), sizes[narrow]):
                one = value >> 24
                name = f"{one >> 24}.{one >> 16 & 255}.{one >> 8 & 255}.{one & 255}"
                self._count_host(name, (value & 0xFFFFFF) - 1, size, number)
        for place, topic, size in zip(places[wide].tolist(), topics[wide].tolist(), sizes[wide].tolist(), strict=True):
            address = IPv6Address(block.buffer[place : place + 16].tobytes())
            self._count_host(str(address), topic, size, 1)

    def _count_host(self, host: str, topic: int, size: int, messages: int) -> None:
        key = (host, topic)
        if key not in self._hosts and len(self._hosts) >= MOST_NAMES:
            key = (OTHERS, topic)
        self._hosts.setdefault(key, Count()).add(size, messages)

    def take(self, one: LogFileSpace) -> LogSpace:
        """What the file holds; numbers become names."""
        names, found = self._topics.names, LogSpace([one], complete=True)
        for value, count in self._cells.items():
            queue = (value & 0xFFFFFFFF) - (1 << 31)
            part = ("units", "stale", "beyondEnd")[value >> 32 & 3]
            day = self._days[value >> 34 & 0x1FFF]
            key = (_name(names, (value >> 47) - 1), queue, day, part)
            found.cells.setdefault(key, Count()).add(count.bytes, count.messages)
        for (topic, tag), count in self._tags.items():
            found.tags.setdefault((_name(names, topic), tag), Count()).add(count.bytes, count.messages)
        for (host, topic), count in self._hosts.items():
            found.producers.setdefault((host, _name(names, topic)), Count()).add(count.bytes, count.messages)
        for topic, count in self._packed.items():
            found.compressed.setdefault(_name(names, topic), Count()).add(count.bytes, count.messages)
        for topic, offset in self._first.items():
            name = _name(names, topic)
            found.first_of[name] = min(offset, found.first_of.get(name, offset))
        self._begin()
        return found


def local_day(ms: int) -> str | None:
    """``2026-11-20``: the day of ``ms`` in the zone of this machine; None where no calendar has it."""
    if not 0 < ms < _LATEST:
        return None
    try:
        return datetime.fromtimestamp(ms / 1000).astimezone().date().isoformat()
    except (OverflowError, ValueError, OSError):
        return None


def tag_of(raw: bytes) -> str | None:
    """The tag in property text, as :func:`engine.codec.properties.decode` would give it."""
    at = raw.find(_TAGS)
    if at < 0:
        return None
    if raw.find(_TAGS, at + 1) >= 0 or (at and raw[at - 1] != 2):
        return properties.decode(raw).get("TAGS")
    end = raw.find(b"\x02", at)
    value = raw[at + len(_TAGS) : end if end >= 0 else len(raw)]
    return value.decode(errors="replace") if value else None


def _name(names: list[str], number: int) -> str:
    return names[number] if 0 <= number < len(names) else OTHERS


def _sums(keys: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """(key, sum of the sizes, rows) of each key."""
    if not len(keys):
        return
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    edges = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    totals = np.add.reduceat(sizes[order], edges)
    counts = np.diff(np.append(edges, len(keys)))
    yield from zip(ordered[edges].tolist(), totals.tolist(), counts.tolist(), strict=True)
