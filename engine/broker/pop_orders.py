"""Orderly pops: the messages of a queue that a group holds, the order in which they are done, and until when nobody
else pops there (docs/protocol/pop.md#orderly; docs/formats/config-tables.md#tables). Stored in
``consumerOrderInfo.json``.

Java: ``ConsumerOrderInfoManager``, ``ConsumerOrderInfoLockManager``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.callbacks import Clock
from engine.codec import pop as codec
from engine.store.config_tables import ConfigTable

FILE = "consumerOrderInfo.json"
UNUSED_RECORD_AGE_MS = 24 * 3_600_000
"""A record that was not used for this time is dropped."""


@dataclass(slots=True)
class OrderInfo:
    """The last pop of a group from a queue. ``offsets`` are queue offsets, ``acked`` has a bit for each of them;
    times are ms. ``visible`` holds the times at which single messages become visible again, ``counts`` how often they
    were popped before.
    """

    pop_time: int
    invisible_time: int
    offsets: tuple[int, ...]
    last_used: int
    attempt_id: str | None = None
    acked: int = 0
    visible: dict[int, int] = field(default_factory=dict)
    counts: dict[int, int] | None = None

    def _open(self) -> list[int]:
        return [offset for index, offset in enumerate(self.offsets) if not self.acked >> index & 1]

    def free_at(self) -> int:
        """Return when the last open message is visible again (ms); 0 if all are acknowledged."""
        default_time = self.pop_time + self.invisible_time
        return max((self.visible.get(offset, default_time) for offset in self._open()), default=0)

    @property
    def following(self) -> int:
        """Return the first open offset; if none is open, the offset behind the last."""
        return next(iter(self._open()), self.offsets[-1] + 1)

    def row(self) -> dict[str | int, Any]:
        """Return the record as a row of the table."""
        first_offset, *later_offsets = self.offsets
        row: dict[str | int, Any] = {} if self.attempt_id is None else {"a": self.attempt_id}
        row |= {"cm": self.acked, "i": self.invisible_time, "l": self.last_used}
        row["o"] = [first_offset, *(offset - first_offset for offset in later_offsets)]
        if self.counts is not None:
            row["oc"] = dict(self.counts)
        if self.visible:
            row["ot"] = dict(self.visible)
        return {**row, "popTime": self.pop_time}


def read_row(row: Any) -> OrderInfo | None:
    """Parse a row of the table; None if it is no record."""
    if not isinstance(row, Mapping):
        return None
    offsets = [offset for offset in row.get("o") or () if isinstance(offset, int)]
    if not offsets:
        return None
    attempt = row.get("a")
    numbers = {name: value for name in ("popTime", "i", "l", "cm") if isinstance(value := row.get(name), int)}
    counts = row.get("oc")
    return OrderInfo(
        numbers.get("popTime", 0),
        numbers.get("i", 0),
        (offsets[0], *(offsets[0] + offset for offset in offsets[1:])),
        numbers.get("l", 0),
        None if attempt is None else str(attempt),
        numbers.get("cm", 0),
        _by_offset(row.get("ot")),
        None if counts is None else _by_offset(counts),
    )


def _by_offset(table: Any) -> dict[int, int]:
    rows = table.items() if isinstance(table, Mapping) else ()
    return {int(key): value for key, value in rows if str(key).isdecimal() and isinstance(value, int)}


class PopOrders:
    """The records of all groups. ``freed(topic, group, queue_id, at)`` is called with the time when a queue is free
    again (ms).
    """

    def __init__(self, table: ConfigTable, now: Clock) -> None:
        self._file = table
        self._now = now
        self._table: dict[tuple[str, str], dict[int, OrderInfo]] = {}
        self.freed: Callable[[str, str, int, int], None] = lambda *_: None

    def load(self) -> None:
        """Read the table. Raises what :meth:`ConfigTable.load` does."""
        self._file.load()
        table = self._file.value.get("table")
        for key, queues in table.items() if isinstance(table, Mapping) else ():
            names = str(key).split("@")
            if len(names) != 2 or not isinstance(queues, Mapping):
                continue
            rows = {
                int(queue_id): info
                for queue_id, row in queues.items()
                if str(queue_id).isdecimal() and (info := read_row(row))
            }
            self._table[names[0], names[1]] = rows

    def __len__(self) -> int:
        return len(self._table)

    def notify_all(self) -> None:
        """Call ``freed`` for every queue that is not free now: after a start."""
        for (topic, group), queues in self._table.items():
            for queue_id, info in queues.items():
                self._record_change(topic, group, queue_id, info)

    def _record_change(self, topic: str, group: str, queue_id: int, info: OrderInfo) -> None:
        self.freed(topic, group, queue_id, max(info.free_at(), self._now()))
        self._file.changed = True

    def save(self, queues_of: Callable[[str], int], is_group: Callable[[str], bool], *, always: bool = False) -> None:
        """Write the table if it changed, or ``always``, without old records and records of deleted topics
        (``queues_of`` returns 0), queues and groups. Raises ``OSError``.
        """
        if not self._file.changed and not always:
            return
        cutoff_ms = self._now() - UNUSED_RECORD_AGE_MS
        for (topic, group), queues in list(self._table.items()):
            count = queues_of(topic) if is_group(group) else 0
            for queue_id, info in list(queues.items()):
                if queue_id >= count or info.last_used < cutoff_ms:
                    del queues[queue_id]
            if not queues:
                del self._table[topic, group]
        rows = {
            f"{topic}@{group}": {queue_id: info.row() for queue_id, info in queues.items()}
            for (topic, group), queues in self._table.items()
        }
        self._file.value = {"table": rows}
        self._file.write(*self._file.taken())

    def get(self, topic: str, group: str, queue_id: int) -> OrderInfo | None:
        """Return the record of the group's last pop from a queue."""
        return self._table.get((topic, group), {}).get(queue_id)

    def clear(self, topic: str, group: str, queue_id: int) -> None:
        """Drop the record of a group whose offset an administrator has set."""
        self._table.get((topic, group), {}).pop(queue_id, None)
        self._file.changed = True

    def is_blocked(self, topic: str, group: str, queue_id: int, attempt_id: str | None) -> bool:
        """Return True if the group must not pop now: a message is open, and not visible yet. A repetition of the
        same attempt is not blocked by itself.
        """
        info = self.get(topic, group, queue_id)
        if info is None or (info.attempt_id is not None and info.attempt_id == attempt_id):
            return False
        return self._now() < info.free_at()

    def popped(
        self,
        topic: str,
        group: str,
        queue_id: int,
        offsets: Sequence[int],
        attempt_id: str | None,
        pop_time: int,
        invisible_time: int,
    ) -> str:
        """Record that the group popped ``offsets``. Return the text of ``orderCountInfo``."""
        previous = self.get(topic, group, queue_id)
        info = OrderInfo(pop_time, invisible_time, tuple(offsets), self._now(), attempt_id)
        if previous is not None:
            info.counts = _counts(previous, info)
        self._table.setdefault((topic, group), {})[queue_id] = info
        self._record_change(topic, group, queue_id, info)
        mark, counts = codec.mark_of(topic), info.counts or {}
        rows: list[tuple[str, object, object]] = [
            (mark, f"qo{queue_id}%{offset}", count) for offset, count in counts.items()
        ]
        min_count = min(counts.values()) if counts and len(counts) == len(info.offsets) else 0
        return codec.entries([*rows, (mark, queue_id, min_count)])

    def acked(self, topic: str, group: str, queue_id: int, offset: int, pop_time: int) -> int:
        """Acknowledge a message. Return the offset that the group commits; −1 if it holds no such message, −2 if it
        has popped again since (nothing changes then).
        """
        info = self.get(topic, group, queue_id)
        if info is None:
            return offset + 1
        if info.pop_time != pop_time:
            return -2
        if offset not in info.offsets:
            return -1
        info.acked |= 1 << info.offsets.index(offset)
        self._record_change(topic, group, queue_id, info)
        return info.following

    def postponed(
        self,
        topic: str,
        group: str,
        queue_id: int,
        offset: int,
        pop_time: int,
        visible_at: int,
        *,
        suspends: bool = False,
    ) -> None:
        """Make a message visible again at ``visible_at`` (ms), or with ``suspends`` all of its pop; nothing changes if
        the group has popped again since.
        """
        info = self.get(topic, group, queue_id)
        if info is not None and info.pop_time == pop_time:
            info.visible |= dict.fromkeys(info.offsets if suspends else (offset,), visible_at)
            self._record_change(topic, group, queue_id, info)


def _counts(previous: OrderInfo, info: OrderInfo) -> dict[int, int]:
    """Return how often each message was popped before; a repetition of the same attempt counts nothing."""
    old_counts = previous.counts or {}
    if previous.attempt_id is not None and previous.attempt_id == info.attempt_id:
        return old_counts
    return {offset: old_counts.get(offset, 0) + 1 for offset in info.offsets if offset in previous.offsets}
