"""Orderly pops: which messages of a queue a group has in its hands, in what order they count as done, and until when
nobody else pops there (docs/protocol/pop.md#orderly; docs/formats/config-tables.md#tables). Kept in
``consumerOrderInfo.json``.

Java: ``ConsumerOrderInfoManager``, ``ConsumerOrderInfoLockManager``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.codec import pop as codec
from engine.store.config_tables import ConfigTable

FILE = "consumerOrderInfo.json"
LIVES_MS = 24 * 3_600_000
"""A record that was not used for so long is dropped."""


@dataclass(slots=True)
class OrderInfo:
    """What a group popped last of a queue. ``offsets`` are queue offsets, ``acked`` has a bit for each of them; times
    are ms. ``visible`` says of single messages when they are visible again, ``counts`` how often they came before.
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
        return [offset for at, offset in enumerate(self.offsets) if not self.acked >> at & 1]

    def free_at(self) -> int:
        """When the last open message is visible again (ms); 0 where all are acknowledged."""
        usual = self.pop_time + self.invisible_time
        return max((self.visible.get(offset, usual) for offset in self._open()), default=0)

    @property
    def following(self) -> int:
        """The first open offset, behind the last where none is."""
        return next(iter(self._open()), self.offsets[-1] + 1)

    def row(self) -> dict[str | int, Any]:
        """As the table has it."""
        first, *others = self.offsets
        row: dict[str | int, Any] = {} if self.attempt_id is None else {"a": self.attempt_id}
        row |= {"cm": self.acked, "i": self.invisible_time, "l": self.last_used}
        row["o"] = [first, *(offset - first for offset in others)]
        if self.counts is not None:
            row["oc"] = dict(self.counts)
        if self.visible:
            row["ot"] = dict(self.visible)
        return {**row, "popTime": self.pop_time}


def read_row(row: Any) -> OrderInfo | None:
    """A record of the table; None for what is none."""
    if not isinstance(row, Mapping):
        return None
    offsets = [one for one in row.get("o") or () if isinstance(one, int)]
    if not offsets:
        return None
    attempt = row.get("a")
    whole = {name: value for name in ("popTime", "i", "l", "cm") if isinstance(value := row.get(name), int)}
    counts = row.get("oc")
    return OrderInfo(
        whole.get("popTime", 0),
        whole.get("i", 0),
        (offsets[0], *(offsets[0] + one for one in offsets[1:])),
        whole.get("l", 0),
        None if attempt is None else str(attempt),
        whole.get("cm", 0),
        _by_offset(row.get("ot")),
        None if counts is None else _by_offset(counts),
    )


def _by_offset(found: Any) -> dict[int, int]:
    rows = found.items() if isinstance(found, Mapping) else ()
    return {int(key): value for key, value in rows if str(key).isdecimal() and isinstance(value, int)}


class PopOrders:
    """The records of all groups. ``freed(topic, group, queue_id, at)`` is told when a queue is free again (ms)."""

    def __init__(self, table: ConfigTable, now: Callable[[], int]) -> None:
        self._file = table
        self._now = now
        self._table: dict[tuple[str, str], dict[int, OrderInfo]] = {}
        self.freed: Callable[[str, str, int, int], None] = lambda *_: None

    def load(self) -> None:
        """Read the table. Raises what :meth:`ConfigTable.load` does."""
        self._file.load()
        found = self._file.value.get("table")
        for key, queues in found.items() if isinstance(found, Mapping) else ():
            names = str(key).split("@")
            if len(names) != 2 or not isinstance(queues, Mapping):
                continue
            rows = {int(one): info for one, row in queues.items() if str(one).isdecimal() and (info := read_row(row))}
            self._table[names[0], names[1]] = rows

    def tell(self) -> None:
        """Tell of every queue that is not free now: after a start."""
        for (topic, group), queues in self._table.items():
            for queue_id, info in queues.items():
                self._told(topic, group, queue_id, info)

    def _told(self, topic: str, group: str, queue_id: int, info: OrderInfo) -> None:
        self.freed(topic, group, queue_id, max(info.free_at(), self._now()))
        self._file.changed = True

    def save(self, queues_of: Callable[[str], int], is_group: Callable[[str], bool], *, always: bool = False) -> None:
        """Write the table where it has changed, or ``always``; without what no longer is: topics (``queues_of`` gives
        0), queues, groups, old records. Raises ``OSError``.
        """
        if not self._file.changed and not always:
            return
        before = self._now() - LIVES_MS
        for (topic, group), queues in list(self._table.items()):
            count = queues_of(topic) if is_group(group) else 0
            for queue_id, info in list(queues.items()):
                if queue_id >= count or info.last_used < before:
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
        """What the group has in its hands of a queue."""
        return self._table.get((topic, group), {}).get(queue_id)

    def clear(self, topic: str, group: str, queue_id: int) -> None:
        """It has nothing in its hands: an administrator has set its offset."""
        self._table.get((topic, group), {}).pop(queue_id, None)
        self._file.changed = True

    def is_blocked(self, topic: str, group: str, queue_id: int, attempt_id: str | None) -> bool:
        """Whether the group pops nothing there now: a message is open, and not visible yet. The same attempt once more
        is not held up by itself.
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
        """The group has ``offsets`` in its hands now; what ``orderCountInfo`` says of them."""
        before = self.get(topic, group, queue_id)
        info = OrderInfo(pop_time, invisible_time, tuple(offsets), self._now(), attempt_id)
        if before is not None:
            info.counts = _counts(before, info)
        self._table.setdefault((topic, group), {})[queue_id] = info
        self._told(topic, group, queue_id, info)
        mark, counts = codec.mark_of(topic), info.counts or {}
        rows: list[tuple[str, object, object]] = [(mark, f"qo{queue_id}%{at}", count) for at, count in counts.items()]
        least = min(counts.values()) if counts and len(counts) == len(info.offsets) else 0
        return codec.entries([*rows, (mark, queue_id, least)])

    def acked(self, topic: str, group: str, queue_id: int, offset: int, pop_time: int) -> int:
        """A message is done with: the offset that the group commits; −1 where it has no such message, −2 where it has
        popped anew since (nothing changes then).
        """
        info = self.get(topic, group, queue_id)
        if info is None:
            return offset + 1
        if info.pop_time != pop_time:
            return -2
        if offset not in info.offsets:
            return -1
        info.acked |= 1 << info.offsets.index(offset)
        self._told(topic, group, queue_id, info)
        return info.following

    def postponed(self, topic: str, group: str, queue_id: int, offset: int, pop_time: int, visible_at: int) -> None:
        """A message is visible again at ``visible_at`` (ms); nothing where the group has popped anew since."""
        info = self.get(topic, group, queue_id)
        if info is not None and info.pop_time == pop_time:
            info.visible[offset] = visible_at
            self._told(topic, group, queue_id, info)


def _counts(before: OrderInfo, info: OrderInfo) -> dict[int, int]:
    """How often each message came before; the same attempt once more counts nothing."""
    known = before.counts or {}
    if before.attempt_id is not None and before.attempt_id == info.attempt_id:
        return known
    return {offset: known.get(offset, 0) + 1 for offset in info.offsets if offset in before.offsets}
