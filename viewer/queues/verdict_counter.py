"""Counts the verdicts of whole queues in the background:

stopped and continued, thrown away when other queues are chosen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from engine.errors import StoreError
from viewer.look.assets import tr
from viewer.queues.facts import QueueKey
from viewer.queues.rows import PROBLEMS
from viewer.queues.verdict_work import Verdicts
from viewer.runtime.jobs import Cancelled
from viewer.runtime.store_session import StoreSession

WORK = "viewer.queues.verdict_work:count"
AT_ONCE = 20_000
"""Entries whose verdicts are counted unasked; more on request."""
MORE = 1_000_000


class VerdictCounter(QObject):
    """``changed(queue key)`` when a queue's counts grew, ``told(sentence)`` for the status bar."""

    changed = Signal(object)
    told = Signal(str)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._counts: dict[QueueKey, Verdicts] = {}
        self._turn = 0
        self._task: asyncio.Task[None] | None = None
        self.running = False

    def forget(self) -> None:
        """Throw all counts away; what is under way will not arrive."""
        self._counts = {}
        self._stop()

    def of(self, key: QueueKey | None) -> Verdicts | None:
        """The counts of a queue as far as they are known."""
        return self._counts.get(key) if key is not None else None

    def count(self, session: StoreSession, keys: Sequence[QueueKey], most: int) -> None:
        """Resolve up to ``most`` further entries of the queues, one queue after the other."""
        self._stop()
        self.running = True
        self._task = session.jobs.start(self._run(session, list(dict.fromkeys(keys)), most, self._turn))

    def _stop(self) -> None:
        self._turn += 1
        self.running = False
        if self._task is not None:
            self._task.cancel()
        self._task = None

    async def _run(self, session: StoreSession, keys: list[QueueKey], most: int, turn: int) -> None:
        def counted(found: tuple[QueueKey, Verdicts]) -> None:
            if turn == self._turn:
                self._counts[found[0]] = found[1]
                self.changed.emit(found[0])

        asked = [(key, self._counts.get(key, Verdicts())) for key in keys]
        try:
            await session.jobs.in_worker(
                tr("Resolving entries"), WORK, session.path, session.config, asked, most, on_items=counted
            )
        except (Cancelled, StoreError, OSError) as error:
            self.told.emit(str(error) or tr("Stopped."))
        finally:
            if turn == self._turn:
                self.running = False
                for key in keys[:1]:
                    self.changed.emit(key)

    def sentence(self, key: QueueKey | None) -> str:
        """The counts of a queue for the status bar."""
        counts = self.of(key)
        if key is None or counts is None:
            return ""
        looked = sum(counts.counts.values())
        bad = sum(n for kind, n in counts.counts.items() if kind in PROBLEMS)
        agree = tr("all agree with the log") if not bad else tr("{n:,} do not agree with the log", n=bad)
        edge = tr("complete") if counts.complete else tr("first {n:,} entries looked at", n=looked)
        entries = tr("{n:,} entries", n=looked + counts.total - counts.reached)
        return " · ".join((f"{key[0]}/{key[1]}", entries, agree, edge))
