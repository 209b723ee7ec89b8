"""The bytes of the queues' and index's files by what they are: entries that count, dead ones, and room not yet used.

Constant effort a queue: its bounds tell how many entries it holds. Every file's bytes are in exactly one part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engine.codec.config_tables import LMQ_PREFIX
from engine.codec.index import ENTRY_SIZE, HEADER_SIZE, SLOT_SIZE
from engine.errors import CannotRead, StoreError
from engine.inspection.space.files import LOG, QUEUE_KINDS, StoreFile

if TYPE_CHECKING:
    from engine.inspection.queue_reader import QueueReader
    from engine.inspection.snapshot import StoreSnapshot


@dataclass(frozen=True, slots=True)
class PartSpace:
    """So many bytes of one kind and part; ``allocated`` is what the disk gave for them, ``messages`` None where the
    part holds none by its nature. ``files``: how many files it lies in.
    """

    kind: str
    part: str
    bytes: int
    allocated: int
    topic: str | None = None
    queue_id: int | None = None
    day: str | None = None
    messages: int | None = None
    files: int = 0
    note: str = ""


def share_out(allocated: int, parts: list[tuple[str, int]]) -> dict[str, int]:
    """What the disk gave for each of ``parts`` (name, bytes), which are filled in their order; the sum is exact.

    Holes lie where nothing was written, so what is written comes first. What the file system gave beyond the length
    (the rest of the last sector) goes to the part that is written last.
    """
    found = dict.fromkeys((name for name, _ in parts), 0)
    left, last = allocated, ""
    for name, size in parts:
        taken = min(left, size)
        found[name] += taken
        left -= taken
        if taken:
            last = name
    if left and parts:
        found[last or parts[0][0]] += left
    return found


def spread(total: int, weights: list[int]) -> list[int]:
    """``total`` divided in the proportion of ``weights``, whole numbers that add up to it exactly."""
    whole = sum(weights)
    if whole <= 0:
        return [total if number == 0 else 0 for number in range(len(weights))]
    found, given, seen = [], 0, 0
    for weight in weights:
        seen += weight
        share = total * seen // whole - given
        given += share
        found.append(share)
    return found


def queue_parts(store: StoreSnapshot, files: list[StoreFile]) -> Iterator[PartSpace]:
    """Every byte of the consume queues, batch queues and ext files."""
    readers = {
        str(folder): queue
        for queues in store.topics().values()
        for queue in queues.values()
        for folder in queue.sequence.folders
    }
    groups: dict[tuple[str, str], list[StoreFile]] = {}
    for file in files:
        if file.kind in QUEUE_KINDS:
            groups.setdefault((file.kind, str(Path(file.path).parent)), []).append(file)
    for (kind, folder), own in groups.items():
        topic, queue_id = _names(folder)
        size, allocated = sum(file.size for file in own), sum(file.allocated for file in own)
        queue = readers.get(folder) if kind != "consumequeue_ext" else None
        note = ""
        if queue is None:
            parts, messages = [("entries" if kind == "consumequeue_ext" else "notRead", size)], None
        else:
            try:
                parts, messages = _entries(queue, {file.path: file.size for file in own}), _count(queue)
            except StoreError as error:
                parts, messages, note = [("notRead", size)], None, str(error)
        given = share_out(allocated, parts)
        for part, length in parts:
            if length or part == "entries":
                yield PartSpace(
                    kind,
                    part,
                    length,
                    given[part],
                    topic,
                    queue_id,
                    None,
                    messages if part == "entries" else None,
                    len(own),
                    note,
                )


def _names(folder: str) -> tuple[str | None, int | None]:
    path = Path(folder)
    return (path.parent.name, int(path.name)) if path.name.isascii() and path.name.isdigit() else (path.name, None)


def _count(queue: QueueReader) -> int:
    return max(queue.max_offset - max(queue.min_offset, 0), 0)


def _entries(queue: QueueReader, sizes: dict[str, int]) -> list[tuple[str, int]]:
    """(part, bytes) of a queue's files, in the order in which they are written."""
    known = {file.path for file in queue.files}
    read = sum(size for path, size in sizes.items() if path in known)
    first = max(queue.sequence.min_offset, 0)
    raw_end, valid_end = max(queue.raw_end, first), max(min(queue.valid_end, queue.raw_end), first)
    held = _held(queue, sizes, first, valid_end)
    stale = _held(queue, sizes, valid_end, raw_end)
    below = 0
    if queue.kind == "simple":
        below = _held(queue, sizes, first, min(max(queue.min_offset * queue.unit_size, first), valid_end))
    return [
        ("entries", held - below),
        ("belowMin", below),
        ("stale", stale),
        ("unused", max(read - held - stale, 0)),
        ("notRead", sum(sizes.values()) - read),
    ]


