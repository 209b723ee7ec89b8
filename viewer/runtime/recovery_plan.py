"""The recovery plan of an open store: worked out once, shared by the views that speak of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from PySide6.QtCore import QObject, Signal

from engine.errors import CannotRead, StoreError
from engine.rocksdb.database import is_available
from viewer.look.assets import tr
from viewer.look.engine_words import engine_words
from viewer.runtime.jobs import Cancelled
from viewer.runtime.store_session import StoreSession

if TYPE_CHECKING:
    from engine.releases import Release
    from engine.store.recovery.plan import RecoveryPlan
    from viewer.runtime.store_work import OtherReleaseStart, PlanResult

MAX_AUTOMATIC_PLAN_BYTES = 4 << 30
"""Bytes of log up to which the plan is made without a request."""


class RecoveryJob(QObject):
    """The recovery plan of a session, made in the worker process by :meth:`start`.

    Emits ``changed()`` when :attr:`plan`, :attr:`error`, :attr:`running` or :attr:`stale` changes.
    """

    changed = Signal()

    def __init__(self, session: StoreSession) -> None:
        super().__init__(session)
        self._session = session
        self.plan: RecoveryPlan | None = None
        self.error = ""
        self.running = False
        self.stale = False
        self.planned_at = 0.0
        """Time of the plan, in s since the epoch."""
        self.duration_s = 0.0
        """Seconds that the plan took. A start reads the same bytes, so this gives an estimate of its time."""
        self.release: Release | None = None
        """Release whose start is planned; None until the first plan has recognised the one that wrote the store."""
        self.other_start: OtherReleaseStart | None = None
        """Whether another release would start, and why not."""
        self.written: tuple[Release, str] | None = None
        """Release that probably wrote the store, and the reason to believe so."""
        self._generation = 0
        session.logGrown.connect(self._on_log_grown)
        session.forgotten.connect(self._forget)
        session.unread.changed.connect(self._on_unread_changed)

    @property
    def possible(self) -> bool:
        """True if this store can have a plan."""
        return not self.why_impossible

    @property
    def why_impossible(self) -> str:
        """Reason why this store can have no plan; "" if it can.

        A commit log alone lacks the files that a start uses, and a plan needs log and queues to be decoded.
        """
        store = self._session.snapshot
        if store.paths is None:
            return tr("Recovery needs a complete store; this is only a commit log.")
        for subject in ("log", "queues"):
            part = store.undecoded_part(subject)
            if subject == "queues" and store.queues.rocksdb is not None and is_available():
                continue  # the worker reads them
            if part is not None:
                return tr("No recovery plan: {why}", why=engine_words(part.reason(subject)))
        return ""

    @property
    def plans_automatically(self) -> bool:
        """True if there is no plan yet and the log is small enough to make one without a request."""
        log = self._session.snapshot.log
        untried = self.plan is None and not self.running and not self.error
        return self.possible and untried and log.sequence.total_size <= MAX_AUTOMATIC_PLAN_BYTES

    def start(self, release: Release | None = None) -> None:
        """Make the plan for a start of ``release``.

        Without it, for the release of the last plan; at first for the one that probably wrote the store.
        """
        if self.running or not self.possible:
            return
        self.release = release or self.release
        self.running = True
        self.changed.emit()
        self._session.jobs.start(self._run())

    async def _run(self) -> None:
        session, generation = self._session, self._generation
        try:
            planned: PlanResult = await session.jobs.in_worker(
                tr("Recovery plan"), "viewer.runtime.store_work:plan", session.path, session.config, self.release
            )
        except Cancelled:
            self.error = tr("Stopped.")
        except CannotRead as error:
            self.plan, self.error = None, tr("No plan: {why}", why=engine_words(str(error)))
        except (StoreError, OSError, RuntimeError) as error:
            self.plan, self.error = None, engine_words(str(error))
        else:
            self.plan, self.error, self.stale, self.planned_at = planned.plan, "", False, time.time()
            self.duration_s, self.other_start, self.written = planned.seconds, planned.other_start, planned.written
            self.release = planned.plan.release
            self._drop_if_unread()
        finally:
            self.running = False
            if generation != self._generation:
                self.plan, self.error = None, ""
            self.changed.emit()

    def _on_unread_changed(self) -> None:
        if self._session.unread:
            if self._drop_if_unread():
                self.changed.emit()
        elif self.error and not self.running:
            self.error = ""
            self.changed.emit()

    def _drop_if_unread(self) -> bool:
        """Replace the plan by an error if files could not be read. Return True if there was a plan."""
        unread = self._session.unread
        if not unread.unreadable or self.plan is None:  # parts that are only not decoded do not invalidate a plan
            return False
        self.plan, self.error = None, tr("No plan: {why}", why=unread.words)
        return True

    def _forget(self) -> None:
        """Forget the plan: files of the store are others now."""
        self._generation += 1
        self.plan, self.error, self.stale, self.other_start = None, "", False, None
        self.changed.emit()

    def _on_log_grown(self) -> None:
        if self.plan is not None and not self.stale:
            self.stale = True
            self.changed.emit()


_jobs: WeakKeyDictionary[StoreSession, RecoveryJob] = WeakKeyDictionary()


def recovery_of(session: StoreSession) -> RecoveryJob:
    """Return the plan of a session, the same object for all views."""
    if session not in _jobs:
        _jobs[session] = RecoveryJob(session)
    return _jobs[session]
