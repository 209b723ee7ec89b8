"""Consume queues as a plan sees them: their files, and where a broker that opens the store would end them
(docs/formats/consume-queue.md#bounds).

The same bounds as the engine's own reader finds; nothing is kept of a queue but names and numbers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from engine.codec.consume_queue import CQ_UNIT_SIZE
from engine.codec.message import Unit
from engine.codec.unit_scan import walk_file
from engine.errors import CannotRead
from engine.layout import parse_file_name
from engine.pipeline.anchors import Heard, SplitBytes
from engine.pipeline.files import LogFile, StorePlace, log_files
from engine.pipeline.splits import NEAR, Split, edge_of_zeros, first_in
from engine.pipeline.storage import Listed, join, opened, storage_of

BATCH_UNIT_SIZE = 46
_NO_LIMIT = 1 << 63
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue's files, in order. ``end`` is the byte behind the last entry that a broker would keep."""

    topic: str
    queue_id: int
    batch: bool
    files: tuple[LogFile, ...]
    end: int = 0

    @property
    def unit_size(self) -> int:
        return BATCH_UNIT_SIZE if self.batch else CQ_UNIT_SIZE


def numbered_folders(path: str) -> dict[int, str]:
    """The folders below ``path`` whose names are numbers."""
    storage, local = storage_of(path)
    numbered = ((parse_file_name(entry.name), entry) for entry in storage.listing(local))
    return {number: entry.path for number, entry in numbered if number is not None and entry.size < 0}


def files_of(folder: str) -> tuple[LogFile, ...]:
    """The files of a queue in order."""
    storage, local = storage_of(folder)
    found = (file for entry in storage.listing(local) if (file := _file(entry)) is not None)
    return tuple(sorted(found, key=lambda file: file.start))


def _file(entry: Listed) -> LogFile | None:
    start = parse_file_name(entry.name)
    return LogFile(entry.path, start, entry.size) if start is not None and start >= 0 and entry.size >= 0 else None


def list_queues(store: StorePlace, unread: list[CannotRead] | None = None) -> Iterator[Queue]:
    """Every queue that has a folder, with no end worked out. Folders that cannot be listed are put into ``unread``;
    without it raises :class:`CannotRead`.
    """
    if store.unread is not None:
        raise store.unread
    for name, batch in (("consumequeue", False), ("batchconsumequeue", True)):
        nothing: list[Listed] = []
        for topic in _told(partial(_listing, join(store.path, name)), nothing, unread):
            if not topic.may_be_folder:
                continue
            folders: dict[int, str] = _told(partial(numbered_folders, topic.path), {}, unread)
            for queue_id, folder in sorted(folders.items()):
                files = _told(partial(files_of, folder), None, unread)
                if files is not None:
                    yield Queue(topic.name, queue_id, batch, files)


def _listing(folder: str) -> list[Listed]:
    storage, local = storage_of(folder)
    return storage.listing(local)


def _told(look: Callable[[], T], nothing: T, unread: list[CannotRead] | None) -> T:
    try:
        return look()
    except CannotRead as error:
        if unread is None:
            raise
        unread.append(error)
        return nothing


def bounded(store: StorePlace, wanted: Callable[[Queue], bool], unread: list[CannotRead]) -> list[Queue]:
    """The queues that are ``wanted``, with their ends: behind the last readable entry that points in front of the log's
    end, which the newest entries of all queues tell.

    What cannot be read is put into ``unread``, and no queue is cut then: its end, or the log's, is not known.
    """
    queues = list(list_queues(store, unread))
    lacking: list[CannotRead] = []
    hints = [_told(partial(newest, queue), None, lacking) for queue in queues]
    limit = _NO_LIMIT
    if not unread and not lacking:
        limit = _told(lambda: log_end(store, [entry for entry in hints if entry is not None]), _NO_LIMIT, unread)
    return [
        dataclasses.replace(queue, end=_told(partial(_end, queue, limit), _all_of(queue), lacking))
        for queue in queues
        if wanted(queue)
    ]


def _end(queue: Queue, limit: int) -> int:
    end = raw_end(queue)
    return end if limit == _NO_LIMIT else _cut(queue, end, limit)


