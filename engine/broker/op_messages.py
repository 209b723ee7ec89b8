"""Decided half messages that no op message names yet: queue offsets by half queue
(docs/formats/transactions.md#transactions).

Java: ``MessageQueueOpContext``, ``TransactionalMessageServiceImpl.getOpMessage``.
"""

from __future__ import annotations

MOST_BYTES = 4_096
INTERVAL_MS = 3_000
"""How long decisions wait for others before all become one op message."""


class OpMessages:
    """Table of decided half messages. The caller that takes a body out writes it."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[str]] = {}
        self._since: dict[int, int] = {}

    def add(self, queue_id: int, queue_offset: int, now: int) -> bool:
        """Add a decided half message at ``now`` (ms). Return True if there are enough for an op message at once."""
        waiting = self._waiting.setdefault(queue_id, [])
        if not waiting:
            self._since[queue_id] = now
        waiting.append(f"{queue_offset},")
        return sum(map(len, waiting)) > MOST_BYTES

    def bodies(self, now: int | None) -> list[tuple[int, bytes]]:
        """Return queue ids with the bodies of op messages that are due at ``now`` (ms), None for all. They stay in the
        table until :meth:`written`.
        """
        return [
            (queue_id, "".join(waiting).encode())
            for queue_id, waiting in self._waiting.items()
            if waiting and (now is None or now - self._since[queue_id] >= INTERVAL_MS or len(waiting) > 512)
        ]

    def written(self, queue_id: int, body: bytes) -> None:
        """Forget the half messages in ``body``: the log has them now."""
        count = body.count(b",")
        del self._waiting[queue_id][:count]
