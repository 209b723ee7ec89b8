"""Offsets that an administrator has set, until a group's next pull gets them (docs/protocol/broker.md#pull, #admin).

Java: the ``resetOffsetTable`` of ``ConsumerOffsetManager``.
"""

from __future__ import annotations


class Resets:
    """Table of the offsets that an administrator has set, by group, topic and queue."""

    def __init__(self) -> None:
        self._offsets: dict[tuple[str, str, int], int] = {}

    def set(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """The group's next pull of the queue gets ``offset``."""
        self._offsets[group, topic, queue_id] = offset

    def offset(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return the new offset that the group has not been told yet; None if there was no reset. Until then it
        commits nothing.
        """
        return self._offsets.get((group, topic, queue_id))

    def take(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return :meth:`offset`, and forget it."""
        return self._offsets.pop((group, topic, queue_id), None)
