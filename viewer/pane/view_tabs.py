"""Tabs whose pages belong to two views. Both views show the same tabs, so that one subject can be seen in two ways.

Cluster and Requests share the tabs Lines, Tables, Lag, Rebalance and Requests. Where, Conversation and Trace share the
tabs for what to look for. Queues and Waiting share the tabs for entries and for messages that wait in the queues of the
broker.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from PySide6.QtCore import Signal

from viewer.look.assets import tr, words
from viewer.runtime.places import Place
from viewer.widgets.word_tabs import WordTabs


class ViewTabs(WordTabs):
    """Tabs of a view that shows ``own_keys`` itself. Emits ``otherViewChosen(key)`` for a tab of another view."""

    otherViewChosen = Signal(str)

    def __init__(self, name: str, titles: Sequence[tuple[str, str]], own_keys: Collection[str]) -> None:
        super().__init__(name, [(key, tr(title)) for key, title in titles])
        self._own = own_keys
        super().choose(next(iter(own_keys)))

    def choose(self, key: str) -> None:
        """Choose a tab by its key. A tab of the other view emits ``otherViewChosen``."""
        if key in self._own:
            super().choose(key)
        else:
            self.otherViewChosen.emit(key)


LINES, TABLES, LAG, REBALANCE, REQUESTS = "lines", "tables", "lag", "rebalance", "requests"
OF_CLUSTER = (LINES, TABLES, LAG, REBALANCE)
CLUSTER_TITLES = (
    (LINES, words("Lines")),
    (TABLES, words("Tables")),
    (LAG, words("Lag")),
    (REBALANCE, words("Rebalance")),
    (REQUESTS, words("Requests")),
)


class ClusterTabs(ViewTabs):
    """The tabs of Cluster and Requests; ``placeRequested(place)`` when a tab of the other view is chosen."""

    placeRequested = Signal(object)

    def __init__(self, name: str, own_keys: Collection[str]) -> None:
        super().__init__(name, CLUSTER_TITLES, own_keys)
        self.otherViewChosen.connect(self._go)

    def _go(self, key: str) -> None:
        self.placeRequested.emit(Place("requests") if key == REQUESTS else Place("cluster", field=key))


MESSAGE, CONVERSATION, CHAIN = "message", "conversation", "chain"
SEARCH_TAB_TITLES = (
    (MESSAGE, words("One message")),
    (CONVERSATION, words("Conversation")),
    (CHAIN, words("Key's chain")),
)


class SearchTabs(ViewTabs):
    """The tabs of Where, Conversation and Trace: look for a message, follow it, or see the chain of a key."""

    def __init__(self, name: str, own_key: str) -> None:
        super().__init__(name, SEARCH_TAB_TITLES, (own_key,))
        self.setToolTip(
            tr("Where one message is; all units of a key in order; or the chain of a key in the index files")
        )


ENTRIES_TAB, WAITING_TAB = "queue", "waiting"
QUEUE_TAB_TITLES = ((ENTRIES_TAB, words("Entries")), (WAITING_TAB, words("Waiting")))


class QueueTabs(ViewTabs):
    """The tabs of Queues and Waiting; ``placeRequested(place)`` when the tab of the other view is chosen."""

    placeRequested = Signal(object)

    def __init__(self, name: str, own_key: str) -> None:
        super().__init__(name, QUEUE_TAB_TITLES, (own_key,))
        tip = tr("The entries of a queue, or the messages that wait for a time, an outcome or an acknowledgement")
        self.setToolTip(tip)
        self.otherViewChosen.connect(
            lambda key: self.placeRequested.emit(Place("waiting" if key == WAITING_TAB else "queue"))
        )
