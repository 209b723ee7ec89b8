"""Find in the log: go from the selected row to the next one that contains the text, within the rows of the filter.

The first mebibyte is searched at once; then the worker continues, with a progress bar and Stop. Hits are framed in the
bytes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from engine.errors import StoreError
from viewer.log.find_work import BODY, FindResult, Hits, find_near, find_near_back, spans_in
from viewer.log.log_model import LogModel
from viewer.log.unit_panes import UnitPanes
from viewer.look.assets import tr, tr_plural
from viewer.look.formats import size
from viewer.runtime.jobs import Cancelled
from viewer.widgets.find_line import FindLine
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_window import Bounds
from viewer.widgets.search_term import SearchTerm

if TYPE_CHECKING:
    from viewer.log.rows import LogRow
    from viewer.runtime.settings import Settings
    from viewer.runtime.store_session import StoreSession

WORK = "viewer.log.find_work:find"
ALL = "viewer.log.find_work:hits"
COUNTED_BYTES = 1 << 30
"""Maximum bytes of a log in which all hits are counted after the first one was found."""
NEAR = 1 << 20
"""Bytes that are searched before the worker is used."""


class LogFind(QObject):
    """The find line over one table of units: ``offsetRequested(offset)`` of a hit, ``statusText(sentence)``."""

    offsetRequested = Signal(object)
    statusText = Signal(str)

    def __init__(self, model: LogModel, table: RecordView, unit: UnitPanes) -> None:
        super().__init__(table)
        self._model, self._state, self._table, self._unit = model, model.find, table, unit
        self.line = FindLine(used=self._used)
        self.line.hide()
        self.session: StoreSession | None = None
        self.settings: Settings | None = None
        self._generation = 0
        self._task: asyncio.Task[object] | None = None
        self.line.hitRequested.connect(self.step)
        self.line.stopped.connect(self.stop)
        self.line.closed.connect(self.close)
        unit.loaded.connect(lambda loaded: self._frame(loaded.row))

    def set_session(self, session: StoreSession | None) -> None:
        """Another store, or none."""
        self.stop()
        self.session = session
        self.line.leave_span()
        self.line.say("")
        self.line.hide()

    def _used(self) -> Sequence[str]:
        return self.settings.sought if self.settings is not None else ()

    def commands(self) -> dict[str, Callable[[], object]]:
        """Open the line, next, previous."""
        return {
            "find.open": self.open,
            "find.next": lambda: self.step(1),
            "find.previous": lambda: self.step(-1),
        }

    def open(self) -> None:
        """Show the line and go there."""
        self.line.use_span(self._table)
        self.line.focus()

    def close(self) -> None:
        """Close the line. The hit stays selected."""
        self.stop()
        self.line.leave_span()
        self._state.sought = None
        self._unit.hex.set_hits(())
        self._table.setFocus()
        self.line.hide()

    def stop(self) -> None:
        """Stop looking."""
        self._generation += 1
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self._state.running:
            self._state.running = False
            self.line.set_running(False)
            self.line.say(tr("Stopped."), "warn")

    def step(self, step: int) -> None:
        """Go to the next hit (1) or the one before (−1)."""
        if self.line.isHidden() and not self.line.field.text():
            self.open()
            return
        self.line.show()
        self.line.use_span(self._table)
        sought, session = self.line.sought(), self.session
        if sought is None or session is None or self._model.log is None:
            return
        self.stop()
        if self.settings is not None:
            self.settings.remember_sought(sought.text)
        self._state.sought = sought
        self._state.running = True
        self.line.set_running(True)
        self.line.say(tr("Looking…"))
        self._task = session.jobs.start(self._look(self._generation, session, sought, step > 0))

    def jump(self, within: str, subject: str, forward: bool) -> None:
        """Go to the next or previous unit that matches the filter ``within``, whatever the search text is."""
        session, row = self.session, self._table.current_row()
        if session is None or self._model.log is None or row is None:
            return
        self.stop()
        within, span = self._model.without_ignored_rows(within), self._model.span
        generation, now = self._generation, time.time_ns() // 1_000_000
        offset = row.end if forward else row.offset

        async def work() -> None:
            try:
                hit = await _nearest(session, None, subject, within, now, offset, span, forward)
            except (Cancelled, asyncio.CancelledError):
                return
            except (StoreError, OSError, RuntimeError) as error:
                if generation == self._generation:
                    self._state.running = False
                    self.statusText.emit(str(error))
                return
            if generation != self._generation:
                return
            self._state.running = False
            if hit.offset is None or hit.offset == row.offset:
                self.statusText.emit(tr("Nothing else of {what} in the whole log.", what=subject))
                return
            self.offsetRequested.emit(hit.offset)
            direction = tr("Next of {what}", what=subject) if forward else tr("Previous of {what}", what=subject)
            self.statusText.emit(f"{direction} · {tr('continued from the other end')}" if hit.wrapped else direction)

        self._state.running = True
        self._task = session.jobs.start(work())

    # ---- below -------------------------------------------------------------------------------------------------------

    async def _look(self, generation: int, session: StoreSession, sought: SearchTerm, forward: bool) -> None:
        start, end = self._model.span
        row: LogRow | None = self._table.current_row()
        offset = min(max(self._state.at(row, start, sought, forward=forward), start), end)
        within = self._model.without_ignored_rows(self._model.filter.text)
        begun, now = time.monotonic(), time.time_ns() // 1_000_000
        if (span := self.line.span()) is not None:
            await self._look_inside(generation, session, sought, within, now, span, forward)
            return
        everything = (sought, within, start, end)
        counted = self._state.counted(everything)
        if counted is not None and counted.offsets:
            self._ended()
            self._tell_inside(counted, sought, forward, self._filter_words())
            return
        try:
            hit = await _nearest(session, sought, sought.text[:40], within, now, offset, (start, end), forward)
        except (Cancelled, asyncio.CancelledError):
            return
        except (StoreError, OSError, RuntimeError) as error:
            if generation == self._generation:
                self._ended()
                self.line.say(str(error), "error")
            return
        if generation == self._generation:
            self._ended()
            self._tell(hit, sought, end - start, time.monotonic() - begun)
            if hit.offset is not None and end - start <= COUNTED_BYTES:
                self._task = session.jobs.start(self._count(generation, session, everything, now))

    async def _count(
        self, generation: int, session: StoreSession, request: tuple[SearchTerm, str, int, int], now: int
    ) -> None:
        """Count all hits, and show the number of the selected one."""
        sought, within, first, last = request
        title = tr("Counting {text}", text=sought.text[:40])
        try:
            all_hits: Hits = await session.jobs.in_worker(
                title, ALL, session.path, session.config, sought, within, now, first, last, behind=True
            )
        except (Cancelled, asyncio.CancelledError, StoreError, OSError, RuntimeError):
            return  # the hit is shown; how many others there are is an addition
        if generation != self._generation or self._state.last_term != sought or self._state.hit not in all_hits.offsets:
            return
        self._state.keep(request, all_hits)
        number = all_hits.offsets.index(self._state.hit) + 1
        self.line.say(f"{_place_among(number, all_hits)} · {self.line.result.text()}", "ok")

    async def _look_inside(
        self,
        generation: int,
        session: StoreSession,
        sought: SearchTerm,
        within: str,
        now: int,
        span: Bounds,
        forward: bool,
    ) -> None:
        """Go to the next hit in the selected rows. All hits there are counted first, to show its number."""
        first_offset, last_offset = self._model.chosen_span(span) or span
        question = (sought, within, first_offset, last_offset)
        all_hits = self._state.counted(question)
        try:
            if all_hits is None:
                title = tr("Finding {text}", text=sought.text[:40])
                all_hits = await session.jobs.in_worker(
                    title, ALL, session.path, session.config, sought, within, now, first_offset, last_offset
                )
                self._state.keep(question, all_hits)
        except (Cancelled, asyncio.CancelledError):
            return
        except (StoreError, OSError, RuntimeError) as error:
            if generation == self._generation:
                self._ended()
                self.line.say(str(error), "error")
            return
        if generation == self._generation:
            self._ended()
            self._tell_inside(all_hits, sought, forward, tr("in the selection"))

    def _tell_inside(self, hits: Hits, sought: SearchTerm, forward: bool, where: str) -> None:
        """Select the hit and show its number, and that the search wrapped around if it did."""
        if not hits.offsets:
            self.line.say(f"{tr('Not found')} · {where}", "warn")
            return
        row = self._table.current_row()
        offset = row.offset if row is not None else hits.offsets[0]
        number, round_the_end = self._state.step(hits.offsets, offset, sought, forward=forward)
        hit = hits.offsets[number]
        parts = [
            _place_among(number + 1, hits),
            where,
            tr("Found at {offset:,}", offset=hit),
            tr("continued from the other end") if round_the_end else "",
        ]
        self.line.say(" · ".join(part for part in parts if part), "ok")
        self._show(hit)

    def _ended(self) -> None:
        self._state.running = False
        self._task = None
        self.line.set_running(False)

    def _filter_words(self) -> str:
        return tr("in the rows of the filter") if self._model.filter.text else ""

    def _tell(self, result: FindResult, sought: SearchTerm, total_bytes: int, seconds: float) -> None:
        """Show the hit, or that there is none and where was searched."""
        looked = tr(
            "scanned {done} of {all} in {seconds:.1f} s",
            done=size(result.looked),
            all=size(total_bytes),
            seconds=seconds,
        )
        where = self._filter_words()
        if result.offset is None:
            outcome = tr("Not found") if result.complete else tr("Stopped, nothing found so far")
            self.line.say(" · ".join(part for part in (outcome, where, looked) if part), "warn")
            return
        parts = [tr("Found at {offset:,}", offset=result.offset), where]
        if result.wrapped:
            parts.append(tr("continued from the other end"))
        self._state.take(result.offset, sought)
        self.line.say(" · ".join(part for part in (*parts, looked) if part), "ok")
        self._show(result.offset)

    def _show(self, offset: int) -> None:
        """Go to the hit. If it is selected already, frame it."""
        self.offsetRequested.emit(offset)
        row = self._table.current_row()
        if row is not None and row.offset == offset:
            self._frame(row)

    def _frame(self, row: LogRow) -> None:
        """Frame the search text in the bytes of the chosen row."""
        state, session = self._state, self.session
        sought, view = state.sought, self._unit.hex
        if sought is None or session is None:
            return
        log = session.snapshot.log

        def done(answer: tuple[list[tuple[int, int]], str]) -> None:
            current = self._table.current_row()
            if current is None or current.offset != row.offset or sought is not state.sought:
                return
            spans, field = answer
            view.set_hits(spans)
            if spans:
                view.show_span(*spans[0])
            if field == BODY and not spans and row.offset == state.hit:
                self.line.say(self.line.result.text() + " · " + tr("in the unpacked body"), "ok")
            elif field and row.offset == state.hit and field not in self.line.result.text():
                count_text = (
                    tr_plural("{n:,} time in this row", "{n:,} times in this row", n=len(spans))
                    if len(spans) > 1
                    else ""
                )
                self.line.say(" · ".join(p for p in (self.line.result.text(), field, count_text) if p), "ok")

        session.jobs.read(lambda: spans_in(log, sought, row.offset, min(row.size, 1 << 24)), done, lambda _error: None)


def _place_among(number: int, hits: Hits) -> str:
    """Return ``3 of 207``, or ``3 of 100,000+`` if there are more than are counted."""
    return tr("{n:,} of {all}", n=number, all=f"{len(hits.offsets):,}{'' if hits.complete else '+'}")


async def _nearest(
    session: StoreSession,
    sought: SearchTerm | None,
    subject: str,
    within: str,
    now: int,
    offset: int,
    span: tuple[int, int],
    forward: bool,
) -> FindResult:
    """Return the next hit after ``offset``, or the previous one. The worker searches all but the nearby rows."""
    log, (start, end) = session.snapshot.log, span
    hit: FindResult = await session.jobs.quick(
        lambda: (
            find_near(log, sought, within, now, offset, min(offset + NEAR, end))
            if forward
            else find_near_back(log, sought, within, now, offset)
        )
    )
    if hit.offset is None:
        title = tr("Finding {text}", text=subject)
        hit = await session.jobs.in_worker(
            title, WORK, session.path, session.config, sought, within, now, offset, start, end, forward
        )
    return hit
