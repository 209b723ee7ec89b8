"""Rows of a store's tables as a broker would have them after loading, and what two versions of a table say apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from engine.codec import config_tables
from engine.codec.config_tables import ConsumerOffset, TopicConfig
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.tables import read_table

OFFSET_TABLES = ("consumerOffset.json", "lmqConsumerOffset.json")
_VERSIONS = {"dataVersion", "groupTopicMap"}


def loaded(store: StoreSnapshot, name: str) -> dict[str | int, Any] | None:
    """The table a broker would load, None where it would begin with defaults or not start.

    Raises :class:`CannotRead`.
    """
    found = read_table(store, name)
    return found.value if found is not None and found.used in ("main", "bak") else None


def offsets(store: StoreSnapshot) -> list[ConsumerOffset]:
    """Every group's offsets. Raises :class:`CannotRead`."""
    tables = (loaded(store, name) for name in OFFSET_TABLES)
    return [row for table in tables if table is not None for row in config_tables.consumer_offsets(table).rows]


def topics(store: StoreSnapshot) -> dict[str, TopicConfig] | None:
    """Topics by name; None where no table was loaded. Raises :class:`CannotRead`."""
    table = loaded(store, "topics.json")
    return None if table is None else {row.name: row for row in config_tables.topics(table).rows}


def groups(store: StoreSnapshot) -> set[str] | None:
    """Groups that are declared; None where no table was loaded. Raises :class:`CannotRead`."""
    table = loaded(store, "subscriptionGroup.json")
    return None if table is None else {row.name for row in config_tables.subscription_groups(table).rows}


class Step(NamedTuple):
    """An offset that is lower than it was."""

    group: str
    place: str
    before: int
    now: int

    @property
    def words(self) -> str:
        return f"{self.place} {self.before:,} → {self.now:,}"


def stepped_back(now: Mapping[str | int, Any], before: Mapping[str | int, Any]) -> list[Step]:
    """Offsets of ``now`` that are lower than in ``before``, by queue and group."""
    older = {row.key: row for row in config_tables.consumer_offsets(before).rows}
    found = []
    for row in config_tables.consumer_offsets(now).rows:
        was = older[row.key].offsets if row.key in older else {}
        for queue_id, offset in sorted(row.offsets.items()):
            if offset < was.get(queue_id, 0):
                found.append(Step(row.group, f"{row.topic}/{queue_id}@{row.group}", was[queue_id], offset))
    return found


def differences(main: Mapping[str | int, Any], other: Mapping[str | int, Any], most: int) -> list[str]:
    """What ``other`` has otherwise than ``main``, field by field as ``place: main → other``; at most ``most``."""
    found = []
    for place, left, right in _differing(main, other, ""):
        found.append(f"{place}: {_short(left)} → {_short(right)}")
        if len(found) >= most:
            break
    return found


class _Nothing:
    """A field that is not there."""


_NOTHING = _Nothing()


def _differing(
    main: Mapping[str | int, Any], other: Mapping[str | int, Any], above: str
) -> Iterator[tuple[str, Any, Any]]:
    for key in dict.fromkeys([*main, *other]):
        if not above and key in _VERSIONS:
            continue
        left, right = main.get(key, _NOTHING), other.get(key, _NOTHING)
        place = f"{above}.{key}" if above else str(key)
        if isinstance(left, dict) and isinstance(right, dict):
            yield from _differing(left, right, place)
        elif left != right:
            yield place, left, right


def _short(value: object) -> str:
    if isinstance(value, _Nothing):
        return "not there"
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
