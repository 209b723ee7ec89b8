"""Apply a filter to whole blocks: decide rows by the columns of a scan and the bytes behind them, before any unit is
decoded.

Three-valued: 1 yes, -1 no, 0 unknown. ``and`` is the minimum, ``or`` the maximum, ``not`` the sign, so a part
that cannot be decided here leaves only those rows open that depend on it. The cheap parts of a condition come
first; the others are evaluated only for rows that are still open.

:class:`BlockFilter` is the way to filter a log in bulk. Columns and bytes decide as much as they can, and the
plain test of the unit decides the others, so the matching rows are exactly those of the plain test.

"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.codec import block_texts, message
from engine.codec import columns as unit_columns
from engine.codec.columns import UNIT, UnitColumns
from engine.codec.message import Unit, decode
from engine.codec.topic_table import TopicTable
from engine.query.evaluate import FileOf, closure
from engine.query.fields import BY_FLAGS, BY_TOPIC, FIELDS
from engine.query.text_verdicts import NO, PERHAPS, YES, Rows, Verdicts, cost, unsure_tags_code, verdict
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
    kind_of,
    parts,
)
from engine.system_names import HALF_TOPIC, OP_TOPIC

Numbers = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]

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
_NUMERIC_KINDS = ("number", "time", "duration")


def verdicts(node: Node, columns: UnitColumns, topics: TopicTable, file_of: FileOf | None, units: Rows) -> Verdicts:
    """Return the verdict of ``node`` on each of the rows ``units``, which must be units.

    ``file_of`` names the commit log file of an offset; without it a unit's ``file`` is null.

    """
    return _RowSubset(columns, topics, file_of, units).verdict(node) if len(units) else np.empty(0, np.int8)


class _RowSubset:
    """Some rows of a block, all of them units."""

    def __init__(self, block: UnitColumns, topics: TopicTable, file_of: FileOf | None, rows: Rows) -> None:
        self._block = block
        self._topics = topics
        self._file_of = file_of
        self._row_numbers = rows
        self._rows = len(rows)

    def verdict(self, node: Node) -> Verdicts:
        match node:
            case And(items):
                return self._join(items, np.minimum, NO)
            case Or(items):
                return self._join(items, np.maximum, YES)
            case Not(item):
                return np.negative(self.verdict(item))
            case Constant(value, _):
                return self._all(YES if value is True else NO)
        labels = {item.label for item in fields(node)}
        if labels and labels <= BY_TOPIC:
            return self._by_topic(node)
        if labels and labels <= BY_FLAGS:
            return self._by_flags(node)
        if labels == {"crc"}:
            return self._by_crc(node)
        if labels == {"transaction"}:
            return self._by_transaction(node)
        if labels == {"file"}:
            return self._by_file(node)
        verdicts_ = self._by_number(node)
        if verdicts_ is None:
            verdicts_ = verdict(node, self._block, self._row_numbers, self._topics)
        return self._all(PERHAPS) if verdicts_ is None else verdicts_

    def _join(self, items: Sequence[Node], join: Callable[..., Verdicts], settled: np.int8) -> Verdicts:
        """Combine the parts of a conjunction or disjunction, cheap ones first; rows whose verdict is ``settled`` are
        done.
        """
        cheapest, *other_items = sorted(items, key=_cost)
        verdicts_ = self.verdict(cheapest)
        for item in other_items:
            open_rows = np.flatnonzero(verdicts_ != settled)
            if not len(open_rows):
                break
            part = self if len(open_rows) == self._rows else self._only(open_rows)
            verdicts_[open_rows] = join(verdicts_[open_rows], part.verdict(item))
        return verdicts_

    def _only(self, numbers: Rows) -> _RowSubset:
        return _RowSubset(self._block, self._topics, self._file_of, self._row_numbers[numbers])

    def _all(self, verdict: np.int8) -> Verdicts:
        return np.full(self._rows, verdict, np.int8)

    def _column(self, name: str) -> npt.NDArray[Any]:
        column = self._block[name]
        return column if len(column) == self._rows else column[self._row_numbers]

    # -- fields with few values: the test runs once per value

    def _by_topic(self, node: Node) -> Verdicts:
        """Decide by topic. Topics without a number (−1) take the last place, which stays open."""
        test = closure(node, "record")
        table = [YES if test({"topic": name}) else NO for name in self._topics.names]
        return _lookup([*table, PERHAPS], self._column("topic_id"))

    def _by_flags(self, node: Node) -> Verdicts:
        test = closure(node, "record")
        relevant_bits = message.COMPRESSED | message.INNER_BATCH
        values, rows = np.unique(self._column("sys_flag") & relevant_bits, return_inverse=True)
        table = [YES if test({"sysFlag": int(value)}) else NO for value in values]
        return _lookup(table, rows)

    def _by_crc(self, node: Node) -> Verdicts:
        test = closure(node, "record")
        table = [PERHAPS, PERHAPS, PERHAPS]
        for code, word in _CRC_WORDS.items():
            table[code] = YES if test({"crc": word}) else NO
        return _lookup(table, self._column("crc"))

    def _by_transaction(self, node: Node) -> Verdicts:
        """Decide by the flag's two bits (0 none, 1 half, 2 commit, 3 rollback) and two topics."""
        test = closure(node, "record")
        by_bits = [YES if test({"sysFlag": bits << 2, "topic": ""}) else NO for bits in range(4)]
        verdicts_ = _lookup(by_bits, self._column("sys_flag") >> 2 & 3)
        topic = self._column("topic_id")
        for name in (HALF_TOPIC, OP_TOPIC):
            number = self._topics.find(name)
            if number >= 0:
                verdicts_[topic == number] = YES if test({"topic": name}) else NO
        verdicts_[topic < 0] = PERHAPS
        return verdicts_

    def _by_file(self, node: Node) -> Verdicts:
        """Decide by file: the rows of a block are in one file."""
        names = {
            self._file_of(int(self._block.offset[self._row_numbers[end]])) if self._file_of else None for end in (0, -1)
        }
        if len(names) > 1:
            return self._all(PERHAPS)
        return self._all(YES if closure(node, "record")({"file": names.pop()}) else NO)

    # -- numbers and times

    def _by_number(self, node: Node) -> Verdicts | None:
        """Decide comparisons of numbers that are in columns or properties; None for other nodes."""
        match node:
            case Compare(sign, left_value, right_value):
                return _to_verdicts(self._compare(sign, left_value, right_value), negated=False)
            case Between(left_value, low_value, high_value, negated):
                above, below = self._compare("<=", low_value, left_value), self._compare("<=", left_value, high_value)
                return None if above is None or below is None else _to_verdicts(above.both(below), negated)
            case In(left_value, items, negated):
                return _to_verdicts(self._one_of(left_value, items), negated)
            case IsNull(left_value, negated):
                numbers = self._numbers(left_value) if kind_of(left_value) in _NUMERIC_KINDS else None
                return None if numbers is None else self._all(YES if negated else NO)
        return None

    def _compare(self, sign: str, left_value: Value, right_value: Value) -> _Comparison | None:
        kinds = (kind_of(left_value), kind_of(right_value))
        if kinds[0] not in _NUMERIC_KINDS and kinds[1] not in _NUMERIC_KINDS:
            return None  # texts, or two properties, which are compared as texts
        a, b = self._numbers(left_value), self._numbers(right_value)
        if a is None or b is None:
            return None
        return _Comparison(_COMPARISONS[sign](a.values, b.values), a.unsure | b.unsure, a.absent | b.absent)

    def _one_of(self, left: Value, items: tuple[Constant, ...]) -> _Comparison | None:
        if kind_of(left) not in _NUMERIC_KINDS:
            return None  # a property that is no number is not absent, and is in no list of numbers
        sought = [item.value for item in items]
        if not all(isinstance(value, int) and _SMALLEST <= value <= _LARGEST for value in sought):
            return None
        a = self._numbers(left)
        return None if a is None else _Comparison(np.isin(a.values, np.array(sought, np.int64)), a.unsure, a.absent)

    def _numbers(self, node: Node) -> _RowNumbers | None:
        """Return the value of ``node`` in each row, None if it is not available."""
        match node:
            case Constant(value, _):
                return self._constant(value)
            case Now(ms, _):
                return self._constant(ms)
            case Field(name, True):
                return self._property(name)
            case Field(name, False):
                column = FIELDS[name].column
                if column is None:
                    return None
                values = self._column(column).astype(np.int64)
                return _RowNumbers(values, self._unsure_tags_code() if name == "tagsCode" else self._none())
            case Arithmetic(sign, left_value, right_value, _):
                return self._sum(sign, left_value, right_value)
        return None

    def _none(self) -> Truths:
        return np.zeros(self._rows, np.bool_)

    def _unsure_tags_code(self) -> Truths:
        return unsure_tags_code(self._column("topic_id"), self._topics)

    def _constant(self, value: int | Decimal | str | bool) -> _RowNumbers | None:
        if not isinstance(value, int) or not _SMALLEST <= value <= _LARGEST:
            return None
        return _RowNumbers(np.full(self._rows, value, np.int64), self._none())

    def _property(self, name: str) -> _RowNumbers | None:
        sought = block_texts.searchable(name)
        if sought is None:
            return None
        numbers = block_texts.property_values(self._block, self._row_numbers, sought).parse_numbers()
        if numbers is None:
            return None
        values, states = numbers
        return _RowNumbers(values, states == block_texts.UNSURE, states == block_texts.NO_NUMBER)

    def _sum(self, sign: str, left_value: Value, right_value: Value) -> _RowNumbers | None:
        """Add or subtract. Rows whose result leaves 64 bits stay open: the unit's test has no such limit."""
        a, b = self._numbers(left_value), self._numbers(right_value)
        if a is None or b is None:
            return None
        unsure, absent = a.unsure | b.unsure, a.absent | b.absent
        if sign == "&":
            return _RowNumbers(a.values & b.values, unsure, absent)
        with np.errstate(over="ignore"):
            if sign == "+":
                values = a.values + b.values
                wrapped = ((a.values ^ values) & (b.values ^ values)) < 0
            else:
                values = a.values - b.values
                wrapped = ((a.values ^ b.values) & (a.values ^ values)) < 0
        return _RowNumbers(values, unsure | wrapped, absent)


