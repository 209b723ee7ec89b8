"""The time histogram of a log: from the side index where it is known, else by a walk, while its bins fill.

The overview of a log without a filter is kept for each log file in the user's cache. With a filter the log is walked.
A short time reads only the bytes between the first and the last unit of the bins that cover it::

    overview      ▂▅▇▃▁▂▆█▇▅▂     bins of 500 ms, from the cache
    a short time        [ ]       its two bins hold the offsets 7,340,032 to 9,437,184: 2 MiB are read
    its bins      ▁▃█▂▅▇▁▂▃       bins of 1 ms
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.callbacks import Cancelled, Progress
from engine.codec.columns import UnitColumns
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage, Stop
from engine.inspection.block_scan import scan_log
from engine.inspection.histogram.cache import HistogramCache, Segment
from engine.inspection.histogram.time_bins import MAX_BINS, BinTable, TimeBins, width_for
from engine.inspection.histogram.unit_bins import LogHistogram, UnitBins

if TYPE_CHECKING:
    from engine.inspection.log_reader import LogReader
    from engine.mapped.read_only import ReadOnlyFile
    from engine.query import Filter

PARTIAL_EVERY_S = 0.25
"""Seconds between two partial results."""
_MAX_BINS_OF_ALL_FILES = 1 << 16
_MIN_BINS_OF_A_FILE = 64
FAR_MS = 366 * 86_400_000
"""Messages whose store times are further apart than this from all others are left out of a picture, and counted."""
_UNSAVED_BYTES = 16 << 20
"""Growth of a log that is saved; less is quickly walked again."""


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A question to the histogram: store times in [begin, end) ms, in bins of at most ``width`` ms, in units that begin
    in the offsets from ``start`` to ``stop``. None: without a limit.
    """

    begin: int | None = None
    end: int | None = None
    width: int | None = None
    start: int | None = None
    stop: int | None = None


ALL = TimeRange()


class _Run:
    """A run of the histogram with its callbacks."""

    def __init__(
        self,
        on_partial: Callable[[LogHistogram], None] | None,
        progress: Progress | None,
        cancelled: Cancelled | None,
    ) -> None:
        self._on_partial, self._progress, self._cancelled = on_partial, progress, cancelled
        self._due = time.monotonic() + PARTIAL_EVERY_S
        self.base, self.total = 0, 1

    def is_cancelled(self) -> bool:
        return self._cancelled is not None and self._cancelled()

    def report(self, histogram: LogHistogram, parts: Callable[[], LogHistogram]) -> None:
        """Report progress, and now and then what ``parts`` returns."""
        if self._progress is not None:
            self._progress(min(max(histogram.looked_to - self.base, 0), self.total), self.total)
        if self._on_partial is not None and time.monotonic() >= self._due:
            self._on_partial(parts())
            self._due = time.monotonic() + PARTIAL_EVERY_S

    def emit(self, histogram: LogHistogram) -> None:
        if self._on_partial is not None:
            self._on_partial(histogram)


def read_histogram(
    log: LogReader,
    unit_filter: Filter | None = None,
    time_range: TimeRange = ALL,
    cache: Path | None = None,
    on_partial: Callable[[LogHistogram], None] | None = None,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
) -> LogHistogram:
    """Return the histogram of the log's units that ``unit_filter`` takes and that are in ``time_range``.

    ``cache`` is the folder of side indexes. ``on_partial`` receives what is known from time to time. A run that was
    cancelled returns what it has; damage and unread files raise nothing.
    """
    run = _Run(on_partial, progress, cancelled)
    if unit_filter is None and (time_range is ALL or cache is not None):
        overview = _overview(log, cache, run, time_range)
        if time_range.begin is None or time_range.end is None or overview.bins.width <= (time_range.width or 1):
            return overview
        start, stop = overview.bins.offsets
        time_range = TimeRange(time_range.begin, time_range.end, time_range.width, start, stop)
        if start == stop:
            return overview
    return _walked(log, unit_filter, time_range, run)


def shown_bins(
    histogram: LogHistogram, max_bins: int, max_topics: int, time_range: TimeRange = ALL, far_ms: int = FAR_MS
) -> tuple[BinTable, int]:
    """Return at most ``max_bins`` bins, or those of ``time_range``, and the number of messages that are not in them
    because their store times are ``far_ms`` from all others.
    """
    bins = histogram.bins
    begin, end = (
        bins.main_span(far_ms)
        if time_range.begin is None or time_range.end is None
        else (time_range.begin, time_range.end)
    )
    shown = bins.within(begin, end)
    shown.coarsen(max(bins.width, width_for(begin, end, max_bins) if time_range.width is None else time_range.width))
    table = shown.table(max_topics)
    return table, 0 if time_range is not ALL else histogram.units - sum(map(sum, table.messages))


def _walked(log: LogReader, unit_filter: Filter | None, time_range: TimeRange, run: _Run) -> LogHistogram:
    """Walk a range of the log."""
    topics, histogram = TopicTable(), LogHistogram()
    is_crc_read = unit_filter is not None and "crc" in unit_filter.fields
    block_filter = unit_filter.on_blocks(topics, log.file_name, crc=is_crc_read) if unit_filter is not None else None
    unit_bins = UnitBins(histogram, topics, block_filter, time_range.begin, time_range.end)
    start = log.min_offset if time_range.start is None else time_range.start
    histogram.looked_to = run.base = start
    run.total = max((log.sequence.total_size if time_range.stop is None else time_range.stop - start), 1)
    for block in scan_log(log, start, time_range.stop, crc=is_crc_read, topics=topics):
        if isinstance(block, Stop):
            histogram.is_complete = block.kind != "unread" and not histogram.unread
            histogram.looked_to = max(histogram.looked_to, block.offset)
            break
        if isinstance(block, UnitColumns):
            unit_bins.add(block)
        else:
            histogram.add_damage(block)
        if run.is_cancelled():
            break
        run.report(histogram, lambda: histogram)
    return histogram


