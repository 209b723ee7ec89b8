"""Offsets that an administrator has set, until a group's next pull is told (docs/protocol/broker.md#pull, #admin).

Java: the ``resetOffsetTable`` of ``ConsumerOffsetManager``.
"""

from __future__ import annotations


class Resets:
    """The table: what each group reads next of a queue, by word of an administrator."""

    def __init__(self) -> None:
        self._offsets: dict[tuple[str, str, int], int] = {}

    def set(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """The group's next pull of the queue is told ``offset``."""
        self._offsets[group, topic, queue_id] = offset

    def offset(self, group: str, topic: str, queue_id: int) -> int | None:
        """What the group has not been told yet; None where nothing was set. Until then it commits nothing."""
        return self._offsets.get((group, topic, queue_id))

    def take(self, group: str, topic: str, queue_id: int) -> int | None:
        """:meth:`offset`, once."""
        return self._offsets.pop((group, topic, queue_id), None)
