"""The requests that one window looks at: out of a file, or of the server that the lab runs.

It outlives panes and languages. Frames are fetched now and then, a bounded piece at a time; while it is paused or off,
nothing is asked.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QObject, QTimer, Signal

from engine.remoting.exchanges import Exchange
from engine.remoting.recording import unpacked
from engine.remoting.replaying import Replayed
from viewer.requests import work
from viewer.requests.fields import request_filter
from viewer.requests.request_log import RequestLog, Shown
from viewer.requests.words import Standing
from viewer.widgets.stepwise import Runner

EVERY_MS = 250
Done = Callable[[int, int, bytes], None]


class Feed(Protocol):
    """A server whose frames can be fetched."""

    @property
    def address(self) -> str:
        """``ip:port`` of the broker; empty where nothing is served."""

    def fetch(self, since: int, done: Done) -> None:
        """Have ``done(first, next, packed)`` called with the frames from ``since`` on, as far as one piece goes."""

    def record(self, on: bool, done: Callable[[], None] = lambda: None) -> None:
        """Keep what goes over the connections, or no more; ``done`` once that is so."""


class RequestWatch(QObject):
    """``changed()``: another source or filter, everything is to be shown anew; ``came(new, changed)``: rows."""

    changed = Signal()
    came = Signal(object, object)

    def __init__(self, run: Runner, parent: QObject | None = None) -> None:
        """``run(work, done, failed)`` does something off the loop."""
        super().__init__(parent)
        self.run = run
        self.log = RequestLog()
        self.standing = Standing()
        self.text = ""
        self.feed: Feed | None = None
        self._since = 0
        self._asked = False
        self._saved = False
        self._turn = 0
        self._rates: list[tuple[float, int]] = []
        self._timer = QTimer(self)
        self._timer.setInterval(EVERY_MS)
        self._timer.timeout.connect(self._fetch)

    # ---- sources -----------------------------------------------------------------------------------------------------

    def open_file(self, path: Path) -> None:
        """Show the requests of a file; what is wrong with it stands in ``standing.fault``."""
        turn = self._begin(Standing("reading", str(path)))

        def done(opened: object) -> None:
            if turn != self._turn or not isinstance(opened, work.Opened):
                return
            self.standing = Standing("file", str(path), left_out=opened.left_out)
            self.log.take(opened.items)
            self.log.take_exchanges(opened.exchanges)
            self.log.dropped += opened.passed
            self.show(self.text)

        def failed(error: Exception) -> None:
            if turn == self._turn:
                said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
                self.standing = Standing("off", str(path), fault=f"{path}: {said}" if str(path) not in said else said)
                self.changed.emit()

        self.run(lambda: work.read_file(path), done, failed)

    def follow(self, feed: Feed) -> None:
        """Record what the server's connections carry from now on."""
        turn = self._begin(Standing("starting", feed.address))
        self.feed = feed
        self._since = 0

        def recording() -> None:
            if turn == self._turn and self.feed is feed:
                self.standing.kind = "live"
                self._timer.start()
                self.changed.emit()

        feed.record(True, recording)

    def end(self) -> None:
        """Fetch no more; the rows stay."""
        self._timer.stop()
        if self.feed is not None:
            self.feed.record(False)
            self.feed = None
        if self.standing.kind in {"starting", "live", "paused"}:
            self.standing.kind = "ended"
        self.changed.emit()

    def pause(self) -> None:
        """Fetch nothing for a while, or go on: what came meanwhile is shown then, as far as it was kept."""
        if self.standing.kind == "live":
            self.standing.kind = "paused"
            self._timer.stop()
        elif self.standing.kind == "paused":
            self.standing.kind = "live"
            self._timer.start()
        self.changed.emit()

    def _begin(self, standing: Standing) -> int:
        self._timer.stop()
        if self.feed is not None:
            self.feed.record(False)
        self.feed = None
        self._turn += 1
        self._asked = False
        self._rates.clear()
        self.log.clear()
        self.standing = standing
        self.show("")
        return self._turn

    def _fetch(self) -> None:
        feed, turn = self.feed, self._turn
        if feed is None or self._asked:
            return
        if not feed.address:
            self.end()
            return
        self._asked = True

        def done(first: int, following: int, data: bytes) -> None:
            if turn != self._turn:
                return
            self._asked = False
            self.log.missed += max(0, first - self._since) if self._since else 0
            self._since = following
            self._measure()
            if data:
                self._saved = False
                self.came.emit(*self.log.take(unpacked(io.BytesIO(data))))
            else:
                self.came.emit([], [])

        feed.fetch(self._since, done)

    def _measure(self) -> None:
        now = time.monotonic()
        self._rates.append((now, self.log.total))
        while len(self._rates) > 2 and now - self._rates[0][0] > 2:
            del self._rates[0]
        (then, before), span = self._rates[0], now - self._rates[0][0]
        del then
        self.standing.rate = (self.log.total - before) / span if span > 0.5 else 0.0

    # ---- what is shown -----------------------------------------------------------------------------------------------

    @property
    def unsaved(self) -> int:
        """Requests that were recorded here and are kept in no file."""
        recorded = self.standing.kind in {"live", "paused", "ended"} and not self._saved
        return len(self.log.kept_rows()) if recorded and self.log.kept else 0

    def show(self, text: str) -> None:
        """Let through what the filter ``text`` asks for. Raises :class:`engine.errors.BadFilter`."""
        found = request_filter(text)
        self.text = text
        self.log.show(None if found.takes_all else found.matches)  # type: ignore[arg-type]
        self.changed.emit()

    def show_by_frame(self, on: bool) -> None:
        """A row each frame, or each request with its answer; the filter stays."""
        if self.log.by_frame != on:
            self.log.show_by_frame(on)
            self.changed.emit()

    # ---- files -------------------------------------------------------------------------------------------------------

    def export(self, path: Path, rows: Sequence[Shown], told: Callable[[int | Exception], None]) -> None:
        """Write rows as lines of JSON, or all that is kept as a recording where the name ends with ``.requests``."""
        if path.suffix == ".requests":
            items = self.log.items()

            def written(count: int | Exception) -> None:
                self._saved = not isinstance(count, Exception)
                told(count)

            self.run(lambda: work.write_recording(path, items), written, written)
        else:
            held = list(rows)
            self.run(lambda: work.write_lines(path, held), told, told)

    def replay(self, folder: Path, told: Callable[[Replayed | Exception], None]) -> None:
        """Send what is kept again, into a new store."""
        exchanges: list[Exchange] = [row.exchange for row in self.log.kept_rows()]
        self.run(lambda: work.replay_into(folder, exchanges), told, told)