def _overview(log: LogReader, cache: Path | None, run: _Run, time_range: TimeRange) -> LogHistogram:
    """The histogram of all files: those in the cache at once, then the others."""
    store = HistogramCache(log, cache) if cache is not None else None
    cached = store.load() if store is not None else {}
    files = list(log.files)
    max_bins = min(MAX_BINS, max(_MIN_BINS_OF_A_FILE, _MAX_BINS_OF_ALL_FILES // max(len(files), 1)))
    segments: list[Segment] = []
    total = _Sum(time_range)
    run.base, run.total = log.min_offset if files else 0, max(log.sequence.total_size, 1)
    walked_bytes, is_cancelled = 0, False
    ready = [segment for file in files if (segment := cached.get(file.name)) is not None and segment.holds(file)]
    if ready and len(ready) < len(files) - 1:
        known = _Sum(time_range)
        for segment in ready:
            known.add(segment.histogram(max_bins))
        run.emit(known.histogram)
    held = {segment.name: segment for segment in ready}
    for number, file in enumerate(files):
        is_last, is_end = number + 1 == len(files), False
        segment = held.get(file.name)
        if segment is None or is_last:
            segment, histogram, before = _begun(cached.get(file.name), file, log, max_bins)
            stop = None if is_last else files[number + 1].start_offset
            is_end, is_cancelled = _walk_file(log, segment, histogram, stop, run, total)
            walked_bytes += max(histogram.looked_to - before, 0)
            segment.pack(histogram)
        else:
            histogram = segment.histogram(max_bins)
        segments.append(segment)
        total.add(histogram)
        if is_cancelled or is_end:
            break
    total.histogram.is_complete = not is_cancelled and not total.histogram.unread
    if store is not None and walked_bytes and (walked_bytes >= _UNSAVED_BYTES or len(cached) < len(segments)):
        store.save([segment for segment in segments if segment.head])
    return total.histogram


def _begun(
    cached: Segment | None, file: ReadOnlyFile, log: LogReader, max_bins: int
) -> tuple[Segment, LogHistogram, int]:
    """Return the segment of a file that is walked, its histogram so far, and where the walk goes on.

    The stamp is taken before the walk.
    """
    segment = Segment.of(file)
    if cached is None or not cached.may_go_on(file, log):
        return segment, LogHistogram(TimeBins(max_bins)), file.start_offset
    segment.last, histogram = cached.last, cached.histogram(max_bins)
    histogram.is_complete = False
    return segment, histogram, histogram.looked_to


class _Sum:
    """The sum of the files' histograms, within a range of time."""

    def __init__(self, time_range: TimeRange) -> None:
        self._time_range = time_range
        self.histogram = LogHistogram()

    def add(self, part: LogHistogram) -> None:
        """Add the histogram of a file; it stays as it is."""
        self.histogram.merge(self._limited(part))

    def with_part(self, part: LogHistogram) -> LogHistogram:
        """Return the sum with a file that is being walked, as a value of its own."""
        merged = LogHistogram(TimeBins())
        merged.merge(self.histogram_copy())
        merged.merge(self._limited(part))
        return merged

    def histogram_copy(self) -> LogHistogram:
        """Return the sum so far as a value of its own."""
        duplicate = LogHistogram(TimeBins())
        duplicate.merge(LogHistogram(self.histogram.bins.within(*_EVER), *self._counts(self.histogram)))
        return duplicate

    def _limited(self, part: LogHistogram) -> LogHistogram:
        time_range = self._time_range
        begin = _EVER[0] if time_range.begin is None else time_range.begin
        end = _EVER[1] if time_range.end is None else time_range.end
        return LogHistogram(part.bins.within(begin, end), *self._counts(part))

    @staticmethod
    def _counts(part: LogHistogram) -> tuple[int, int, int, int, int, int]:
        return part.units, part.damaged, part.unread, part.steps_back, part.largest_step_ms, part.looked_to


_EVER = (-(1 << 63), (1 << 63) - 1)


def _walk_file(
    log: LogReader, segment: Segment, histogram: LogHistogram, stop: int | None, run: _Run, total: _Sum
) -> tuple[bool, bool]:
    """Walk a file from where its segment ends. Return whether the log ends there, and whether the run was cancelled."""
    topics = TopicTable()
    unit_bins = UnitBins(histogram, topics)
    start = segment.start_offset
    if segment.last is not None:
        start = segment.last[0] + segment.last[1]
        unit_bins.continue_from(segment.last[2])
    for block in scan_log(log, max(start, log.min_offset), stop, crc=False, topics=topics):
        if isinstance(block, Stop):
            histogram.looked_to = max(histogram.looked_to, block.offset)
            histogram.is_complete = block.kind == "limit" and not histogram.unread
            return block.kind != "limit", False
        if isinstance(block, Damage):
            histogram.add_damage(block)
        else:
            unit_bins.add(block)
            segment.last = unit_bins.last_unit or segment.last
        if run.is_cancelled():
            return False, True
        run.report(histogram, lambda: total.with_part(histogram))
    return False, False
