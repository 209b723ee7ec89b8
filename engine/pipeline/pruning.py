"""Which parts of a log can be left unread, by what is asked for (docs/formats/consume-queue.md#entry,
docs/formats/reading.md).

A part is passed over only where it is proven that nothing in it can meet a condition: a filter may never change which
rows exist. Offsets say it themselves. Of topics the units themselves say it, see :mod:`engine.pipeline.tiling`; that
entries of queues say so is believed only where a :class:`Trust` tells it. Nothing proves store times but all units:
that they never fall, but for a minute of a clock that was set back (:data:`SLACK_MS`), is believed only where the
trust tells that. Nothing is concluded from what cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.codec.message import BORN_HOST_V6
from engine.codec.unit_flavours import MAGICS
from engine.errors import CannotRead
from engine.pipeline.files import LogFile, StorePlace, log_files
from engine.pipeline.filters import EVERYWHERE, Span, Want
from engine.pipeline.splits import Ranges
from engine.pipeline.storage import opened
from engine.pipeline.tiling import passed_over

SLACK_MS = 60_000


@dataclass(frozen=True, slots=True)
class Trust:
    """What is believed to spare reading. ``queues``: nothing (``off``), where all units bear it out (``prove``), or
    entries that tile the log (``trust``). ``times``: that files are in the order of the clock.
    """

    queues: str = "prove"
    times: bool = False


EXACT = Trust()


def needed(stores: Sequence[StorePlace], want: Want, trust: Trust = EXACT) -> dict[str, Ranges]:
    """The parts of each log that can hold what is asked for, by the path of the store, for
    :func:`engine.pipeline.splits.plan`. A store that cannot be read has none.
    """
    found = {}
    for store in stores:
        try:
            spans, whys = _needed(store, want, trust)
        except CannotRead:  # the plan meets it again, and tells it
            continue
        if whys:
            found[store.path] = Ranges(tuple(spans), f"nothing of the {' and '.join(whys)} asked for lies there")
    return found


def _needed(store: StorePlace, want: Want, trust: Trust) -> tuple[list[Span], list[str]]:
    spans: list[Span] = [(0, EVERYWHERE[1])]
    whys: list[str] = []
    if want.physical_offsets != EVERYWHERE:
        low, high = want.physical_offsets
        spans, whys = _both(spans, [(max(low, 0), min(high, EVERYWHERE[1] - 1) + 1)]), ["offset"]
    if trust.times and want.store_timestamps != EVERYWHERE:
        spans, whys = _both(spans, list(_in_time(log_files(store), want.store_timestamps))), [*whys, "store time"]
    if trust.queues != "off" and want.topics is not None:
        others = passed_over(store, want, trust.queues == "trust")
        if others:
            spans, whys = _both(spans, list(_between(others))), [*whys, "topic"]
    return spans, whys


def _between(spans: Sequence[Span]) -> Iterator[Span]:
    """What ``spans``, in order and apart, leave of the log."""
    at = 0
    for low, high in spans:
        if at < low:
            yield at, low
        at = max(at, high)
    yield at, EVERYWHERE[1]


def _both(left: list[Span], right: list[Span]) -> list[Span]:
    """Where two lists of spans, each in order, overlap."""
    found, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        low, high = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if low < high:
            found.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return found


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
    """Store time of the unit that a file begins with, None where it begins with none, or cannot be read."""
    try:
        with opened(file.path) as lent:
            head = lent.read(0, 80)
    except CannotRead:
        return None
    if len(head) < 80 or int.from_bytes(head[4:8], "big") not in MAGICS:
        return None
    at = 48 + (20 if int.from_bytes(head[36:40], "big") & BORN_HOST_V6 else 8)
    return int.from_bytes(head[at : at + 8], "big", signed=True)
