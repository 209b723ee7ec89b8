"""Accounts for the bytes of queue and index files: valid entries, dead ones, and unused room.

Constant effort per queue: its bounds give the number of entries. Every file's bytes are in exactly one part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engine.codec.index import ENTRY_SIZE, HEADER_SIZE, SLOT_SIZE
from engine.errors import CannotRead, StoreError
from engine.inspection.rocksdb_queue import RocksQueueReader
from engine.inspection.space.files import LOG, QUEUE_KINDS, StoreFile
from engine.system_names import LMQ_PREFIX

if TYPE_CHECKING:
    from engine.inspection.queue_reader import QueueReader
    from engine.inspection.snapshot import StoreSnapshot
    from engine.inspection.store_queues import AnyQueue


@dataclass(frozen=True, slots=True)
class PartSpace:
    """Bytes of one kind and part.

    ``allocated`` is the space on disk for them, ``messages`` is None if the part cannot hold any. ``files``: the number
    of files.
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
    """Distribute ``allocated`` bytes over ``parts`` (name, bytes) in their order; the sum is exact.

    Holes are where nothing was written, so written parts come first. Space beyond the length (the rest of the last
    sector) goes to the part that is written last.
    """
    shares = dict.fromkeys((name for name, _ in parts), 0)
    remaining, last_filled = allocated, ""
    for name, size in parts:
        part_share = min(remaining, size)
        shares[name] += part_share
        remaining -= part_share
        if part_share:
            last_filled = name
    if remaining and parts:
        shares[last_filled or parts[0][0]] += remaining
    return shares


def spread(total: int, weights: list[int]) -> list[int]:
    """Divide ``total`` in proportion to ``weights``, into integers that add up to it exactly."""
    total_weight = sum(weights)
    if total_weight <= 0:
        return [total if number == 0 else 0 for number in range(len(weights))]
    shares, assigned, weight_so_far = [], 0, 0
    for weight in weights:
        weight_so_far += weight
        share = total * weight_so_far // total_weight - assigned
        assigned += share
        shares.append(share)
    return shares


def queue_parts(store: StoreSnapshot, files: list[StoreFile]) -> Iterator[PartSpace]:
    """Every byte of the consume queues, batch queues and ext files."""
    readers = {
        str(folder): queue
        for queues in store.queues.used_files(note_unread=True).values()
        for queue in queues.values()
        for folder in queue.sequence.folders
    }
    groups: dict[tuple[str, str], list[StoreFile]] = {}
    for file in files:
        if file.kind in QUEUE_KINDS:
            groups.setdefault((file.kind, str(Path(file.path).parent)), []).append(file)
    for (kind, folder), folder_files in groups.items():
        topic, queue_id = _names(folder)
        size, allocated = sum(file.size for file in folder_files), sum(file.allocated for file in folder_files)
        queue = readers.get(folder) if kind != "consumequeue_ext" else None
        note = ""
        if queue is None:
            parts, messages = [("entries" if kind == "consumequeue_ext" else "notRead", size)], None
        else:
            try:
                parts, messages = _entries(queue, {file.path: file.size for file in folder_files}), _count(queue)
            except StoreError as error:
                parts, messages, note = [("notRead", size)], None, str(error)
        shares = share_out(allocated, parts)
        for part, length in parts:
            if length or part == "entries":
                yield PartSpace(
                    kind,
                    part,
                    length,
                    shares[part],
                    topic,
                    queue_id,
                    None,
                    messages if part == "entries" else None,
                    len(folder_files),
                    note,
                )


def _names(folder: str) -> tuple[str | None, int | None]:
    path = Path(folder)
    return (path.parent.name, int(path.name)) if path.name.isascii() and path.name.isdigit() else (path.name, None)


def _count(queue: QueueReader) -> int:
    return max(queue.max_offset - max(queue.min_offset, 0), 0)


def _entries(queue: QueueReader, sizes: dict[str, int]) -> list[tuple[str, int]]:
    """(part, bytes) of a queue's files, in the order in which they are written."""
    listed_paths = {file.path for file in queue.files}
    read = sum(size for path, size in sizes.items() if path in listed_paths)
    start = max(queue.sequence.min_offset, 0)
    raw_end, valid_end = max(queue.raw_end, start), max(min(queue.valid_end, queue.raw_end), start)
    held_bytes = _bytes_between(queue, sizes, start, valid_end)
    stale = _bytes_between(queue, sizes, valid_end, raw_end)
    below = 0
    if queue.kind == "simple":
        below = _bytes_between(queue, sizes, start, min(max(queue.min_offset * queue.unit_size, start), valid_end))
    return [
        ("entries", held_bytes - below),
        ("belowMin", below),
        ("stale", stale),
        ("unused", max(read - held_bytes - stale, 0)),
        ("notRead", sum(sizes.values()) - read),
    ]


