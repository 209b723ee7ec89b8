"""Decide where the next entry of a queue goes: dropped, behind the last one, or behind units that fill a new file up
to it (docs/formats/consume-queue.md#append, #ext, #batch-queues).

Pure decisions over any object that takes the bytes, so the queues of a live store and queues built from a log in
pieces use the same rules. All functions may raise the ``OSError`` of the files.

"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from engine.codec import batch_consume_queue
from engine.codec.batch_consume_queue import BatchCqUnit
from engine.codec.consume_queue import CQ_UNIT_SIZE, PREFILLED_SIZE, CqUnit, encode
from engine.codec.cq_ext import END_MARK, MIN_UNIT_BYTES, RESERVED_TAIL_BYTES, CqExtUnit
from engine.codec.cq_ext import encode as encode_ext
from engine.codec.java import i64

Int64 = npt.NDArray[np.int64]


MAX_EXT_UNIT_BYTES = 32_767
NO_ADDRESS = 1
"""Result of an ext put if the unit could not be stored: the entry keeps the plain tags code then."""
_PREFILLED = encode(CqUnit(0, PREFILLED_SIZE, 0))
_MAX_OFFSET = 9_223_372_034_707_292_159
_MARK = END_MARK.to_bytes(2, "big", signed=True)


class Files(Protocol):
    """The files of one queue, ``file_size`` bytes each; ``end`` is the byte of the queue for the next entry.

    ``first_created`` is the start of the file that was created when there was none; bytes below ``flushed`` need
    no flush. All methods may raise ``OSError``.

    """

    file_size: int
    starts: tuple[int, ...]
    end: int
    flushed: int
    first_created: int

    @property
    def last_is_full(self) -> bool:
        """True if the next entry needs a new file."""

    def create(self, start: int) -> None:
        """Create the file that begins at byte ``start``; the next entry goes there."""

    def append(self, data: bytes | memoryview) -> None:
        """Write complete entries at ``end``, continuing in further files when the last one is full."""

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Write inside the last file without moving ``end``."""


class PlainQueue(Protocol):
    """A queue of 20-byte entries. ``max_physic_offset`` is the end in the log of the last unit that has an entry,
    ``min_logic_offset`` the byte of the first entry that points into the log.
    """

    max_physic_offset: int
    min_logic_offset: int

    @property
    def files(self) -> Files:
        """The files that take the bytes."""

    def note_gap(self, queue_offset: int) -> None:
        """Record that the entry for ``queue_offset`` does not follow the last one."""


def byte_of(queue_offset: int) -> int:
    """Byte of the queue at which its entry ``queue_offset`` stands, in Java's 64 bits: what a damaged unit says of its
    queue offset may lie beyond them.
    """
    return i64(queue_offset * CQ_UNIT_SIZE)


def put(queue: PlainQueue, physical_offset: int, size: int, tags_code: int, queue_offset: int) -> None:
    """Put one entry (docs/formats/consume-queue.md#append): drop it if the queue has it, else write it at the end.
    Raises ``OSError``.
    """
    if physical_offset + size <= queue.max_physic_offset:
        return
    files, expected_position = queue.files, byte_of(queue_offset)
    if not _prepare_file(queue, queue_offset, expected_position):
        return
    old_end = queue.max_physic_offset
    queue.max_physic_offset = physical_offset + size
    try:
        files.append(encode(CqUnit(physical_offset, size, tags_code)))
    except OSError:
        queue.max_physic_offset = old_end
        raise


def put_run(queue: PlainQueue, end: Int64, queue_offset: Int64, entries: npt.NDArray[np.void]) -> None:
    """Put entries whose queue offsets grow by one and whose ends in the log grow: as :func:`put` for each.

    ``entries`` are rows of ``dtypes.CQ_UNIT``. Raises ``OSError``; entries that were written before it count.

    """
    index, count = 0, len(entries)
    if int(end[0]) <= queue.max_physic_offset:
        index = int(np.searchsorted(end, queue.max_physic_offset, "right"))
    while index < count:
        offset = int(queue_offset[index])
        ready = _prepare_file(queue, offset, byte_of(offset))
        if ready and queue.files.end <= byte_of(offset):
            _append_run(queue, entries[index:], end[index:])
            return
        if ready:  # offset 0 goes to the end of the queue
            _append_run(queue, entries[index : index + 1], end[index : index + 1])
        index += 1