class _RowNumbers:
    """A number per row, the rows in which it is uncertain, and those that have none."""

    __slots__ = ("absent", "unsure", "values")

    def __init__(self, values: Numbers, unsure: Truths, absent: Truths | None = None) -> None:
        self.values = values
        self.unsure = unsure
        self.absent = np.zeros(len(values), np.bool_) if absent is None else absent


class _Comparison:
    """The result of a comparison per row, the rows in which it is uncertain, and those with an absent side."""

    __slots__ = ("absent", "true", "unsure")

    def __init__(self, true: Truths, unsure: Truths, absent: Truths) -> None:
        self.true = true
        self.unsure = unsure
        self.absent = absent

    def both(self, other_comparison: _Comparison) -> _Comparison:
        """Combine: True where both comparisons are."""
        return _Comparison(
            self.true & other_comparison.true,
            self.unsure | other_comparison.unsure,
            self.absent | other_comparison.absent,
        )


def _to_verdicts(compared: _Comparison | None, negated: bool) -> Verdicts | None:
    """Return the verdicts; false with an absent side, negated or not."""
    if compared is None:
        return None
    verdicts_: Verdicts = np.where(compared.true != negated, YES, NO)
    verdicts_[compared.unsure] = PERHAPS
    verdicts_[compared.absent & ~compared.unsure] = NO
    return verdicts_


