"""Positions of the open store, ten times a second while it is written.

They come from its files or, for a store of the lab, from the engine that writes it. Views connect to
:attr:`TailWatch.sampled` and need not know which. A separate thread takes a few short reads at a time; a slow sample is
followed by a long pause.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from engine.codec.message import Unit
from engine.errors import StoreError
from engine.inspection.positions import Position, Positions
from engine.inspection.tail import StoreTail
from viewer.look.assets import words
from viewer.runtime.live_feed import HistoryFeed
from viewer.runtime.loop_calls import run_in
from viewer.runtime.position_reading import Flush, PositionReading, Service
from viewer.runtime.priority import stand_back

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from engine.lab.samples import PositionSample
    from engine.store.positions import Positions as Told
    from viewer.runtime.lab_session import LabSession
    from viewer.runtime.live_history import LiveHistory
    from viewer.runtime.store_session import StoreSession

EVERY_MS = 100
REST_MS = 1000
"""Ms between two samples of a store that is not written."""
LIVE_PERIOD_S = 30.0
"""Seconds without growth after which a store without a broker counts as idle again."""
SHARE = 25
"""Minimum pause between samples, as a multiple of the processor time of a sample."""
MAX_FILE_TIMES = 400
"""Maximum number of files whose first unit is read for its time; of more files every n-th is read."""


class TailWatch(QObject):
    """Emits ``sampled(PositionReading)`` and, if log, queues or index grew or the log was cut, ``moved()``."""

    sampled = Signal(object)
    moved = Signal()
    markAdded = Signal(object)
    """A :class:`~viewer.runtime.live_history.Mark` that the newest sample added."""

    def __init__(self, session: StoreSession, parent: QObject) -> None:
        super().__init__(parent)
        self._session = session
        self.tail = StoreTail(session.snapshot)
        self.last: PositionReading | None = None
        self._feed = HistoryFeed(session.path.absolute())
        self._pool = ThreadPoolExecutor(1, "tail")
        self._closed = self._reading = False
        self._heads: dict[int, tuple[int, int]] = {}
        self._grew = -LIVE_PERIOD_S
        self._places: tuple[int | None, ...] = ()
        self._sample: PositionSample | None = None
        self._flushes: list[Flush] = []
        self._lab: LabSession | None = None
        self._timer = QTimer(self, interval=EVERY_MS, singleShot=True)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self.take_reading)

    @property
    def history(self) -> LiveHistory:
        """Readings since the store is live or since a view first asked for them, shared by all views and windows."""
        if not self._feed.begun and self.last is not None:
            self._feed.add(self.last)
        return self._feed.history

    @property
    def live(self) -> bool:
        """True if a broker writes the store, or did a moment ago."""
        return self.last is not None and (self.last.live or time.monotonic() - self._grew < LIVE_PERIOD_S)

    def start(self) -> None:
        """Start taking readings."""
        self._timer.start()

    def read_anew(self) -> None:
        """Read from the session's newest snapshot from now on."""
        self.tail = StoreTail(self._session.snapshot)
        self._heads = {}

    def close(self) -> None:
        """Stop; waits for a reading in progress, so that it reads no closed file."""
        self._closed = True
        self._feed.close()
        self._timer.stop()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def take_reading(self) -> None:
        """Take one reading, off the loop."""
        if self._closed or self._reading:
            return
        self._reading = True
        self._listen_to_the_lab()
        run_in(self._pool, self._read, self._done)

    def _read(self) -> tuple[PositionReading, float]:
        begun = time.thread_time()
        positions = self.tail.read_positions()
        store = self._session.snapshot
        files = tuple((f.start_offset, f.end_offset, f.name) for f in store.log.files)
        heads = self._heads_of(store, positions.wrote.offset or 0)
        now = round(time.time() * 1000)
        reading = PositionReading(
            positions, files, heads, now, self.tail.held, False, self.tail.abort, self.tail.entries
        )
        return reading, time.thread_time() - begun

    def _heads_of(self, store: StoreSnapshot, end: int) -> tuple[tuple[int, int], ...]:
        """Return the store times of first units, each read only once per file, and of the last unit."""
        files = [f for f in store.log.files if f.start_offset < end]
        heads = []
        for file in files[:: max(1, len(files) // MAX_FILE_TIMES)]:
            head = self._heads.get(file.start_offset)
            if head is None:
                unit = store.log.unit_at(file.start_offset, crc=False)
                if not isinstance(unit, Unit):
                    continue
                head = self._heads[file.start_offset] = (unit.store_timestamp, unit.offset)
            heads.append(head)
        last_stored = self.tail.last_stored()
        return (*heads, last_stored) if last_stored is not None else tuple(heads)

    def _done(self, answer: tuple[PositionReading, float] | None, error: Exception | None) -> None:
        self._reading = False
        if self._closed:
            return
        self._session.note_unread()
        pause = REST_MS
        if answer is not None:
            reading, seconds = answer
            reading = self._with_lab(reading)
            self.last = reading
            old_places, self._places = self._places, _places(reading, all_queues=self.tail.whole)
            moved = any(old != new for old, new in zip(old_places, self._places, strict=False))
            if moved:
                self._grew = time.monotonic()
                if reading.live and not reading.lab:
                    stand_back()
            if self.live or reading.lab:
                pause = max(EVERY_MS, round(SHARE * 1000 * seconds))
            if self.live or reading.lab or self._feed.begun:
                for mark in self._feed.add(reading):
                    self.markAdded.emit(mark)
            self.sampled.emit(reading)
            if moved:
                self.moved.emit()
        elif not isinstance(error, StoreError | OSError):
            self._session.jobs.failed.emit(error)
        self._timer.start(pause)

    # ---- a store of the lab ------------------------------------------------------------------------------------------

    def _listen_to_the_lab(self) -> None:
        from viewer.runtime.lab_session import lab_of

        lab = lab_of(self._session.path)
        if lab is self._lab:
            return
        if self._lab is not None:
            self._lab.disconnect(self)
        self._lab, self._sample = lab, None
        self._flushes.clear()
        if lab is not None:
            lab.sampled.connect(self._sampled)

    def _sampled(self, sample: PositionSample) -> None:
        self._sample = sample
        self._flushes += [Flush(f.at_ms, f.to_offset, f.bytes, f.took_ms, f.waiters) for f in sample.flushes]

    def _with_lab(self, reading: PositionReading) -> PositionReading:
        """Return ``reading`` with the engine's own positions in place of those from files."""
        sample = self._sample
        if self._lab is None:
            return reading
        if sample is None or not self._lab.alive or self._lab.without_power:
            return replace(reading, live=False)  # no broker: our own engine is down, or about to run
        flushes, self._flushes = tuple(self._flushes), []
        services = {name: Service(service.paused, service.waiting_bytes) for name, service in sample.services.items()}
        return PositionReading(
            positions_of_sample(sample, reading.positions),
            reading.files,
            reading.heads,
            sample.at_ms,
            True,
            True,
            reading.abort,
            reading.units,
            flushes,
            services,
            dict(sample.statuses),
        )


def positions_of_sample(sample: PositionSample, files: Positions) -> Positions:
    """Return the nine positions as the engine reports them. Positions from files are limited to what the engine
    reports.
    """
    engine, source = sample.positions, words("as the engine reports")

    def position_or_reason(offset: int, why: str) -> Position:
        return Position(offset, source) if offset >= 0 else Position(None, why=why)

    return Positions(
        min=position_or_reason(engine.min, "the commit log has no files"),
        wrote=Position(engine.wrote, source),
        committed=Position(engine.committed, source),
        flushed=Position(engine.flushed, source),
        confirm=Position(engine.confirm, source),
        dispatched=Position(engine.dispatched, source),
        queue_max=position_or_reason(engine.queue_max, "no consume queue holds an entry"),
        index_end=_index_end(engine, files.index_end),
        checkpoint=_checkpoint(engine, files.checkpoint),
    )


def _index_end(engine: Told, file: Position) -> Position:
    """Return the end of the index at the time of the sample.

    The engine reports the start of the last indexed unit. A file shows its end, but a moment later: it counts only if
    that unit had been dispatched at the time of the sample.
    """
    if engine.index_end < 0:
        return file if file.offset is None else Position(None, why="no index file holds an entry")
    if file.offset is not None and engine.index_end <= file.offset <= engine.dispatched:
        return file
    return Position(engine.index_end, words("start of the last unit that the index knows, as the engine reports"))


def _checkpoint(engine: Told, files: dict[str, Position]) -> dict[str, Position]:
    """Return the fields of the checkpoint page, limited to what the engine reports.

    The page was read, and its times were searched in the log, a moment after the sample.
    """
    sample = engine.checkpoint
    ahead = {
        "physicMsgTimestamp": (sample.physic_msg_timestamp, engine.flushed),
        "logicsMsgTimestamp": (sample.logics_msg_timestamp, engine.dispatched),
        "indexMsgTimestamp": (sample.index_msg_timestamp, engine.dispatched),
        "masterFlushedOffset": (0, engine.wrote),
        "confirmPhyOffset": (0, engine.confirm),
        "logicsPhysicalOffset": (0, engine.dispatched),
    }
    limited = {}
    for name, position in files.items():
        newest, max_offset = ahead.get(name, (0, engine.wrote))
        offset = position.offset if position.offset is None else min(position.offset, max_offset)
        time = position.timestamp if position.timestamp is None or newest <= 0 else min(position.timestamp, newest)
        limited[name] = replace(position, offset=offset, timestamp=time)
    return limited


def _places(reading: PositionReading, *, all_queues: bool) -> tuple[int | None, ...]:
    """Return the positions whose growth counts. Queues only if all were read: else newly read queues would count as
    growth.
    """
    positions = reading.positions
    log = (positions.min.offset, positions.wrote.offset, positions.index_end.offset)
    return (*log, positions.queue_max.offset, reading.units) if all_queues else log
