"""Consume queues for a plan: their files, and where a broker that opens the store would end them
(docs/formats/consume-queue.md#bounds).

The bounds are the same as those of the engine's own reader. Only names and numbers of a queue are held in memory.
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
from engine.files.layout import parse_file_name
from engine.pipeline.anchors import ErrorNotingFile, SplitBytes
from engine.pipeline.files import StorePlace, log_files
from engine.pipeline.log_files import LogFile
from engine.pipeline.splits import NEAR_BYTES, Split, edge_of_zeros, first_in
from engine.pipeline.storage import FolderEntry, join, open_path, storage_of

BATCH_UNIT_SIZE = 46
_NO_LIMIT = 1 << 63
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue's files, in order. ``end`` is the end, in bytes, of the last entry that a broker would keep."""

    topic: str
    queue_id: int
    batch: bool
    files: tuple[LogFile, ...]
    end: int = 0

    @property
    def unit_size(self) -> int:
        return BATCH_UNIT_SIZE if self.batch else CQ_UNIT_SIZE


def numbered_folders(path: str) -> dict[int, str]:
    """Return the folders below ``path`` whose names are numbers."""
    storage, local = storage_of(path)
    numbered = ((parse_file_name(entry.name), entry) for entry in storage.listing(local))
    return {number: entry.path for number, entry in numbered if number is not None and entry.size < 0}


def files_of(folder: str) -> tuple[LogFile, ...]:
    """Return the files of a queue in order."""
    storage, local = storage_of(folder)
    files = (file for entry in storage.listing(local) if (file := _file(entry)) is not None)
    return tuple(sorted(files, key=lambda file: file.start))


def _file(entry: FolderEntry) -> LogFile | None:
    start = parse_file_name(entry.name)
    return LogFile(entry.path, start, entry.size) if start is not None and start >= 0 and entry.size >= 0 else None


def list_queues(store: StorePlace, unread: list[CannotRead] | None = None) -> Iterator[Queue]:
    """Yield every queue with a folder, without its end. Folders that cannot be listed are added to ``unread``;
    without ``unread`` :class:`CannotRead` is raised.
    """
    if store.unread is not None:
        raise store.unread
    for name, batch in (("consumequeue", False), ("batchconsumequeue", True)):
        nothing: list[FolderEntry] = []
        for topic in _or_default(partial(_listing, join(store.path, name)), nothing, unread):
            if not topic.may_be_folder:
                continue
            folders: dict[int, str] = _or_default(partial(numbered_folders, topic.path), {}, unread)
            for queue_id, folder in sorted(folders.items()):
                files = _or_default(partial(files_of, folder), None, unread)
                if files is not None:
                    yield Queue(topic.name, queue_id, batch, files)


def _listing(folder: str) -> list[FolderEntry]:
    storage, local = storage_of(folder)
    return storage.listing(local)


def _or_default(read: Callable[[], T], default: T, unread: list[CannotRead] | None) -> T:
    try:
        return read()
    except CannotRead as error:
        if unread is None:
            raise
        unread.append(error)
        return default


def queues_with_ends(store: StorePlace, is_selected: Callable[[Queue], bool], unread: list[CannotRead]) -> list[Queue]:
    """Return the queues that are ``is_selected``, with their ends: after the last readable entry that points before the
    log's end. The log's end is found from the newest entries of all queues.

    Files that cannot be read are added to ``unread``; then no queue is cut, because its end, or the log's, is unknown.
    """
    queues = list(list_queues(store, unread))
    queue_errors: list[CannotRead] = []
    newest_entries = [_or_default(partial(newest_entry, queue), None, queue_errors) for queue in queues]
    limit = _NO_LIMIT
    if not unread and not queue_errors:
        limit = _or_default(
            lambda: log_end(store, [entry for entry in newest_entries if entry is not None]), _NO_LIMIT, unread
        )
    return [
        dataclasses.replace(
            queue, end=_or_default(partial(_queue_end, queue, limit), _full_length(queue), queue_errors)
        )
        for queue in queues
        if is_selected(queue)
    ]


def _queue_end(queue: Queue, limit: int) -> int:
    end = raw_end(queue)
    return end if limit == _NO_LIMIT else _cut_at_limit(queue, end, limit)


def _full_length(queue: Queue) -> int:
    """Return the end of a queue's last file; the reader of an unreadable file reports it."""
    return queue.files[-1].end if queue.files else 0


