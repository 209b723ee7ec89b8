"""Spark's pushed filters as conditions on columns of a block, and as what a plan can use.

What a query asks for, as ranges and sets: so much of its filters as can spare reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from engine.codec.columns import BAD, OK, UNCHECKED, UnitColumns
from engine.codec.topic_table import TopicTable
from engine.codec.unit_fields import NUMBERS
from engine.pipeline import schema
from engine.pipeline.files import StorePlace

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter


_OPERATORS = {
    "EqualTo": "among",
    "In": "among",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "IsNotNull": "there",
}
_FIELDS = {
    "topic": "topics",
    "queueId": "queue_ids",
    "queueOffset": "queue_offsets",
    "physicalOffset": "physical_offsets",
    "phyOffset": "physical_offsets",
    "storeTimestamp": "store_timestamps",
}
_OF_ALL_ROWS = {"type", "physicalOffset", "size", "file", "store", "broker", "reason", "physicalOffsetField"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_CRC = {"unchecked": UNCHECKED, "ok": OK, "bad": BAD}


@dataclass(frozen=True, slots=True)
class Condition:
    """``column`` is ``among`` values, compares with the one value, or is ``there`` (not null)."""

    column: str
    operator: str
    values: tuple[Any, ...] = ()


class Pushed:
    """A reader that is handed Spark's conditions: right only where each place of a query has a plan of its own."""

    conditions: list[Condition]

    def pushFilters(self, filters_: list[Filter]) -> Iterable[Filter]:  # noqa: N802  Spark's name
        """Take note of the conditions that spare work; Spark tests all of them again on the rows that come."""
        self.conditions = conditions(filters_)
        return filters_


def conditions(pushed: Iterable[Filter]) -> list[Condition]:
    """The filters that are understood here; others are left to Spark alone."""
    found = []
    for one in pushed:
        operator = _OPERATORS.get(type(one).__name__)
        path: tuple[str, ...] = getattr(one, "attribute", ())
        if operator is None or len(path) != 1:
            continue
        value: Any = getattr(one, "value", None)
        values = tuple(value) if type(one).__name__ == "In" else () if operator == "there" else (value,)
        if not any(each is None for each in values):
            made = Condition(path[0], operator, values)
            found.append(of_ms(made) if made.column in schema.TIMES else made)
    return found


def of_ms(one: Condition) -> Condition:
    """The condition on ms that a condition on a timestamp is: of microseconds, whichever zone they were told in."""
    column = schema.TIMES[one.column]
    micros = [(value - _EPOCH) // _MICROSECOND for value in one.values]
    if one.operator == "among":
        return Condition(column, "among", tuple(each // 1000 for each in micros if each % 1000 == 0))
    up = one.operator in (">=", "<")  # the first ms that is not before it, else the last that is not behind it
    return Condition(column, one.operator, tuple(-(-each // 1000) if up else each // 1000 for each in micros))


def want(of: Sequence[Condition]) -> Want:
    """What a plan can leave out by."""
    asked = Want()
    for one in of:
        name = _FIELDS.get(one.column)
        if name is None or one.operator == "there":
            continue
        if one.operator == "among":
            asked = asked.and_among(name, one.values)
        elif name not in ("topics", "queue_ids"):
            (value,) = one.values
            low, high = {">": (value + 1, None), ">=": (value, None), "<": (None, value - 1), "<=": (None, value)}[
                one.operator
            ]
            asked = asked.and_between(name, low, high)
    return asked


def of_stores(of: Sequence[Condition], stores: Sequence[StorePlace]) -> list[StorePlace]:
    """The stores of a fleet that conditions on ``store`` and ``broker`` do not refuse."""
    asked = [one for one in of if one.column in ("store", "broker") and one.operator == "among"]
    return [
        store
        for store in stores
        if all((store.path if one.column == "store" else store.broker) in one.values for one in asked)
    ]


def units_only(of: Sequence[Condition]) -> bool:
    """Whether no row but a unit can meet the conditions: they name a column that is null in all others."""
    return any(one.column not in _OF_ALL_ROWS for one in of)


def kept(of: Sequence[Condition], block: UnitColumns, topics: TopicTable) -> npt.NDArray[np.bool_]:
    """Which rows of a block the conditions do not refuse, by its columns alone."""
    keep = np.ones(block.count, np.bool_)
    for one in of:
        if one.column == "topic" and one.operator == "among":
            keep &= _of_topics(one.values, topics)[block["topic_id"]]
        elif one.column == "crc" and one.operator == "among":
            keep &= np.isin(block["crc"], [_CRC[value] for value in one.values if value in _CRC])
        elif one.column in NUMBERS and one.operator != "there":
            keep &= _compared(block[NUMBERS[one.column]], one)
    return keep


def _of_topics(values: Sequence[Any], topics: TopicTable) -> npt.NDArray[np.bool_]:
    """Whether each topic is shown as one of ``values``; the last is that of −1, a unit whose topic has no number.

    Several names can be shown alike: what is no UTF-8 is the same sign everywhere.
    """
    asked = frozenset(values)
    names: Iterable[str] = topics.names
    if any("?" in str(value) for value in asked):
        names = map(schema.clean, names)
    return np.array([*(name in asked for name in names), True], np.bool_)


def _compared(column: npt.NDArray[Any], one: Condition) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_]
    if one.operator == "among":
        found = np.isin(column, one.values)
    else:
        compare = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal}[one.operator]
        found = compare(column, one.values[0])
    return found


EVERYWHERE = (-(1 << 63), (1 << 63) - 1)

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Want:
    """What is asked for: ranges with both ends in them, sets; None is everything."""

    topics: frozenset[str] | None = None
    queue_ids: frozenset[int] | None = None
    queue_offsets: Span = EVERYWHERE
    physical_offsets: Span = EVERYWHERE
    store_timestamps: Span = EVERYWHERE

    def and_among(self, name: str, values: Iterable[object]) -> Want:
        """This, and the field ``name`` is one of ``values``."""
        known: frozenset[Any] = frozenset(values)
        if name == "topics":
            return replace(self, topics=known if self.topics is None else self.topics & known)
        if name == "queue_ids":
            return replace(self, queue_ids=known if self.queue_ids is None else self.queue_ids & known)
        numbers = [value for value in known if isinstance(value, int)]
        return self.and_between(name, min(numbers, default=1), max(numbers, default=0))

    def and_between(self, name: str, low: int | None, high: int | None) -> Want:
        """This, and the field ``name`` lies in [low, high]; None is no bound."""
        before: Span = getattr(self, name)
        span = (before[0] if low is None else max(before[0], low), before[1] if high is None else min(before[1], high))
        changes: dict[str, Any] = {name: span}
        return replace(self, **changes)
