"""Units that hold a text, found by looking through the raw bytes of the log: what the index misses is found too."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.codec.message import Unit
from engine.codec.unit_scan import Stop
from engine.errors import CannotRead
from engine.inspection.log_reader import Item, LogReader

_BLOCK = 4 << 20
_NEAR = 1 << 16
"""Bytes over which walking on costs less than finding a unit's start anew."""


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
    items: Iterator[Item | Stop] = iter(())
    for place in places_of(log, needle, start, progress, word=word):
        if place < end:
            continue  # in the item that was seen last
        if end < 0 or place - end > _NEAR:
            items = log.walk(log.align(place), crc=False)
        item = next((item for item in items if isinstance(item, Stop) or item.offset + item.size > place), None)
        if item is None or isinstance(item, Stop):
            end = -1  # behind the log's end there may be units of former times
            item = log.unit_at(log.align(place), crc=False)
        else:
            end = item.offset + item.size
        if isinstance(item, Unit) and item.offset <= place < item.end:
            end = item.end
            unit = log.unit_at(item.offset)
            if isinstance(unit, Unit):
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
