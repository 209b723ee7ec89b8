"""Filter over whole blocks: what the columns of a scan decide, row by row, before any unit is decoded.

Three-valued: 1 yes, -1 no, 0 perhaps. ``and`` is the minimum, ``or`` the maximum, ``not`` the sign, so a part that
columns cannot decide leaves only those rows open that depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.codec import columns as unit_columns
from engine.codec import message
from engine.codec.columns import UnitColumns
from engine.codec.java import jhash
from engine.codec.topic_table import TopicTable
from engine.query.evaluate import closure
from engine.query.fields import BY_FLAGS, BY_TOPIC, FIELDS, HALF_TOPIC, OP_TOPIC
from engine.query.tree import (
    And,
    Arithmetic,
    Between,
    Compare,
    Constant,
    Field,
    In,
    IsNull,
    Node,
    Not,
    Now,
    Or,
    Value,
    fields,
)

Verdicts = npt.NDArray[np.int8]
Numbers = npt.NDArray[np.int64]
YES, PERHAPS, NO = np.int8(1), np.int8(0), np.int8(-1)

_SMALLEST, _LARGEST = -(1 << 63), (1 << 63) - 1
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_CRC_WORDS = {unit_columns.OK: "ok", unit_columns.BAD: "bad"}


def verdicts(node: Node, columns: UnitColumns, topics: TopicTable) -> Verdicts:
    """The verdict of ``node`` on each filled row; rows that are no units are NO."""
    found = _Block(columns, topics).verdict(node)
    found[columns["kind"] != unit_columns.UNIT] = NO
    return found


class _Block:
    """The columns of one block, with what is worked out from them once."""

    def __init__(self, columns: UnitColumns, topics: TopicTable) -> None:
        self._columns = columns
        self._topics = topics
        self._rows = len(columns)
        self._topic: npt.NDArray[np.int32] = columns.topic_id[: self._rows]
        self._flags: Numbers = columns.sys_flag[: self._rows].astype(np.int64)

    def verdict(self, node: Node) -> Verdicts:
        match node:
            case And(items):
                return reduce(np.minimum, [self.verdict(item) for item in items])
            case Or(items):
                return reduce(np.maximum, [self.verdict(item) for item in items])
            case Not(item):
                return np.negative(self.verdict(item))
            case Constant(value, _):
                return self._all(YES if value is True else NO)
        names = {item.label for item in fields(node)}
        if names and names <= BY_TOPIC:
            return self._by_topic(node)
        if names and names <= BY_FLAGS:
            return self._by_flags(node)
        if names == {"crc"}:
            return self._by_crc(node)
        if names == {"transaction"}:
            return self._by_transaction(node)
        if names == {"tags"}:
            return self._by_tag(node)
        return self._by_number(node)

    def _all(self, verdict: np.int8) -> Verdicts:
        return np.full(self._rows, verdict, np.int8)

    # -- fields with few values: the test runs once a value

    def _by_topic(self, node: Node) -> Verdicts:
        """Topics without a number (−1) take the last place, which stays open."""
        test = closure(node, "record")
        table = [YES if test({"topic": name}) else NO for name in self._topics.names]
        return _lookup([*table, PERHAPS], self._topic)

    def _by_flags(self, node: Node) -> Verdicts:
        test = closure(node, "record")
        kept = message.COMPRESSED | message.INNER_BATCH
        values, rows = np.unique(self._flags & kept, return_inverse=True)
        table = [YES if test({"sysFlag": int(value)}) else NO for value in values]
        return _lookup(table, rows)

    def _by_crc(self, node: Node) -> Verdicts:
        test = closure(node, "record")
        table = [PERHAPS, PERHAPS, PERHAPS]
        for code, word in _CRC_WORDS.items():
            table[code] = YES if test({"crc": word}) else NO
        return _lookup(table, self._columns["crc"])

    def _by_transaction(self, node: Node) -> Verdicts:
        """The word follows from the flag's two bits (0 none, 1 half, 2 commit, 3 rollback) and two topics."""
        test = closure(node, "record")
        by_bits = [YES if test({"sysFlag": bits << 2, "topic": ""}) else NO for bits in range(4)]
        found = _lookup(by_bits, self._flags >> 2 & 3)
        for name in (HALF_TOPIC, OP_TOPIC):
            number = self._topics.find(name)
            if number >= 0:
                found[self._topic == number] = YES if test({"topic": name}) else NO
        found[self._topic < 0] = PERHAPS
        return found

    def _by_tag(self, node: Node) -> Verdicts:
        """A tag can only be there where its hash is; a queue of delayed messages holds delivery times instead."""
        sought: list[object]
        match node:
            case Compare("=", Field("tags"), Constant(value, _)) | Compare("=", Constant(value, _), Field("tags")):
                sought = [value]
            case In(Field("tags"), items, False):
                sought = [item.value for item in items]
            case IsNull(Field("tags"), False):
                sought = [""]
            case IsNull(Field("tags"), True):
                return np.negative(self._by_tag(IsNull(Field("tags"))))
            case _:
                return self._all(PERHAPS)
        hashes = np.array([jhash(tag) for tag in sought if isinstance(tag, str)], np.int64)
        found = np.where(np.isin(self._columns["tags_code"], hashes), PERHAPS, NO)
        found[self._unsure_tags_code()] = PERHAPS
        return found

    def _unsure_tags_code(self) -> npt.NDArray[np.bool_]:
        unsure: npt.NDArray[np.bool_] = (self._topic < 0) | (self._topic == self._topics.find(message.SCHEDULE_TOPIC))
        return unsure

    # -- numbers and times

    def _by_number(self, node: Node) -> Verdicts:
        match node:
            case Compare(sign, left, right):
                return self._compare(sign, left, right)
            case Between(left, low, high, negated):
                inside: Verdicts = np.minimum(self._compare("<=", low, left), self._compare("<=", left, high))
                return np.negative(inside) if negated else inside
            case In(left, items, negated):
                found = reduce(np.maximum, [self._compare("=", left, item) for item in items])
                return np.negative(found) if negated else found
            case IsNull(left, negated):
                numbers = self._numbers(left)
                if numbers is None:
                    return self._all(PERHAPS)
                return self._all(YES if negated else NO)
        return self._all(PERHAPS)

    def _compare(self, sign: str, left: Node, right: Node) -> Verdicts:
        a, b = self._numbers(left), self._numbers(right)
        if a is None or b is None:
            return self._all(PERHAPS)
        found = np.where(_COMPARISONS[sign](a.values, b.values), YES, NO)
        found[a.unsure | b.unsure] = PERHAPS
        return found

    def _numbers(self, node: Node) -> _Known | None:
        """The value of ``node`` in each row, None where columns do not have it."""
        match node:
            case Constant(value, _):
                return self._constant(value)
            case Now(ms, _):
                return self._constant(ms)
            case Field(name, False):
                column = FIELDS[name].column
                if column is None:
                    return None
                values = self._columns[column].astype(np.int64)
                unsure = self._unsure_tags_code() if name == "tagsCode" else np.zeros(self._rows, np.bool_)
                return _Known(values, unsure)
            case Arithmetic(sign, left, right, _):
                return self._sum(sign, left, right)
        return None

    def _constant(self, value: int | str | bool) -> _Known | None:
        if isinstance(value, str) or not _SMALLEST <= value <= _LARGEST:
            return None
        return _Known(np.full(self._rows, value, np.int64), np.zeros(self._rows, np.bool_))

    def _sum(self, sign: str, left: Value, right: Value) -> _Known | None:
        """Numbers that leave 64 bits on the way are left open: the unit's test counts without limit."""
        a, b = self._numbers(left), self._numbers(right)
        if a is None or b is None:
            return None
        unsure = a.unsure | b.unsure
        if sign == "&":
            return _Known(a.values & b.values, unsure)
        with np.errstate(over="ignore"):
            if sign == "+":
                values = a.values + b.values
                wrapped = ((a.values ^ values) & (b.values ^ values)) < 0
            else:
                values = a.values - b.values
                wrapped = ((a.values ^ b.values) & (a.values ^ values)) < 0
        return _Known(values, unsure | wrapped)


class _Known:
    """A number per row, and the rows where it may be another."""

    __slots__ = ("unsure", "values")

    def __init__(self, values: Numbers, unsure: npt.NDArray[np.bool_]) -> None:
        self.values = values
        self.unsure = unsure


def _lookup(table: Sequence[np.int8], rows: npt.NDArray[Any]) -> Verdicts:
    found: Verdicts = np.array(table, np.int8)[rows]
    return found
