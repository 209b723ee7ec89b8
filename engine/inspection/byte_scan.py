"""Units that hold a text, found by looking through the raw bytes of the log: what the index misses is found too."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.codec.message import Unit
from engine.errors import CannotRead
from engine.inspection.log_reader import LogReader

_BLOCK = 4 << 20


def units_with(
    log: LogReader,
    needle: bytes,
    start: int | None = None,
    progress: Callable[[int], None] | None = None,
    *,
    word: bool = False,
) -> Iterator[Unit]:
    """Every unit from offset ``start`` on whose bytes hold ``needle``, in the order of the log, each once.

    ``word``: only where it begins a property's value, or a word of one.
    """
    end = -1
    for place in places_of(log, needle, start, progress, word=word):
        if place < end:
            continue  # in the unit that was given last
        unit = log.unit_at(log.align(place))
        if isinstance(unit, Unit) and unit.offset <= place < unit.end:
            end = unit.end
            yield unit


def places_of(
    log: LogReader,
    needle: bytes,
    start: int | None = None,
    progress: Callable[[int], None] | None = None,
    *,
    word: bool = False,
) -> Iterator[int]:
    """Absolute offset of every place from ``start`` on where ``needle`` stands, be it in a unit or not."""
    begin = max(log.min_offset, 0) if start is None else start
    if not needle:
        return
    for file in log.files:
        position = max(begin - file.start_offset, 0)
        while position < file.size:
            try:
                data = file.read(position, _BLOCK + len(needle) - 1)
            except CannotRead:
                break
            at = data.find(needle)
            while at >= 0:
                if not word or at == 0 or data[at - 1] in b"\x01 ":
                    yield file.start_offset + position + at
                at = data.find(needle, at + 1)
            position += _BLOCK
            if progress:
                progress(file.start_offset + position - begin)
            if len(data) < len(needle):
                break
