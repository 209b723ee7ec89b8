"""Counts the verdicts of whole queues in the background:

stopped and continued, thrown away when other queues are chosen.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from engine.errors import StoreError
from viewer.assets import tr
from viewer.bridge.jobs import Cancelled
from viewer.bridge.store_session import StoreSession
from viewer.bridge.verdict_work import Verdicts
from viewer.models.queue_rows import PROBLEMS
from viewer.panes.queue_facts import QueueKey

WORK = "viewer.bridge.verdict_work:count"
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
        self.running = False

    def forget(self) -> None:
        """Throw all counts away; what is under way will not arrive."""
        self._counts = {}
        self._turn += 1
        self.running = False

    def of(self, key: QueueKey | None) -> Verdicts | None:
        """The counts of a queue as far as they are known."""
        return self._counts.get(key) if key is not None else None

    def count(self, session: StoreSession, keys: Sequence[QueueKey], most: int) -> None:
        """Resolve up to ``most`` further entries of the queues, one queue after the other."""
        self._turn += 1
        self.running = True
        session.jobs.start(self._run(session, list(dict.fromkeys(keys)), most, self._turn))

    async def _run(self, session: StoreSession, keys: list[QueueKey], most: int, turn: int) -> None:
        try:
            for key in keys:
                so_far = self._counts.get(key, Verdicts())
                if most <= 0:
                    break
                found: Verdicts = await session.jobs.in_worker(
                    tr("Resolving entries"), WORK, session.path, session.config, key, so_far, most
                )
                if turn != self._turn:
                    return
                most -= sum(found.counts.values()) - sum(so_far.counts.values())
                self._counts[key] = found
                self.changed.emit(key)
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
