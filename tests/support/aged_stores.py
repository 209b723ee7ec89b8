"""Stores with messages that are made older, so that a test need not wait."""

from __future__ import annotations

import struct
from pathlib import Path

from engine.codec.message import Unit
from engine.inspection.snapshot import open_store

_BORN, _STORED = 40, 56
"""Positions of the two times in a unit with IPv4 hosts."""


def age(store: Path, ms: int) -> None:
    """Set the born and store times of all messages of a closed store back."""
    with open_store(store) as opened:
        units = [unit for unit in opened.units() if isinstance(unit, Unit)]
        paths = {unit.offset: opened.log.sequence.find(unit.offset) for unit in units}
    for unit in units:
        file = paths[unit.offset]
        assert file is not None
        with Path(file.path).open("r+b") as log:
            for position, time in ((_BORN, unit.born_timestamp), (_STORED, unit.store_timestamp)):
                log.seek(unit.offset - file.start_offset + position)
                log.write(struct.pack(">q", time - ms))
