"""The first byte in which the logs of two stores differ.

A master and its slave, before and after, a store and its copy: both logs are compared byte by byte at the same offsets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.codec.message import Unit, list_fields
from engine.errors import StoreError
from viewer.look.assets import tr
from viewer.runtime.jobs import Control
from viewer.runtime.places import Place

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot

BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Difference:
    """First byte that differs.

    ``byte_here`` and ``byte_there`` are its values; None where that log has no byte. ``unit`` is the offset of the unit
    around it in the first log, ``field`` the unit's field that contains the byte.
    """

    offset: int
    byte_here: int | None
    byte_there: int | None
    unit: int | None = None
    entry: str = ""
    field: str = ""


def first_difference(
    control: Control, store: StoreSnapshot, other_store: StoreSnapshot, start: int
) -> Difference | None:
    """Find the first byte at or behind ``start`` in which two logs differ; None if they are equal. Reads the disk.

    Compares from the later of the two beginnings to the later of the two ends, without the zero tails.
    """
    from engine.inspection.store_differences import first_difference_position

    start_offset = max(start, store.log.min_offset, other_store.log.min_offset, 0)
    end_offset = max(store.log.max_offset, other_store.log.max_offset)
    offset = start_offset
    while offset < end_offset:
        control.check()
        control.report(offset - start_offset, max(1, end_offset - start_offset))
        length = min(BLOCK_BYTES, end_offset - offset)
        data, other_data = store.log.read(offset, length), other_store.log.read(offset, length)
        if data != other_data:
            return _difference_at(store, offset + first_difference_position(data, other_data), data, other_data, offset)
        if data:
            offset += len(data)
        else:  # no file of either store holds these bytes: skip them
            offset = max(offset + 1, min(store.log.align(offset), other_store.log.align(offset)))
    return None


def _difference_at(store: StoreSnapshot, offset: int, bytes_here: bytes, bytes_there: bytes, start: int) -> Difference:
    index = offset - start
    byte_here, byte_there = (data[index] if index < len(data) else None for data in (bytes_here, bytes_there))
    try:
        unit = store.log.unit_at(store.log.align(offset), crc=False)
    except StoreError:
        unit = None
    if not isinstance(unit, Unit) or not unit.offset <= offset < unit.end:
        return Difference(offset, byte_here, byte_there)
    position = offset - unit.offset
    fields = list_fields(store.log.read(unit.offset, unit.size))
    field = next((part.name for part in fields if part.position <= position < part.position + part.length), "")
    return Difference(
        offset, byte_here, byte_there, unit.offset, f"{unit.topic}/{unit.queue_id}/{unit.queue_offset:,}", field
    )


def end_of_shown_unit(store: StoreSnapshot, place: Place | None) -> int:
    """Return the end of the unit at ``place``, whose differences were shown already. Reads the disk."""
    if place is None or place.kind != "log" or place.offset is None:
        return 0
    unit = store.log.unit_at(place.offset, crc=False)
    return unit.end if isinstance(unit, Unit) else place.offset + 1


def sentence(difference: Difference | None) -> str:
    """Describe the difference in words."""
    if difference is None:
        return tr("From here on both logs hold the same bytes.")
    if difference.byte_there is None:
        return tr("From {offset:,} on the other log has no bytes: it ends or lacks a file.", offset=difference.offset)
    if difference.byte_here is None:
        return tr("From {offset:,} on this log has no bytes: it ends or lacks a file.", offset=difference.offset)
    text = tr(
        "First difference at {offset:,}: {here:02X} here, {there:02X} there",
        offset=difference.offset,
        here=difference.byte_here,
        there=difference.byte_there,
    )
    return f"{text} · {difference.entry} · {difference.field}" if difference.unit is not None else text
