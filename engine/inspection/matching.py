"""The units of a log that a filter takes: near the beginning one by one, so that the first are there at once, then by
whole blocks, whose columns and bytes decide (:mod:`engine.query.blocks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from engine.codec.message import Unit
from engine.codec.unit_scan import Stop
from engine.inspection.log_reader import BULK, LogReader

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
    begin = log.min_offset if start is None else start
    far = begin + near
    test = wanted.compile(log.file_name)
    last = Stop(max(begin, 0), "end", "the commit log has no files")
    for item in log.walk(start, far if stop is None else min(far, stop), crc):
        if isinstance(item, Stop):
            last = item
            break
        seen(item.offset)
        if isinstance(item, Unit) and test(item):
            yield item
    if last.kind == "limit" and (stop is None or far < stop):
        yield from _by_blocks(log, wanted, last.offset, stop, crc, seen)
    else:
        yield last


def _by_blocks(
    log: LogReader, wanted: Filter, start: int, stop: int | None, crc: bool, seen: Callable[[int], None]
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
