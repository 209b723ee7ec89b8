"""Whole units stored again, many at once, as a copy of a store needs it (docs/formats/commit-log.md#unit, #append);
for a single one there is ``append_raw``. And bytes of a master's log from its HA port, appended as they are
(docs/formats/replication.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.errors import StoreError, UsageError
from engine.sentences import sentence
from engine.store.put_message import BLANK_SIZE, PutMessageResult

if TYPE_CHECKING:
    from engine.store.commit_log import CommitLog


PHYSICAL_OFFSET = np.arange(28, 36)
_CRC_TAIL = 20
_CRC_NAME = np.frombuffer(b"__CRC32#\x01", np.uint8)
Int64 = npt.NDArray[np.int64]


def append_units(log: CommitLog, data: npt.NDArray[np.uint8], sizes: Int64, store_times: Int64) -> int:
    """Store the units that lie back to back in ``data``, with these ``store_times`` (ms); returns the end of the
    log.

    PHYSICALOFFSETs are written again, files roll as for any put; everything else stays as it is. Units with a property
    CRC keep it, so they must stand at the place that they name. Raises :class:`UsageError` if no file is long
    enough or none can be made, :class:`engine.errors.NotWriteable`, ``OSError``.
    """
    ends = np.cumsum(sizes)
    starts = ends - sizes
    longest = int(sizes.max(initial=0))
    if longest + BLANK_SIZE > log.files.file_size:
        raise UsageError(
            sentence(
                "a unit of {longest:,} bytes does not fit into files of {file_size:,}",
                longest=longest,
                file_size=log.files.file_size,
            )
        )
    row = 0
    with log.appending:
        while row < len(sizes):
            file = log.room_for(int(sizes[row]), int(store_times[row]))
            if isinstance(file, PutMessageResult):
                raise UsageError(sentence("no new file of the commit log can be made"))
            first_byte = int(starts[row])
            room = file.size - file.wrote - BLANK_SIZE
            stop = int(np.searchsorted(ends, first_byte + room, "right"))
            piece = data[first_byte : int(ends[stop - 1])].copy()
            unit_positions = starts[row:stop] - first_byte
            physical_offsets = (unit_positions + (file.start_offset + file.wrote)).astype(">i8")
            piece[unit_positions[:, None] + PHYSICAL_OFFSET] = physical_offsets.view(np.uint8).reshape(-1, 8)
            file.append(piece.data, int(store_times[stop - 1]))
            row = stop
        return log.wrote


def with_property_crc(data: npt.NDArray[np.uint8], sizes: Int64) -> npt.NDArray[np.bool_]:
    """Return which of the units that lie back to back in ``data`` end with a property CRC
    (docs/formats/commit-log.md#property-crc), right or wrong.
    """
    tails = np.cumsum(sizes) - _CRC_TAIL
    has_crc: npt.NDArray[np.bool_] = (data[tails[:, None] + np.arange(len(_CRC_NAME))] == _CRC_NAME).all(axis=1)
    return has_crc


def append_replicated(log: CommitLog, offset: int, data: bytes | memoryview, store_time: int) -> int:
    """Append whole units, blanks with their tails among them, that stand at ``offset`` of the master's log; returns
    the log's end. ``store_time`` is that of the last message among them (ms), 0 without one. An empty log begins
    there, which must be a file's first byte then.

    Raises :class:`StoreError` if ``offset`` is not the log's end or bytes go over a file's end,
    :class:`engine.errors.NotWriteable`, ``OSError``.
    """
    with log.copying:
        empty = log.files.last is None
        position = 0
        while position < len(data):
            file = log.files.last_or_create(offset)
            if file is None:
                raise StoreError(sentence("no new file of the commit log can be made"), file=str(log.files.folders[0]))
            end = file.start_offset + file.wrote
            if end != offset + position:
                where = "begins at" if empty else "ends at"
                raise StoreError(
                    sentence(
                        "expected bytes of offset {end:,}, where the log {where}, found {n:,}",
                        end=end,
                        where=where,
                        n=offset + position,
                    )
                )
            piece = data[position : position + file.size - file.wrote]
            file.append(piece, store_time)
            position += len(piece)
        return log.wrote