def _held(queue: QueueReader, sizes: dict[str, int], start: int, end: int) -> int:
    """Bytes of [start, end) that the queue's files hold."""
    total = 0
    for file in queue.files:
        stop = file.start_offset + min(file.size, sizes.get(file.path, 0))
        total += max(min(stop, end) - max(file.start_offset, start), 0)
    return total


def index_parts(store: StoreSnapshot, files: list[StoreFile]) -> Iterator[PartSpace]:
    """Every byte of the index files: header and slots, entries, entries not used, and files that speak of nothing
    that is left.
    """
    readers = {reader.path: reader for reader in store.index_files()}
    least = max(store.log.min_offset, 0)
    for file in files:
        if file.kind != "index":
            continue
        reader = readers.get(file.path)
        parts, messages, note = [("notRead", file.size)], None, ""
        if reader is not None:
            try:
                header, geometry = reader.header, reader.geometry
                if geometry is not None:
                    table = min(HEADER_SIZE + geometry.slots * SLOT_SIZE, file.size)
                    messages = max(header.entries, 0)
                    used = min(messages * ENTRY_SIZE, file.size - table)
                    gone = bool(header.entries) and header.end_phy_offset < least
                    parts = [
                        ("belowMin" if gone else "entries", used),
                        ("slots", table),
                        ("unused", file.size - table - used),
                    ]
            except StoreError as error:
                note = str(error)
        given = share_out(file.allocated, parts)
        for part, length in parts:
            if length:
                told = messages if part in {"entries", "belowMin"} else None
                yield PartSpace(file.kind, part, length, given[part], None, None, None, told, 1, note)


PIECE = 4096
WHOLE = 64 * PIECE
"""Entries up to which a queue is read completely; of longer ones 64 pieces, evenly apart."""


def log_rows(store: StoreSnapshot, files: list[StoreFile]) -> tuple[list[PartSpace], bool]:
    """Rows that add up to the log's files, and whether long queues were only sampled."""
    own = [file for file in files if file.kind == LOG]
    known = {file.path for file in store.log.files}
    size = sum(file.size for file in own if file.path in known)
    allocated = sum(file.allocated for file in own if file.path in known)
    low, high = max(store.log.min_offset, 0), max(store.log.max_offset, 0)
    tail = min(max(store.log.end_offset - high, 0), size)
    rows: list[PartSpace] = []
    unread = store.log.sequence.trouble is not None or store.undecoded_part("queues") is not None
    sampled = False
    for topic, queues in store.topics().items():
        if topic.startswith(LMQ_PREFIX):
            continue  # light queues point at units of other topics
        for number, queue in queues.items():
            try:
                found, whole = _bytes_of(queue, low, high)
            except CannotRead:
                unread = True
                continue
            sampled |= not whole
            if found[1]:
                rows.append(PartSpace(LOG, "units", found[0], 0, topic, number, None, found[1]))
    counted = sum(row.bytes for row in rows)
    if counted > size - tail:  # entries that point at the same bytes: the queues cannot tell
        rows, counted = [], 0
    shares = share_out(allocated, [("units", size - tail), ("zeroTail", tail)])
    weights = [row.bytes for row in rows] + [size - tail - counted]
    given = spread(shares["units"], weights)
    found_rows = [
        PartSpace(LOG, "units", row.bytes, share, row.topic, row.queue_id, None, row.messages)
        for row, share in zip(rows, given[:-1], strict=True)
    ]
    if size - tail - counted:
        found_rows.append(
            PartSpace(
                LOG, "notLookedAt" if unread else "notInQueues", size - tail - counted, given[-1], files=len(known)
            )
        )
    if tail:
        found_rows.append(PartSpace(LOG, "zeroTail", tail, shares["zeroTail"], files=1))
    found_rows += [PartSpace(LOG, "notRead", f.size, f.allocated, files=1) for f in own if f.path not in known]
    return found_rows, sampled


def _bytes_of(queue: QueueReader, low: int, high: int) -> tuple[tuple[int, int], bool]:
    """(bytes, messages) of the units that the queue's entries name within the log, and whether all were asked."""
    first = max(queue.sequence.min_offset, 0) // queue.unit_size
    end = max(queue.valid_end // queue.unit_size, first)
    starts = list(range(first, end, PIECE))
    whole = end - first <= WHOLE
    if not whole:
        starts = [first + (end - first) * n // 64 for n in range(64)]
    size = messages = asked = 0
    for start in starts:
        entries = queue.array(start, min(start + PIECE, end))
        asked += len(entries)
        real = (entries["physical_offset"] >= low) & (entries["physical_offset"] < high) & (entries["size"] > 0)
        size += int(entries["size"][real].sum(dtype=np.int64))
        messages += int(np.count_nonzero(real))
    if not whole and asked:
        size, messages = size * (end - first) // asked, messages * (end - first) // asked
    return (size, messages), whole