def _bytes_between(queue: QueueReader, sizes: dict[str, int], start: int, end: int) -> int:
    """Bytes of [start, end) that the queue's files hold."""
    total = 0
    for file in queue.files:
        stop = file.start_offset + min(file.size, sizes.get(file.path, 0))
        total += max(min(stop, end) - max(file.start_offset, start), 0)
    return total


def index_parts(store: StoreSnapshot, files: list[StoreFile]) -> Iterator[PartSpace]:
    """Every byte of the index files: header and slots, entries, unused entries, and files whose units have all
    expired.
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
                    is_expired = bool(header.entries) and header.end_phy_offset < least
                    parts = [
                        ("belowMin" if is_expired else "entries", used),
                        ("slots", table),
                        ("unused", file.size - table - used),
                    ]
            except StoreError as error:
                note = str(error)
        shares = share_out(file.allocated, parts)
        for part, length in parts:
            if length:
                row_messages = messages if part in {"entries", "belowMin"} else None
                yield PartSpace(file.kind, part, length, shares[part], None, None, None, row_messages, 1, note)


PIECE = 4096
MAX_FULLY_READ_ENTRIES = 64 * PIECE
"""Number of entries up to which a queue is read completely; of longer ones 64 evenly spaced pieces are read."""


def log_rows(store: StoreSnapshot, files: list[StoreFile]) -> tuple[list[PartSpace], bool]:
    """Rows that add up to the log's files, and whether long queues were only sampled."""
    log_files = [file for file in files if file.kind == LOG]
    log_paths = {file.path for file in store.log.files}
    size = sum(file.size for file in log_files if file.path in log_paths)
    allocated = sum(file.allocated for file in log_files if file.path in log_paths)
    log_start, log_end = max(store.log.min_offset, 0), max(store.log.max_offset, 0)
    tail = min(max(store.log.end_offset - log_end, 0), size)
    rows: list[PartSpace] = []
    undecoded = store.undecoded_part("log") is not None or store.why_unknown("queues") is not None
    unread = store.log.sequence.trouble is not None or undecoded
    sampled = False
    for topic, queues in store.queues.by_topic().items():
        if topic.startswith(LMQ_PREFIX):
            continue  # light queues point to units of other topics
        for number, queue in queues.items():
            try:
                byte_count, is_exact = _bytes_of(queue, log_start, log_end)
            except CannotRead:
                unread = True
                continue
            sampled |= not is_exact
            if byte_count[1]:
                rows.append(PartSpace(LOG, "units", byte_count[0], 0, topic, number, None, byte_count[1]))
    counted = sum(row.bytes for row in rows)
    if counted > size - tail:  # entries that point to the same bytes: the queues cannot be used
        rows, counted = [], 0
    shares = share_out(allocated, [("units", size - tail), ("zeroTail", tail)])
    weights = [row.bytes for row in rows] + [size - tail - counted]
    allocations = spread(shares["units"], weights)
    found_rows = [
        PartSpace(LOG, "units", row.bytes, share, row.topic, row.queue_id, None, row.messages)
        for row, share in zip(rows, allocations[:-1], strict=True)
    ]
    if size - tail - counted:
        found_rows.append(
            PartSpace(
                LOG,
                "notLookedAt" if unread else "notInQueues",
                size - tail - counted,
                allocations[-1],
                files=len(log_paths),
            )
        )
    if tail:
        found_rows.append(PartSpace(LOG, "zeroTail", tail, shares["zeroTail"], files=1))
    found_rows += [
        PartSpace(LOG, "notRead", f.size, f.allocated, files=1) for f in log_files if f.path not in log_paths
    ]
    return found_rows, sampled


def _bytes_of(queue: AnyQueue, log_start: int, log_end: int) -> tuple[tuple[int, int], bool]:
    """(bytes, messages) of the units within the log that the queue's entries name, and whether all entries were
    read.
    """
    if isinstance(queue, RocksQueueReader):
        first_number = queue.min_offset
    else:
        first_number = max(queue.sequence.min_offset, 0) // queue.unit_size
    end = max(queue.valid_end // queue.unit_size, first_number)
    starts = list(range(first_number, end, PIECE))
    is_exact = end - first_number <= MAX_FULLY_READ_ENTRIES
    if not is_exact:
        starts = [first_number + (end - first_number) * n // 64 for n in range(64)]
    size = messages = entries_read = 0
    for start in starts:
        entries = queue.array(start, min(start + PIECE, end))
        entries_read += len(entries)
        real = (
            (entries["physical_offset"] >= log_start) & (entries["physical_offset"] < log_end) & (entries["size"] > 0)
        )
        size += int(entries["size"][real].sum(dtype=np.int64))
        messages += int(np.count_nonzero(real))
    if not is_exact and entries_read:
        size, messages = size * (end - first_number) // entries_read, messages * (end - first_number) // entries_read
    return (size, messages), is_exact
