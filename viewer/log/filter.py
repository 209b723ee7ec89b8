"""A filter on its way through the log: hits come while it runs, it can be stopped and goes on where it stopped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from engine.errors import StoreError
from viewer.log.filter_work import Hits, Scanned, first_look
from viewer.log.rows import LogSource, MatchSource
from viewer.look.assets import tr
from viewer.look.formats import size
from viewer.runtime.jobs import Cancelled
from viewer.runtime.store_session import StoreSession
from viewer.widgets.record_state import State

AT_ONCE = 5000
"""Matches after which a filter waits for a word to go on."""
WORK = "viewer.log.filter_work:scan"
FIRST_BYTES = 2 << 20
"""Bytes that are looked at before the worker process is asked: the first hits must not wait for it."""


class LogFilter(QObject):
    """``began(source)`` with the rows of a new filter, ``grew()`` as hits come, ``told(state, sentence)``."""

    began = Signal(object)
    grew = Signal()
    told = Signal(object, str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.session: StoreSession | None = None
        self.text = ""
        self.source: MatchSource | None = None
        self.running = False
        self.complete = False
        self._turn = 0
        self._looked = 0
        self._start = 0
        self._end = 0
        self._spent = 0.0
        self._now = 0
        self._task: asyncio.Task[object] | None = None
        self._clear = lambda: None

    def begin(self, text: str, log: LogSource) -> None:
        """Look for units that match ``text`` from the beginning of the log."""
        self.stop(quiet=True)
        if self.session is None:
            return
        self.text = text
        self.source = MatchSource(log)
        self.complete = False
        self._spent = 0.0
        self._now = time.time_ns() // 1_000_000
        self._start = self._looked = log.start
        self._end = max(log.end, log.start)
        self.began.emit(self.source)
        self._run(AT_ONCE)

    def go_on(self) -> None:
        """Look further from where it stopped."""
        if self.source is not None and not self.running and not self.complete:
            self._run(AT_ONCE)

    def stop(self, *, quiet: bool = False) -> None:
        """Stop looking; what was found stays."""
        self._turn += 1
        if self._task is not None:
            self._task.cancel()
            self._task = None
        was, self.running = self.running, False
        if was and not quiet:
            self._tell()

    def forget(self) -> None:
        """No filter any more."""
        self.stop(quiet=True)
        self.text, self.source, self.complete = "", None, False

    def _run(self, most: int) -> None:
        assert self.session is not None
        self._turn += 1
        self.running = True
        self._tell()
        self._task = self.session.jobs.start(self._scan(self._turn, most))

    async def _scan(self, turn: int, most: int) -> None:
        session, source = self.session, self.source
        assert session is not None
        assert source is not None
        begun, before = time.monotonic(), self._spent

        def hits(found: Hits) -> None:
            if turn != self._turn:
                return
            source.offsets.extend(found.offsets)
            self._looked = max(self._looked, found.looked)
            self._spent = before + time.monotonic() - begun
            if found.offsets:
                self.grew.emit()
            self._tell()

        try:
            if self._looked == self._start and await self._look_first(turn, hits):
                ended = Scanned(self._looked, 0, True)
            else:
                ended = await session.jobs.in_worker(
                    tr("Filtering the log"),
                    WORK,
                    session.path,
                    session.config,
                    self.text,
                    self._now,
                    self._looked,
                    self._end,
                    most,
                    on_items=hits,
                )
        except (Cancelled, asyncio.CancelledError):
            ended = Scanned(self._looked, 0, False)
        except (StoreError, OSError, RuntimeError) as error:
            if turn == self._turn:
                self.running = False
                self.told.emit(State("error", str(error), steps=((tr("Try again"), self.go_on),)), str(error))
            return
        if turn != self._turn:
            return
        self._looked, self.complete, self.running = max(self._looked, ended.looked), ended.complete, False
        self._spent = before + time.monotonic() - begun
        self.grew.emit()
        self._tell()

    async def _look_first(self, turn: int, hits: Callable[[Hits], None]) -> bool:
        """The first bytes at once, in a thread; True where that was the whole log."""
        session, start = self.session, self._start
        assert session is not None
        log, text, now = session.snapshot.log, self.text, self._now
        share = FIRST_BYTES // 4 if session.jobs.worker.alive else FIRST_BYTES
        found, complete = await session.jobs.quick(lambda: first_look(log, text, now, start, start + share))
        hits(found)
        return complete and turn == self._turn

    # ---- words -------------------------------------------------------------------------------------------------------

    def sentence(self) -> str:
        """``1,204 units match · scanned 38.0 of 38.0 GiB in 4.1 s · complete``."""
        if self.source is None:
            return ""
        count = len(self.source.offsets)
        words = [tr("{count:,} units match", count=count) if count != 1 else tr("1 unit matches"), self._scanned()]
        if self.complete:
            words[-1] += " " + tr("in {seconds:.1f} s", seconds=self._spent)
            words.append(self.session.unread.edge if self.session is not None else tr("complete"))
        return " · ".join(words)

    def _scanned(self) -> str:
        whole = max(self._end, self._looked) - self._start
        return tr("scanned {done} of {all}", done=_of(self._looked - self._start, whole), all=size(whole))

    def _tell(self) -> None:
        count = len(self.source.offsets) if self.source is not None else 0
        whole = max(1, max(self._end, self._looked) - self._start)
        done = _of(self._looked - self._start, whole)
        if self.running:
            rate = (self._looked - self._start) / self._spent if self._spent > 0.2 else 0
            text = tr("{count:,} matches · {done} of {all}", count=count, done=done, all=size(whole))
            if rate > 0:
                text += " · " + tr("{rate}/s", rate=size(rate))
            state = State("loading", text, (self._looked - self._start) / whole, ((tr("Stop"), self.stop),))
        elif self.complete and not count:
            text = tr("No unit in {all} matches this filter.", all=size(whole))
            state = State("empty", text, steps=((tr("Clear the filter"), self._clear),))
        elif self.complete:
            self.told.emit(None, self.sentence())
            return
        else:
            said = tr("First {count:,} matches." if count >= AT_ONCE else "Stopped at {count:,} matches.", count=count)
            text = said + " " + tr("{done} of {all} were looked at.", done=done, all=size(whole))
            state = State("cut", text, steps=((tr("Go on"), self.go_on),))
        self.told.emit(state, self.sentence())

    def on_clear(self, deed: object) -> None:
        """What "Clear the filter" does."""
        self._clear = deed  # type: ignore[assignment]


def _of(part: int, whole: int) -> str:
    """``21.4`` beside ``38.0 GiB``: the unit is said once where both share it."""
    mine, all_ = size(part), size(whole)
    return mine.split(" ")[0] if mine.split(" ")[1] == all_.split(" ")[1] else mine