def _prepare_file(queue: PlainQueue, queue_offset: int, expected_position: int) -> bool:
    """Create the file for the next entry if needed; False if the queue already holds the entry."""
    files = queue.files
    if not files.starts:
        files.create(expected_position - expected_position % files.file_size)
    elif files.last_is_full:
        files.create(files.starts[-1] + files.file_size)
    start = files.starts[-1]
    if start == files.first_created and queue_offset and files.end == start:
        _prefill(queue, start, expected_position)
    if queue_offset:
        if expected_position < files.end:
            return False
        if expected_position != files.end:
            queue.note_gap(queue_offset)
    return True


def _prefill(queue: PlainQueue, start: int, expected_position: int) -> None:
    """Fill a queue that begins above 0 with units that point nowhere (docs/formats/consume-queue.md)."""
    queue.min_logic_offset = expected_position
    remaining = (expected_position - start) // CQ_UNIT_SIZE
    while remaining > 0:
        count = min(remaining, 4096)
        queue.files.append(_PREFILLED * count)
        remaining -= count
    queue.files.flushed = expected_position


def _append_run(queue: PlainQueue, entries: npt.NDArray[np.void], end: Int64) -> None:
    old_end = queue.files.end
    try:
        queue.files.append(entries.view(np.uint8).data)
    finally:
        written = (queue.files.end - old_end) // CQ_UNIT_SIZE
        if written:
            queue.max_physic_offset = int(end[written - 1])


class BatchQueue(Protocol):
    """A queue of 46-byte entries, back to back from byte 0. ``max_physic_offset`` is the start of the last unit that
    has an entry.
    """

    max_physic_offset: int

    @property
    def files(self) -> Files:
        """The files that take the bytes."""


def put_batch(queue: BatchQueue, unit: BatchCqUnit) -> bool:
    """Put one entry; False if the queue already has its unit, or the unit makes no entry. Raises ``OSError``."""
    if unit.msg_base_offset < 0 or unit.batch_size < 0 or unit.physical_offset <= queue.max_physic_offset:
        return False
    files = queue.files
    if files.last_is_full:
        files.create(files.starts[-1] + files.file_size if files.starts else 0)
    files.append(batch_consume_queue.encode(unit))
    queue.max_physic_offset = unit.physical_offset
    return True


class ExtQueue(Protocol):
    """The ext units beside a queue. An address is the unit's byte offset in ``files`` minus 2⁶³."""

    @property
    def files(self) -> Files:
        """The files that take the bytes."""


def put_ext(queue: ExtQueue, tags_code: int, store_timestamp: int, bit_map: bytes = b"") -> int:
    """Append a unit and return its address, or :data:`NO_ADDRESS`. Raises ``OSError``."""
    size, files = MIN_UNIT_BYTES + len(bit_map), queue.files
    if size > MAX_EXT_UNIT_BYTES or size > files.file_size - RESERVED_TAIL_BYTES or files.end + size > _MAX_OFFSET:
        return NO_ADDRESS
    if (
        files.starts
        and not files.last_is_full
        and size > files.starts[-1] + files.file_size - files.end - RESERVED_TAIL_BYTES
    ):
        files.write(files.end, _MARK)
        files.end = files.starts[-1] + files.file_size
    if files.last_is_full:
        files.create(files.starts[-1] + files.file_size if files.starts else 0)
    unit = CqExtUnit(files.end, size, tags_code, store_timestamp, bit_map)
    files.append(encode_ext(unit))
    return unit.address
