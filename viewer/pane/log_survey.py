"""Fill the Line above a view: the files of the log at once, then times and topics from samples, read in idle time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QObject, QTimer, Signal

from engine.errors import StoreError
from viewer.look.assets import tr
from viewer.look.formats import plain
from viewer.runtime.bookmarks import bookmarks_of
from viewer.runtime.places import Place
from viewer.runtime.store_session import StoreSession
from viewer.widgets.line_strip import LineStrip
from viewer.widgets.log_line import LinePin, LogLine, TopicMix, line_of, sample, sample_places

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot

SAMPLES_PER_ROUND = 24
GROWTH_DIVISOR = 100
"""The log is sampled again when it has grown by 1/GROWTH_DIVISOR."""
LINE_INTERVAL_S = 3.0
"""Shortest time between two readings of the extent of a growing log."""
SAMPLING_INTERVAL_S = 2.0
"""Shortest time between two samplings of a growing log."""
CACHED_FILES = 32
"""Number of newest files whose cached pages are counted."""
PAUSE_MS = 15


class LogSurvey(QObject):
    """Keeps the Line ``strip`` up to date with the session's log.

    Emits ``extentKnown(line)`` when the extent of the log has been read. Results of a read that began before
    :attr:`_generation` changed are dropped: they belong to another store, or to a log that was cut.
    """

    extentKnown = Signal(object)

    def __init__(self, strip: LineStrip) -> None:
        super().__init__(strip)
        self._strip = strip
        self._session: StoreSession | None = None
        self._generation = 0
        self._unsampled_spans: list[tuple[int, int]] = []
        self._sampled_spans: set[tuple[int, int]] = set()
        self._line = LogLine(0, 0, 0)
        self._sample_timer = QTimer(self, interval=PAUSE_MS, singleShot=True)
        self._sample_timer.timeout.connect(self._sample_next)
        self._next_sampling_at = 0.0
        self._extent_read_at = -LINE_INTERVAL_S
        self._extent_timer = QTimer(self, singleShot=True)
        self._extent_timer.timeout.connect(self.read_extent)
        self._skipped_while_hidden = False
        self._times: dict[int, int] = {}
        self._resize_timer = QTimer(self, interval=PAUSE_MS, singleShot=True)
        self._resize_timer.timeout.connect(self._read_times)
        strip.resized.connect(self._resize_timer.start)
        strip.installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Catch up on the readings that were skipped while the strip was hidden."""
        if event.type() == QEvent.Type.Show and self._skipped_while_hidden:
            self.read_extent()
        return False

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store, or none."""
        self._generation += 1
        self._session = session
        self._unsampled_spans, self._sampled_spans = [], set()
        self._sample_timer.stop()
        self._extent_timer.stop()
        self._next_sampling_at, self._skipped_while_hidden, self._extent_read_at = 0.0, False, -LINE_INTERVAL_S
        self._line = LogLine(0, 0, 0)
        self._times = {}
        self._strip.set_times({})
        self._strip.set_line(self._line)
        self._strip.set_words("")
        self._strip.set_pins(())
        self._strip.set_broken(())
        self._strip.set_cached(())
        if session is not None:
            session.findingsChanged.connect(self.show_findings)
            bookmarks_of(session).changed.connect(self.show_findings)

    def on_log_grown(self) -> None:
        """Read the extent again, at most every :data:`LINE_INTERVAL_S`."""
        wait = self._extent_read_at + LINE_INTERVAL_S - time.monotonic()
        if wait <= 0:
            self.read_extent()
        elif not self._extent_timer.isActive():
            self._extent_timer.start(round(wait * 1000) + 1)

    def read_extent(self) -> None:
        """Read the extent of the log, then sample what has not been sampled.

        A hidden strip is read when it is shown.
        """
        self._extent_read_at = time.monotonic()
        self._skipped_while_hidden = self._line.high > self._line.low and not self._strip.isVisible()
        if self._session is None or self._skipped_while_hidden:
            return
        generation, log, old_line = self._generation, self._session.snapshot.log, self._line

        def done(line: LogLine) -> None:
            if generation != self._generation:
                return
            if self._line is not old_line and line.written < self._line.written <= line.high:
                line = replace(line, written=self._line.written)  # a follower found the end meanwhile
            self._show(line)

        self._session.jobs.read(lambda: line_of(log), done, lambda _error: None)

    def extend_to_known_end(self) -> None:
        """Extend the line to the end of the log that a follower of the log has just found."""
        session, line = self._session, self._line
        end = session.snapshot.log.known_end if session is not None else None
        if end is None or line.high <= line.low or end <= line.written or not self._strip.isVisible():
            return
        if end > line.high:
            self.read_extent()  # there are more files
            return
        self._line = replace(line, written=end)
        self._strip.set_line(self._line)
        self.extentKnown.emit(self._line)
        self._sample(line)

    def show_damage(self, spans: Sequence[tuple[int, int]]) -> None:
        """Note spans (offset, length) that the row count could not read."""
        if self._session is not None:
            self._session.note_damage([(offset, offset + length) for offset, length in spans])

    def show_findings(self) -> None:
        """Show findings of the log and bookmarks as pins, and missing or damaged ranges."""
        if self._session is not None:
            pins = pins_of(self._session.findings)
            broken = self._session.broken
            known_offsets = {pin.offset for pin in pins}
            pins += [
                LinePin(item.start, "error", item.words)
                for item in broken
                if item.kind == "damaged" and item.start not in known_offsets
            ]
            marks = bookmarks_of(self._session).list
            pins += [
                LinePin(item.offset, item.kind, item.name, link=item.goal) for item in marks if item.offset is not None
            ]
            self._strip.set_pins(pins)
            self._strip.set_broken(broken)

    def _show(self, line: LogLine) -> None:
        old_line, self._line = self._line, line
        self._strip.set_line(line)
        self._strip.set_words(
            "" if line.files else (self._session and self._session.undecoded_log) or tr("The log has no files.")
        )
        self.extentKnown.emit(line)
        self.show_findings()
        self._sample(old_line)

    def _sample(self, old_line: LogLine) -> None:
        """Sample the unsampled parts, if the line has grown enough since ``old_line``."""
        line = self._line
        if line.low != old_line.low or line.written < old_line.written:
            self._generation += 1  # the log begins elsewhere or was cut, so old samples are wrong
            self._times = {}
            self._unsampled_spans, self._sampled_spans = [], set()
        covered = max((end for _, end in self._sampled_spans), default=line.low)
        unsampled_bytes = line.written - covered
        if self._sampled_spans and unsampled_bytes < max(1, (line.written - line.low) // GROWTH_DIVISOR):
            return  # a store in use grows at each look, so its end is sampled only now and then
        if self._unsampled_spans or (not self._sampled_spans and line == old_line):
            return  # the running sampling comes first
        wait = self._next_sampling_at - time.monotonic()
        if self._sampled_spans and wait > 0:
            self._extent_timer.start(round(wait * 1000) + 1)
            return
        self._next_sampling_at = time.monotonic() + SAMPLING_INTERVAL_S
        self._unsampled_spans = [(max(start, covered), end) for start, end in sample_places(line) if end > covered]
        self._read_times()
        self._sample_timer.start()

    def _read_times(self) -> None:
        """Read the times of the files whose labels fit. A wider strip has room for more."""
        starts = [start for start in self._strip.label_files() if start not in self._times]
        if self._session is None or not starts:
            return
        generation, log = self._generation, self._session.snapshot.log

        def done(times: dict[int, int]) -> None:
            if generation == self._generation:
                self._times.update(times)
                self._strip.set_times(self._times)

        self._session.jobs.read(lambda: times_of(log, starts), done, lambda _error: None)

    def _read_cached_shares(self) -> None:
        """Read which parts of the log are in memory. Done last, when all spans are sampled."""
        session, generation = self._session, self._generation
        if session is None:
            return

        def done(shares: list[tuple[int, int, float]]) -> None:
            if generation == self._generation:
                self._strip.set_cached(shares)

        session.jobs.read(lambda: cached_of(session.snapshot), done, lambda _error: None)

    def _sample_next(self) -> None:
        if self._session is None:
            return
        if not self._unsampled_spans:
            self._read_cached_shares()
            return
        generation, log = self._generation, self._session.snapshot.log
        spans = self._unsampled_spans[:SAMPLES_PER_ROUND]

        def done(mixes: list[TopicMix]) -> None:
            if generation != self._generation:
                return
            self._sampled_spans.update(spans)
            self._strip.add_mixes(mixes)
            self._add_topic_colours(mixes)
            continue_sampling()

        def continue_sampling(_error: Exception | None = None) -> None:
            if generation == self._generation:
                del self._unsampled_spans[: len(spans)]
                self._sample_timer.start()

        self._session.jobs.read(lambda: sample_spans(log, spans), done, continue_sampling)

    def _add_topic_colours(self, mixes: Sequence[TopicMix]) -> None:
        """Give colours to topics that no queue names, as in a log without queues."""
        if self._session is not None:
            self._session.colours.fill(topics_of(mixes))


def sample_spans(log: Any, spans: Sequence[tuple[int, int]]) -> list[TopicMix]:
    """Sample these (start, end) spans of the log; reads the disk. Unreadable spans are left out: the strip hatches
    them.
    """
    mixes = []
    for span in spans:
        with suppress(StoreError, OSError):
            mixes.append(sample(log, *span))
    return mixes


def topics_of(mixes: Sequence[TopicMix]) -> list[str]:
    """Return the topics of samples by their bytes, largest first."""
    weights: dict[str, float] = {}
    for mix in mixes:
        for topic, share in mix.shares:
            weights[topic] = weights.get(topic, 0.0) + share * (mix.end - mix.start)
    return sorted(weights, key=lambda topic: (-weights[topic], topic))


def cached_of(store: StoreSnapshot) -> list[tuple[int, int, float]]:
    """Return (start, end, share in memory) of ranges of the log. Asks the operating system, reads no file."""
    from engine.inspection.space.page_cache import log_cache

    cached_spans: list[tuple[int, int, float]] = []
    for file in log_cache(store, CACHED_FILES).files:
        edges = [file.start_offset + file.size * n // len(file.shares) for n in range(len(file.shares) + 1)]
        for start, end, share in zip(edges[:-1], edges[1:], file.shares, strict=True):
            if cached_spans and cached_spans[-1][1:] == (start, share):
                cached_spans[-1] = (cached_spans[-1][0], end, share)
            else:
                cached_spans.append((start, end, share))
    return cached_spans


def times_of(log: Any, starts: Sequence[int]) -> dict[int, int]:
    """Return the store time (ms) of the first unit of the files that begin at ``starts``. Reads the disk."""
    times = {}
    for start in starts:
        stored = getattr(log.unit_at(start, crc=False), "store_timestamp", None)
        if stored is not None:
            times[start] = stored
    return times


def in_log(finding: Any) -> bool:
    """Return True if the finding has a place in the commit log."""
    return finding.offset is not None and (finding.file is None or "commitlog" in str(finding.file))


def pins_of(findings: Sequence[Any]) -> list[LinePin]:
    """Return the findings with a place in the log as pins."""
    return [
        LinePin(f.offset, f.severity, f"{f.id} {plain(f.message)}", f, Place("findings", name=f.id))
        for f in findings
        if in_log(f) and f.severity in {"error", "warn", "note"}
    ]