def _cost(node: Node) -> int:
    """Return the order of evaluation: columns first, then properties, then bodies, patterns last."""
    below = parts(node)
    if isinstance(node, Field):
        return cost(node)
    return reduce(max, map(_cost, below), cost(node))


def _lookup(table: Sequence[np.int8], rows: npt.NDArray[Any]) -> Verdicts:
    verdicts_: Verdicts = np.array(table, np.int8)[rows]
    return verdicts_


class BlockFilter:
    """A filter's tree for blocks that are scanned with these ``topics`` and their tags, and with CRCs if it reads
    them.

    Units are decoded with or without ``crc``. ``file_of`` names the commit log file of an offset; without it a
    unit's ``file`` is null.

    """

    def __init__(self, tree: Node, topics: TopicTable, file_of: FileOf | None = None, *, crc: bool = True) -> None:
        self._tree = tree
        self._topics = topics
        self._file_of = file_of
        self._crc = crc
        self._test = closure(tree, "unit", file_of)

    def rows(self, block: UnitColumns, among: Rows | None = None) -> Rows:
        """Return the rows of the matching units among ``among``."""
        candidates = np.flatnonzero(block["kind"] == UNIT) if among is None else among[block.kind[among] == UNIT]
        verdicts_ = verdicts(self._tree, block, self._topics, self._file_of, candidates)
        keep = verdicts_ > 0
        for number in np.flatnonzero(verdicts_ == 0).tolist():
            keep[number] = self._test(unit_of(block, int(candidates[number]), self._crc))
        return candidates[keep]

    def units(self, block: UnitColumns) -> Iterator[Unit]:
        """Yield the matching units."""
        for row in self.rows(block).tolist():
            yield unit_of(block, row, self._crc)


def unit_of(block: UnitColumns, row: int, crc: bool = True) -> Unit:
    """Return the unit at a row, which the scan has checked."""
    offset, size = int(block.offset[row]), int(block.size[row])
    position = offset - block.base
    return decode(block.buffer[position : position + size].tobytes(), 0, offset, crc)
