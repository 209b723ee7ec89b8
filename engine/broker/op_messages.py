"""Half messages that are decided, and not written down yet: queue offsets by half queue
(docs/formats/transactions.md#transactions).

Java: ``MessageQueueOpContext``, ``TransactionalMessageServiceImpl.getOpMessage``.
"""

from __future__ import annotations

MOST_BYTES = 4_096
INTERVAL_MS = 3_000
"""How long decisions wait for others before all become one op message."""


class OpMessages:
    """The table; whoever takes a body out writes it."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[str]] = {}
        self._since: dict[int, int] = {}

    def add(self, queue_id: int, queue_offset: int, now: int) -> bool:
        """One more is decided at ``now`` (ms); True where there are enough for an op message at once."""
        waiting = self._waiting.setdefault(queue_id, [])
        if not waiting:
            self._since[queue_id] = now
        waiting.append(f"{queue_offset},")
        return sum(map(len, waiting)) > MOST_BYTES

    def bodies(self, now: int | None) -> list[tuple[int, bytes]]:
        """Queue ids with the bodies of op messages that are due at ``now`` (ms), None for all; they are waiting until
        :meth:`written` says otherwise.
        """
        return [
            (queue_id, "".join(waiting).encode())
            for queue_id, waiting in self._waiting.items()
            if waiting and (now is None or now - self._since[queue_id] >= INTERVAL_MS or len(waiting) > 512)
        ]

    def written(self, queue_id: int, body: bytes) -> None:
        """What ``body`` says stands in the log."""
        count = body.count(b",")
        del self._waiting[queue_id][:count]
