"""Stream a queue from an offset to its end, in blocks of many messages that are lent, not copied.

For callers that read a whole queue. Limits and filters, which getMessage applies, are the caller's business.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

from engine.codec.consume_queue import PREFILLED_SIZE
from engine.store.mapped_log import LentBytes, ReadableLog
from engine.store.queue_entry import QueueBytes, find_batch

if TYPE_CHECKING:
    import numpy as np

MAX_BLOCK_ENTRIES = 2048
"""Maximum number of entries in a block: their views fit into a processor's cache."""


class StreamBlock:
    """A run of entries of one queue whose messages lie in one file of the log.

    ``entries`` are rows of ``dtypes.CQ_UNIT`` (batch queues: ``BATCH_CQ_UNIT``), ``number`` is the number of the first
    one: its queue offset in a simple queue. ``view`` holds the log's bytes from ``start_offset`` on. Lent until
    :meth:`release`, or until the next block is read; slices of ``view`` and :meth:`messages` stay readable.
    """

    __slots__ = ("_lent", "entries", "number", "start_offset", "view")

    def __init__(self, number: int, entries: np.ndarray, lent: LentBytes) -> None:
        self.number = number
        self.entries = entries
        self.view = lent.view
        self.start_offset = lent.start_offset
        self._lent: LentBytes | None = lent

    def __len__(self) -> int:
        return len(self.entries)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def messages(self) -> list[memoryview]:
        """Each message's bytes, in the order of the entries."""
        view = self.view
        starts = self.entries["physical_offset"].astype("i8") - self.start_offset
        ends = starts + self.entries["size"]
        return [view[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]

    def release(self) -> None:
        """Return the bytes. A second call does nothing."""
        lent, self._lent = self._lent, None
        if lent is not None:
            lent.release()


def stream(
    queue: QueueBytes | None, log: ReadableLog, start: int = 0, stop: int | None = None
) -> Iterator[StreamBlock]:
    """Yield blocks of messages from queue offset ``start`` to ``stop`` (default: the end of the queue as it is now).

    In a batch queue the first block begins with the batch that holds ``start``. Entries whose messages are no longer in
    the log are left out.
    """
    if queue is None:
        return
    for number, entries in _runs(queue, start, stop):
        index = 0
        while index < len(entries):
            block, count = _block(number + index, entries[index:], log)
            if block is not None:
                try:
                    yield block
                finally:
                    block.release()
            index += count


def _runs(queue: QueueBytes, start: int, stop: int | None) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (number of the first entry, entries) of runs that lie in one queue file each."""
    import numpy as np

    from engine.codec.dtypes import BATCH_CQ_UNIT, CQ_UNIT

    batch, size = queue.kind == "batch", queue.unit_size
    limit = queue.max_offset if stop is None else min(stop, queue.max_offset)
    first_number = (find_batch(queue, max(start, 0)) or 0) if batch else max(start, queue.min_offset, 0)
    for begin, end in queue.spans():
        number, stop_number = max(begin // size, first_number), end // size
        stop_number = stop_number if batch else min(stop_number, limit)
        while number < stop_number:
            data = queue.read_bytes(number * size, min(stop_number - number, MAX_BLOCK_ENTRIES) * size)
            rows = np.frombuffer(data[: len(data) - len(data) % size], BATCH_CQ_UNIT if batch else CQ_UNIT)
            if batch:
                rows = rows[rows["msg_base_offset"] < limit]
            if not len(rows):
                break
            yield number, rows
            number += len(rows)


def _block(number: int, entries: np.ndarray, log: ReadableLog) -> tuple[StreamBlock | None, int]:
    """Return the leading entries whose messages lie in one file, with their number; None with the number of leading
    entries whose messages are no longer in the log.
    """
    physical = entries["physical_offset"].astype("i8")
    sizes = entries["size"].astype("i8")
    if int(sizes[0]) == PREFILLED_SIZE:
        return None, _leading(sizes == PREFILLED_SIZE)
    first_offset = int(physical[0])
    lent = log.lend(first_offset, int(sizes[0]))
    if lent is None:
        following = first_offset - first_offset % log.file_size + log.file_size
        return None, _leading((physical >= first_offset) & (physical < following))
    start = lent.start_offset
    in_file = (physical >= start) & (physical + sizes <= start + len(lent.view)) & (sizes > 0)
    count = _leading(in_file)
    if not count:
        lent.release()
        return None, 1
    return StreamBlock(number, entries[:count], lent), count


def _leading(true: np.ndarray) -> int:
    """Return the number of leading true values."""
    return len(true) if true.all() else int(true.argmin())
