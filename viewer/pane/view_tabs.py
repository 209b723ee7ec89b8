"""Tabs whose pages lie in two views, each of which shows the same words: one field, or one subject, seen two ways.

Cluster and Requests share Lines, Tables, Rebalance and Requests; Where and Trace share what is looked for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from PySide6.QtCore import Signal

from viewer.look.assets import tr, words
from viewer.runtime.places import Place
from viewer.widgets.basics import WordTabs


class ViewTabs(WordTabs):
    """Tabs of a view that shows ``own`` itself; ``elsewhere(key)`` when a tab of the other view is chosen."""

    elsewhere = Signal(str)

    def __init__(self, name: str, titles: Sequence[tuple[str, str]], own: Collection[str]) -> None:
        super().__init__(name, [(key, tr(title)) for key, title in titles])
        self._own = own
        super().choose(next(iter(own)))

    def choose(self, key: str) -> None:
        """Choose a tab by its key; one of the other view is asked for."""
        if key in self._own:
            super().choose(key)
        else:
            self.elsewhere.emit(key)


LINES, TABLES, REBALANCE, REQUESTS = "lines", "tables", "rebalance", "requests"
OF_CLUSTER = (LINES, TABLES, REBALANCE)
CLUSTER_TITLES = (
    (LINES, words("Lines")),
    (TABLES, words("Tables")),
    (REBALANCE, words("Rebalance")),
    (REQUESTS, words("Requests")),
)


class ClusterTabs(ViewTabs):
    """The tabs of Cluster and Requests; ``placeRequested(place)`` when a tab of the other view is chosen."""

    placeRequested = Signal(object)

    def __init__(self, name: str, own: Collection[str]) -> None:
        super().__init__(name, CLUSTER_TITLES, own)
        self.elsewhere.connect(self._go)

    def _go(self, key: str) -> None:
        self.placeRequested.emit(Place("requests") if key == REQUESTS else Place("cluster", field=key))


MESSAGE, CHAIN = "message", "chain"
LOOKED_FOR_TITLES = ((MESSAGE, words("One message")), (CHAIN, words("Key's chain")))


class LookForTabs(ViewTabs):
    """What is looked for: a message, as Where answers, or the chain of a key in the index, as a trace shows."""

    def __init__(self, name: str, own: str) -> None:
        super().__init__(name, LOOKED_FOR_TITLES, (own,))
        self.setToolTip(tr("Look for one message by any name of it, or for the chain of a key in the index files"))
