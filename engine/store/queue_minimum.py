"""Where a queue's entries begin whose units the log still holds (docs/formats/consume-queue.md#bounds; Java:
ConsumeQueue.correctMinOffset).

Pure: entries are asked for through a function. RocketMQ's steps are kept, so that a queue with disorderly entries
(pre-filled ones point to 0) is judged as there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

UNIT = 20
PhysicalAt = Callable[[int], int]


class Span(NamedTuple):
    """A file's first byte in the queue, and the end of what is readable in it."""

    start: int
    end: int


def corrected_minimum(
    minimum: int, first: Span, last: Span, log_min: int, physical_at: PhysicalAt, *, past_empty_last: bool = False
) -> int:
    """Return the minimum (bytes) of a queue as 5.x corrects it: by the last entry, then by a search in the first file.

    Where the last file has no entry, 5.5 goes on with that search (``past_empty_last``); older releases do not.
    """
    if minimum >= last.end or (last.end == last.start and not past_empty_last):
        return minimum
    if last.end > last.start and physical_at(last.end - UNIT) < log_min:
        return last.end
    begin, intact = minimum, True
    if begin < first.start:
        begin, intact = first.start, False
    if begin >= first.end or (intact and physical_at(begin) >= log_min):
        return minimum
    low, high = 0, first.end - begin - UNIT
    while high - low > UNIT:
        middle = (low + high) // 2 // UNIT * UNIT
        physical = physical_at(begin + middle)
        if physical == log_min:
            low = high = middle
        elif physical > log_min:
            high = middle
        else:
            low = middle
    for at in range(begin + low, begin + high + 1, UNIT):
        if physical_at(at) >= log_min:
            return at
    return minimum
