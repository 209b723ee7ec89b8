"""Row numbers for the log: counted in the worker process, kept in the side index, taken over when they are there."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from viewer.assets import tr
from viewer.bridge.jobs import Cancelled
from viewer.bridge.store_session import StoreSession
from viewer.settings import default_cache

if TYPE_CHECKING:
    from engine.inspection.side_index import SideIndex

FOLDER = "side-index"
REST_MS = 5000
"""At least so long between two counts of a log that grows."""
SHARE = 20
"""And so many times what the last one took."""


class LogCount(QObject):
    """Counts the log of a session in the background. ``counted(index)`` when numbers are known, or known anew."""

    counted = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session: StoreSession | None = None
        self._busy = False
        self._end = -1
        self._rest = QTimer(self, singleShot=True)
        self._rest.timeout.connect(self._look_again)

    def set_session(self, session: StoreSession | None) -> None:
        """Another store, or none."""
        self._session = session
        self._busy = False
        self._end = -1
        self._rest.stop()

    def look(self) -> None:
        """Count what was not counted yet; a log that has not grown is left alone."""
        session = self._session
        if session is None or self._busy or self._rest.isActive() or not session.snapshot.log.files:
            return
        end = session.snapshot.log.max_offset
        if end != self._end:
            self._busy, self._end = True, end
            session.jobs.start(self._count(session))

    def _look_again(self) -> None:
        """After the rest; where the log ends now is found off the loop."""
        session = self._session
        if session is not None:
            log = session.snapshot.log
            session.jobs.read(lambda: log.max_offset, lambda _end: self.look(), lambda _error: None)

    async def _count(self, session: StoreSession) -> None:
        cache = default_cache() / FOLDER
        begun = time.monotonic()
        try:
            await session.jobs.in_worker(
                tr("Counting units"),
                "viewer.bridge.count_work:count",
                session.path,
                session.snapshot.config,
                cache,
            )
        except Cancelled:
            return
        finally:
            self._busy = False
            if session is self._session:
                self._rest.start(max(REST_MS, round(SHARE * 1000 * (time.monotonic() - begun))))
        if session is self._session:
            index = await session.jobs.quick(lambda: _loaded(session, cache))
            if session is self._session and index.segments:
                self.counted.emit(index)


def _loaded(session: StoreSession, cache: Path) -> SideIndex:
    from engine.inspection.side_index import SideIndex

    index = SideIndex(session.snapshot.log, cache)
    index.load()
    return index
