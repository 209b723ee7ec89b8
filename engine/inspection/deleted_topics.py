"""Which topics were deleted from a store: their units are in its log still, their queues are not (spec 11)."""

from __future__ import annotations

from collections.abc import Mapping

from engine.inspection.snapshot import StoreSnapshot

_BEYOND = 1 << 62


def deleted_topics(store: StoreSnapshot, first_of: Mapping[str, int]) -> list[str]:
    """Topics that had a queue once, since units behind theirs were dispatched, and have none now nor a row in the
    topics table.

    ``first_of`` gives for each topic of the log the offset of its first unit that goes into a queue. Without a table
    nobody can have deleted a topic in a store that crashed or has no queue at all: such queues were lost.
    """
    assert store.paths is not None
    folders, listed = store.topics(), set(store.table_topics())
    if not (store.paths.config / "topics.json").exists() and (store.abort or not folders):
        return []
    newest = max(
        (found[0] for queues in folders.values() for queue in queues.values() if (found := queue.newest())),
        default=_BEYOND,
    )
    return [
        topic for topic, offset in first_of.items() if topic not in folders and topic not in listed and offset < newest
    ]
