"""The time histogram of a view with its commands: shown or hidden, messages or bytes, a brushed range and its undo."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from shiboken6 import isValid

from viewer.pane.histogram_feed import HistogramFeed
from viewer.pane.time_histogram import TimeHistogram
from viewer.widgets.cell_filter import combined

if TYPE_CHECKING:
    from viewer.runtime.settings import Settings
    from viewer.runtime.store_session import StoreSession


class HistogramBar(QObject):
    """The strip and what fills it. Those of all views are shown or hidden together.

    Emits ``filterRequested(filter)`` when a range is brushed or taken back, ``narrowed(before, after)`` with the
    filters around a brushed range, and ``offsetRequested(offset)`` for the first unit of a bar.
    """

    filterRequested = Signal(str)
    narrowed = Signal(str, str)
    offsetRequested = Signal(object)

    def __init__(self, name: str, strip: TimeHistogram | None = None) -> None:
        self.strip = strip if strip is not None else TimeHistogram(name)
        super().__init__(self.strip)
        _bars.add(self)
        self.feed = HistogramFeed(self.strip)
        self.settings: Settings | None = None
        self._filter = ""
        self._brushed: list[tuple[str, str]] = []
        """Filters before and after each brushed range."""
        self.feed.termRequested.connect(self._narrow)
        self.strip.undoRequested.connect(self._undo)
        self.strip.offsetChosen.connect(self.offsetRequested)

    @property
    def pending(self) -> bool:
        """True if the histogram will be read as soon as it may."""
        return self.feed.pending

    def use(self, settings: Settings) -> None:
        """Show it as it was left."""
        self.settings = settings
        self.strip.setVisible(settings.histogram_shown)
        self.strip.set_bytes(settings.histogram_bytes)

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store, or none."""
        self._filter, self._brushed = "", []
        self.feed.set_session(session)

    def show(self, where: str) -> None:
        """Show the units that the filter ``where`` takes."""
        self._filter = where
        self.feed.show(where)

    def pause(self) -> None:
        """Read no more until :meth:`show`; the bars stay."""
        self.feed.pause()

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the commands of the histogram."""
        return {"view.histogram": self.toggle, "histogram.bytes": self.toggle_bytes}

    def toggle(self) -> None:
        """Show or hide it, now and for the next start."""
        self._choose(self.strip.isHidden(), self.strip.model.shows_bytes)

    def toggle_bytes(self) -> None:
        """Make the bars as high as their bytes, or as their number of messages, now and for the next start."""
        self._choose(not self.strip.isHidden(), not self.strip.model.shows_bytes)

    def _choose(self, is_shown: bool, shows_bytes: bool) -> None:
        if self.settings is not None:
            show_histograms(self.settings, is_shown=is_shown, shows_bytes=shows_bytes)
        else:
            self.strip.setVisible(is_shown)
            self.strip.set_bytes(shows_bytes)

    def _narrow(self, term: str) -> None:
        before = self._filter
        after = combined(before, "and", term)
        self._brushed.append((before, after))
        self.filterRequested.emit(after)
        self.narrowed.emit(before, after)

    def _undo(self) -> None:
        """Take the last brushed range back, if the filter is still the one that it made; else show the whole time."""
        if self._brushed:
            before, after = self._brushed.pop()
            if after.strip() == self._filter:
                self.filterRequested.emit(before)
                return
            self._brushed = []
        self.strip.show_all()


_bars: weakref.WeakSet[HistogramBar] = weakref.WeakSet()


def show_histograms(settings: Settings, *, is_shown: bool, shows_bytes: bool) -> None:
    """Show or hide the time histogram in every view, now and for the next start."""
    settings.histogram_shown, settings.histogram_bytes = is_shown, shows_bytes
    for bar in list(_bars):
        if bar.settings is settings and isValid(bar.strip):  # that of a view that was made again may still be here
            bar.strip.setVisible(is_shown)
            bar.strip.set_bytes(shows_bytes)
