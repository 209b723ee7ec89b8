"""What groups ask for by SQL, kept in ``consumerFilter.json``; of a message which of them want it, as the bit map that
its ext unit carries (docs/formats/config-tables.md#tables, docs/formats/reading.md#filters).

Java: ``ConsumerFilterManager``, ``CommitLogDispatcherCalcBitMap``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.codec import bloom, config_tables
from engine.errors import BadFilter
from engine.query.sql92 import compile_sql
from engine.remoting.subscriptions import TAG, Subscription
from engine.rules.unit_check import Request
from engine.store.config_tables import ConfigTable
from engine.store.message_filter import BloomData

FILE = "consumerFilter.json"
BEFORE_MS = 30_000
"""Groups that were alive when the broker ended count as dead since so long before its next start."""


@dataclass(slots=True)
class ConsumerFilter:
    """What a group asks for of a topic. Times are ms; ``dead`` is 0 while a member of it is connected, ``version`` the
    client's own of its subscription.
    """

    topic: str
    group: str
    expression: str
    kind: str
    version: int
    born: int
    matches: Callable[[Mapping[str, str]], bool] | None
    dead: int = 0

    @property
    def is_dead(self) -> bool:
        return self.dead >= self.born

    @property
    def positions(self) -> tuple[int, ...]:
        return bloom.positions(self.group, self.topic)

    def bloom_data(self) -> BloomData:
        """What a pull asks ext units for."""
        return BloomData(self.positions, bloom.BITS, self.born)

    def row(self) -> dict[str | int, Any]:
        """As the table has it."""
        return {
            "bloomFilterData": {"bitNum": bloom.BITS, "bitPos": list(self.positions)},
            "bornTime": self.born,
            "clientVersion": self.version,
            "consumerGroup": self.group,
            "dead": self.is_dead,
            "deadTime": self.dead,
            "expression": self.expression,
            "expressionType": self.kind,
            "topic": self.topic,
        }


def _compiled(expression: str) -> Callable[[Mapping[str, str]], bool] | None:
    try:
        return compile_sql(expression)
    except BadFilter:
        return None


class ConsumerFilters:
    """By topic and group. Changed by the broker's loop; :meth:`bit_map` is asked by the thread that dispatches."""

    def __init__(self, table: ConfigTable, now: Callable[[], int]) -> None:
        self._file = table
        self._now = now
        self._by_topic: dict[str, dict[str, ConsumerFilter]] = {}

    def load(self) -> None:
        """Read the table. Where one group's bits are others than here, all of it is left out, as RocketMQ does.

        Raises what :meth:`ConfigTable.load` does.
        """
        self._file.load()
        rows = config_tables.consumer_filters(self._file.value).rows
        if any(row.bit_num != bloom.BITS or len(row.bit_positions) != bloom.HASHES for row in rows):
            return
        ended = self._now() - BEFORE_MS
        for row in rows:
            self._by_topic.setdefault(row.topic, {})[row.group] = ConsumerFilter(
                row.topic,
                row.group,
                row.expression,
                row.expression_type,
                row.client_version,
                row.born_time,
                _compiled(row.expression),
                row.dead_time or max(ended, row.born_time),
            )

    def get(self, topic: str, group: str) -> ConsumerFilter | None:
        """What a group asks for of a topic."""
        return self._by_topic.get(topic, {}).get(group)

    def register(self, group: str, subscriptions: Iterable[Subscription]) -> None:
        """A member says what its group subscribes to; what it does not name any more is dead."""
        wanted = list(subscriptions)
        for one in wanted:
            if one.kind != TAG and one.expression:
                self._register(group, one)
        topics = {one.topic for one in wanted}
        for topic, by_group in self._by_topic.items():
            if topic not in topics:
                self._die(by_group.get(group))

    def _register(self, group: str, wanted: Subscription) -> None:
        by_group = self._by_topic.get(wanted.topic, {})
        old = by_group.get(group)
        if old is not None and wanted.version <= old.version:
            if wanted.version == old.version and old.is_dead:
                old.dead, self._file.changed = 0, True
            return
        self._file.changed = True
        if old is not None and (old.expression, old.kind) == (wanted.expression, wanted.kind):
            old.version, old.dead = wanted.version, 0
            return
        matches = _compiled(wanted.expression)
        if matches is None:
            rest = {name: one for name, one in by_group.items() if name != group}
            self._by_topic = {**self._by_topic, wanted.topic: rest}  # in one step: another thread reads it
            return
        made = ConsumerFilter(wanted.topic, group, wanted.expression, wanted.kind, wanted.version, self._now(), matches)
        self._by_topic = {**self._by_topic, wanted.topic: {**by_group, group: made}}

    def unregister(self, group: str) -> None:
        """A group has no member any more."""
        for by_group in self._by_topic.values():
            self._die(by_group.get(group))

    def _die(self, one: ConsumerFilter | None) -> None:
        if one is not None and not one.is_dead:
            one.dead, self._file.changed = self._now(), True

    def bit_map(self, request: Request) -> bytes:
        """The bits of the topic's groups whose expressions are TRUE of a message; empty where no group asks by SQL."""
        by_group = self._by_topic.get(request.topic)
        if not by_group:
            return b""
        wanting = (one.positions for one in by_group.values() if one.matches and one.matches(request.properties))
        return bloom.bit_map(wanting)

    def save(self, lives_ms: int, *, always: bool = False) -> None:
        """Write the table where it has changed, or ``always``; without what has been dead for ``lives_ms``. Raises
        ``OSError``.
        """
        if not self._file.changed and not always:
            return
        before = self._now() - lives_ms
        kept = {
            topic: left
            for topic, by_group in self._by_topic.items()
            if (left := {group: one for group, one in by_group.items() if not one.is_dead or one.dead > before})
        }
        self._by_topic = kept
        self._file.value = {
            "filterDataByTopic": {
                topic: {"groupFilterData": {group: one.row() for group, one in by_group.items()}, "topic": topic}
                for topic, by_group in kept.items()
            }
        }
        self._file.write(*self._file.taken())
