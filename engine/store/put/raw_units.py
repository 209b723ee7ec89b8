"""Whole units stored again, many at once: what a copy does (docs/formats/commit-log.md#unit, #append); one by one it is
``append_raw``. And a master's log as its HA port gives it, appended as it is (docs/formats/replication.md).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.errors import StoreError, UsageError
from engine.store.put.log import PutLog
from engine.store.put.message import BLANK_SIZE, PutMessageResult

PHYSICAL_OFFSET = np.arange(28, 36)
_CRC_TAIL = 20
_CRC_NAME = np.frombuffer(b"__CRC32#\x01", np.uint8)
Int64 = npt.NDArray[np.int64]


def append_units(log: PutLog, data: npt.NDArray[np.uint8], sizes: Int64, stored: Int64) -> int:
    """Store the units that stand back to back in ``data``, ``stored`` at these times (ms); gives the end of the log.

    PHYSICALOFFSETs are written anew, files roll as for any put; everything else stays as it is. Units with a property
    CRC keep it, so they must stand at the place that they name. Raises :class:`UsageError` where no file is long
    enough or none can be made, :class:`engine.errors.NotWriteable`, ``OSError``.
    """
    ends = np.cumsum(sizes)
    starts = ends - sizes
    longest = int(sizes.max(initial=0))
    if longest + BLANK_SIZE > log.files.file_size:
        raise UsageError(f"a unit of {longest:,} bytes does not fit into files of {log.files.file_size:,}")
    row = 0
    with log.appending:
        while row < len(sizes):
            file = log.room_for(int(sizes[row]), int(stored[row]))
            if isinstance(file, PutMessageResult):
                raise UsageError("no new file of the commit log can be made")
            first = int(starts[row])
            room = file.size - file.wrote - BLANK_SIZE
            stop = int(np.searchsorted(ends, first + room, "right"))
            piece = data[first : int(ends[stop - 1])].copy()
            at = starts[row:stop] - first
            places = (at + (file.start_offset + file.wrote)).astype(">i8")
            piece[at[:, None] + PHYSICAL_OFFSET] = places.view(np.uint8).reshape(-1, 8)
            file.append(piece.data, int(stored[stop - 1]))
            row = stop
        return log.wrote


def with_property_crc(data: npt.NDArray[np.uint8], sizes: Int64) -> npt.NDArray[np.bool_]:
    """Which of the units that stand back to back in ``data`` end with a property CRC
    (docs/formats/commit-log.md#property-crc), right or wrong.
    """
    tails = np.cumsum(sizes) - _CRC_TAIL
    found: npt.NDArray[np.bool_] = (data[tails[:, None] + np.arange(len(_CRC_NAME))] == _CRC_NAME).all(axis=1)
    return found


def append_replicated(log: PutLog, offset: int, data: bytes | memoryview, stored: int) -> int:
    """Append whole units, blanks with their tails among them, that stand at ``offset`` of the master's log; gives the
    log's end. ``stored`` is the store time (ms) of the last message among them, 0 without one. An empty log begins
    there, which must be a file's first byte then.

    Raises :class:`StoreError` where ``offset`` is not the log's end or bytes go over a file's end,
    :class:`engine.errors.NotWriteable`, ``OSError``.
    """
    with log.copying:
        empty = log.files.last is None
        at = 0
        while at < len(data):
            file = log.files.last_or_create(offset)
            if file is None:
                raise StoreError("no new file of the commit log can be made", file=str(log.files.folders[0]))
            end = file.start_offset + file.wrote
            if end != offset + at:
                where = "begins at" if empty else "ends at"
                raise StoreError(f"expected bytes of offset {end:,}, where the log {where}, found {offset + at:,}")
            piece = data[at : at + file.size - file.wrote]
            file.append(piece, stored)
            at += len(piece)
        return log.wrote
