"""History of a store's positions since the view was opened: series for the plots, rows for replay, marks. No Qt.

Its memory is bounded. Offsets are bytes; times in series are seconds since the epoch, all others ms. A history is
filled live or from a recording.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.inspection.positions import Position, Positions
from viewer.look.assets import tr, words
from viewer.look.formats import size
from viewer.runtime.peak_series import CAPACITY, PeakSeries, RowRing
from viewer.runtime.position_reading import KEYS, Flush, PositionReading, Service, gaps_of

MAX_MARKS = 2000
UNKNOWN = -(1 << 62)
DISPATCH_ALARM = 8 << 20
"""Bytes that dispatch may be behind before an alarm."""
FLUSH_ALARM = 12 << 20
"""Bytes that may wait for a flush before an alarm. Used only for a lab store, which reports its flushes."""
CHECKPOINT_ALARM = 120_000
"""Ms by which a growing store's checkpoint may be older than its last message. RocketMQ writes it once a minute."""
LATE_FLUSH = 50.0
"""Ms from which on a flush is late."""
LONG_PAUSE = 2500
"""Ms between two readings that make a break in the plots, if they are also USUAL_PAUSES times the previous pause."""
USUAL_PAUSES = 4
MAX_BREAKS = 500
RATE_WINDOW_MS = 1000
"""Ms over which rates are computed."""


@dataclass(frozen=True, slots=True)
class Mark:
    """An event in the plots and in the list below them.

    ``name`` and ``details`` are English templates for :func:`tr`, which ``value`` (bytes or a name) and ``took_ms``
    fill. ``shape`` is a kind of state mark (warn, live, error …). ``number`` counts the marks. ``upright``: drawn as
    a line in the plots too.
    """

    number: int
    time_ms: int
    shape: str
    name: str
    details: str = ""
    value: int | str = 0
    upright: bool = True
    took_ms: float = 0.0

    def words(self) -> tuple[str, str]:
        """Return name and details in the window's language."""
        shown = size(self.value) if isinstance(self.value, int) else tr(SERVICE_WORDS.get(self.value, self.value))
        fill = {"value": shown, "took": f"{self.took_ms:,.0f}", "seconds": f"{self.took_ms / 1000:,.0f}"}
        return tr(self.name, **fill), tr(self.details, **fill) if self.details else ""


SERVICE_WORDS = {"reput": words("dispatch")}
"""Clearer words for RocketMQ's names of services."""
Floats = npt.NDArray[np.float64]
Files = tuple[tuple[int, int, str], ...]
"""(start, end, name) of each file of the log, in the order of their starts."""
GAP_KEYS = ("commit", "flush", "dispatch")


