"""Work of the worker process: the time histogram of a log, as a value that the window draws. No Qt.

Called as ``jobs.in_worker(title, "viewer.runtime.histogram_work:read", …)``. Partial histograms are sent as they grow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from engine.inspection.histogram.log_histogram import TimeRange
    from engine.inspection.histogram.unit_bins import LogHistogram
    from viewer.runtime.worker import WorkerControl

BARS = 400
"""Bars over the whole time, at most."""
TOPICS = 8
"""Topics with a colour of their own; the others are one part of each bar."""


@dataclass(frozen=True, slots=True)
class Range:
    """A part of the time: [begin, end) ms, in bars of ``width`` ms; its units are in [start, stop) of the log."""

    begin: int
    end: int
    width: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class HistogramData:
    """Bars of ``width`` ms in the order of time, those without messages left out.

    ``messages`` and ``bytes`` have a list for each of ``topics``; "" is all further topics. ``p50`` and ``p99`` (ms
    from born to stored) are −1 where no message counts. ``first`` and ``end`` are offsets. ``far`` counts messages
    that are left out because their times are far from all others.
    """

    width: int = 1
    starts: list[int] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    messages: list[list[int]] = field(default_factory=list)
    bytes: list[list[int]] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)
    p50: list[int] = field(default_factory=list)
    p99: list[int] = field(default_factory=list)
    units: int = 0
    far: int = 0
    damaged: int = 0
    unread: int = 0
    steps_back: int = 0
    largest_step_ms: int = 0
    is_complete: bool = True


def read(
    control: WorkerControl,
    path: Path,
    config: MessageStoreConfig | None,
    where: str,
    now_ms: int,
    part: Range | None = None,
    cache: Path | None = None,
) -> HistogramData:
    """Return the histogram of the units that match ``where``, of the time of ``part`` if there is one.

    ``cache`` is the folder of side indexes; only a histogram without a filter is kept there. Emits partial ones.
    """
    from engine.inspection import open_store
    from engine.inspection.histogram.log_histogram import ALL, TimeRange, read_histogram
    from engine.query import parse

    unit_filter = parse(where, now_ms=now_ms) if where else None
    time_range = ALL if part is None else TimeRange(part.begin, part.end, part.width, part.start, part.stop)
    with open_store(path, config) as store:
        histogram = read_histogram(
            store.log,
            unit_filter,
            time_range,
            cache if unit_filter is None else None,
            lambda partial: control.emit(_data(partial, time_range)),
            control.report,
            lambda: control.cancelled,
        )
    return _data(histogram, time_range)


def _data(histogram: LogHistogram, time_range: TimeRange) -> HistogramData:
    from engine.inspection.histogram.log_histogram import shown_bins

    table, far_count = shown_bins(histogram, BARS, TOPICS, time_range)
    return HistogramData(
        table.width,
        table.starts,
        table.topics,
        table.messages,
        table.bytes,
        table.first,
        table.end,
        table.p50,
        table.p99,
        histogram.units,
        far_count,
        histogram.damaged,
        histogram.unread,
        histogram.steps_back,
        histogram.largest_step_ms,
        histogram.is_complete,
    )
