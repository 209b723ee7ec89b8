"""Parts of a log that can be left unread, by the conditions of a query (docs/formats/consume-queue.md#entry,
docs/formats/reading.md).

A part is skipped only if it is proven that none of its rows can meet the conditions: a filter must never change which
rows exist. Offsets prove this by themselves. For topics the units prove it, see :mod:`engine.pipeline.tiling`; queue
entries alone are believed only if a :class:`Trust` says so. For store times nothing but reading all units is a proof.
That they never fall, except by a minute of a clock that was set back (:data:`SLACK_MS`), is believed only if the trust
says so. Nothing is concluded from parts that cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.codec.message import BORN_HOST_V6
from engine.codec.unit_flavours import MAGICS
from engine.errors import CannotRead
from engine.pipeline.files import LogFile, StorePlace, log_files
from engine.pipeline.filters import EVERYWHERE, QueryLimits, Span
from engine.pipeline.splits import Ranges
from engine.pipeline.storage import opened
from engine.pipeline.tiling import skippable_stretches

SLACK_MS = 60_000


@dataclass(frozen=True, slots=True)
class Trust:
    """Facts that a plan may trust in order to read less. ``queues``: nothing (``off``), where all units confirm it
    (``prove``), or entries that tile the log (``trust``). ``times``: that files are in the order of the clock.
    """

    queues: str = "prove"
    times: bool = False


EXACT = Trust()


def needed_ranges(stores: Sequence[StorePlace], limits: QueryLimits, trust: Trust = EXACT) -> dict[str, Ranges]:
    """Return the parts of each log that can hold what the query asks for, by the path of the store, for
    :func:`engine.pipeline.splits.plan`. A store that cannot be read has none.
    """
    ranges = {}
    for store in stores:
        try:
            spans, whys = _needed_spans(store, limits, trust)
        except CannotRead:  # the plan meets it again, and tells it
            continue
        if whys:
            ranges[store.path] = Ranges(tuple(spans), f"nothing of the {' and '.join(whys)} asked for lies there")
    return ranges


def _needed_spans(store: StorePlace, limits: QueryLimits, trust: Trust) -> tuple[list[Span], list[str]]:
    spans: list[Span] = [(0, EVERYWHERE[1])]
    whys: list[str] = []
    if limits.physical_offsets != EVERYWHERE:
        lower, upper = limits.physical_offsets
        spans, whys = _intersect(spans, [(max(lower, 0), min(upper, EVERYWHERE[1] - 1) + 1)]), ["offset"]
    if trust.times and limits.store_timestamps != EVERYWHERE:
        spans, whys = (
            _intersect(spans, list(_in_time(log_files(store), limits.store_timestamps))),
            [*whys, "store time"],
        )
    if trust.queues != "off" and limits.topics is not None:
        foreign_spans = skippable_stretches(store, limits, trust.queues == "trust")
        if foreign_spans:
            spans, whys = _intersect(spans, list(_uncovered(foreign_spans))), [*whys, "topic"]
    return spans, whys


def _uncovered(spans: Sequence[Span]) -> Iterator[Span]:
    """Yield the parts of the log that ``spans``, in order and apart, do not cover."""
    position = 0
    for span_start, span_end in spans:
        if position < span_start:
            yield position, span_start
        position = max(position, span_end)
    yield position, EVERYWHERE[1]


def _intersect(spans: list[Span], other_spans: list[Span]) -> list[Span]:
    """Return the overlaps of two lists of spans, each in order."""
    overlaps, i, j = [], 0, 0
    while i < len(spans) and j < len(other_spans):
        span_start, span_end = max(spans[i][0], other_spans[j][0]), min(spans[i][1], other_spans[j][1])
        if span_start < span_end:
            overlaps.append((span_start, span_end))
        if spans[i][1] < other_spans[j][1]:
            i += 1
        else:
            j += 1
    return overlaps


def _in_time(files: Sequence[LogFile], times: Span) -> Iterator[Span]:
    begins = [_first_time(file) for file in files]
    for number, file in enumerate(files):
        begin = begins[number]
        following = begins[number + 1] if number + 1 < len(files) else None
        too_late = begin is not None and begin > times[1] + SLACK_MS
        too_early = following is not None and following < times[0] - SLACK_MS
        if not too_late and not too_early:
            yield file.start, file.end


def _first_time(file: LogFile) -> int | None:
    """Return the store time of the unit that a file begins with; None where it begins with none, or cannot be read."""
    try:
        with opened(file.path) as opened_file:
            head = opened_file.read(0, 80)
    except CannotRead:
        return None
    if len(head) < 80 or int.from_bytes(head[4:8], "big") not in MAGICS:
        return None
    position = 48 + (20 if int.from_bytes(head[36:40], "big") & BORN_HOST_V6 else 8)
    return int.from_bytes(head[position : position + 8], "big", signed=True)
