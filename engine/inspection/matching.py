"""The units of a log, or those that a filter takes: near the beginning one by one, so that the first are there at
once, then by whole blocks, whose columns and bytes decide (:mod:`engine.query.vector`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.codec.message import Unit
from engine.codec.unit_scan import Item, Stop
from engine.inspection.log_reader import BULK, LogReader
from engine.inspection.records import Lines

if TYPE_CHECKING:
    from engine.query import Filter


def matching_units(
    log: LogReader,
    wanted: Filter,
    start: int | None = None,
    stop: int | None = None,
    *,
    crc: bool = True,
    seen: Callable[[int], None] = lambda _: None,
    near: int = BULK,
) -> Iterator[Unit | Stop]:
    """The units from ``start`` to ``stop`` (exclusive) that ``wanted`` takes, in order, last a :class:`Stop`.

    ``seen`` is told from time to time how far the log has been looked at. The first ``near`` bytes are walked unit by
    unit, without numba; ``crc`` is whether bodies are held against their CRC.
    """
    test = wanted.compile(log.file_name)
    place = Place(start)
    for item in near_items(log, place, stop, near, crc=crc):
        if isinstance(item, Stop):
            yield item
            return
        seen(item.offset)
        if isinstance(item, Unit) and test(item):
            yield item
    yield from _by_blocks(log, wanted, place.offset, stop, crc, seen)


def listed(
    log: LogReader,
    wanted: Filter | None,
    start: int | None = None,
    stop: int | None = None,
    *,
    crc: bool = True,
    body: bool = False,
    seen: Callable[[int], None] = lambda _: None,
    near: int = BULK,
) -> Iterator[Item | Lines | Stop]:
    """The log from ``start`` to ``stop`` (exclusive), units as :class:`Lines` but for those in the first ``near``
    bytes, last a :class:`Stop`. With ``wanted`` only the units that it takes, else also blanks and damage.
    """
    test = wanted.compile(log.file_name) if wanted is not None else None
    place = Place(start)
    for item in near_items(log, place, stop, near, crc=crc):
        if isinstance(item, Stop):
            yield item
            return
        seen(item.offset)
        if test is None or (isinstance(item, Unit) and test(item)):
            yield item
    from engine.inspection.unit_lines import block_lines

    yield from block_lines(log, wanted, place.offset, stop, crc=crc, body=body, seen=seen)


@dataclass(slots=True)
class Place:
    """Where in a log a walk goes on; None: at its beginning."""

    offset: int | None


def near_items(log: LogReader, place: Place, stop: int | None, near: int, *, crc: bool) -> Iterator[Item | Stop]:
    """What stands in the ``near`` bytes from ``place`` on, which is moved behind them; a :class:`Stop` comes only where
    that is all there is.
    """
    far = (log.min_offset if place.offset is None else place.offset) + near
    behind = 0
    for item in log.walk(place.offset, far if stop is None else min(far, stop), crc):
        if not isinstance(item, Stop):
            behind = item.offset + item.size
            yield item
        elif item.kind == "limit" and (stop is None or max(far, behind) < stop):
            place.offset = max(item.offset, behind)
        else:
            yield item


def _by_blocks(
    log: LogReader, wanted: Filter, start: int | None, stop: int | None, crc: bool, seen: Callable[[int], None]
) -> Iterator[Unit | Stop]:
    from engine.codec.columns import UnitColumns
    from engine.codec.topic_table import TopicTable
    from engine.inspection.block_scan import scan_log

    topics = TopicTable()
    asked = crc and "crc" in wanted.fields  # no other body is held against its CRC but of units that are taken
    taken = wanted.on_blocks(topics, log.file_name, crc=crc)
    for block in scan_log(log, start, stop, crc=asked, topics=topics):
        if isinstance(block, Stop):
            yield block
            return
        seen(block.offset if not isinstance(block, UnitColumns) else int(block.offset[0]))
        if isinstance(block, UnitColumns):
            yield from taken.units(block)