class LiveHistory:
    """Positions over time. :meth:`add` fills it; plots, slider and lists read it."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.base: int | None = None
        self.positions = {key: PeakSeries(capacity) for key in KEYS if key != "checkpoint"}
        self.gaps = {key: PeakSeries(capacity) for key in GAP_KEYS}
        self.flush_ms = PeakSeries(capacity)
        self.flush_bytes = PeakSeries(capacity)
        self.put_rate = PeakSeries(capacity)
        self.write_rate = PeakSeries(capacity)
        self.rolls: deque[float] = deque(maxlen=MAX_MARKS)
        self.marks: deque[Mark] = deque(maxlen=MAX_MARKS)
        self.last: PositionReading | None = None
        self.breaks: deque[tuple[float, float]] = deque(maxlen=MAX_BREAKS)
        """(start, end) in s of the times without readings. Nothing is drawn there."""
        self._pause = 0
        self._engine_reported = False
        self._rows = RowRing(2 + len(KEYS), capacity)
        self._numbers = itertools.count(1)
        self._over: set[str] = set()
        self._recent: deque[tuple[int, int, int]] = deque()
        self._paused: frozenset[str] = frozenset()

    # ---- filling -----------------------------------------------------------------------------------------------------

    def add(self, reading: PositionReading) -> list[Mark]:
        """Add a reading and return its new marks."""
        previous, self.last = self.last, reading
        seconds = reading.time_ms / 1000
        self._break_between(previous, reading)
        if self.base is None:
            self.base = reading.offset("wrote") or 0
        for key, series in self.positions.items():
            offset = reading.offset(key)
            series.append(seconds, None if offset is None else offset - self.base)
        self._engine_reported = self._engine_reported or reading.lab
        gaps = gaps_of(reading)
        for key, series in self.gaps.items():
            # The engine reports what waits for a flush now; the checkpoint knows only an older state. Switching from
            # one to the other would draw a jump.
            unknown = key == "flush" and self._engine_reported and not reading.lab
            series.append(seconds, None if unknown else getattr(gaps, key))
        self._rows.append(
            [
                reading.time_ms,
                reading.units if reading.units is not None else UNKNOWN,
                *(UNKNOWN if o is None else o for o in reading.offsets()),
            ]
        )
        self._add_rates(reading)
        for flush in reading.flushes:
            self.flush_ms.append(flush.time_ms / 1000, flush.took_ms)
            self.flush_bytes.append(flush.time_ms / 1000, flush.bytes)
        marks = list(self._marks_of(previous, reading))
        self.marks.extend(marks)
        return marks

    def _break_between(self, previous: PositionReading | None, reading: PositionReading) -> None:
        """Break the series after a long time without readings, and where files replace the engine as the source."""
        if previous is None:
            return
        pause = reading.time_ms - previous.time_ms
        if pause > max(LONG_PAUSE, USUAL_PAUSES * self._pause):
            self.breaks.append((previous.time_ms / 1000, reading.time_ms / 1000))
            self._recent.clear()
        elif previous.lab != reading.lab:
            self._recent.clear()
        self._pause = max(0, pause)

    def sampled_at(self, time: float) -> bool:
        """Return True if there is a reading around ``time`` s."""
        return not any(begin < time < end for begin, end in self.breaks)

    def with_gaps(self, xs: Floats, ys: Floats) -> tuple[Floats, Floats]:
        """Return a curve with gaps where there are no samples; ``xs`` in s since the epoch, in order."""
        for begin, _ in self.breaks:
            index = int(np.searchsorted(xs, begin, "right"))
            if 0 < index < len(xs):
                xs, ys = np.insert(xs, index, min(begin, xs[index])), np.insert(ys, index, np.nan)
        return xs, ys

    def note(self, shape: str, name: str, details: str = "", value: int | str = 0, *, time_ms: int) -> None:
        """Mark an action on the store at ``time_ms``."""
        self.marks.append(self._mark(time_ms, shape, name, details, value))

    def _add_rates(self, reading: PositionReading) -> None:
        wrote, puts = reading.offset("wrote") or 0, reading.puts
        recent = self._recent
        recent.append((reading.time_ms, wrote, puts or 0))
        while len(recent) > 2 and reading.time_ms - recent[1][0] >= RATE_WINDOW_MS:
            recent.popleft()
        oldest = recent[0]
        span = (reading.time_ms - oldest[0]) / 1000
        if span <= 0:
            return
        self.write_rate.append(reading.time_ms / 1000, max(0, wrote - oldest[1]) / span)
        self.put_rate.append(reading.time_ms / 1000, None if puts is None else max(0, puts - oldest[2]) / span)

    def _marks_of(self, previous: PositionReading | None, reading: PositionReading) -> Iterator[Mark]:
        if previous is not None:
            reached, wrote = previous.offset("wrote") or 0, reading.offset("wrote") or 0
            known_starts = {start for start, _, _ in _behind(previous.files, reached)}
            for start, end, name in reversed(list(_behind(reading.files, reached))):
                if reached <= start < wrote and start:
                    self.rolls.append(reading.time_ms / 1000)
                    yield self._mark(reading.time_ms, "note", words("roll"), words("into {value}"), name)
                elif start not in known_starts and end > reached:
                    yield self._mark(
                        reading.time_ms, "chat", words("file made"), words("{value}, ahead of need"), name, up=False
                    )
            for start in _gone(previous.files, reading.files):
                yield self._mark(reading.time_ms, "note", words("file deleted"), "{value}", f"{start:020d}")
            if wrote < reached and previous.lab == reading.lab:  # files may tell more than a sample
                yield self._mark(
                    reading.time_ms, "warn", words("log is shorter"), words("{value} less than before"), reached - wrote
                )
            if previous.live != reading.live and not reading.lab and not previous.lab:
                name = words("broker started") if reading.live else words("broker stopped")
                yield self._mark(reading.time_ms, "live" if reading.live else "warn", name)
            now, then = _time_of(reading), _time_of(previous)
            if now != then and now:
                yield self._mark(reading.time_ms, "ok", words("checkpoint"), words("written"), up=False)
        yield from self._services(reading)
        yield from self._alarms(reading)
        for flush in reading.flushes:
            if flush.took_ms >= LATE_FLUSH:
                yield self._mark(
                    flush.time_ms,
                    "warn",
                    words("flush"),
                    words("{value} in {took} ms"),
                    flush.bytes,
                    up=False,
                    took_ms=flush.took_ms,
                )

    def _services(self, reading: PositionReading) -> Iterator[Mark]:
        paused = frozenset(name for name, service in reading.services.items() if service.paused)
        for name in sorted(paused - self._paused):
            yield self._mark(reading.time_ms, "warn", words("{value} paused"), words("by hand"), name)
        for name in sorted(self._paused - paused):
            yield self._mark(reading.time_ms, "ok", words("{value} continues"), "", name)
        self._paused = paused

    def _alarms(self, reading: PositionReading) -> Iterator[Mark]:
        """Yield a mark for each limit that is exceeded now, and one when the value falls to half of the limit again."""
        gaps, over = gaps_of(reading), words("over {value}")
        limits = [(words("dispatch behind"), gaps.dispatch, DISPATCH_ALARM, over, words("dispatch catches up"))]
        if reading.lab:
            limits.append((words("flush late"), gaps.flush, FLUSH_ALARM, over, words("flush caught up")))
        else:
            old = words("{seconds} s behind the last message")
            limits.append(
                (words("checkpoint is old"), checkpoint_age(reading), CHECKPOINT_ALARM, old, words("checkpoint is new"))
            )
        for name, value, limit, details, back in limits:
            if value is not None and value > limit and name not in self._over:
                self._over.add(name)
                yield self._mark(reading.time_ms, "warn", name, details, limit, took_ms=value)
            elif value is not None and value <= limit // 2 and name in self._over:
                self._over.discard(name)
                yield self._mark(reading.time_ms, "ok", back)

    @property
    def over(self) -> frozenset[str]:
        """Names of the limits that are exceeded now."""
        return frozenset(self._over)

    def _mark(
        self,
        time_ms: int,
        shape: str,
        name: str,
        details: str = "",
        value: int | str = 0,
        *,
        up: bool = True,
        took_ms: float = 0.0,
    ) -> Mark:
        return Mark(next(self._numbers), time_ms, shape, name, details, value, up, took_ms)

    # ---- reading -----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def span(self) -> tuple[int, int]:
        """First and last time (ms) of the history; (0, 0) before the first reading."""
        rows = self._rows.rows
        return (int(rows[0, 0]), int(rows[-1, 0])) if len(rows) else (0, 0)

    def reading_at(self, time: int) -> PositionReading | None:
        """Return the positions as they were at ``time`` ms, with the reasons of the last reading."""
        row, newest = self._rows.at(time), self.last
        if row is None or newest is None:
            return None
        time_ms, units, *offsets = (int(value) for value in row)
        offsets_by_key = dict(zip(KEYS, (None if o == UNKNOWN else o for o in offsets), strict=True))
        positions_by_key = {
            key: _known(newest.position(key), offsets_by_key[key]) for key in KEYS if key != "checkpoint"
        }
        checkpoint = {"physicMsgTimestamp": _known(newest.position("checkpoint"), offsets_by_key["checkpoint"])}
        positions = Positions(checkpoint=checkpoint, epochs=newest.positions.epochs, **positions_by_key)
        wrote = offsets_by_key["wrote"] or 0
        files = tuple(file for file in newest.files if file[0] <= wrote) or newest.files
        return PositionReading(
            positions, files, (), time_ms, newest.live, newest.lab, newest.abort, None if units == UNKNOWN else units
        )

    def held_rows(self) -> tuple[npt.NDArray[np.int64], int]:
        """Return a copy of all rows (ms, messages, offsets of :data:`KEYS`), and the value that stands for unknown."""
        return self._rows.rows.copy(), UNKNOWN

    def rate(self, key: str, reading: PositionReading) -> float | None:
        """Return the bytes a second by which a position moved in the second before ``reading``; None if unknown."""
        row, now = self._rows.at(reading.time_ms - RATE_WINDOW_MS), reading.offset(key)
        if row is None or now is None:
            return None
        then, old_offset = int(row[0]), int(row[2 + KEYS.index(key)])
        if old_offset == UNKNOWN or reading.time_ms - then < RATE_WINDOW_MS // 4:
            return None
        return (now - old_offset) * 1000 / (reading.time_ms - then)

    def unit_size(self) -> float | None:
        """Return the average bytes of a message since the first reading; None if there were too few."""
        rows = self._rows.rows
        if len(rows) < 2 or UNKNOWN in (rows[0, 1], rows[-1, 1]):
            return None
        column = 2 + KEYS.index("wrote")
        units, size = int(rows[-1, 1] - rows[0, 1]), int(rows[-1, column] - rows[0, column])
        return size / units if units > 0 and size > 0 else None


def _behind(files: Files, offset: int) -> Iterator[tuple[int, int, str]]:
    """Yield the files that end behind ``offset``, the last one first."""
    return itertools.takewhile(lambda file: file[1] > offset, reversed(files))


def _gone(old_files: Files, new_files: Files) -> list[int]:
    """Return the starts of deleted files. Compares only both ends: a thousand files that stay cost two comparisons."""
    if old_files[:1] == new_files[:1] and old_files[-1:] == new_files[len(old_files) - 1 : len(old_files)]:
        return []
    return sorted({start for start, _, _ in old_files} - {start for start, _, _ in new_files})


def checkpoint_age(reading: PositionReading) -> int | None:
    """Return the ms by which the checkpoint is behind the last message; None if it is unknown or nothing is written."""
    stored = reading.heads[-1][0] if reading.heads else None
    time = _time_of(reading)
    return max(0, stored - time) if reading.live and stored and time else None


def _time_of(reading: PositionReading) -> int:
    return reading.position("checkpoint").timestamp or 0


def _known(position: Position, offset: int | None) -> Position:
    if offset is None:
        return Position(None, why=position.why or "it was not known then")
    return Position(offset, position.source or "as it was then", timestamp=position.timestamp)


def fill(history: LiveHistory, readings: Sequence[PositionReading]) -> LiveHistory:
    """Add ``readings`` to ``history`` and return it."""
    for reading in readings:
        history.add(reading)
    return history


__all__ = ["Flush", "LiveHistory", "Mark", "Service", "checkpoint_age", "fill"]
