"""The position history of a store: all views and windows of this program share one, from its start.

Of several windows on one store, the first adds readings and the others only read; when it closes, the next one goes on.
The history of a lab store lives as long as the store is open, whether a view shows it or not.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from viewer.runtime.position_reading import PositionReading

if TYPE_CHECKING:
    from viewer.runtime.live_history import LiveHistory, Mark

_histories: WeakValueDictionary[Path, LiveHistory] = WeakValueDictionary()
_feeds: dict[Path, list[HistoryFeed]] = {}


def history_of(store: Path) -> LiveHistory:
    """Return the history of the store at ``store``; a new one if none is held."""
    history = _histories.get(store)
    if history is None:
        from viewer.runtime.live_history import LiveHistory  # with numpy, which the first rows do without

        history = _histories[store] = LiveHistory()
    return history


class HistoryFeed:
    """Passes the readings of one window to the history of its store."""

    def __init__(self, store: Path) -> None:
        self._store = store
        _feeds.setdefault(store, []).append(self)

    @cached_property
    def history(self) -> LiveHistory:
        """The history of the store, kept as long as this window is open."""
        return history_of(self._store)

    @property
    def begun(self) -> bool:
        """True if this window has added or shown anything."""
        return "history" in self.__dict__

    def add(self, reading: PositionReading) -> list[Mark]:
        """Add a reading and return the marks it made; none while another window feeds the history."""
        return self.history.add(reading) if _feeds[self._store][:1] == [self] else []

    def close(self) -> None:
        """Stop feeding: the window is closed."""
        feeds = _feeds.get(self._store, [])
        if self in feeds:
            feeds.remove(self)
        if not feeds:
            _feeds.pop(self._store, None)
