"""Tables that follow a store while it is written: new rows appear, the end stays in view until the user scrolls up.

The tail of the store is read ten times a second. A table shows it a few times a second, so that following costs
little beside the broker. New rows glow unless most rows on the screen are new.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, QTimer

from engine.inspection.queue_reader import QueueReader
from viewer.index.pane import IndexPane
from viewer.log.pane import UnitsPane
from viewer.pane import Pane
from viewer.queues.pane import QueuesPane
from viewer.queues.rows import EntryRow
from viewer.widgets.record_view import RecordView
from viewer.widgets.table_tail import TableTail

INTERVAL_MS = 250
SLOW_MS = 400
"""For costly updates, and for rows that change too fast to read: each look fills the screen with new ones."""


class Throttle(QObject):
    """Runs ``work`` at most once in ``interval_ms``: at once if the last run is long ago, otherwise when it is due."""

    def __init__(self, parent: QObject, work: Callable[[], None], interval_ms: int = INTERVAL_MS) -> None:
        super().__init__(parent)
        self._work, self._interval_ms = work, interval_ms
        self._done = 0.0
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._do)
        self.slow = False

    def ask(self) -> None:
        """Ask for a run because there is something new."""
        if self._timer.isActive():
            return
        interval_ms = max(self._interval_ms, SLOW_MS) if self.slow else self._interval_ms
        wait = interval_ms - (time.monotonic() - self._done) * 1000
        if wait <= 0:
            self._do()
        else:
            self._timer.start(round(wait))

    def _do(self) -> None:
        self._done = time.monotonic()
        self._work()


class Follower(QObject):
    """Updates one view while the tail of the store moves."""

    def __init__(self, pane: Pane, view: RecordView, interval_ms: int) -> None:
        super().__init__(pane)
        self._pane = pane
        self._session: object = None
        self._table = TableTail(view, self._wanted, self._left)
        self._throttle = Throttle(self, self._act, interval_ms)

    def tail(self) -> None:
        """Take note that the end of the store moved."""
        if self._pane.session is not self._session:
            self._session = self._pane.session
            self._table.forget()
        self._throttle.slow = self._table.flooded
        self._throttle.ask()

    def _wanted(self) -> bool:
        return self._pane.session is not None and self._pane.session.following

    def _left(self) -> None:
        """Stop forcing the end into view, because the user scrolled up."""
        if self._pane.session is not None:
            self._pane.session.follow(False)

    def _act(self) -> None:
        """Show new rows. Each view overrides this."""
        self._table.take()


class LogFollower(Follower):
    """Follows the log. A filter keeps its rows."""

    def __init__(self, pane: UnitsPane) -> None:
        super().__init__(pane, pane.table, INTERVAL_MS)
        self._units = pane

    def _act(self) -> None:
        pane = self._units
        if pane.session is None or not pane.isVisible():
            return
        if pane.model.filter.source is None:
            self._table.take()
        pane.count.grow()


class QueueFollower(Follower):
    """Follows the shown queues: first their bounds, then their rows."""

    def __init__(self, pane: QueuesPane) -> None:
        super().__init__(pane, pane.table, SLOW_MS)
        self._queues = pane
        pane.entriesAdded.connect(lambda: self._table.take(reread=False))

    def _act(self) -> None:
        pane, session = self._queues, self._queues.session
        keys = {(row.topic, row.queue_id) for row in pane.table.table.rows if isinstance(row, EntryRow)}
        if session is None or not pane.isVisible():
            return
        store = session.snapshot

        def work() -> None:
            for topic, queue_id in keys:
                queue = store.queues.find(topic, queue_id)
                if isinstance(queue, QueueReader):
                    queue.refresh()
            if store.queues.rocksdb is not None:
                store.queues.rocksdb.refresh()

        session.jobs.read(work, lambda _answer: pane.refresh() if pane.session is session else None)


class IndexFollower(Follower):
    """Follows the counts of the index files and the chain of the traced key."""

    def __init__(self, pane: IndexPane) -> None:
        super().__init__(pane, pane.files, SLOW_MS)
        self._index = pane
        self._asking = False

    def _act(self) -> None:
        pane, session = self._index, self._index.session
        if session is None or not pane.isVisible():
            return
        pane.refresh()
        answer = pane.model.answer
        if answer is None or self._asking or not pane.canvas.isVisible():
            return
        self._asking = True
        from viewer.index.trace_lanes import ask_near, with_lanes

        never_cancelled = threading.Event()

        def done(answer_and_lanes: tuple[Any, Any]) -> None:
            self._asking = False
            if pane.session is session and pane.model.answer is answer and answer_and_lanes[0].steps != answer.steps:
                self._show(answer_and_lanes)

        def failed(_error: Exception) -> None:
            self._asking = False

        session.jobs.read(
            lambda: with_lanes(ask_near(session.snapshot, answer.question, never_cancelled)), done, failed
        )

    def _show(self, answer_and_lanes: tuple[Any, Any]) -> None:
        """Show the grown chain. The chosen step stays chosen, new steps glow."""
        pane = self._index
        chosen = pane.steps.current_row()
        answer = pane.model.answer
        known_entries = {(step.file, step.entry) for step in answer.steps} if answer is not None else set()
        pane.show_answer(*answer_and_lanes)
        for number, step in enumerate(answer_and_lanes[0].steps):
            if step.kind == "entry" and (step.file, step.entry) not in known_entries:
                pane.steps.glow.add(number)
            if chosen is not None and (step.file, step.kind, step.entry) == (chosen.file, chosen.kind, chosen.entry):
                pane.steps.go_to(number)


def follower_of(pane: Pane) -> Follower | None:
    """Return the follower of a view, or None if the view does not follow."""
    if isinstance(pane, UnitsPane):
        return LogFollower(pane)
    if isinstance(pane, QueuesPane):
        return QueueFollower(pane)
    if isinstance(pane, IndexPane):
        return IndexFollower(pane)
    return None
