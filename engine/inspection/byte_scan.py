"""Units that hold a text, found by looking through the raw bytes of the log: what the index does not know is found
too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.codec.message import Unit
from engine.errors import CannotRead
from engine.inspection.log_reader import LogReader

_BLOCK = 4 << 20


def units_with(
    log: LogReader, needle: bytes, start: int | None = None, progress: Callable[[int], None] | None = None
) -> Iterator[Unit]:
    """Every unit from offset ``start`` on whose bytes hold ``needle``, in the order of the log, each once."""
    begin = max(log.min_offset, 0) if start is None else start
    seen = -1
    for file in log.files:
        position = max(begin - file.start_offset, 0)
        while position < file.size:
            try:
                data = file.read(position, _BLOCK + len(needle) - 1)
            except CannotRead:
                break
            at = data.find(needle)
            while at >= 0:
                unit = log.unit_at(log.align(file.start_offset + position + at))
                if isinstance(unit, Unit) and unit.offset != seen:
                    seen = unit.offset
                    yield unit
                at = data.find(needle, at + 1)
            position += _BLOCK
            if progress:
                progress(file.start_offset + position - begin)
            if len(data) < len(needle):
                break
