"""Which topics were deleted from a store: their units are in its log still, their queues are not
(docs/formats/cleaning.md).
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.inspection.broker_traces import is_of_a_broker
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.tables import read_table, table_topics
from engine.rules.dispatch_rules import TopicsKnown

_BEYOND = 1 << 62


def deleted_topics(store: StoreSnapshot, first_of: Mapping[str, int]) -> list[str]:
    """The topics that :meth:`TopicsKnown.deleted` names for what the store knows."""
    return topics_known(store).deleted(first_of)


def is_listed(store: StoreSnapshot) -> bool:
    """Whether a broker could load the topics table: one that was lost names no topic that was deleted."""
    table = read_table(store, "topics.json")
    return table is not None and isinstance(table.value.get("topicConfigTable"), dict)


def topics_known(store: StoreSnapshot) -> TopicsKnown:
    """What the store's folders and tables tell of its topics. Raises :class:`CannotRead`."""
    assert store.paths is not None
    folders, listed = store.topics(), frozenset(table_topics(store))
    store.whole_topics()
    told = is_listed(store) or not (store.abort or not folders or is_of_a_broker(store))
    newest = max(
        (found[0] for queues in folders.values() for queue in queues.values() if (found := queue.newest())),
        default=_BEYOND,
    )
    return TopicsKnown(frozenset(folders), listed, newest, told)
