"""The one series of a store that is looked at: every view and window of this program shows the same, from its start.

Whoever looks at a store feeds its history; of several windows on one store the first feeds and the others read, and the
next goes on where it closes. A lab store's desk keeps the history as long as the store is open, whoever looks.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from viewer.runtime.position_look import Look

if TYPE_CHECKING:
    from viewer.runtime.live_history import LiveHistory, Mark

_histories: WeakValueDictionary[Path, LiveHistory] = WeakValueDictionary()
_feeds: dict[Path, list[Feed]] = {}


def history_of(store: Path) -> LiveHistory:
    """The history of the store at ``store``; a new one where nobody keeps it."""
    found = _histories.get(store)
    if found is None:
        from viewer.runtime.live_history import LiveHistory  # with numpy, which the first rows do without

        found = _histories[store] = LiveHistory()
    return found


class Feed:
    """What one window brings to the history of its store."""

    def __init__(self, store: Path) -> None:
        self._store = store
        _feeds.setdefault(store, []).append(self)

    @cached_property
    def history(self) -> LiveHistory:
        """The history of the store, kept as long as this window looks."""
        return history_of(self._store)

    @property
    def begun(self) -> bool:
        """Whether this window has fed or shown anything."""
        return "history" in self.__dict__

    def add(self, look: Look) -> list[Mark]:
        """One more look, and the marks it made; none where another window feeds."""
        return self.history.add(look) if _feeds[self._store][:1] == [self] else []

    def close(self) -> None:
        """The window looks no more."""
        feeds = _feeds.get(self._store, [])
        if self in feeds:
            feeds.remove(self)
        if not feeds:
            _feeds.pop(self._store, None)
