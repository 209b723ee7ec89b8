"""Which topics were deleted from a store: their units are in its log still, their queues are not (spec 11)."""

from __future__ import annotations

from collections.abc import Mapping

from engine.inspection.snapshot import StoreSnapshot
from engine.rules.dispatch_rules import TopicsKnown

_BEYOND = 1 << 62


def deleted_topics(store: StoreSnapshot, first_of: Mapping[str, int]) -> list[str]:
    """The topics that :meth:`TopicsKnown.deleted` names for what the store knows."""
    return topics_known(store).deleted(first_of)


def topics_known(store: StoreSnapshot) -> TopicsKnown:
    """What the store's folders and tables tell of its topics. Raises :class:`CannotRead`."""
    assert store.paths is not None
    folders, listed = store.topics(), frozenset(store.table_topics())
    store.whole_topics()
    told = store.reading.exists(store.paths.config / "topics.json") or not (store.abort or not folders)
    newest = max(
        (found[0] for queues in folders.values() for queue in queues.values() if (found := queue.newest())),
        default=_BEYOND,
    )
    return TopicsKnown(frozenset(folders), listed, newest, told)
