"""Finds units anywhere in a block of bytes, as rows of columns: what :mod:`engine.codec.columns` is for units at their
own place.

Two twins: :func:`search_plain`, and the compiled one of :mod:`engine.codec.compiled_search`. From unit to unit the walk
of the log is used, from there to the next magic code a search for its bytes. A beginning without an end, as
:func:`engine.codec.unit_search.read_head` reads it, is a row of kind :data:`HEAD`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from engine.codec.columns import COLUMN_TYPES, UNCHECKED, UnitColumns, Window, scan_block_plain, twin
from engine.codec.machine_code import FULL, Twins
from engine.codec.machine_code_build import twins
from engine.codec.topic_table import TopicTable
from engine.codec.unit_search import HEAD_BYTES, find_magics, read_head

HEAD = 2
"""``UnitColumns.kind`` of the beginning of a unit whose end does not follow."""
DONE, CUT = 3, 4
MAX_CUT_BYTES = 1 << 20
"""Bytes of the largest unit at the edge of a block for which more is read, though its fields are no broker's."""
Outcome = Literal["full", "done", "cut"]
"""Why a search ended: no row is left, everything up to ``stop`` was searched, or at ``cursor`` begins a unit of which
the block does not have all bytes.
"""
_OUTCOMES: dict[int, Outcome] = {FULL: "full", DONE: "done", CUT: "cut"}
_PIECE_BYTES = 1 << 16
_NO_DELAYS = np.empty(0, np.int64)


def search_units(
    window: Window, stop: int, out: UnitColumns, topics: TopicTable, *, crc: bool, is_last: bool
) -> Outcome:
    """Fill ``out`` with units and heads that begin in ``window`` from its cursor on and before ``stop``, and advance
    the cursor. Only the compiled twin reads on by itself.

    ``stop`` is a position in the buffer; units that follow without a gap may be rows, too, though they begin behind it.
    ``is_last``: no bytes follow those of the window.
    """
    compiled = _twin()
    if compiled is None:
        return search_plain(window, stop, out, topics, crc=crc, is_last=is_last)
    window.cursor, rows, outcome, window.filled, window.file_position = compiled.search(
        window.descriptor,
        window.file_position,
        window.chunk_size,
        window.buffer.ctypes.data,
        window.filled,
        len(window.buffer),
        window.cursor,
        window.base,
        out.addresses,
        out.capacity,
        topics.table(),
        _NO_DELAYS,
        int(crc),
        stop,
        int(is_last),
    )
    out.count, out.base, out.buffer = rows, window.base, window.buffer
    return _OUTCOMES[outcome]


def search_plain(
    window: Window, stop: int, out: UnitColumns, topics: TopicTable, *, crc: bool, is_last: bool
) -> Outcome:
    """:func:`search_units` in Python and numpy."""
    data = window.buffer[: window.filled]
    rows = UnitColumns(out.capacity)
    out.count, out.base, out.buffer = 0, window.base, window.buffer
    while True:
        limit = min(stop, window.filled - HEAD_BYTES + 1)
        candidate = _next_magic(data, window.cursor, limit)
        if candidate < 0:
            window.cursor = max(window.cursor, limit)
            if window.cursor < stop and not is_last:
                return "cut"
            window.cursor = max(window.cursor, stop)
            return "done"
        window.cursor = candidate
        if out.count == out.capacity:
            return "full"
        rows.capacity = out.capacity - out.count
        result = scan_block_plain(
            data, window.filled, window.base, candidate, rows, topics, crc, with_tags=False, explain_stop=False
        )
        if rows.count:
            _append(out, rows)
            window.cursor = result.next_position
            continue
        size, head = int.from_bytes(data[candidate : candidate + 4].tobytes(), "big", signed=True), None
        head = read_head(data, candidate)
        is_cut = size > window.filled - candidate and (head is not None or 91 <= size <= MAX_CUT_BYTES)
        if is_cut and not is_last:
            return "cut"
        if head is not None:
            row = out.count
            out.offset[row], out.size[row], out.kind[row], out.crc[row] = window.base + candidate, size, HEAD, UNCHECKED
            out.queue_id[row], out.queue_offset[row] = head.queue_id, head.queue_offset
            out.physical_offset[row], out.store_timestamp[row] = head.physical_offset, head.store_timestamp
            out.body_crc[row] = int.from_bytes(data[candidate + 8 : candidate + 12].tobytes(), "big", signed=True)
            out.count = row + 1
        window.cursor = candidate + 1


def _next_magic(data: npt.NDArray[np.uint8], position: int, limit: int) -> int:
    while position < limit:
        stop = min(position + _PIECE_BYTES, limit)
        magics = find_magics(data, position + 4, stop + 4)
        if len(magics):
            return int(magics[0]) - 4
        position = stop
    return -1


def _append(out: UnitColumns, rows: UnitColumns) -> None:
    for name, _ in COLUMN_TYPES:
        getattr(out, name)[out.count : out.count + rows.count] = rows[name]
    out.count += rows.count


def _twin() -> Twins | None:
    return None if twin() is None else twins("compiled_search")
