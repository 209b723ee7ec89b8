"""Tables that follow a store somebody writes: new rows appear, the end stays in view until the user scrolls up.

The tail of the store is looked at ten times a second; a table takes it up a few times a second, so that following
costs little beside the broker. New rows glow where they can be told from the others by eye: where most of what is on
the screen is new, nothing glows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, QTimer

from viewer.index.pane import IndexPane
from viewer.log.pane import UnitsPane
from viewer.pane import Pane
from viewer.queues.pane import QueuesPane
from viewer.queues.rows import EntryRow
from viewer.widgets.record_view import RecordView
from viewer.widgets.table_tail import TableTail

EVERY_MS = 250
SLOW_MS = 400
"""For what costs more, and for rows that nobody can read: where each look fills the screen with new ones."""


class Pace(QObject):
    """Has ``work`` done at most every ``every`` ms: at once where the last time is long ago, else when it is due."""

    def __init__(self, parent: QObject, work: Callable[[], None], every: int = EVERY_MS) -> None:
        super().__init__(parent)
        self._work, self._every = work, every
        self._done = 0.0
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._do)
        self.slow = False

    def ask(self) -> None:
        """Something is new."""
        if self._timer.isActive():
            return
        every = max(self._every, SLOW_MS) if self.slow else self._every
        wait = every - (time.monotonic() - self._done) * 1000
        if wait <= 0:
            self._do()
        else:
            self._timer.start(round(wait))

    def _do(self) -> None:
        self._done = time.monotonic()
        self._work()


class Follower(QObject):
    """What one view does as the tail of the store moves."""

    def __init__(self, pane: Pane, view: RecordView, every: int) -> None:
        super().__init__(pane)
        self._pane = pane
        self._session: object = None
        self._table = TableTail(view, self._wanted, self._left)
        self._pace = Pace(self, self._act, every)

    def tail(self) -> None:
        """The end of the store moved."""
        if self._pane.session is not self._session:
            self._session = self._pane.session
            self._table.forget()
        self._pace.slow = self._table.flooded
        self._pace.ask()

    def _wanted(self) -> bool:
        return self._pane.session is not None and self._pane.session.following

    def _left(self) -> None:
        """The user scrolled up: the end is not forced into view any more."""
        if self._pane.session is not None:
            self._pane.session.follow(False)

    def _act(self) -> None:
        """Show what is new; each view in its own way."""
        self._table.take()


class LogFollow(Follower):
    """The log; a filter that is set keeps its rows."""

    def __init__(self, pane: UnitsPane) -> None:
        super().__init__(pane, pane.table, EVERY_MS)
        self._units = pane

    def _act(self) -> None:
        pane = self._units
        if pane.session is None or not pane.isVisible():
            return
        if pane.model.filter.source is None:
            self._table.take()
        pane.count.grow()


class QueueFollow(Follower):
    """The queues in front: their bounds are looked at anew, then their rows."""

    def __init__(self, pane: QueuesPane) -> None:
        super().__init__(pane, pane.table, SLOW_MS)
        self._queues = pane
        pane.grew.connect(lambda: self._table.take(reread=False))

    def _act(self) -> None:
        pane, session = self._queues, self._queues.session
        keys = {(row.topic, row.queue_id) for row in pane.table.table.rows if isinstance(row, EntryRow)}
        if session is None or not pane.isVisible():
            return
        store = session.snapshot

        def work() -> None:
            for topic, queue_id in keys:
                queue = store.queue(topic, queue_id)
                if queue is not None:
                    queue.refresh()

        session.jobs.read(work, lambda _answer: pane.refresh() if pane.session is session else None)


class IndexFollow(Follower):
    """The index files' counts, and the chain of the key that is traced."""

    def __init__(self, pane: IndexPane) -> None:
        super().__init__(pane, pane.files, SLOW_MS)
        self._index = pane
        self._asking = False

    def _act(self) -> None:
        pane, session = self._index, self._index.session
        if session is None or not pane.isVisible():
            return
        pane.refresh()
        answer = pane.answer
        if answer is None or self._asking or not pane.canvas.isVisible():
            return
        self._asking = True
        from viewer.index.trace_lanes import ask_near, with_lanes

        never = threading.Event()

        def done(found: tuple[Any, Any]) -> None:
            self._asking = False
            if pane.session is session and pane.answer is answer and found[0].steps != answer.steps:
                self._show(found)

        def failed(_error: Exception) -> None:
            self._asking = False

        session.jobs.read(lambda: with_lanes(ask_near(session.snapshot, answer.question, never)), done, failed)

    def _show(self, found: tuple[Any, Any]) -> None:
        """The chain has grown: the chosen step stays chosen, new ones glow."""
        pane = self._index
        chosen = pane.steps.current_row()
        known = {(step.file, step.entry) for step in pane.answer.steps} if pane.answer is not None else set()
        pane.show_answer(*found)
        for number, step in enumerate(found[0].steps):
            if step.kind == "entry" and (step.file, step.entry) not in known:
                pane.steps.glow.add(number)
            if chosen is not None and (step.file, step.kind, step.entry) == (chosen.file, chosen.kind, chosen.entry):
                pane.steps.go_to(number)


def follower_of(pane: Pane) -> Follower | None:
    """The follower of a view; None for one that does not follow."""
    if isinstance(pane, UnitsPane):
        return LogFollow(pane)
    if isinstance(pane, QueuesPane):
        return QueueFollow(pane)
    if isinstance(pane, IndexPane):
        return IndexFollow(pane)
    return None
