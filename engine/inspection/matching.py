"""The units of a log, or those that a filter selects: near the beginning one by one, so that the first appear at once,
then in blocks, whose columns and bytes decide (:mod:`engine.query.vector`).
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
    from engine.decoding.bodies import BodyDecoders
    from engine.query import Filter


def matching_units(
    log: LogReader,
    unit_filter: Filter,
    start: int | None = None,
    stop: int | None = None,
    *,
    crc: bool = True,
    on_progress: Callable[[int], None] = lambda _: None,
    near: int = BULK,
) -> Iterator[Unit | Stop]:
    """Yield the units from ``start`` to ``stop`` (exclusive) that match ``unit_filter``, in order, then a
    :class:`Stop`.

    ``on_progress`` receives the log offset from time to time. The first ``near`` bytes are walked unit by unit, without
    numba; ``crc``: compare bodies with their CRC.
    """
    test = unit_filter.compile(log.file_name)
    place = Place(start)
    for item in near_items(log, place, stop, near, crc=crc):
        if isinstance(item, Stop):
            yield item
            return
        on_progress(item.offset)
        if isinstance(item, Unit) and test(item):
            yield item
    yield from _by_blocks(log, unit_filter, place.offset, stop, crc, on_progress)


def listed(
    log: LogReader,
    unit_filter: Filter | None,
    start: int | None = None,
    stop: int | None = None,
    *,
    crc: bool = True,
    body: bool = False,
    decoders: BodyDecoders | None = None,
    on_progress: Callable[[int], None] = lambda _: None,
    near: int = BULK,
) -> Iterator[Item | Lines | Stop]:
    """Yield the log from ``start`` to ``stop`` (exclusive), then a :class:`Stop`; units come as :class:`Lines`, except
    in the first ``near`` bytes.

    With ``unit_filter`` only the matching units, else also blanks and damage. With ``decoders`` lines have the decoded
    bodies.
    """
    test = unit_filter.compile(log.file_name) if unit_filter is not None else None
    place = Place(start)
    for item in near_items(log, place, stop, near, crc=crc):
        if isinstance(item, Stop):
            yield item
            return
        on_progress(item.offset)
        if test is None or (isinstance(item, Unit) and test(item)):
            yield item
    from engine.inspection.unit_lines import block_lines

    yield from block_lines(
        log, unit_filter, place.offset, stop, crc=crc, body=body, decoders=decoders, on_progress=on_progress
    )


@dataclass(slots=True)
class Place:
    """Position in a log at which a walk continues; None: the beginning of the log."""

    offset: int | None


def near_items(log: LogReader, place: Place, stop: int | None, near: int, *, crc: bool) -> Iterator[Item | Stop]:
    """Yield the items in the ``near`` bytes from ``place`` on, and move ``place`` behind them.

    A :class:`Stop` comes only if the log ends there.
    """
    far = (log.min_offset if place.offset is None else place.offset) + near
    item_end = 0
    for item in log.walk(place.offset, far if stop is None else min(far, stop), crc):
        if not isinstance(item, Stop):
            item_end = item.offset + item.size
            yield item
        elif item.kind == "limit" and (stop is None or max(far, item_end) < stop):
            place.offset = max(item.offset, item_end)
        else:
            yield item


def _by_blocks(
    log: LogReader,
    unit_filter: Filter,
    start: int | None,
    stop: int | None,
    crc: bool,
    on_progress: Callable[[int], None],
) -> Iterator[Unit | Stop]:
    from engine.codec.columns import UnitColumns
    from engine.codec.topic_table import TopicTable
    from engine.inspection.block_scan import scan_log

    topics = TopicTable()
    check_crc = crc and "crc" in unit_filter.fields  # only bodies of selected units are compared with their CRC
    block_filter = unit_filter.on_blocks(topics, log.file_name, crc=crc)
    for block in scan_log(log, start, stop, crc=check_crc, topics=topics):
        if isinstance(block, Stop):
            yield block
            return
        on_progress(block.offset if not isinstance(block, UnitColumns) else int(block.offset[0]))
        if isinstance(block, UnitColumns):
            yield from block_filter.units(block)
