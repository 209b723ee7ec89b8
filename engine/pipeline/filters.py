"""Spark's pushed filters as conditions on columns of a block, and as limits that a plan can use."""

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


class PushdownReader:
    """Base of readers that get Spark's conditions. This is correct only if each place of a query has its own plan."""

    conditions: list[Condition]

    def pushFilters(self, filters_: list[Filter]) -> Iterable[Filter]:  # noqa: N802  Spark's name
        """Note the conditions that save work; Spark tests all of them again on the rows that are returned."""
        self.conditions = conditions(filters_)
        return filters_


def conditions(pushed: Iterable[Filter]) -> list[Condition]:
    """Return the filters that are understood here; Spark alone applies the others."""
    understood = []
    for pushed_filter in pushed:
        operator = _OPERATORS.get(type(pushed_filter).__name__)
        path: tuple[str, ...] = getattr(pushed_filter, "attribute", ())
        if operator is None or len(path) != 1:
            continue
        value: Any = getattr(pushed_filter, "value", None)
        values = tuple(value) if type(pushed_filter).__name__ == "In" else () if operator == "there" else (value,)
        if not any(each is None for each in values):
            condition = Condition(path[0], operator, values)
            understood.append(in_milliseconds(condition) if condition.column in schema.TIMES else condition)
    return understood


def in_milliseconds(condition: Condition) -> Condition:
    """Convert a condition on a timestamp (microseconds, in any zone) into one on milliseconds."""
    column = schema.TIMES[condition.column]
    micros = [(value - _EPOCH) // _MICROSECOND for value in condition.values]
    if condition.operator == "among":
        return Condition(column, "among", tuple(each // 1000 for each in micros if each % 1000 == 0))
    up = condition.operator in (">=", "<")  # the first ms that is not before it, else the last that is not behind it
    return Condition(column, condition.operator, tuple(-(-each // 1000) if up else each // 1000 for each in micros))


def plan_limits(query_conditions: Sequence[Condition]) -> QueryLimits:
    """Return the limits by which a plan can leave parts out."""
    limits = QueryLimits()
    for condition in query_conditions:
        name = _FIELDS.get(condition.column)
        if name is None or condition.operator == "there":
            continue
        if condition.operator == "among":
            limits = limits.and_among(name, condition.values)
        elif name not in ("topics", "queue_ids"):
            (value,) = condition.values
            lower, upper = {">": (value + 1, None), ">=": (value, None), "<": (None, value - 1), "<=": (None, value)}[
                condition.operator
            ]
            limits = limits.and_between(name, lower, upper)
    return limits


def select_stores(query_conditions: Sequence[Condition], stores: Sequence[StorePlace]) -> list[StorePlace]:
    """Return the stores of a fleet that conditions on ``store`` and ``broker`` do not exclude."""
    store_conditions = [
        condition
        for condition in query_conditions
        if condition.column in ("store", "broker") and condition.operator == "among"
    ]
    return [
        store
        for store in stores
        if all(
            (store.path if condition.column == "store" else store.broker) in condition.values
            for condition in store_conditions
        )
    ]


def units_only(query_conditions: Sequence[Condition]) -> bool:
    """Return True if only units can meet the conditions: they name a column that is null in all other rows."""
    return any(condition.column not in _OF_ALL_ROWS for condition in query_conditions)


def matching_rows(
    query_conditions: Sequence[Condition], block: UnitColumns, topics: TopicTable
) -> npt.NDArray[np.bool_]:
    """Return which rows of a block the conditions do not exclude, by its columns alone."""
    keep = np.ones(block.count, np.bool_)
    for condition in query_conditions:
        if condition.column == "topic" and condition.operator == "among":
            keep &= _match_topics(condition.values, topics)[block["topic_id"]]
        elif condition.column == "crc" and condition.operator == "among":
            keep &= np.isin(block["crc"], [_CRC[value] for value in condition.values if value in _CRC])
        elif condition.column in NUMBERS and condition.operator != "there":
            keep &= _compare_column(block[NUMBERS[condition.column]], condition)
    return keep


def _match_topics(values: Sequence[Any], topics: TopicTable) -> npt.NDArray[np.bool_]:
    """Return for each topic whether it is shown as one of ``values``; the last is that of −1, a unit whose topic has
    no number.

    Several names can be shown alike: what is no UTF-8 is the same sign everywhere.
    """
    wanted_names = frozenset(values)
    names: Iterable[str] = topics.names
    if any("?" in str(value) for value in wanted_names):
        names = map(schema.clean, names)
    return np.array([*(name in wanted_names for name in names), True], np.bool_)


def _compare_column(column: npt.NDArray[Any], condition: Condition) -> npt.NDArray[np.bool_]:
    matches: npt.NDArray[np.bool_]
    if condition.operator == "among":
        matches = np.isin(column, condition.values)
    else:
        compare = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal}[condition.operator]
        matches = compare(column, condition.values[0])
    return matches


EVERYWHERE = (-(1 << 63), (1 << 63) - 1)

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Limits of a query: ranges that include both ends, and sets; None is everything."""

    topics: frozenset[str] | None = None
    queue_ids: frozenset[int] | None = None
    queue_offsets: Span = EVERYWHERE
    physical_offsets: Span = EVERYWHERE
    store_timestamps: Span = EVERYWHERE

    def and_among(self, name: str, values: Iterable[object]) -> QueryLimits:
        """Return these limits with the field ``name`` limited to ``values``."""
        allowed: frozenset[Any] = frozenset(values)
        if name == "topics":
            return replace(self, topics=allowed if self.topics is None else self.topics & allowed)
        if name == "queue_ids":
            return replace(self, queue_ids=allowed if self.queue_ids is None else self.queue_ids & allowed)
        numbers = [value for value in allowed if isinstance(value, int)]
        return self.and_between(name, min(numbers, default=1), max(numbers, default=0))

    def and_between(self, name: str, lower: int | None, upper: int | None) -> QueryLimits:
        """Return these limits with the field ``name`` limited to [lower, upper]; None is no bound."""
        old_span: Span = getattr(self, name)
        span = (
            old_span[0] if lower is None else max(old_span[0], lower),
            old_span[1] if upper is None else min(old_span[1], upper),
        )
        changes: dict[str, Any] = {name: span}
        return replace(self, **changes)
