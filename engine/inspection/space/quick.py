"""Bytes of the log by queue as the queues' entries tell them: no walk of the log, bounded effort a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.codec.config_tables import LMQ_PREFIX
from engine.errors import CannotRead
from engine.inspection.space.files import LOG, StoreFile
from engine.inspection.space.queues import PartSpace, share_out, spread

if TYPE_CHECKING:
    from engine.inspection.queue_reader import QueueReader
    from engine.inspection.snapshot import StoreSnapshot

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
    sampled, unread = False, store.log.sequence.trouble is not None
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
