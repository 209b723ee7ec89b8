"""Counts the verdicts of queues in the worker; can be stopped and continued. Counts are stored by queue."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from engine.errors import StoreError
from viewer.look.assets import tr
from viewer.queues.facts import QueueKey
from viewer.queues.verdict_work import Verdicts
from viewer.runtime.jobs import Cancelled
from viewer.runtime.store_session import StoreSession

WORK = "viewer.queues.verdict_work:count"


class VerdictCounter(QObject):
    """``changed(queue key)`` when a queue's counts grew, ``statusText(sentence)`` for the status bar."""

    changed = Signal(object)
    statusText = Signal(str)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._counts: dict[QueueKey, Verdicts] = {}
        self._generation = 0
        self._task: asyncio.Task[None] | None = None
        self.running = False

    def forget(self) -> None:
        """Drop all counts, and ignore running jobs."""
        self._counts = {}
        self._stop()

    def of(self, key: QueueKey | None) -> Verdicts | None:
        """Return the counts of a queue so far."""
        return self._counts.get(key) if key is not None else None

    def count(self, session: StoreSession, keys: Sequence[QueueKey], max_entries: int) -> None:
        """Resolve up to ``max_entries`` further entries of the queues, one queue after the other."""
        self._stop()
        self.running = True
        self._task = session.jobs.start(self._run(session, list(dict.fromkeys(keys)), max_entries, self._generation))

    def _stop(self) -> None:
        self._generation += 1
        self.running = False
        if self._task is not None:
            self._task.cancel()
        self._task = None

    async def _run(self, session: StoreSession, keys: list[QueueKey], max_entries: int, generation: int) -> None:
        def counted(result: tuple[QueueKey, Verdicts]) -> None:
            if generation == self._generation:
                self._counts[result[0]] = result[1]
                self.changed.emit(result[0])

        tasks = [(key, self._counts.get(key, Verdicts())) for key in keys]
        try:
            await session.jobs.in_worker(
                tr("Resolving entries"), WORK, session.path, session.config, tasks, max_entries, on_items=counted
            )
        except (Cancelled, StoreError, OSError) as error:
            self.statusText.emit(str(error) or tr("Stopped."))
        finally:
            if generation == self._generation:
                self.running = False
                for key in keys[:1]:
                    self.changed.emit(key)
