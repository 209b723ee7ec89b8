"""Which topics were deleted from a store: their units are in its log still, their queues are not
(docs/formats/cleaning.md).
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.inspection.broker_traces import is_of_a_broker
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.tables import read_table, table_topics
from engine.rules.dispatch_rules import KnownTopics

_BEYOND = 1 << 62


def deleted_topics(store: StoreSnapshot, first_of: Mapping[str, int]) -> list[str]:
    """The topics that :meth:`KnownTopics.deleted` returns for this store."""
    return topics_known(store).deleted(first_of)


def is_listed(store: StoreSnapshot) -> bool:
    """Return True if a broker could load the topics table. A lost table says nothing about deleted topics."""
    table = read_table(store, "topics.json")
    return table is not None and isinstance(table.value.get("topicConfigTable"), dict)


def topics_known(store: StoreSnapshot) -> KnownTopics:
    """The topics that the store's folders and tables know. Raises :class:`CannotRead`."""
    assert store.paths is not None
    folders, listed = store.queues.by_topic(), frozenset(table_topics(store))
    store.queues.require()
    is_reliable = is_listed(store) or not (store.abort or not folders or is_of_a_broker(store))
    newest = max(
        (
            newest_entry[0]
            for queues in folders.values()
            for queue in queues.values()
            if (newest_entry := queue.newest())
        ),
        default=_BEYOND,
    )
    return KnownTopics(frozenset(folders), listed, newest, is_reliable)
