"""Copies of messages that a store itself has besides its log: in compacted queues and in tiered storage.

Such a copy differs from the unit in the log only by its physical offset, and by the property CRC if it has one. The
queue entry of the lost unit says which offset it had.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from engine.codec import properties
from engine.codec.crc import crc31
from engine.codec.encode import write_property_crc
from engine.codec.message import check_frame, decode_frame
from engine.errors import CannotRead, Undecoded
from engine.inspection.lost_units import LostUnit
from engine.inspection.snapshot import StoreSnapshot

_PHYSICAL_OFFSET = struct.Struct(">q")
_PHYSICAL_OFFSET_POSITION = 28


class OwnCopy(NamedTuple):
    """A unit as it was in the log, and the place of its copy."""

    data: bytes
    file: str
    position: int


class OwnCopies:
    """Finds copies of lost units. It is false if the store has neither compacted queues nor tiered storage."""

    def __init__(self, store: StoreSnapshot) -> None:
        self._store = store
        self._places: dict[tuple[str, int], dict[int, tuple[int, int]]] = {}
        """Place in the compacted log and size of each message, by topic and queue."""

    def __bool__(self) -> bool:
        try:
            return bool(self._store.compacted_queues()) or self._store.tiered is not None
        except (CannotRead, Undecoded):
            return False

    def find(self, lost: LostUnit) -> OwnCopy | None:
        """Return the unit, if its topic, numbers and size are those of a whole copy; None if there is none."""
        try:
            copy = self._in_compacted(lost) or self._in_tiered(lost)
        except (CannotRead, Undecoded):
            return None
        if copy is None or len(copy.data) != lost.size:
            return None
        data = bytearray(copy.data)
        frame = check_frame(data, 0, len(data))
        if isinstance(frame, str) or frame.size != len(data):
            return None
        _PHYSICAL_OFFSET.pack_into(data, _PHYSICAL_OFFSET_POSITION, lost.offset)
        if properties.verify_crc(copy.data) is not None:
            write_property_crc(data)
        unit = decode_frame(data, 0, frame, lost.offset)
        is_same = (unit.topic, unit.queue_id, unit.queue_offset) == (lost.topic, lost.queue_id, lost.queue_offset)
        return copy._replace(data=bytes(data)) if is_same and crc31(unit.body) == unit.body_crc else None

    def _in_compacted(self, lost: LostUnit) -> OwnCopy | None:
        queue = self._store.compacted_queue(lost.topic, lost.queue_id)
        if queue is None:
            return None
        key = lost.topic, lost.queue_id
        if key not in self._places:
            self._places[key] = {entry.queue_offset: (entry.physical_offset, entry.size) for entry in queue.entries()}
        place = self._places[key].get(lost.queue_offset)
        file = queue.log.sequence.find(place[0]) if place is not None else None
        if place is None or file is None:
            return None
        return OwnCopy(queue.log.read(*place), file.path, place[0] - file.start_offset)

    def _in_tiered(self, lost: LostUnit) -> OwnCopy | None:
        tiered = self._store.tiered
        queue = tiered.queue(lost.topic, lost.queue_id) if tiered is not None else None
        entry = queue.entry(lost.queue_offset) if queue is not None and queue.holds(lost.queue_offset) else None
        if queue is None or entry is None or entry.size != lost.size:
            return None
        return OwnCopy(queue.unit_bytes(entry), entry.file, entry.position)