def _all_of(queue: Queue) -> int:
    """Behind its last file: who reads the file that cannot be read tells it."""
    return queue.files[-1].end if queue.files else 0


def newest(queue: Queue) -> tuple[int, int] | None:
    """(physical offset, size) of a queue's newest readable entry."""
    return _entry(queue, raw_end(queue) - queue.unit_size)


def raw_end(queue: Queue) -> int:
    """The byte behind the last readable entry: units of the last three files up to the first that is not valid."""
    end = queue.files[0].start if queue.files else 0
    for file in queue.files[-3:]:
        count = file.size // queue.unit_size
        valid = _valid(queue, file, count)
        end = file.start + valid * queue.unit_size
        if valid < count:
            break
    return end


def _valid(queue: Queue, file: LogFile, count: int) -> int:
    low, high = 0, count
    with opened(file.path) as lent:
        size = queue.unit_size
        if high and _place(lent.read((high - 1) * size, size), queue.batch) is not None:
            return high
        while low < high:
            middle = (low + high) // 2
            if _place(lent.read(middle * size, size), queue.batch) is not None:
                low = middle + 1
            else:
                high = middle
    return low


def _entry(queue: Queue, offset: int) -> tuple[int, int] | None:
    """(physical offset, size) of the entry at byte ``offset`` of a queue, None where there is none."""
    for file in reversed(queue.files):
        if file.start <= offset < file.end:
            with opened(file.path) as lent:
                return _place(lent.read(offset - file.start, queue.unit_size), queue.batch)
    return None


def _place(data: bytes, batch: bool) -> tuple[int, int] | None:
    if len(data) < CQ_UNIT_SIZE:
        return None
    place, size = (int.from_bytes(data[at:to], "big", signed=True) for at, to in ((0, 8), (8, 12)))
    if batch:
        base, count = int.from_bytes(data[28:36], "big", signed=True), int.from_bytes(data[36:38], "big", signed=True)
        if len(data) < BATCH_UNIT_SIZE or base < 0 or count <= 0:
            return None
    return (place, size) if place >= 0 and size > 0 else None


def _cut(queue: Queue, end: int, limit: int) -> int:
    """``end`` lowered over entries that point at or behind the end of the log."""
    first, size = queue.files[0].start if queue.files else 0, queue.unit_size
    if end <= first:
        return end
    last = _entry(queue, end - size)
    if last is None or last[0] < limit:
        return end
    low, high = first // size, end // size
    while low < high:
        middle = (low + high) // 2
        found = _entry(queue, middle * size)
        if found is not None and found[0] < limit:
            low = middle + 1
        else:
            high = middle
    return low * size


def log_end(store: StorePlace, hints: Sequence[tuple[int, int]], live: bool = False) -> int:
    """Behind the last unit in a row: from where the newest entries (place, size) point, else from near the zero tail.

    A last unit with a wrong CRC may still be on its way into the file where ``live``: the end lies in front of it.
    Raises :class:`CannotRead`: where a byte cannot be read no log ends.
    """
    for file in reversed(log_files(store)):
        with opened(file.path) as lent:
            if any(lent.read(0, 8)):
                split = Split(store.path, store.broker, file.path, file.start, 0, file.size, file.size, False)
                heard = Heard(lent)
                end = _end_in(split, SplitBytes(split, heard), hints, live)
                if heard.error is not None:
                    raise heard.error
                return end
    return 0


def _end_in(split: Split, lent: SplitBytes, hints: Sequence[tuple[int, int]], live: bool) -> int:
    start = split.file_start
    for place, size in sorted(hints, reverse=True):
        if split.file_start <= place < split.file_start + split.file_size:
            unit = next(walk_file(lent, place, crc=False, resync=False), None)
            if isinstance(unit, Unit) and unit.size == size and not unit.stale:
                start = place
                break
    else:
        edge = edge_of_zeros(split) - 2 * NEAR
        if edge > 0:
            start = max(first_in(dataclasses.replace(split, start=edge)), start)
    end = start
    before = end
    for item in walk_file(lent, start, crc=live, resync=False):
        if isinstance(item, Unit):
            before, end = end if item.crc == "bad" else item.end, item.end
    return before if live else end
