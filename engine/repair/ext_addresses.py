"""Tag codes of queues with ext files: an entry holds the address of an ext unit in place of its tag code
(docs/formats/repair.md#queues).

Ext units do not name their messages. They are in the order of the entries, and each has the tag code and the store time
of its message: so a lost entry gets the unit between those of its neighbours that has both. Without such a unit it gets
the tag code itself, as a broker writes it where an ext unit cannot be stored.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from engine.codec import consume_queue as cq
from engine.codec import cq_ext
from engine.codec.dtypes import CQ_UNIT
from engine.inspection.queue_reader import QueueReader

Int64 = NDArray[np.int64]


def with_addresses(
    queue: QueueReader, numbers: Int64, rows: NDArray[np.void], times: Int64, *, keeps_tags: bool
) -> NDArray[np.void]:
    """Return ``rows``, the entries ``numbers`` of a queue as the log tells them, with the addresses of their ext units.

    ``times`` are the store times (ms) of their messages. An entry that leads to its message keeps its address; without
    ``keeps_tags`` only if the unit there has its tag code. Raises :class:`engine.errors.CannotRead`.
    """
    result = rows.copy()
    stored = stored_entries(queue, numbers)
    is_same = (stored["physical_offset"] == rows["physical_offset"]) & (stored["size"] == rows["size"])
    if not keeps_tags:
        for row in np.flatnonzero(is_same & (stored["tags_code"] <= cq.MAX_EXT_ADDRESS)).tolist():
            unit = queue.ext_unit(int(stored["tags_code"][row]))
            is_same[row] = unit is not None and unit.tags_code == int(rows["tags_code"][row])
    result["tags_code"][is_same] = stored["tags_code"][is_same]
    if is_same.all():
        return result
    units = list(_units(queue))
    position = 0
    for row, (is_in_place, time) in enumerate(zip(is_same.tolist(), times.tolist(), strict=True)):
        code = int(result["tags_code"][row])
        if is_in_place:
            if cq.is_ext_address(code):
                position = _behind(units, position, code)
            continue
        found = next(
            (
                place
                for place in range(position, min(position + _LOOKAHEAD, len(units)))
                if (units[place].tags_code, units[place].store_timestamp) == (code, time)
            ),
            None,
        )
        if found is not None:
            result["tags_code"][row] = units[found].address
            position = found + 1
    return result


_LOOKAHEAD = 1024
"""Ext units that are looked through for one entry: of entries in front that are lost with their messages."""


def _behind(units: list[cq_ext.CqExtUnit], position: int, address: int) -> int:
    """Return the number of the first unit behind ``address``."""
    while position < len(units) and units[position].address <= address:
        position += 1
    return position


def stored_entries(queue: QueueReader, numbers: Int64) -> NDArray[np.void]:
    """Return the entries ``numbers`` as the files of the queue have them; zeros where there is none.

    Raises :class:`engine.errors.CannotRead`.
    """
    entries = np.zeros(len(numbers), CQ_UNIT)
    for file in queue.files:
        first = file.start_offset // cq.CQ_UNIT_SIZE
        data = np.frombuffer(file.read(0, file.size // cq.CQ_UNIT_SIZE * cq.CQ_UNIT_SIZE), CQ_UNIT)
        part = slice(*np.searchsorted(numbers, (first, first + len(data))).tolist())
        entries[part] = data[numbers[part] - first]
    return entries


def _units(queue: QueueReader) -> Iterator[cq_ext.CqExtUnit]:
    for file in queue.ext.files if queue.ext is not None else ():
        for item in cq_ext.walk(file.read(0, file.size), file.start_offset):
            if isinstance(item, cq_ext.CqExtUnit):
                yield item
