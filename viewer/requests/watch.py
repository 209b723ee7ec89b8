"""Source of the requests of one window: a file, or the server of the lab.

It lives longer than panes, also when the language changes. Frames are fetched at intervals, a limited number at a time;
while paused or off, none are fetched.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QObject, QTimer, Signal

from engine.remoting.exchanges import Exchange
from engine.remoting.recording import Recording, ReplayResult, decode_events, encode_events
from viewer.requests import work
from viewer.requests.fields import request_filter
from viewer.requests.request_log import RequestLog, ShownRow
from viewer.requests.words import SourceStatus
from viewer.widgets.stepwise import Runner

POLL_INTERVAL_MS = 250
Done = Callable[[int, int, bytes], None]


class FrameFeed(Protocol):
    """A server whose frames can be fetched."""

    @property
    def address(self) -> str:
        """``ip:port`` of the broker; empty if nothing is served."""

    def fetch(self, first_number: int, done: Done) -> None:
        """Fetch one piece of the frames from ``first_number`` on and call ``done(first, next, packed)``."""

    def record(self, on: bool, done: Callable[[], None] = lambda: None) -> None:
        """Start or stop recording; call ``done`` when that has taken effect."""


class GrowingFile:
    """A recording that another process writes (``storescope serve --record``), as a :class:`FrameFeed`."""

    def __init__(self, run: Runner, recording: Recording) -> None:
        self._run, self._recording = run, recording
        self.address = str(recording.path)

    @property
    def left_out(self) -> int | None:
        """Number of frames without space; None while more may come."""
        return self._recording.left_out

    def fetch(self, first_number: int, done: Done) -> None:
        """Pass on the frames that were written since; none if the file cannot be read."""

        def read(result: object) -> None:
            frames = result if isinstance(result, list) else []
            done(first_number, first_number + len(frames), encode_events(frames))

        self._run(self._recording.new_frames, read, lambda _error: done(first_number, first_number, b""))

    def record(self, on: bool, done: Callable[[], None] = lambda: None) -> None:
        """Do nothing: the other process writes anyway."""


class RequestWatch(QObject):
    """Emits ``changed()`` after a change of source or filter, ``rowsChanged(new, changed)`` with rows."""

    changed = Signal()
    rowsChanged = Signal(object, object)

    def __init__(self, run: Runner, parent: QObject | None = None) -> None:
        """Run work off the loop with ``run(work, done, failed)``."""
        super().__init__(parent)
        self.run = run
        self.log = RequestLog()
        self.source_status = SourceStatus()
        self.text = ""
        self.feed: FrameFeed | None = None
        self._next_number = 0
        self._is_fetching = False
        self._saved = False
        self._generation = 0
        self._rates: list[tuple[float, int]] = []
        self._timer = QTimer(self)
        self._timer.setInterval(POLL_INTERVAL_MS)
        self._timer.timeout.connect(self._fetch)

    # ---- sources -----------------------------------------------------------------------------------------------------

    def open_file(self, path: Path) -> None:
        """Show the requests of a file; an error is in ``source_status.fault``."""
        generation = self._begin(SourceStatus("reading", str(path)))

        def done(opened: object) -> None:
            if generation != self._generation or not isinstance(opened, work.OpenedFile):
                return
            self.source_status = SourceStatus("file", str(path), left_out=opened.left_out)
            self.log.take(opened.items)
            self.log.take_exchanges(opened.exchanges)
            self.log.dropped += opened.passed
            if opened.growing is not None:
                self.feed, self.source_status.of_file, self._next_number = (
                    GrowingFile(self.run, opened.growing),
                    True,
                    0,
                )
                self._timer.start()
            self.show(self.text)

        def failed(error: Exception) -> None:
            if generation == self._generation:
                reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
                self.source_status = SourceStatus(
                    "off", str(path), fault=f"{path}: {reason}" if str(path) not in reason else reason
                )
                self.changed.emit()

        self.run(lambda: work.read_file(path), done, failed)

    def follow(self, feed: FrameFeed) -> None:
        """Record the traffic of the server's connections from now on."""
        generation = self._begin(SourceStatus("starting", feed.address))
        self.feed = feed
        self._next_number = 0

        def recording() -> None:
            if generation == self._generation and self.feed is feed:
                self.source_status.kind = "live"
                self._timer.start()
                self.changed.emit()

        feed.record(True, recording)

    def end(self) -> None:
        """Stop fetching; the rows stay."""
        self._timer.stop()
        if self.feed is not None:
            self.feed.record(False)
            self.feed = None
        if self.source_status.kind in {"starting", "live", "paused"}:
            self.source_status.kind = "file" if self.source_status.of_file else "ended"
        self.changed.emit()

    def pause(self) -> None:
        """Pause fetching, or continue; frames of the meantime are shown then, if they were stored."""
        if self.source_status.kind == "live":
            self.source_status.kind = "paused"
            self._timer.stop()
        elif self.source_status.kind == "paused":
            self.source_status.kind = "live"
            self._timer.start()
        self.changed.emit()

    def _begin(self, source_status: SourceStatus) -> int:
        self._timer.stop()
        if self.feed is not None:
            self.feed.record(False)
        self.feed = None
        self._generation += 1
        self._is_fetching = False
        self._rates.clear()
        self.log.clear()
        self.source_status = source_status
        self.show("")
        return self._generation

    def _fetch(self) -> None:
        feed, generation = self.feed, self._generation
        if feed is None or self._is_fetching:
            return
        if not feed.address:
            self.end()
            return
        self._is_fetching = True

        def done(first_number: int, next_number: int, packed_frames: bytes) -> None:
            if generation != self._generation:
                return
            self._is_fetching = False
            self.log.missed += max(0, first_number - self._next_number) if self._next_number else 0
            self._next_number = next_number
            self._measure()
            if isinstance(feed, GrowingFile):
                self._grown(feed, bool(packed_frames))
            if packed_frames:
                self._saved = False
                self.rowsChanged.emit(*self.log.take(decode_events(io.BytesIO(packed_frames))))
            else:
                self.rowsChanged.emit([], [])

        feed.fetch(self._next_number, done)

    def _grown(self, feed: GrowingFile, has_new_frames: bool) -> None:
        """Follow a file once something is appended, up to its last line."""
        if has_new_frames and self.source_status.kind == "file":
            self.source_status.kind = "live"
            self.changed.emit()
        if feed.left_out is not None:
            self.source_status.left_out = feed.left_out
            self.end()

    def _measure(self) -> None:
        now = time.monotonic()
        self._rates.append((now, self.log.total))
        while len(self._rates) > 2 and now - self._rates[0][0] > 2:
            del self._rates[0]
        earlier_s, earlier_total = self._rates[0]
        span = now - earlier_s
        self.source_status.rate = (self.log.total - earlier_total) / span if span > 0.5 else 0.0

    @property
    def running(self) -> bool:
        """Return True while a source that can be stopped brings rows."""
        return self.feed is not None and self.source_status.kind != "file"

    # ---- what is shown -----------------------------------------------------------------------------------------------

    @property
    def unsaved(self) -> int:
        """Number of recorded requests that are in no file."""
        source_status = self.source_status
        recorded = source_status.kind in {"live", "paused", "ended"}
        recorded = recorded and not source_status.of_file and not self._saved
        return len(self.log.stored_rows()) if recorded and self.log.stored_count else 0

    def show(self, text: str) -> None:
        """Apply a filter. Raises :class:`engine.errors.BadFilter`."""
        condition = request_filter(text)
        self.text = text
        self.log.show(None if condition.takes_all else condition.matches)  # type: ignore[arg-type]
        self.changed.emit()

    def show_by_frame(self, on: bool) -> None:
        """Show a row for each frame or for each exchange; the filter stays."""
        if self.log.by_frame != on:
            self.log.show_by_frame(on)
            self.changed.emit()

    # ---- files -------------------------------------------------------------------------------------------------------

    def export(self, path: Path, rows: Sequence[ShownRow], on_result: Callable[[int | Exception], None]) -> None:
        """Write rows as JSON lines, or everything stored as a recording if the name ends with ``.requests``."""
        if path.suffix == ".requests":
            items = self.log.items()

            def written(count: int | Exception) -> None:
                self._saved = not isinstance(count, Exception)
                on_result(count)

            self.run(lambda: work.write_recording(path, items), written, written)
        else:
            exported_rows = list(rows)
            self.run(lambda: work.write_lines(path, exported_rows), on_result, on_result)

    def replay(self, folder: Path, on_result: Callable[[ReplayResult | Exception], None]) -> None:
        """Replay the recorded requests into a new store."""
        exchanges: list[Exchange] = [row.exchange for row in self.log.stored_rows()]
        self.run(lambda: work.replay_into(folder, exchanges), on_result, on_result)
