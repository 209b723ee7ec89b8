"""SQL filters of groups, stored in ``consumerFilter.json``, and the bit map of matching filters that the ext unit of
a message carries (docs/formats/config-tables.md#tables, docs/formats/reading.md#filters).

Java: ``ConsumerFilterManager``, ``CommitLogDispatcherCalcBitMap``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.callbacks import Clock
from engine.codec import bloom, config_tables
from engine.errors import BadFilter
from engine.query.sql92 import compile_sql
from engine.remoting.subscriptions import TAG, Subscription
from engine.rules.unit_check import Request
from engine.store.config_tables import ConfigTable
from engine.store.message_filter import BloomData

FILE = "consumerFilter.json"
DEAD_BEFORE_START_MS = 30_000
"""Groups that were alive when the broker ended count as dead from this long before its next start."""


@dataclass(slots=True)
class ConsumerFilter:
    """A group's filter of a topic. Times are ms; ``dead`` is 0 while a member of the group is connected, ``version``
    is the client's version of its subscription.
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
        """Return the bits that a pull compares with ext units."""
        return BloomData(self.positions, bloom.BITS, self.born)

    def row(self) -> dict[str | int, Any]:
        """Return the filter as a row of the table."""
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
    """SQL filters by topic and group. Changed by the broker's loop; the dispatch thread calls :meth:`bit_map`."""

    def __init__(self, table: ConfigTable, now: Clock) -> None:
        self._file = table
        self._now = now
        self._by_topic: dict[str, dict[str, ConsumerFilter]] = {}

    def load(self) -> None:
        """Read the table. If the bits of one group differ from those computed here, the whole table is ignored, as
        in RocketMQ. Raises what :meth:`ConfigTable.load` does.

        Raises what :meth:`ConfigTable.load` does.
        """
        self._file.load()
        rows = config_tables.consumer_filters(self._file.value).rows
        if any(row.bit_num != bloom.BITS or len(row.bit_positions) != bloom.HASHES for row in rows):
            return
        ended = self._now() - DEAD_BEFORE_START_MS
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
        """Return a group's filter of a topic."""
        return self._by_topic.get(topic, {}).get(group)

    def register(self, group: str, subscriptions: Iterable[Subscription]) -> None:
        """Register a member's subscriptions; the group's filters of topics that are not among them become dead."""
        subscription_list = list(subscriptions)
        for subscription in subscription_list:
            if subscription.kind != TAG and subscription.expression:
                self._register(group, subscription)
        topics = {subscription.topic for subscription in subscription_list}
        for topic, by_group in self._by_topic.items():
            if topic not in topics:
                self._die(by_group.get(group))

    def _register(self, group: str, subscription: Subscription) -> None:
        by_group = self._by_topic.get(subscription.topic, {})
        old = by_group.get(group)
        if old is not None and subscription.version <= old.version:
            if subscription.version == old.version and old.is_dead:
                old.dead, self._file.changed = 0, True
            return
        self._file.changed = True
        if old is not None and (old.expression, old.kind) == (subscription.expression, subscription.kind):
            old.version, old.dead = subscription.version, 0
            return
        matches = _compiled(subscription.expression)
        if matches is None:
            remaining = {name: consumer_filter for name, consumer_filter in by_group.items() if name != group}
            self._by_topic = {**self._by_topic, subscription.topic: remaining}  # in one step: another thread reads it
            return
        new_filter = ConsumerFilter(
            subscription.topic,
            group,
            subscription.expression,
            subscription.kind,
            subscription.version,
            self._now(),
            matches,
        )
        self._by_topic = {**self._by_topic, subscription.topic: {**by_group, group: new_filter}}

    def unregister(self, group: str) -> None:
        """A group has no member any more: its filters become dead."""
        for by_group in self._by_topic.values():
            self._die(by_group.get(group))

    def _die(self, consumer_filter: ConsumerFilter | None) -> None:
        if consumer_filter is not None and not consumer_filter.is_dead:
            consumer_filter.dead, self._file.changed = self._now(), True

    def bit_map(self, request: Request) -> bytes:
        """Return the bits of the topic's groups whose expressions match a message; empty if no group filters by
        SQL.
        """
        by_group = self._by_topic.get(request.topic)
        if not by_group:
            return b""
        wanting = (
            consumer_filter.positions
            for consumer_filter in by_group.values()
            if consumer_filter.matches and consumer_filter.matches(request.properties)
        )
        return bloom.bit_map(wanting)

    def save(self, lives_ms: int, *, always: bool = False) -> None:
        """Write the table if it changed, or ``always``, without filters that have been dead for ``lives_ms``. Raises
        ``OSError``.
        """
        if not self._file.changed and not always:
            return
        cutoff_ms = self._now() - lives_ms
        remaining = {
            topic: alive
            for topic, by_group in self._by_topic.items()
            if (
                alive := {
                    group: consumer_filter
                    for group, consumer_filter in by_group.items()
                    if not consumer_filter.is_dead or consumer_filter.dead > cutoff_ms
                }
            )
        }
        self._by_topic = remaining
        self._file.value = {
            "filterDataByTopic": {
                topic: {
                    "groupFilterData": {group: consumer_filter.row() for group, consumer_filter in by_group.items()},
                    "topic": topic,
                }
                for topic, by_group in remaining.items()
            }
        }
        self._file.write(*self._file.taken())
