"""Fills the Line over the log: its files at once, then times and topics, sampled piece by piece while nothing else
waits.
"""

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
from viewer.widgets.log_line import LogLine, Mix, Pin, line_of, sample, sample_places

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot

AT_A_TIME = 24
WORTH = 100
"""The log is sampled again when it has grown by one part of so many: what is on the screen lies on what was sampled."""
LOOK_SECONDS = 3.0
"""Between two looks at a line that grows."""
REST_SECONDS = 2.0
"""Between two samplings of a log that grows."""
CACHED_FILES = 32
"""Newest files whose pages are asked about."""
PAUSE_MS = 15


class LogSurvey(QObject):
    """Keeps ``strip`` true to the session's log. ``lined(line)`` when the extent is known."""

    lined = Signal(object)

    def __init__(self, strip: LineStrip) -> None:
        super().__init__(strip)
        self._strip = strip
        self._session: StoreSession | None = None
        self._turn = 0
        self._todo: list[tuple[int, int]] = []
        self._sampled: set[tuple[int, int]] = set()
        self._line = LogLine(0, 0, 0)
        self._pause = QTimer(self, interval=PAUSE_MS, singleShot=True)
        self._pause.timeout.connect(self._sample_next)
        self._rest = 0.0
        self._looked = -LOOK_SECONDS
        self._due = QTimer(self, singleShot=True)
        self._due.timeout.connect(self.look)
        self._late = False
        self._times: dict[int, int] = {}
        self._resized = QTimer(self, interval=PAUSE_MS, singleShot=True)
        self._resized.timeout.connect(self._read_times)
        strip.resized.connect(self._resized.start)
        strip.installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """What was not looked at while nobody saw the strip is looked at now."""
        if event.type() == QEvent.Type.Show and self._late:
            self.look()
        return False

    def set_session(self, session: StoreSession | None) -> None:
        """Another store, or none."""
        self._turn += 1
        self._session = session
        self._todo, self._sampled = [], set()
        self._pause.stop()
        self._due.stop()
        self._rest, self._late, self._looked = 0.0, False, -LOOK_SECONDS
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

    def grown(self) -> None:
        """The log may have grown: look again, but not more often than somebody looks at its line."""
        wait = self._looked + LOOK_SECONDS - time.monotonic()
        if wait <= 0:
            self.look()
        elif not self._due.isActive():
            self._due.start(round(wait * 1000) + 1)

    def look(self) -> None:
        """Look at the extent of the log, then sample what has not been sampled. A strip that nobody sees keeps what it
        has.
        """
        self._looked = time.monotonic()
        self._late = self._line.high > self._line.low and not self._strip.isVisible()
        if self._session is None or self._late:
            return
        turn, log, before = self._turn, self._session.snapshot.log, self._line

        def done(line: LogLine) -> None:
            if turn != self._turn:
                return
            if self._line is not before and line.written < self._line.written <= line.high:
                line = replace(line, written=self._line.written)  # the end was found meanwhile
            self._show(line)

        self._session.jobs.read(lambda: line_of(log), done, lambda _error: None)

    def tail(self) -> None:
        """Somebody who watches the log has found its end: the line reaches there at once."""
        session, line = self._session, self._line
        end = session.snapshot.log.known_end if session is not None else None
        if end is None or line.high <= line.low or end <= line.written or not self._strip.isVisible():
            return
        if end > line.high:
            self.look()  # there are more files
            return
        self._line = replace(line, written=end)
        self._strip.set_line(self._line)
        self.lined.emit(self._line)
        self._sample(line)

    def show_damage(self, spans: Sequence[tuple[int, int]]) -> None:
        """Spans (offset, length) that the count of the rows could not read."""
        if self._session is not None:
            self._session.note_damage([(offset, offset + length) for offset, length in spans])

    def show_findings(self) -> None:
        """Findings of the log as pins, and what is missing or not whole."""
        if self._session is not None:
            found = pins_of(self._session.findings)
            broken = self._session.broken
            known = {pin.offset for pin in found}
            found += [
                Pin(one.start, "error", one.words) for one in broken if one.kind == "damaged" and one.start not in known
            ]
            marks = bookmarks_of(self._session).list
            found += [Pin(one.offset, one.kind, one.name, link=one.goal) for one in marks if one.offset is not None]
            self._strip.set_pins(found)
            self._strip.set_broken(broken)

    def _show(self, line: LogLine) -> None:
        before, self._line = self._line, line
        self._strip.set_line(line)
        self._strip.set_words("" if line.files else tr("The log has no files."))
        self.lined.emit(line)
        self.show_findings()
        self._sample(before)

    def _sample(self, before: LogLine) -> None:
        """Sample what nobody has sampled yet, where the line, ``before`` until now, has grown by a piece worth it."""
        line = self._line
        if line.low != before.low or line.written < before.written:
            self._turn += 1  # another beginning, or the log was cut: the strip has nothing left
            self._times = {}
            self._todo, self._sampled = [], set()
        covered = max((high for _, high in self._sampled), default=line.low)
        behind = line.written - covered
        if self._sampled and behind < max(1, (line.written - line.low) // WORTH):
            return  # a store that is being written grows at each look: its end is sampled now and then
        if self._todo or (not self._sampled and line == before):
            return  # what is being sampled comes first
        wait = self._rest - time.monotonic()
        if self._sampled and wait > 0:
            self._due.start(round(wait * 1000) + 1)
            return
        self._rest = time.monotonic() + REST_SECONDS
        self._todo = [(max(low, covered), high) for low, high in sample_places(line) if high > covered]
        self._read_times()
        self._pause.start()

    def _read_times(self) -> None:
        """Read the times of the files whose labels have room; after another width that is of others."""
        wanted = [start for start in self._strip.label_files() if start not in self._times]
        if self._session is None or not wanted:
            return
        turn, log = self._turn, self._session.snapshot.log

        def done(times: dict[int, int]) -> None:
            if turn == self._turn:
                self._times.update(times)
                self._strip.set_times(self._times)

        self._session.jobs.read(lambda: times_of(log, wanted), done, lambda _error: None)

    def _ask_cache(self) -> None:
        """Which parts are in memory: asked once the line is sampled, when nothing else waits."""
        session, turn = self._session, self._turn
        if session is None:
            return

        def done(shares: list[tuple[int, int, float]]) -> None:
            if turn == self._turn:
                self._strip.set_cached(shares)

        session.jobs.read(lambda: cached_of(session.snapshot), done, lambda _error: None)

    def _sample_next(self) -> None:
        if self._session is None:
            return
        if not self._todo:
            self._ask_cache()
            return
        turn, log = self._turn, self._session.snapshot.log
        places = self._todo[:AT_A_TIME]

        def done(mixes: list[Mix]) -> None:
            if turn != self._turn:
                return
            self._sampled.update(places)
            self._strip.add_mixes(mixes)
            self._tell_topics(mixes)
            go_on()

        def go_on(_error: Exception | None = None) -> None:
            if turn == self._turn:
                del self._todo[: len(places)]
                self._pause.start()

        self._session.jobs.read(lambda: sampled(log, places), done, go_on)

    def _tell_topics(self, mixes: Sequence[Mix]) -> None:
        """Topics that no queue tells of, as in a log by itself, have colours too."""
        if self._session is not None:
            self._session.colours.fill(topics_of(mixes))


def sampled(log: Any, places: Sequence[tuple[int, int]]) -> list[Mix]:
    """The samples of these places; reads the disk. Those that cannot be read are left out: the strip shows them so."""
    mixes = []
    for place in places:
        with suppress(StoreError, OSError):
            mixes.append(sample(log, *place))
    return mixes


def topics_of(mixes: Sequence[Mix]) -> list[str]:
    """The topics of samples by their bytes, largest first."""
    weights: dict[str, float] = {}
    for mix in mixes:
        for topic, share in mix.shares:
            weights[topic] = weights.get(topic, 0.0) + share * (mix.end - mix.start)
    return sorted(weights, key=lambda topic: (-weights[topic], topic))


def cached_of(store: StoreSnapshot) -> list[tuple[int, int, float]]:
    """(start, end, share) of stretches of the log with the share that is in memory; asks the system, reads nothing."""
    from engine.inspection.space.page_cache import log_cache

    found: list[tuple[int, int, float]] = []
    for file in log_cache(store, CACHED_FILES).files:
        edges = [file.start_offset + file.size * n // len(file.shares) for n in range(len(file.shares) + 1)]
        for low, high, share in zip(edges[:-1], edges[1:], file.shares, strict=True):
            if found and found[-1][1:] == (low, share):
                found[-1] = (found[-1][0], high, share)
            else:
                found.append((low, high, share))
    return found


def times_of(log: Any, starts: Sequence[int]) -> dict[int, int]:
    """Store time (ms) of the first unit of the files that begin at ``starts``; reads the disk."""
    found = {}
    for start in starts:
        stored = getattr(log.unit_at(start, crc=False), "store_timestamp", None)
        if stored is not None:
            found[start] = stored
    return found


def in_log(finding: Any) -> bool:
    """Whether a finding has a place in the commit log."""
    return finding.offset is not None and (finding.file is None or "commitlog" in str(finding.file))


def pins_of(findings: Sequence[Any]) -> list[Pin]:
    """Findings with a place in the log as pins."""
    return [
        Pin(f.offset, f.severity, f"{f.id} {plain(f.message)}", f, Place("findings", name=f.id))
        for f in findings
        if in_log(f) and f.severity in {"error", "warn", "note"}
    ]
