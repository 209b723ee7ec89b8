"""The minimum of a queue: its first entry whose unit the log still holds (docs/formats/consume-queue.md#bounds;
Java: ConsumeQueue.correctMinOffset).

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
    minimum: int,
    first_span: Span,
    last_span: Span,
    log_min: int,
    physical_at: PhysicalAt,
    *,
    past_empty_last: bool = False,
) -> int:
    """Return the minimum (bytes) of a queue as 5.x corrects it: by the last entry, then by a search in the first file.

    Where the last file has no entry, 5.5 goes on with that search (``past_empty_last``); older releases do not.
    """
    if minimum >= last_span.end or (last_span.end == last_span.start and not past_empty_last):
        return minimum
    if last_span.end > last_span.start and physical_at(last_span.end - UNIT) < log_min:
        return last_span.end
    begin, intact = minimum, True
    if begin < first_span.start:
        begin, intact = first_span.start, False
    if begin >= first_span.end or (intact and physical_at(begin) >= log_min):
        return minimum
    low_distance, high_distance = 0, first_span.end - begin - UNIT
    while high_distance - low_distance > UNIT:
        middle = (low_distance + high_distance) // 2 // UNIT * UNIT
        physical = physical_at(begin + middle)
        if physical == log_min:
            low_distance = high_distance = middle
        elif physical > log_min:
            high_distance = middle
        else:
            low_distance = middle
    for offset in range(begin + low_distance, begin + high_distance + 1, UNIT):
        if physical_at(offset) >= log_min:
            return offset
    return minimum
