"""Row numbers of the log: counted in the worker, saved in the side index, and loaded from there when available."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from engine.errors import StoreError
from viewer.log.log_model import LogModel
from viewer.look.assets import tr
from viewer.runtime.jobs import Cancelled
from viewer.runtime.settings import default_cache
from viewer.runtime.store_session import StoreSession

if TYPE_CHECKING:
    from engine.inspection.log_reader import LogReader
    from engine.inspection.side_index import SideIndex

FOLDER = "side-index"
REST_MS = 5000
"""At least so long between two counts of a log that grows."""
MAX_BYTES_IN_WINDOW = 64 << 20
"""Maximum bytes of new log that are counted at once; more is left to the worker."""
SHARE = 20
"""And so many times what the last one took."""


class LogCount(QObject):
    """Counts the log of a session in the background. ``counted(index)`` when numbers are known, or known anew;
    ``logGrown()`` after each :meth:`grow`.
    """

    counted = Signal(object)
    logGrown = Signal()

    def __init__(self, model: LogModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._session: StoreSession | None = None
        self._busy = False
        self._end = -1
        self._growing = self._asking = False
        self._rest = QTimer(self, singleShot=True)
        self._rest.timeout.connect(self._retry)

    def set_session(self, session: StoreSession | None) -> None:
        """Another store, or none."""
        self._session = session
        self._busy = self._growing = self._asking = False
        self._end = -1
        self._rest.stop()

    def look(self) -> None:
        """Count the units that were not counted yet, unless the log has not grown or its end cannot be read."""
        session = self._session
        if session is None or self._busy or self._rest.isActive() or not session.snapshot.log.files:
            return
        end = session.snapshot.log.known_end
        if end is None:
            self._retry()  # a look at the directory has just forgotten it
        elif end != self._end:
            self._busy, self._end = True, end
            session.jobs.start(self._count(session))

    def grow(self) -> None:
        """Count the new rows of a log that has grown, if they are few; emit :attr:`logGrown` in any case. A small log
        that was not counted yet is counted too: beside a broker the worker may start late.
        """
        session, model = self._session, self._model
        if session is None or self._growing:
            return
        log = session.snapshot.log
        end = log.known_end
        if end is not None and end < model.upto:
            model.upto = -1  # the log was cut
        counted, rows = model.upto, model.rows if model.upto >= 0 else 0
        start = counted if counted >= 0 else max(log.min_offset, 0)
        if end is None or not 0 < end - start <= MAX_BYTES_IN_WINDOW:
            self.logGrown.emit()
            return
        self._growing = True

        def done(many: int) -> None:
            self._growing = False
            if session is not self._session:
                return
            if model.upto == counted:
                model.rows, model.upto = rows + many, end
            self.logGrown.emit()

        def failed(_error: Exception) -> None:
            self._growing = False

        session.jobs.read(lambda: rows_between(log, start, end), done, failed)

    def _retry(self) -> None:
        """After the rest; where the log ends now is found off the loop."""
        session = self._session
        if session is None or self._asking:
            return
        self._asking, log = True, session.snapshot.log

        def done(_end: object) -> None:
            self._asking = False
            if session is self._session:
                self.look()

        def failed(_error: Exception) -> None:
            self._asking = False

        session.jobs.read(lambda: log.max_offset, done, failed)

    async def _count(self, session: StoreSession) -> None:
        cache = default_cache() / FOLDER
        begun = time.monotonic()
        try:
            await session.jobs.in_worker(
                tr("Counting units"),
                "viewer.log.count_work:count",
                session.path,
                session.snapshot.config,
                cache,
                behind=True,
            )
        except (Cancelled, StoreError, OSError):  # nobody asked for it, and the table says what cannot be read
            return
        finally:
            self._busy = False
            if session is self._session:
                self._rest.start(max(REST_MS, round(SHARE * 1000 * (time.monotonic() - begun))))
        if session is self._session:
            index = await session.jobs.quick(lambda: _loaded(session, cache))
            if session is self._session and index.segments:
                self._model.counted(index)
                self.counted.emit(index)


def rows_between(log: LogReader, start: int, end: int) -> int:
    """Units, blanks and stretches of damage that begin in [start, end); reads the disk."""
    from engine.codec.columns import UnitColumns
    from engine.codec.unit_scan import Damage
    from engine.inspection.block_scan import scan_log

    row_count = 0
    for item in scan_log(log, start, end, crc=False, with_tags=False):
        row_count += item.count if isinstance(item, UnitColumns) else isinstance(item, Damage)
    return row_count


def _loaded(session: StoreSession, cache: Path) -> SideIndex:
    from engine.inspection.side_index import SideIndex

    index = SideIndex(session.snapshot.log, cache)
    index.load()
    return index
