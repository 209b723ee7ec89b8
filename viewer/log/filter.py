"""The run of a filter over the log: matches arrive while it runs; it can be stopped and continued."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from engine.errors import StoreError, UsageError
from viewer.log.filter_work import Hits, ScanEnd, first_look
from viewer.log.log_model import LogModel
from viewer.log.rows import LogSource
from viewer.look.assets import tr, tr_plural
from viewer.look.engine_words import engine_words
from viewer.look.formats import size
from viewer.runtime.jobs import Cancelled
from viewer.runtime.store_session import StoreSession
from viewer.widgets.record_state import State

MATCHES_PER_ROUND = 5000
"""Matches after which a filter waits for a word to go on."""
WORK = "viewer.log.filter_work:scan"
FIRST_BYTES = 2 << 20
"""Bytes that are searched before the worker is used, so that the first matches do not wait for the process."""


class LogFilter(QObject):
    """Runs the filter of the log view; the hits are in the model.

    Emits ``filterStarted(source)`` with the rows of a new filter, ``hitsAdded()`` after new hits, ``stateChanged(state,
    sentence)``, and ``cleared()`` when the filter was removed.
    """

    filterStarted = Signal(object)
    hitsAdded = Signal()
    stateChanged = Signal(object, str)
    cleared = Signal()

    def __init__(self, model: LogModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.session: StoreSession | None = None
        self._state = model.filter
        self._generation = 0
        self._now = 0
        self._task: asyncio.Task[object] | None = None

    def begin(self, text: str, log: LogSource) -> None:
        """Look for units that match ``text`` from the beginning of the log."""
        self.stop(quiet=True)
        if self.session is None:
            return
        self._now = time.time_ns() // 1_000_000
        self.filterStarted.emit(self._state.begin(text, log))
        self._run(MATCHES_PER_ROUND)

    def go_on(self) -> None:
        """Continue where it stopped."""
        state = self._state
        if state.source is not None and not state.running and not state.complete:
            self._run(MATCHES_PER_ROUND)

    def stop(self, *, quiet: bool = False) -> None:
        """Stop the search; its matches stay."""
        self._generation += 1
        if self._task is not None:
            self._task.cancel()
            self._task = None
        was, self._state.running = self._state.running, False
        if was and not quiet:
            self._tell()

    def forget(self) -> None:
        """Drop the filter."""
        self.stop(quiet=True)
        self._state.forget()

    def _run(self, max_matches: int) -> None:
        assert self.session is not None
        self._generation += 1
        self._state.running = True
        self._tell()
        self._task = self.session.jobs.start(self._scan(self._generation, max_matches))

    async def _scan(self, generation: int, max_matches: int) -> None:
        session, state, source = self.session, self._state, self._state.source
        assert session is not None
        assert source is not None
        begun, seconds_before, state.note = time.monotonic(), state.spent, ""

        def take_note(words: str) -> None:
            if generation == self._generation and words != state.note:
                state.note = words
                self._tell()

        def hits(batch: Hits) -> None:
            if generation != self._generation:
                return
            state.note = ""
            source.offsets.extend(batch.offsets)
            state.looked = max(state.looked, batch.looked)
            state.spent = seconds_before + time.monotonic() - begun
            if batch.offsets:
                self.hitsAdded.emit()
            self._tell()

        try:
            self._require_bodies(state.text)
            if state.looked == state.start and await self._look_first(generation, hits):
                ended = ScanEnd(state.looked, 0, True)
            else:
                ended = await session.jobs.in_worker(
                    tr("Filtering the log"),
                    WORK,
                    session.path,
                    session.config,
                    state.text,
                    self._now,
                    state.looked,
                    state.end,
                    max_matches,
                    on_items=hits,
                    on_note=take_note,
                )
        except (Cancelled, asyncio.CancelledError):
            ended = ScanEnd(state.looked, 0, False)
        except (StoreError, OSError, RuntimeError) as error:
            if generation == self._generation:
                state.running = False
                failure = State("error", str(error), steps=((tr("Try again"), self.go_on),))
                self.stateChanged.emit(failure, engine_words(str(error)))
            return
        if generation != self._generation:
            return
        state.looked, state.complete, state.running = max(state.looked, ended.looked), ended.complete, False
        state.spent = seconds_before + time.monotonic() - begun
        self.hitsAdded.emit()
        self._tell()

    def _require_bodies(self, text: str) -> None:
        """Raise :class:`UsageError` if the filter needs bodies, and a capsule is open; or their fields, and there is no
        rule.
        """
        from engine.query import parse

        session, unit_filter = self.session, parse(text)
        if session is None or not unit_filter.reads_bodies:
            return
        session.snapshot.require_bodies()
        if unit_filter.body_fields and not session.decoding_rules:
            name = min(unit_filter.body_fields)
            command = tr("Decode bodies of this topic as…")
            raise UsageError(
                tr("{name}: choose first how bodies are decoded (View, “{command}”).", name=name, command=command)
            )

    async def _look_first(self, generation: int, hits: Callable[[Hits], None]) -> bool:
        """Search the first bytes at once, in a thread; True if that was the whole log."""
        session, start = self.session, self._state.start
        assert session is not None
        log, text, now = session.snapshot.log, self._state.text, self._now
        share = FIRST_BYTES // 4 if session.jobs.worker.alive else FIRST_BYTES
        first_hits, complete = await session.jobs.quick(lambda: first_look(log, text, now, start, start + share))
        hits(first_hits)
        return complete and generation == self._generation

    # ---- words -------------------------------------------------------------------------------------------------------

    def sentence(self) -> str:
        """``1,204 units match · scanned 38.0 of 38.0 GiB in 4.1 s · complete``."""
        return self._state.sentence(self.session.unread.edge if self.session is not None else tr("complete"))

    def _tell(self) -> None:
        now, count = self._state, self._state.match_count
        total_bytes = max(1, now.whole)
        if now.running:
            rate = now.done / now.spent if now.spent > 0.2 else 0
            text = tr_plural(
                "{n:,} match · {done} of {all}",
                "{n:,} matches · {done} of {all}",
                n=count,
                done=now.scanned,
                all=size(total_bytes),
            )
            if now.note:
                text += f" · {now.note}"
            elif rate > 0:
                text += " · " + tr("{rate}/s", rate=size(rate))
            state = State("loading", text, now.done / total_bytes, ((tr("Stop"), self.stop),))
        elif now.complete and not count:
            text = tr("No unit in {all} matches this filter.", all=size(total_bytes))
            state = State("empty", text, steps=((tr("Clear the filter"), self.cleared.emit),))
        elif now.complete:
            self.stateChanged.emit(None, self.sentence())
            return
        else:
            outcome = (
                tr_plural("First {n:,} match.", "First {n:,} matches.", n=count)
                if count >= MATCHES_PER_ROUND
                else tr_plural("Stopped at {n:,} match.", "Stopped at {n:,} matches.", n=count)
            )
            text = outcome + " " + tr("{done} of {all} were looked at.", done=now.scanned, all=size(total_bytes))
            state = State("cut", text, steps=((tr("Go on"), self.go_on),))
        self.stateChanged.emit(state, self.sentence())
