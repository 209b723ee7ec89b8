"""Accounts for the bytes of a commit log: units by topic, queue, day, tag and producer; blanks, damage, zero tail.

One walk by columns, file by file. Memory grows with the numbers of topics, queues, days, tags and hosts, each bounded,
never with the log. Bytes that the walk does not name are the rest of their file, so every file's parts add up to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import IPv6Address
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.callbacks import Cancelled, Progress
from engine.codec import properties
from engine.codec.columns import BLANK, UnitColumns
from engine.codec.dledger import HEADER_SIZE
from engine.codec.message import BORN_HOST_V6, COMPRESSED
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage, Stop
from engine.errors import CannotRead
from engine.inspection.block_scan import scan_log
from engine.mapped.sparse import last_byte
from engine.system_names import SCHEDULE_TOPIC

if TYPE_CHECKING:
    from engine.inspection.log_reader import LogReader
    from engine.inspection.space.cache import SpaceCache
    from engine.mapped.read_only import ReadOnlyFile


MAX_NAMES = 20_000
"""Number of tags, and of producers, that are counted by name; further ones are counted together."""
EXACT_TAGS = 200_000
"""Number of units whose tag text is read one by one; of later ones, one per hash code in a block."""
OTHERS = "\x00others"
"""Stands for the names beyond :data:`MAX_NAMES`."""
MAX_TOPICS = 60_000
"""Like :data:`MAX_NAMES`, for topics; a number of this size fits into 63 bits with the other fields."""
_TAGS = b"TAGS\x01"
_BORN_HOST = 48
_QUARTER_HOUR_MS = 900_000
_NOWHERE = 1 << 62
_LATEST_MS = 253_402_300_799_000


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
    """A file of the log: its parts in bytes add up to ``size``; times in ms, 0 if no unit has one."""

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
    headers: int = 0
    """Headers of DLedger entries around the units."""
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
    """Result of a walk.

    ``cells``: (topic, queue id, day or None, part) → count; ``tags``: (topic, tag or None); ``producers``: (host,
    topic); ``compressed``: topic → count.
    """

    files: list[LogFileSpace] = field(default_factory=list)
    cells: dict[tuple[str, int, str | None, str], Count] = field(default_factory=dict)
    tags: dict[tuple[str, str | None], Count] = field(default_factory=dict)
    producers: dict[tuple[str, str], Count] = field(default_factory=dict)
    compressed: dict[str, Count] = field(default_factory=dict)
    first_of: dict[str, int] = field(default_factory=dict)
    complete: bool = False
    stopped: bool = False
    """True if ``cancelled`` stopped the walk; bytes that could not be read also leave it incomplete."""


def walk_space(
    log: LogReader,
    cancelled: Cancelled | None = None,
    progress: Progress | None = None,
    *,
    live: bool = False,
    cache: SpaceCache | None = None,
) -> LogSpace:
    """Account for every byte of the log's files; units behind the log's end are ``beyond``.

    With ``live`` a broker is writing: then nothing counts as behind the end, and what arrives behind the walk is in no
    part, like bytes that were not walked.

    Files that ``cache`` knows are not walked. All files except the last, and those behind the log's end, are stored
    there.

    If ``cancelled`` stops the walk, the rest counts as not walked, like unreadable bytes. Raises nothing for what the
    store holds.
    """
    try:
        end = _NOWHERE if live else log.max_offset
    except CannotRead:
        end = _NOWHERE
    walk, log_space = _Walk(end, live), LogSpace()
    files = list(log.files)
    total, done = sum(file.size for file in files), 0
    complete = all_read = True
    for number, file in enumerate(files):
        is_last = number + 1 == len(files)
        stop = file.end_offset if is_last else min(file.end_offset, files[number + 1].start_offset)
        file_cache = cache if cache is not None and not is_last and stop <= end else None
        file_account = file_cache.take(file) if file_cache is not None else None
        if file_account is None:
            stamp = file_cache.stamp(file) if file_cache is not None else None
            file_space = LogFileSpace(file.name, file.path, file.start_offset, file.size)
            for offset in walk.file(log, file, file_space, stop):
                if progress is not None:
                    progress(done + offset - file.start_offset, total)
                if cancelled is not None and cancelled():
                    complete = False
                    break
            file_account = walk.take(file_space)
            all_read &= not walk.unread
            if file_cache is not None and stamp is not None and complete and not walk.unread:
                file_cache.keep(file, file_account, stamp)
        else:
            walk.skip(file_account.files[0].messages)
            complete = cancelled is None or not cancelled()
        _merge(log_space, file_account)
        if not complete:
            break
        done += file.size
    if cache is not None:
        cache.save()
    if progress is not None and complete:
        progress(total, total)
    log_space.complete, log_space.stopped = complete and all_read, not complete
    return log_space


def _merge(total: LogSpace, file_account: LogSpace) -> None:
    """Add the account of one file."""
    total.files += file_account.files
    for cell, count in file_account.cells.items():
        total.cells.setdefault(cell, Count()).add(count.bytes, count.messages)
    for (topic, tag), count in file_account.tags.items():
        named = (topic, tag) if (topic, tag) in total.tags or len(total.tags) < MAX_NAMES else (topic, OTHERS)
        total.tags.setdefault(named, Count()).add(count.bytes, count.messages)
    for (host, topic), count in file_account.producers.items():
        full = (host, topic) not in total.producers and len(total.producers) >= MAX_NAMES
        total.producers.setdefault((OTHERS if full else host, topic), Count()).add(count.bytes, count.messages)
    for topic, count in file_account.compressed.items():
        total.compressed.setdefault(topic, Count()).add(count.bytes, count.messages)
    for topic, offset in file_account.first_of.items():
        total.first_of[topic] = min(offset, total.first_of.get(topic, offset))


class _Walk:
    """Adds the blocks of one file up, then of the next: names and days have the same numbers in all of them."""

    def __init__(self, end: int, live: bool) -> None:
        self._end, self._live = end, live
        self._topics = TopicTable(MAX_TOPICS)
        self._begin()
        self._tag_names: dict[tuple[int, int], str | None] = {}
        self._days: list[str | None] = [None]
        self._day_numbers: dict[str, int] = {}
        self._quarters: dict[int, int] = {}
        self._read = 0
        self.unread = 0
        """Unreadable bytes of the file that was walked last."""

    def _begin(self) -> None:
        self._cells: dict[int, Count] = {}
        self._tags: dict[tuple[int, str | None], Count] = {}
        self._hosts: dict[tuple[str, int], Count] = {}
        self._packed: dict[int, Count] = {}
        self._first: dict[int, int] = {}

    def skip(self, messages: int) -> None:
        """Add units that were counted earlier."""
        self._read += messages

    def file(self, log: LogReader, file: ReadOnlyFile, file_space: LogFileSpace, stop: int) -> Iterator[int]:
        """Walk one file; yields the offset reached after each block."""
        offset = file.start_offset
        self.unread = 0
        by_topic: dict[int, int] = {}
        for block in scan_log(log, offset, stop, crc=False, topics=self._topics):
            if isinstance(block, Stop):
                break
            if isinstance(block, Damage):
                size = max(min(block.offset + block.size, file.end_offset) - max(block.offset, offset), 0)
                if block.unread:
                    self.unread += size
                else:
                    file_space.unreadable += size
                    file_space.spans += 1
                offset = max(offset, block.offset + size)
            else:
                offset = self._block(block, file_space, by_topic, min(stop, file.end_offset))
            yield offset
        if log.has_entries(file):
            file_space.headers = HEADER_SIZE * file_space.messages
        self._rest(file, file_space, offset)
        names = self._topics.names
        file_space.topics = {_name(names, number): size for number, size in by_topic.items()}

    def _rest(self, file: ReadOnlyFile, file_space: LogFileSpace, offset: int) -> None:
        """Account for bytes that the walk did not name: data, then zeros."""
        remaining = (
            file.size
            - file_space.units
            - file_space.stale
            - file_space.beyond
            - file_space.blank
            - file_space.headers
            - file_space.unreadable
            - self.unread
        )
        if remaining <= 0:
            return
        position = min(max(offset - file.start_offset, 0), file.size)
        try:
            written = min(max(last_byte(file, position) - position, 0), remaining)
        except CannotRead:
            self.unread += remaining
            return
        if not self._live:
            file_space.unreadable += written
            file_space.spans += written > 0
        file_space.zero += remaining - written

    def _block(self, block: UnitColumns, file_space: LogFileSpace, by_topic: dict[int, int], stop: int) -> int:
        count = block.count
        if not count:
            return file_space.start_offset
        units = np.nonzero(block["kind"] != BLANK)[0]
        last_row = count - 1
        next_offset = int(block.offset[last_row]) + int(block.size[last_row])
        if block.kind[last_row] == BLANK:
            file_space.blank += max(stop - int(block.offset[last_row]), 0)
            next_offset = stop
        if len(units):
            self._units(block, units, file_space, by_topic)
        return next_offset

    def _units(
        self, block: UnitColumns, rows: npt.NDArray[np.intp], file_space: LogFileSpace, by_topic: dict[int, int]
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
        file_space.units += int(parts[0])
        file_space.stale += int(parts[1])
        file_space.beyond += int(parts[2])
        file_space.messages += len(rows)
        times = block.store_timestamp[rows]
        file_space.first_time = file_space.first_time or int(times[0])
        file_space.last_time = int(times[-1])
        self._note_first(topics, offsets)
        self._note_packed(block, rows, topics, sizes)
        self._note_tags(block, rows, topics, sizes)
        self._note_hosts(block, rows, topics, sizes)

    def _day_of(self, times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Number of the local day of each time; 0 for times outside the calendar."""
        earliest, latest = int(times.min()), int(times.max())
        if earliest // _QUARTER_HOUR_MS == latest // _QUARTER_HOUR_MS:
            return np.full(len(times), self._day_number(earliest // _QUARTER_HOUR_MS), np.int64)
        quarters, where = np.unique(times // _QUARTER_HOUR_MS, return_inverse=True)
        numbers = np.array([self._day_number(int(quarter)) for quarter in quarters], np.int64)
        return numbers[where]

    def _day_number(self, quarter: int) -> int:
        """Local days change at quarters of an hour, in every zone there is."""
        number = self._quarters.get(quarter)
        if number is None:
            day = local_day(quarter * _QUARTER_HOUR_MS)
            if day is not None and day not in self._day_numbers and len(self._days) < 8000:
                self._day_numbers[day] = len(self._days)
                self._days.append(day)
            number = self._day_numbers.get(day, 0) if day is not None else 0
            if len(self._quarters) < 1 << 20:
                self._quarters[quarter] = number
        return number

    def _note_first(self, topics: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64]) -> None:
        topic_ids, first_rows = np.unique(topics, return_index=True)
        for topic, row in zip(topic_ids.tolist(), first_rows.tolist(), strict=True):
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
        delayed = topics == self._topics.find(SCHEDULE_TOPIC)  # their tags code is a time
        for row, topic, size in zip(
            rows[delayed].tolist(), topics[delayed].tolist(), sizes[delayed].tolist(), strict=True
        ):
            self._count_tag(topic, tag_of(block.raw_properties(row)), size, 1)
        not_delayed = ~delayed
        key = (topics[not_delayed] << 32) | (codes[not_delayed] & 0xFFFFFFFF)
        unique_keys, first_rows = np.unique(key, return_index=True)
        places = rows[not_delayed][first_rows]
        for value, row in zip(unique_keys.tolist(), places.tolist(), strict=True):
            name = (value >> 32, value & 0xFFFFFFFF)
            if name not in self._tag_names and len(self._tag_names) < MAX_NAMES:
                self._tag_names[name] = tag_of(block.raw_properties(row))
        for value, size, number in _sums(key, sizes[not_delayed]):
            topic = value >> 32
            self._count_tag(topic, self._tag_names.get((topic, value & 0xFFFFFFFF), OTHERS), size, number)

    def _count_tag(self, topic: int, tag: str | None, size: int, messages: int) -> None:
        key = (topic, tag)
        if key not in self._tags and len(self._tags) >= MAX_NAMES:
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
                address_bits = value >> 24
                name = f"{address_bits >> 24}.{address_bits >> 16 & 255}.{address_bits >> 8 & 255}.{address_bits & 255}"
                self._count_host(name, (value & 0xFFFFFF) - 1, size, number)
        for place, topic, size in zip(places[wide].tolist(), topics[wide].tolist(), sizes[wide].tolist(), strict=True):
            address = IPv6Address(block.buffer[place : place + 16].tobytes())
            self._count_host(str(address), topic, size, 1)

    def _count_host(self, host: str, topic: int, size: int, messages: int) -> None:
        key = (host, topic)
        if key not in self._hosts and len(self._hosts) >= MAX_NAMES:
            key = (OTHERS, topic)
        self._hosts.setdefault(key, Count()).add(size, messages)

    def take(self, file_space: LogFileSpace) -> LogSpace:
        """Return the account of the file; numbers become names."""
        names, log_space = self._topics.names, LogSpace([file_space], complete=True)
        for value, count in self._cells.items():
            queue = (value & 0xFFFFFFFF) - (1 << 31)
            part = ("units", "stale", "beyondEnd")[value >> 32 & 3]
            day = self._days[value >> 34 & 0x1FFF]
            key = (_name(names, (value >> 47) - 1), queue, day, part)
            log_space.cells.setdefault(key, Count()).add(count.bytes, count.messages)
        for (topic, tag), count in self._tags.items():
            log_space.tags.setdefault((_name(names, topic), tag), Count()).add(count.bytes, count.messages)
        for (host, topic), count in self._hosts.items():
            log_space.producers.setdefault((host, _name(names, topic)), Count()).add(count.bytes, count.messages)
        for topic, count in self._packed.items():
            log_space.compressed.setdefault(_name(names, topic), Count()).add(count.bytes, count.messages)
        for topic, offset in self._first.items():
            name = _name(names, topic)
            log_space.first_of[name] = min(offset, log_space.first_of.get(name, offset))
        self._begin()
        return log_space


def local_day(ms: int) -> str | None:
    """``2026-11-20``: the day of ``ms`` in this machine's zone; None for times outside the calendar."""
    if not 0 < ms < _LATEST_MS:
        return None
    try:
        return datetime.fromtimestamp(ms / 1000).astimezone().date().isoformat()
    except (OverflowError, ValueError, OSError):
        return None


def tag_of(raw: bytes) -> str | None:
    """The tag in property text, as :func:`engine.codec.properties.decode` would give it."""
    position = raw.find(_TAGS)
    if position < 0:
        return None
    if raw.find(_TAGS, position + 1) >= 0 or (position and raw[position - 1] != 2):
        return properties.decode(raw).get("TAGS")
    end = raw.find(b"\x02", position)
    value = raw[position + len(_TAGS) : end if end >= 0 else len(raw)]
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
