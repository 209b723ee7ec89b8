"""Which time the live plots show: the newest readings, an earlier time, or a recording; and the cursor in it. No Qt."""

from __future__ import annotations

from dataclasses import dataclass, field

from viewer.look.assets import tr
from viewer.look.formats import clock, span
from viewer.pane.live_plots import Range, shown_reading
from viewer.runtime.live_history import LiveHistory
from viewer.runtime.position_reading import PositionReading

SPAN = 60.0
"""Seconds that are shown at first."""
MIN_SPAN_S, MAX_SPAN_S = 2.0, 7 * 86_400.0
REPLAY_MS = 100
"""Milliseconds of one step of playing."""


@dataclass
class ShownTime:
    """Times are in s since the epoch. Looks are added to ``history`` all the while, whatever is shown."""

    history: LiveHistory = field(default_factory=LiveHistory)
    """The readings at the open store."""
    cursor: float | None = None
    playing: bool = False
    recording_name: str = ""
    """The name of the recording that is shown."""
    _recording: LiveHistory | None = None
    _span: float = SPAN
    _end: float | None = None
    """The right edge. None while it follows the newest reading."""
    _pinned: bool = False
    """True if the cursor stays where it is."""

    def open(self, history: LiveHistory) -> None:
        """Show the newest readings at another store."""
        self.history, self._recording, self.recording_name = history, None, ""
        self._end = self.cursor = None
        self._pinned = self.playing = False
        self._span = SPAN

    # ---- what is shown -----------------------------------------------------------------------------------------------

    @property
    def shown(self) -> LiveHistory:
        """The history that is drawn: the store's, or that of a recording."""
        return self._recording if self._recording is not None else self.history

    @property
    def at_end(self) -> bool:
        """True while the newest reading of the store is shown."""
        return self._end is None and self._recording is None

    @property
    def paused(self) -> bool:
        """True while an earlier time is shown and does not move."""
        return self._end is not None and not self.playing

    @property
    def _held(self) -> tuple[float, float]:
        first_ms, last_ms = self.shown.span
        return first_ms / 1000, last_ms / 1000

    def range(self) -> Range:
        """Return the time that is drawn."""
        return Range(self._end if self._end is not None else self._held[1], self._span, self.cursor)

    def reading(self) -> PositionReading | None:
        """Return the reading at the right edge. None before the first one."""
        return shown_reading(self.shown, self.range(), live=self.at_end)

    def clock(self) -> str:
        """Return the time of the right edge."""
        return clock(round(self.range().end * 1000))[:10]

    def note(self) -> str:
        """Return how the shown time lies: live, before live, or in a recording."""
        if self._recording is not None:
            return tr("recording {name}", name=self.recording_name)
        if self.at_end:
            return tr("live")
        return tr("{span} before live", span=span(self.shown.span[1] - round(self.range().end * 1000)))

    # ---- moving in time ----------------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Stop where it is; or go on at the end, unless a recording is shown, which has no end to follow."""
        if self._end is None or self.playing:
            self._end, self.playing = self.range().end, False
        elif self._recording is None:
            self._end = None

    def go_live(self) -> None:
        """Show the newest reading of the store again, out of a recording too."""
        self._recording, self.recording_name, self._end, self.playing = None, "", None, False

    def go_to(self, time_ms: int) -> None:
        """Show the time ``time_ms`` at the right edge."""
        self._end = time_ms / 1000

    def show_recording(self, name: str, history: LiveHistory) -> None:
        """Show all of a recording in place of the store."""
        self._recording, self.recording_name = history, name
        self.fit()

    def play(self) -> None:
        """Play from the shown time on, from the beginning if the end is shown; or stop playing."""
        if self.playing:
            self.playing = False
            return
        oldest, newest = self._held
        if self._end is None or self._end >= newest:
            self._end = oldest
        self.playing = True

    def play_on(self) -> None:
        """Move on by one step of playing. At the end, a store is live again and a recording stands still."""
        newest, end = self._held[1], (self._end or 0) + REPLAY_MS / 1000
        if end < newest:
            self._end = end
            return
        self.playing = False
        self._end = None if self._recording is None else newest

    def zoom(self, factor: float, seconds: float) -> None:
        """Show ``factor`` times as much time. The place ``seconds`` from the right edge stays where it is."""
        span_before, end = self._span, self.range().end
        self._span = min(max(self._span * factor, MIN_SPAN_S), MAX_SPAN_S)
        if self._end is not None:
            self._end = end + seconds - seconds * self._span / span_before

    def drag(self, seconds: float) -> None:
        """Move the shown time within the recorded range. At the end of a store it is live again."""
        (oldest, newest), end = self._held, self.range().end + seconds
        self._end = None if end >= newest and self._recording is None else max(oldest, min(end, newest))

    def fit(self) -> None:
        """Show all the time that is held."""
        oldest, newest = self._held
        self._span = min(max(newest - oldest, MIN_SPAN_S), MAX_SPAN_S)
        self._end = None if self._recording is None else newest

    # ---- the cursor --------------------------------------------------------------------------------------------------

    def point(self, seconds: float | None) -> bool:
        """Move the cursor to ``seconds`` from the right edge, or away. Return False if it is pinned."""
        if self._pinned:
            return False
        self.cursor = None if seconds is None else self.range().end + seconds
        return True

    def pick(self, seconds: float) -> None:
        """Pin the cursor at ``seconds`` from the right edge, or let it go there."""
        self._pinned = not self._pinned
        self.cursor = self.range().end + seconds
