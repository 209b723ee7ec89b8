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
"""Bytes of log up to which the plan is worked out without being asked for."""


class RecoveryJob(QObject):
    """``changed()`` whenever :attr:`plan`, :attr:`error`, :attr:`running` or :attr:`stale` changed."""

    changed = Signal()

    def __init__(self, session: StoreSession) -> None:
        super().__init__(session)
        self._session = session
        self.plan: RecoveryPlan | None = None
        self.error = ""
        self.running = False
        self.stale = False
        self.at = 0.0
        self.took = 0.0
        """Seconds in which the plan was worked out; it reads what a start reads."""
        self.release: Release | None = None
        """The release whose start is planned; None until the first plan says which one wrote the store."""
        self.other_start: OtherReleaseStart | None = None
        """How the other release would start."""
        self.written: tuple[Release, str] | None = None
        """Which release seems to have written the store, and why."""
        session.logGrown.connect(self._grown)
        session.unread.changed.connect(self._unread)

    @property
    def possible(self) -> bool:
        """Whether a plan can be worked out, now or later."""
        return not self.impossible

    @property
    def impossible(self) -> str:
        """Why there is never a plan, "" if there can be one.

        A log alone has nothing that a start would go by, and what is not decoded cannot be planned.
        """
        store = self._session.snapshot
        if store.paths is None:
            return tr("Recovery needs a complete store; this is only a commit log.")
        for subject in ("log", "queues"):
            part = store.undecoded_part(subject)
            if subject == "queues" and store.rocksdb_queues is not None and is_available():
                continue  # the worker reads them
            if part is not None:
                return tr("No recovery plan: {why}", why=engine_words(part.reason(subject)))
        return ""

    @property
    def unasked(self) -> bool:
        """True if the plan is cheap enough to be made as soon as the view is opened."""
        log = self._session.snapshot.log
        untried = self.plan is None and not self.running and not self.error
        return self.possible and untried and log.sequence.total_size <= MAX_AUTOMATIC_PLAN_BYTES

    def ask(self, release: Release | None = None) -> None:
        """Make the plan again for a start of ``release``; at first the release that probably wrote the store."""
        if self.running or not self.possible:
            return
        self.release = release or self.release
        self.running = True
        self.changed.emit()
        self._session.jobs.start(self._run())

    async def _run(self) -> None:
        session = self._session
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
            self.plan, self.error, self.stale, self.at = planned.plan, "", False, time.time()
            self.took, self.other_start, self.written = planned.seconds, planned.other_start, planned.written
            self.release = planned.plan.release
            self._refuse()
        finally:
            self.running = False
            self.changed.emit()

    def _unread(self) -> None:
        """Drop the plan: part of the store could not be read."""
        if self._session.unread:
            if self._refuse():
                self.changed.emit()
        elif self.error and not self.running:
            self.error = ""
            self.changed.emit()

    def _refuse(self) -> bool:
        unread = self._session.unread
        if not unread.unreadable or self.plan is None:  # what is not decoded has no plan, or is not part of it
            return False
        self.plan, self.error = None, tr("No plan: {why}", why=unread.words)
        return True

    def _grown(self) -> None:
        if self.plan is not None and not self.stale:
            self.stale = True
            self.changed.emit()


_jobs: WeakKeyDictionary[StoreSession, RecoveryJob] = WeakKeyDictionary()


def recovery_of(session: StoreSession) -> RecoveryJob:
    """The one plan of a session."""
    if session not in _jobs:
        _jobs[session] = RecoveryJob(session)
    return _jobs[session]
