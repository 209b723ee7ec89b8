"""The bytes of a log that are no unit: whatever is asked for may have stood in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.codec.columns import UnitColumns
from engine.codec.unit_scan import Damage
from engine.inspection.block_scan import scan_log
from engine.inspection.log_reader import LogReader


class Unreadable(NamedTuple):
    """``size`` bytes from absolute offset ``offset`` on that are no unit, and why."""

    offset: int
    size: int
    reason: str


@dataclass(slots=True)
class UnreadableSpans:
    """The first stretches one by one; of the others how many there are, their bytes, and where they begin."""

    first: list[Unreadable] = field(default_factory=list)
    more: int = 0
    more_bytes: int = 0
    more_from: int = -1

    def take(self, one: Unreadable, most: int) -> None:
        """One stretch more, in the order of the log."""
        if len(self.first) < most:
            self.first.append(one)
            return
        self.more_from = self.more_from if self.more else one.offset
        self.more += 1
        self.more_bytes += one.size


def unreadable_spans(log: LogReader, most: int, progress: Callable[[int], None] | None = None) -> UnreadableSpans:
    """Every stretch of the log that is no unit, blank or zero tail, in the order of the log, ``most`` of them one by
    one; the whole log is read, ``progress`` gets the bytes that are done.

    Missing files count too. Bodies are not held against their CRC: keys and places are not in them.
    """
    found, start = UnreadableSpans(), max(log.min_offset, 0)
    for one in scan_log(log, crc=False, want_tags=False):
        if isinstance(one, Damage):
            found.take(Unreadable(one.offset, one.size, one.reason), most)
        elif progress is not None and isinstance(one, UnitColumns) and one.count:
            progress(int(one.offset[one.count - 1]) - start)
    return found
