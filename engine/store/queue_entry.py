"""Entries of a consume queue as readers see them, over whatever lends the queue's bytes
(docs/formats/consume-queue.md#entry, #ext, #batch-queues).

The live engine's queues and the read-only door's both are a :class:`QueueBytes`: what is searched and answered on top
of it is one code. Queue offsets count messages, numbers count units in the files, offsets and sizes are bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from engine.codec import consume_queue as cq

_BATCH = struct.Struct(">qiqqqhii")
_CHUNK = 256


class ExtUnit(Protocol):
    """A message's unit in the ext file: its real tag, store time (ms) and filter bit map
    (docs/formats/consume-queue.md#ext).
    """

    @property
    def address(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def tags_code(self) -> int: ...
    @property
    def store_timestamp(self) -> int: ...
    @property
    def bit_map(self) -> bytes: ...


class QueueBytes(Protocol):
    """A consume queue as its readers need it."""

    @property
    def kind(self) -> str:
        """``simple`` or ``batch``."""

    @property
    def unit_size(self) -> int: ...

    @property
    def file_size(self) -> int:
        """Bytes of one file."""

    @property
    def min_offset(self) -> int:
        """Smallest queue offset that may be asked for; −1 in an empty batch queue."""

    @property
    def max_offset(self) -> int:
        """The next message's queue offset."""

    def read_bytes(self, offset: int, size: int) -> bytes:
        """Up to ``size`` readable bytes from byte ``offset`` on, never beyond the end of one file."""

    def lend_bytes(self, offset: int, size: int) -> bytes | memoryview:
        """Like :meth:`read_bytes`, but may return a view of the file itself."""

    def spans(self) -> list[tuple[int, int]]:
        """(first byte, end of the readable bytes) of each file that holds any."""

    def ext_unit(self, address: int) -> ExtUnit | None:
        """The ext unit at an address, None if there is none."""


@dataclass(frozen=True, slots=True)
class CqEntry:
    """An entry as stored; in a batch queue ``queue_offset`` is the batch's first and ``batch_size`` is set."""

    queue_offset: int
    physical_offset: int
    size: int
    tags_code: int
    state: cq.State
    ext: ExtUnit | None = None
    batch_size: int | None = None
    store_timestamp: int | None = None

    @property
    def real_tags_code(self) -> int | None:
        """The tag code that filters compare: the ext unit's where there is one, None if that is missing."""
        if cq.is_ext_address(self.tags_code):
            return self.ext.tags_code if self.ext else None
        return self.tags_code

    @property
    def next_offset(self) -> int:
        return self.queue_offset + (self.batch_size or 1)


def simple_entry(queue: QueueBytes, number: int, data: bytes, position: int = 0) -> CqEntry:
    """Decode the entry of a simple queue at ``data[position]``."""
    unit = cq.decode(data, position)
    ext = queue.ext_unit(unit.tags_code) if cq.is_ext_address(unit.tags_code) else None
    return CqEntry(number, unit.physical_offset, unit.size, unit.tags_code, unit.state, ext)


def batch_entry(data: bytes, position: int = 0) -> CqEntry:
    """Decode the entry of a batch queue at ``data[position]``."""
    physical, size, tags_code, stored, base, count, _, _ = _BATCH.unpack_from(data, position)
    valid = physical >= 0 and size > 0 and base >= 0 and count > 0
    return CqEntry(base, physical, size, tags_code, "entry" if valid else "empty", None, count, stored)


def unit_at(queue: QueueBytes, number: int) -> CqEntry | None:
    """Return the unit with this number in the files (in a simple queue its queue offset), None if there is none."""
    size = queue.unit_size
    data = queue.read_bytes(number * size, size) if number >= 0 else b""
    if len(data) < size:
        return None
    if queue.kind != "batch":
        return simple_entry(queue, number, data)
    entry = batch_entry(data)
    return entry if entry.state == "entry" else None


def number_spans(queue: QueueBytes) -> list[tuple[int, int]]:
    """Return the numbers of the first and last unit of each file that holds any."""
    size = queue.unit_size
    spans = ((start // size, end // size - 1) for start, end in queue.spans())
    return [(first_number, last_number) for first_number, last_number in spans if last_number >= first_number]


def find_batch(queue: QueueBytes, queue_offset: int) -> int | None:
    """Number of the last unit of a batch queue whose first queue offset is at or before ``queue_offset``."""
    spans = number_spans(queue)
    if not spans:
        return None
    first_number = low_number = spans[0][0]
    high_number = spans[-1][1] + 1
    while low_number < high_number:
        middle = (low_number + high_number) // 2
        unit = unit_at(queue, middle)
        if unit is not None and unit.queue_offset <= queue_offset:
            low_number = middle + 1
        else:
            high_number = middle
    return low_number - 1 if low_number > first_number else None


def entries_of_file(queue: QueueBytes, queue_offset: int, max_count: int) -> Iterator[CqEntry] | None:
    """Return entries from the one that holds ``queue_offset`` to the end of its file, at most ``max_count``; None
    where no file holds it.
    """
    if queue.kind == "batch":
        return _batch_entries(queue, queue_offset, max_count)
    size = queue.unit_size
    data = queue.read_bytes(queue_offset * size, max_count * size)
    if len(data) < size:
        return None
    return (simple_entry(queue, queue_offset + n, data, n * size) for n in range(len(data) // size))


def _batch_entries(queue: QueueBytes, queue_offset: int, max_count: int) -> Iterator[CqEntry] | None:
    number = find_batch(queue, queue_offset)
    batch = unit_at(queue, number) if number is not None else None
    if number is None or batch is None or not batch.queue_offset <= queue_offset < batch.next_offset:
        return None
    return _batch_run(queue, number, max_count)


def _batch_run(queue: QueueBytes, number: int, max_count: int) -> Iterator[CqEntry]:
    size = queue.unit_size
    end = next(
        (last_number + 1 for first_number, last_number in number_spans(queue) if first_number <= number <= last_number),
        number,
    )
    stop = min(end, number + max_count)
    while number < stop:
        data = queue.read_bytes(number * size, min(stop - number, _CHUNK) * size)
        if len(data) < size:
            return
        for position in range(0, len(data) - size + 1, size):
            entry = batch_entry(data, position)
            if entry.state != "entry":
                return
            yield entry
            number += 1
