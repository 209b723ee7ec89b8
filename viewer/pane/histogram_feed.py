"""Fills a time histogram behind: read in the worker, under the filter in force, while the store grows, on request in
narrower bars.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from engine.errors import StoreError
from viewer.look.assets import tr
from viewer.look.engine_words import engine_words
from viewer.look.formats import size
from viewer.pane.histogram_model import HistogramModel, filter_term
from viewer.pane.time_histogram import TimeHistogram
from viewer.runtime.histogram_work import HistogramData, Range
from viewer.runtime.jobs import Cancelled
from viewer.runtime.settings import default_cache
from viewer.runtime.store_session import StoreSession
from viewer.runtime.worker import WorkerDied

WORK = "viewer.runtime.histogram_work:read"
FOLDER = "side-index"
MAX_LOG_BYTES = 8 << 30
"""Longer logs are read when the user asks for it."""
REST_MS = 5000
"""At least so long between two readings of a log that grows."""
SHARE = 20
"""And so many times what the last one took."""
IDLE_MS = 400
"""The first reading begins when the rows have come."""
MAX_SAVED = 8


class HistogramFeed(QObject):
    """Reads what ``strip`` shows. Emits ``termRequested(condition)`` for a range that was brushed."""

    termRequested = Signal(str)

    def __init__(self, strip: TimeHistogram) -> None:
        super().__init__(strip)
        self._strip, self._model = strip, strip.model
        self._session: StoreSession | None = None
        self._where: str | None = None
        self._generation = 0
        self._is_allowed = False
        """True if the user asked to read a long log."""
        self._is_stale = self._has_grown = False
        self._task: asyncio.Task[object] | None = None
        self._detail_task: asyncio.Task[object] | None = None
        self._saved: dict[str, HistogramData] = {}
        self._rest = QTimer(self, singleShot=True)
        self._rest.timeout.connect(self._grow)
        self._first = QTimer(self, singleShot=True, interval=IDLE_MS)
        self._first.timeout.connect(self._begin)
        strip.moved.connect(self._read_detail)
        strip.shown.connect(self._on_shown)
        strip.fillRequested.connect(self._fill)
        strip.rangeBrushed.connect(lambda begin, end: self.termRequested.emit(filter_term(begin, end)))

    @property
    def model(self) -> HistogramModel:
        return self._model

    @property
    def pending(self) -> bool:
        """True if the histogram will be read as soon as it may."""
        return self._first.isActive() and self._strip.isVisible()

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store, or none."""
        if self._session is not None:
            self._session.logGrown.disconnect(self._on_grown)
            self._session.replaced.disconnect(self._on_replaced)
        self._session, self._where, self._is_allowed = session, None, False
        self._saved = {}
        self._stop()
        self._model.clear()
        self._strip.look_again()
        if session is not None:
            session.logGrown.connect(self._on_grown)
            session.replaced.connect(self._on_replaced)

    def show(self, where: str) -> None:
        """Show the units that match ``where``; "": all."""
        if where == self._where:
            return
        self._where = where
        self._stop()
        self._model.clear()
        if where in self._saved:
            self._model.take(self._saved[where])
        self._strip.look_again()
        self._first.start()

    def show_words(self, words: str) -> None:
        """Show words instead of a histogram."""
        self._where = None
        self._stop()
        self._model.clear(words)
        self._strip.look_again()

    def pause(self) -> None:
        """Read no more until :meth:`show`; the bars stay."""
        self._where = None
        self._stop()
        self._model.is_filling = False

    def _stop(self) -> None:
        self._generation += 1
        self._is_stale = False
        self._first.stop()
        self._rest.stop()
        for task in (self._task, self._detail_task):
            if task is not None:
                task.cancel()
        self._task = self._detail_task = None

    # -- when to read

    def _on_shown(self) -> None:
        if self._is_stale:
            self._begin()

    def _on_replaced(self) -> None:
        where, self._where, self._saved = self._where, None, {}
        if where is not None:
            self.show(where)

    def _on_grown(self) -> None:
        self._has_grown = True
        if not self._rest.isActive():
            self._grow()

    def _grow(self) -> None:
        """Read what came, if a log without a filter has grown; a filter looks at what was there when it began."""
        if self._has_grown and self._where == "" and not self._first.isActive():
            self._begin()

    def _fill(self) -> None:
        """The user asks for it."""
        self._is_allowed = True
        self._begin()

    def _begin(self) -> None:
        session, where = self._session, self._where
        if session is None or where is None or self._task is not None:
            return
        if not self._strip.isVisible():
            self._is_stale = True
            return
        self._is_stale = self._has_grown = False
        total = session.snapshot.log.sequence.total_size
        if session.undecoded_log or not total:
            self._say(session.undecoded_log or tr("The log has no files."))
        elif total > MAX_LOG_BYTES and not self._is_allowed:
            self._say(tr("Enter or a click reads the log ({size}) for the histogram.", size=size(total)))
        else:
            self._task = session.jobs.start(self._read(session, where, self._generation))

    def _say(self, words: str) -> None:
        self._model.words = words
        self._strip.look_again()

    # -- reading

    def _cache(self, session: StoreSession) -> Path | None:
        """The folder of side indexes; None while the store is shown as patched."""
        return None if session.patches else default_cache() / FOLDER

    async def _read(self, session: StoreSession, where: str, generation: int) -> None:
        begun = time.monotonic()
        model = self._model
        model.is_filling = True
        if not model.overview.starts:
            self._say(tr("Reading the times of the messages"))

        def take(data: HistogramData) -> None:
            if generation == self._generation:
                model.take(data)
                model.words = tr("filling") if model.is_filling else ""
                self._strip.look_again()

        error_words = ""
        try:
            data: HistogramData | None = await session.jobs.in_worker(
                tr("Reading the time histogram"),
                WORK,
                session.path,
                session.config,
                where,
                time.time_ns() // 1_000_000,
                None,
                self._cache(session),
                on_items=take,
                behind=True,
            )
        except Cancelled:
            data = None
        except (StoreError, OSError, WorkerDied, RuntimeError) as error:
            data, error_words = None, engine_words(str(error))
        if generation != self._generation:
            return
        self._task, model.is_filling = None, False
        if data is not None:
            take(data)
            if data.is_complete:
                self._saved = {**dict(list(self._saved.items())[1 - MAX_SAVED :]), where: data}
            if not data.starts:
                self._say(tr("No message matches.") if where else tr("The log holds no unit yet."))
            self._read_detail()
        else:
            self._say(error_words or tr("stopped"))
        self._rest.start(max(REST_MS, round(SHARE * 1000 * (time.monotonic() - begun))))

    def _read_detail(self) -> None:
        """Read the part that is shown in narrower bars, if its bars are too wide."""
        session, where, part = self._session, self._where, self._model.missing_part()
        if self._detail_task is not None:
            self._detail_task.cancel()
            self._detail_task = None
        if session is not None and where is not None and part is not None:
            self._detail_task = session.jobs.start(self._detail(session, where, part, self._generation))

    async def _detail(self, session: StoreSession, where: str, part: Range, generation: int) -> None:
        try:
            data: HistogramData = await session.jobs.in_worker(
                tr("Reading the time histogram"),
                WORK,
                session.path,
                session.config,
                where,
                time.time_ns() // 1_000_000,
                part,
                self._cache(session),
                behind=True,
            )
        except (Cancelled, StoreError, OSError, WorkerDied, RuntimeError):
            return  # the wider bars stay
        if generation == self._generation and (data.is_complete or data.unread):
            self._model.take_detail(part, data)
            self._strip.look_again()