def newest_entry(queue: Queue) -> tuple[int, int] | None:
    """Return (physical offset, size) of a queue's newest readable entry."""
    return _entry(queue, raw_end(queue) - queue.unit_size)


def raw_end(queue: Queue) -> int:
    """Return the end, in bytes, of the last readable entry.

    Reads the last three files up to the first invalid entry.
    """
    end = queue.files[0].start if queue.files else 0
    for file in queue.files[-3:]:
        count = file.size // queue.unit_size
        valid = _count_valid(queue, file, count)
        end = file.start + valid * queue.unit_size
        if valid < count:
            break
    return end


def _count_valid(queue: Queue, file: LogFile, count: int) -> int:
    lower, upper = 0, count
    with open_path(file.path) as opened_file:
        size = queue.unit_size
        if upper and _unit_place(opened_file.read((upper - 1) * size, size), queue.batch) is not None:
            return upper
        while lower < upper:
            middle = (lower + upper) // 2
            if _unit_place(opened_file.read(middle * size, size), queue.batch) is not None:
                lower = middle + 1
            else:
                upper = middle
    return lower


def _entry(queue: Queue, offset: int) -> tuple[int, int] | None:
    """Return (physical offset, size) of the entry at byte ``offset`` of a queue, or None."""
    for file in reversed(queue.files):
        if file.start <= offset < file.end:
            with open_path(file.path) as opened_file:
                return _unit_place(opened_file.read(offset - file.start, queue.unit_size), queue.batch)
    return None


def _unit_place(data: bytes, batch: bool) -> tuple[int, int] | None:
    if len(data) < CQ_UNIT_SIZE:
        return None
    place, size = (int.from_bytes(data[begin:end], "big", signed=True) for begin, end in ((0, 8), (8, 12)))
    if batch:
        base, count = int.from_bytes(data[28:36], "big", signed=True), int.from_bytes(data[36:38], "big", signed=True)
        if len(data) < BATCH_UNIT_SIZE or base < 0 or count <= 0:
            return None
    return (place, size) if place >= 0 and size > 0 else None


def _cut_at_limit(queue: Queue, end: int, limit: int) -> int:
    """Return ``end`` without the last entries that point to or after the end of the log."""
    queue_start, size = queue.files[0].start if queue.files else 0, queue.unit_size
    if end <= queue_start:
        return end
    last_entry = _entry(queue, end - size)
    if last_entry is None or last_entry[0] < limit:
        return end
    lower, upper = queue_start // size, end // size
    while lower < upper:
        middle = (lower + upper) // 2
        entry = _entry(queue, middle * size)
        if entry is not None and entry[0] < limit:
            lower = middle + 1
        else:
            upper = middle
    return lower * size


def log_end(store: StorePlace, hints: Sequence[tuple[int, int]], live: bool = False) -> int:
    """Return the end of the last contiguous unit. The walk starts where the newest entries (place, size) point, else
    near the zeros at the end.

    With ``live``, a last unit with a wrong CRC may be still being written: the end is before it.
    Raises :class:`CannotRead`, because an unreadable byte is not the end of a log.
    """
    for file in reversed(log_files(store)):
        with open_path(file.path) as opened_file:
            if any(opened_file.read(0, 8)):
                split = Split.of_file(store, file, followed=False)
                checked_file = ErrorNotingFile(opened_file)
                end = _end_in(split, SplitBytes(split, checked_file), hints, live)
                if checked_file.error is not None:
                    raise checked_file.error
                return end
    return 0


def _end_in(split: Split, split_bytes: SplitBytes, hints: Sequence[tuple[int, int]], live: bool) -> int:
    start = split.file_start
    for place, size in sorted(hints, reverse=True):
        if split.file_start <= place < split.file_start + split.file_size:
            unit = next(walk_file(split_bytes, place, crc=False, resync=False, decode=split.decode), None)
            if isinstance(unit, Unit) and unit.size == size and not unit.stale:
                start = place
                break
    else:
        edge = edge_of_zeros(split) - 2 * NEAR_BYTES
        if edge > 0:
            start = max(first_in(dataclasses.replace(split, start=edge)), start)
    end = start
    previous_end = end
    for item in walk_file(split_bytes, start, crc=live, resync=False, decode=split.decode):
        if isinstance(item, Unit):
            previous_end, end = end if item.crc == "bad" else item.end, item.end
    return previous_end if live else end
