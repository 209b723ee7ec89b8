"""Take the last entries of an index file back, as if RocketMQ had never put them (docs/formats/repair.md#index)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.codec.index import (
    ENTRY_SIZE,
    HEADER_SIZE,
    SLOT_SIZE,
    Geometry,
    IndexHeader,
    decode_entry,
    encode_header,
    entry_time,
)
from engine.codec.message import Unit

if TYPE_CHECKING:
    from engine.inspection.log_reader import LogReader


def without_last_entries(old_bytes: bytes, header: IndexHeader, geometry: Geometry, log: LogReader) -> bytes | None:
    """Return the file without the entries at its end that lead behind the end of the log. None if no entry would be
    left, or the chains are not intact.
    """
    new_bytes = bytearray(old_bytes)
    number, slot_count = header.entries, header.hash_slot_count
    while number:
        entry_position = geometry.entry_position(number)
        entry = decode_entry(new_bytes, entry_position)
        if entry.phy_offset < log.max_offset:
            break
        slot_position = geometry.slot_position(entry.key_hash % geometry.slots)
        slot = slice(slot_position, slot_position + SLOT_SIZE)
        if int.from_bytes(new_bytes[slot], "big") != number or not 0 <= entry.prev < number:
            return None
        new_bytes[slot] = entry.prev.to_bytes(SLOT_SIZE, "big")
        new_bytes[entry_position : entry_position + ENTRY_SIZE] = bytes(ENTRY_SIZE)
        slot_count -= entry.prev == 0
        number -= 1
    if not number:
        return None
    unit = log.unit_at(entry.phy_offset, crc=False)
    new_header = replace(
        header,
        end_timestamp=unit.store_timestamp if isinstance(unit, Unit) else entry_time(header, entry),
        end_phy_offset=entry.phy_offset,
        hash_slot_count=slot_count,
        index_count=number + 1,
    )
    new_bytes[:HEADER_SIZE] = encode_header(new_header)
    return bytes(new_bytes)
