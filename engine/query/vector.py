"""Filter over whole blocks: what the columns of a scan and the bytes behind them decide, before any unit is decoded.

Three-valued: 1 yes, -1 no, 0 perhaps. ``and`` is the minimum, ``or`` the maximum, ``not`` the sign, so a part that
cannot be decided here leaves only those rows open that depend on it. The cheap parts of a condition go first; the
others are asked only of the rows that these leave open. What is asked of texts stands in
:mod:`engine.query.vector`.

A filter on the blocks of a scan: the one door through which a log is filtered in bulk.

Columns and bytes decide what they can (:mod:`engine.query.vector`), the plain test of the unit the rest, so the rows
are those that the plain test takes, in whatever way they were found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.codec import block_texts, message, properties
from engine.codec import columns as unit_columns
from engine.codec.block_texts import Texts
from engine.codec.columns import UNIT, UnitColumns
from engine.codec.java import jhash, utf8
from engine.codec.message import Unit, decode
from engine.codec.topic_table import TopicTable
from engine.query.evaluate import REGEX_LIMIT, FileOf, closure
from engine.query.fields import BY_FLAGS, BY_TOPIC, FIELDS, HALF_TOPIC, OP_TOPIC, PROPERTIES
from engine.query.tree import (
    And,
    Arithmetic,
    Between,
    Compare,
    Constant,
    Field,
    In,
    IsNull,
    Matches,
    Node,
    Not,
    Now,
    Or,
    TextTest,
    Value,
    fields,
    kind_of,
    parts,
)

# The three answers of a filter over a block: what :mod:`engine.query.vector` and its parts speak in.

Verdicts = npt.NDArray[np.int8]
YES, PERHAPS, NO = np.int8(1), np.int8(0), np.int8(-1)


# Conditions on texts over a block: keys, tags, unique keys, properties, bodies, hosts and ids.
#
# What bytes can tell is asked of the bytes, all rows in one call; what only a decoded text can (patterns, U+FFFD) is
# asked of the texts one by one, never of whole units. Compressed bodies stay open: only the unit's own test unpacks
# them.

Rows = npt.NDArray[np.intp]

_OF_PROPERTIES = {"tags": properties.TAGS, "keys": properties.KEYS, "uniqueKey": properties.UNIQUE_KEY}
_HOSTS = ("bornHost", "storeHost")
_HOST_AT = 48
"""Bytes in front of the born host."""
_MANY = 16
"""Texts of a list that are sought one by one."""
_REMEMBERED = 4096
_ORDER: dict[str, Callable[[Any, int], Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_PLAIN_LIKE = re.compile(r"(%?)([^%_\\]*)(%?)", re.DOTALL)
_PIECE = re.compile(
    r"(?P<plain>[^\\\[\](){}|.^$*+?]|\\[^0-9A-Za-z]|[{}])|\\[dDsSwWAbBZ]|\[\^?\]?(?:[^\\\]]|\\.)*\]|\((?:\?:)?[^?*+()\[\\]*\)|[.^$]",
    re.DOTALL,
)
"""A character that stands for itself, or something of which only its end is known here; what is none of them (a choice,
other escapes, flags, groups in groups) is not looked into.
"""
_REPEATED = re.compile(r"\{(\d+|(?=,))(,\d*)?\}")
_LONGEST_RUN = 64
_PLAIN_PATTERN = re.compile(r"[\w \-,:;/@#=<>!\"'&~`%]+")


def verdict(node: Node, block: UnitColumns, rows: Rows, topics: TopicTable) -> Verdicts | None:
    """The verdict on each of ``rows``; None where it takes the whole unit."""
    asked = set(fields(node))
    if len(asked) != 1:
        return None
    field = asked.pop()
    if field.label in _HOSTS:
        return _by_host(node, field.name, block, rows)
    if field.label == "offsetMsgId":
        return _by_message_id(node, block, rows)
    name = field.name if field.is_property else _OF_PROPERTIES.get(field.name)
    if name is None and field.label != "body":
        return None
    found = np.full(len(rows), PERHAPS, np.int8)
    if name is None:
        left = np.flatnonzero(block.sys_flag[rows] & message.COMPRESSED == 0)
        texts = block_texts.bodies(block, rows[left])
    else:
        sought = block_texts.searchable(name)
        if sought is None:
            return None
        left = np.arange(len(rows))
        if field.label == "tags":
            found, left = _by_hash(node, block, rows, topics)
        texts = block_texts.property_values(block, rows[left], sought)
    found[left] = _Asked(node, field, texts).verdict()
    return found


def cost(node: Node) -> int:
    """How dear a node is: 0 for columns, 1 for the bytes of properties, 2 of bodies, 3 where texts are decoded."""
    match node:
        case Field("body", False):
            return 2
        case Field(name, is_property):
            return int(is_property or name in _OF_PROPERTIES or name in _HOSTS)
        case Matches() | TextTest("like", _, _, _):
            return 3
    return 0


def unsure_tags_code(topic: npt.NDArray[np.int32], topics: TopicTable) -> npt.NDArray[np.bool_]:
    """Rows whose tagsCode may be no hash: a queue of delayed messages holds delivery times instead."""
    unsure: npt.NDArray[np.bool_] = (topic < 0) | (topic == topics.find(message.SCHEDULE_TOPIC))
    return unsure


def _by_hash(node: Node, block: UnitColumns, rows: Rows, topics: TopicTable) -> tuple[Verdicts, Rows]:
    """A tag can only be there where its hash is: the verdicts so far, and which rows have to be asked themselves."""
    sought: list[object]
    match node:
        case Compare("=", Field("tags"), Constant(value, _)) | Compare("=", Constant(value, _), Field("tags")):
            sought = [value]
        case In(Field("tags"), items, False):
            sought = [item.value for item in items]
        case _:
            return np.full(len(rows), NO, np.int8), np.arange(len(rows))
    hashes = np.array([jhash(tag) for tag in sought if isinstance(tag, str)], np.int64)
    codes = block.tags_code[rows]
    left = codes == hashes[0] if len(hashes) == 1 else np.isin(codes, hashes)
    left |= unsure_tags_code(block.topic_id[rows], topics)
    return np.full(len(rows), NO, np.int8), np.flatnonzero(left)


class _Asked:
    """One condition on one text of each row."""

    def __init__(self, node: Node, field: Field, texts: Texts) -> None:
        self._node = node
        self._field = field
        self._texts = texts
        self._keys = field.label == "keys"

    def verdict(self) -> Verdicts:
        found = self._of_bytes()
        if found is not None:
            return found
        texts, found = self._texts, self._of_candidates()
        if found is None:
            return self._one_by_one(texts)
        left = np.flatnonzero(found == PERHAPS)
        if len(left):
            found[left] = self._one_by_one(Texts(texts.buffer, texts.starts[left], texts.sizes[left]))
        return found

    def _of_candidates(self) -> Verdicts | None:
        """A pattern is found only where the longest text stands that every match of it has; None where it has none."""
        match self._node:
            case Matches(Field(), pattern, flags, negated) if not set(flags) & set("ix"):
                text = needed_text(pattern)
                found = self._ask("contains", text, negated=negated) if text else None
                if found is not None:
                    found[found == (NO if negated else YES)] = PERHAPS
                return found
        return None

    def _of_bytes(self) -> Verdicts | None:
        """None where bytes do not tell it."""
        match self._node:
            case Compare("=" | "!=" as sign, Field(), Constant(str(text), _)):
                return self._ask("equal", text, negated=sign == "!=")
            case Compare("=" | "!=" as sign, Constant(str(text), _), Field()) if not self._keys:
                return self._ask("equal", text, negated=sign == "!=")
            case Compare(sign, Field(), Constant(str(text), _)) if sign in _ORDER:
                return self._in_order(sign, text)
            case TextTest("contains" | "startswith" | "endswith" as word, Field(), Constant(str(text), _), negated):
                return self._ask(word, text, negated=negated)
            case TextTest("like", Field(), Constant(str(pattern), _), negated):
                return self._like(pattern, negated=negated)
            case Matches(Field(), pattern, "", negated) if _PLAIN_PATTERN.fullmatch(pattern):
                return self._within_limit("contains", pattern, negated=negated)
            case In(Field(), items, negated) if len(items) <= _MANY:
                return self._one_of(items, negated=negated)
            case IsNull(Field(), negated):
                answers = self._texts.match("contains", b"", keys=self._keys)
                return None if answers is None else _verdicts(answers == block_texts.NULL, negated=negated)
        return None

    def _ask(self, how: block_texts.MatchKind, text: str, *, negated: bool) -> Verdicts | None:
        sought = block_texts.searchable(text)
        answers = None if sought is None else self._texts.match(how, sought, keys=self._keys)
        return None if answers is None else _answered(answers, negated=negated)

    def _like(self, pattern: str, *, negated: bool) -> Verdicts | None:
        """Patterns that only say where one text stands."""
        plain = _PLAIN_LIKE.fullmatch(pattern)
        if plain is None or (plain[1] and not plain[2] and plain[3]):
            return None
        how: block_texts.MatchKind = "contains" if plain[1] and plain[3] else "endswith" if plain[1] else "equal"
        return self._within_limit("startswith" if plain[3] and not plain[1] else how, plain[2], negated=negated)

    def _within_limit(self, how: block_texts.MatchKind, text: str, *, negated: bool) -> Verdicts | None:
        """As patterns see a text: its beginning only. Longer ones stay open."""
        found = self._ask(how, text, negated=negated)
        if found is not None:
            found[self._texts.sizes > REGEX_LIMIT] = PERHAPS
        return found

    def _one_of(self, items: tuple[Constant, ...], *, negated: bool) -> Verdicts | None:
        answers: npt.NDArray[np.int8] | None = None
        for item in items:
            sought = block_texts.searchable(item.value) if isinstance(item.value, str) else None
            more = None if sought is None else self._texts.match("equal", sought, keys=self._keys)
            if more is None:
                return None
            answers = more if answers is None else np.maximum(answers, more)
        return None if answers is None else _answered(answers, negated=negated)

    def _in_order(self, sign: str, text: str) -> Verdicts | None:
        sought = block_texts.searchable(text)
        found = None if sought is None else self._texts.compare(sought)
        if found is None:
            return None
        signs, plain = found
        verdicts = _verdicts(_ORDER[sign](signs, 0), negated=False)
        verdicts[~plain] = PERHAPS
        verdicts[self._texts.starts < 0] = NO
        return verdicts

    def _one_by_one(self, texts: Texts) -> Verdicts:
        """The plain test of each text, once for each that differs."""
        test = closure(self._node, "record")
        known: dict[bytes | None, bool] = {}
        found = np.empty(len(texts), np.int8)
        for number, raw in enumerate(texts.to_list()):
            answer = known.get(raw)
            if answer is None:
                answer = test(self._record(raw))
                if len(known) >= _REMEMBERED:
                    known.clear()
                known[raw] = answer
            found[number] = YES if answer else NO
        return found

    def _record(self, raw: bytes | None) -> dict[str, Any]:
        """A record that has nothing but this text."""
        if raw is None:
            return {}
        if self._field.is_property:
            return {PROPERTIES: {self._field.name: utf8(raw)}}
        if self._keys:
            return {"keys": properties.split_keys(utf8(raw))}
        return {self._field.name: raw if self._field.name == "body" else utf8(raw)}


def needed_text(pattern: str) -> str:
    """The longest text that stands in every match of the regular expression ``pattern`` (without the flags i and x),
    as far as a look at its outermost part tells; empty where it tells nothing.
    """
    runs, run, at = [], "", 0
    single = False
    """Whether the last thing was the last character of ``run``: what a repetition belongs to."""
    while at < len(pattern):
        if pattern[at] in "*?" or _REPEATED.match(pattern, at):
            repeated = _REPEATED.match(pattern, at)
            low, high = (repeated[1], repeated[2]) if repeated else ("", None)
            least = int(low or 0)
            if single:
                run = run[:-1] + run[-1] * min(least, _LONGEST_RUN)
            exact = single and repeated is not None and high is None and least <= _LONGEST_RUN
            at = repeated.end() if repeated else at + 1
            at += pattern[at : at + 1] in ("?", "+")
            if not exact:
                runs.append(run)
                run = ""
            single = False
            continue
        if pattern[at] == "+":
            runs.append(run)
            run, single = "", False
            at += 2 if pattern[at + 1 : at + 2] in ("?", "+") else 1
            continue
        found = _PIECE.match(pattern, at)
        if found is None:
            return ""
        at = found.end()
        if found["plain"] is not None:
            run, single = run + found["plain"][-1], True
        else:
            runs.append(run)
            run, single = "", False
    return max([*runs, run], key=len)


def _by_host(node: Node, name: str, block: UnitColumns, rows: Rows) -> Verdicts:
    """Hosts are few: the test runs once for each that differs."""
    flags = block.sys_flag[rows]
    born = np.where(flags & message.BORN_HOST_V6, 20, 8)
    at = block.offset[rows] - block.base + _HOST_AT
    widths = born
    if name == "storeHost":
        at, widths = at + born + 8, np.where(flags & message.STORE_HOST_V6, 20, 8)
    test = closure(node, "record")
    found = np.empty(len(rows), np.int8)
    for width in (8, 20):
        mine = np.flatnonzero(widths == width)
        hosts, numbers = np.unique(block_texts.fixed_width_bytes(block, at[mine], width), return_inverse=True)
        texts = [message.host_text(host.ljust(width, b"\0")) for host in hosts.tolist()]
        found[mine] = np.array([YES if test({name: text}) else NO for text in texts], np.int8)[numbers]
    return found


def _by_message_id(node: Node, block: UnitColumns, rows: Rows) -> Verdicts | None:
    """An offset message id can only be that of the unit at the offset that it names."""
    match node:
        case Compare("=", Field(), Constant(str(text), _)) | Compare("=", Constant(str(text), _), Field()):
            sought = [text]
        case In(Field(), items, False):
            sought = [item.value for item in items if isinstance(item.value, str)]
        case _:
            return None
    offsets = [named[1] for named in map(message.parse_offset_message_id, sought) if named is not None]
    return np.where(np.isin(block.physical_offset[rows], np.array(offsets, np.int64)), PERHAPS, NO)


def _answered(answers: npt.NDArray[np.int8], *, negated: bool) -> Verdicts:
    """A question about an absent text is answered no, negated or not."""
    found = _verdicts(answers == block_texts.TRUE, negated=negated)
    found[answers == block_texts.NULL] = NO
    return found


def _verdicts(true: npt.NDArray[np.bool_], *, negated: bool) -> Verdicts:
    return np.where(true != negated, YES, NO)


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
_COUNTED = ("number", "time", "duration")


def verdicts(node: Node, columns: UnitColumns, topics: TopicTable, file_of: FileOf | None, units: Rows) -> Verdicts:
    """The verdict of ``node`` on each of the rows ``units``, which are units.

    ``file_of`` names the commit log file of an offset; without it a unit's ``file`` is null.
    """
    return _Part(columns, topics, file_of, units).verdict(node) if len(units) else np.empty(0, np.int8)


class _Part:
    """Some rows of a block, all of them units."""

    def __init__(self, block: UnitColumns, topics: TopicTable, file_of: FileOf | None, rows: Rows) -> None:
        self._block = block
        self._topics = topics
        self._file_of = file_of
        self._at = rows
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
        asked = {item.label for item in fields(node)}
        if asked and asked <= BY_TOPIC:
            return self._by_topic(node)
        if asked and asked <= BY_FLAGS:
            return self._by_flags(node)
        if asked == {"crc"}:
            return self._by_crc(node)
        if asked == {"transaction"}:
            return self._by_transaction(node)
        if asked == {"file"}:
            return self._by_file(node)
        found = self._by_number(node)
        if found is None:
            found = verdict(node, self._block, self._at, self._topics)
        return self._all(PERHAPS) if found is None else found

    def _join(self, items: Sequence[Node], join: Callable[..., Verdicts], settled: np.int8) -> Verdicts:
        """The parts of a conjunction or disjunction, cheap ones first; rows whose verdict is ``settled`` are done."""
        first, *others = sorted(items, key=_cost)
        found = self.verdict(first)
        for item in others:
            left = np.flatnonzero(found != settled)
            if not len(left):
                break
            part = self if len(left) == self._rows else self._only(left)
            found[left] = join(found[left], part.verdict(item))
        return found

    def _only(self, numbers: Rows) -> _Part:
        return _Part(self._block, self._topics, self._file_of, self._at[numbers])

    def _all(self, verdict: np.int8) -> Verdicts:
        return np.full(self._rows, verdict, np.int8)

    def _column(self, name: str) -> npt.NDArray[Any]:
        column = self._block[name]
        return column if len(column) == self._rows else column[self._at]

    # -- fields with few values: the test runs once a value

    def _by_topic(self, node: Node) -> Verdicts:
        """Topics without a number (−1) take the last place, which stays open."""
        test = closure(node, "record")
        table = [YES if test({"topic": name}) else NO for name in self._topics.names]
        return _lookup([*table, PERHAPS], self._column("topic_id"))

    def _by_flags(self, node: Node) -> Verdicts:
        test = closure(node, "record")
        kept = message.COMPRESSED | message.INNER_BATCH
        values, rows = np.unique(self._column("sys_flag") & kept, return_inverse=True)
        table = [YES if test({"sysFlag": int(value)}) else NO for value in values]
        return _lookup(table, rows)

    def _by_crc(self, node: Node) -> Verdicts:
        test = closure(node, "record")
        table = [PERHAPS, PERHAPS, PERHAPS]
        for code, word in _CRC_WORDS.items():
            table[code] = YES if test({"crc": word}) else NO
        return _lookup(table, self._column("crc"))

    def _by_transaction(self, node: Node) -> Verdicts:
        """The word follows from the flag's two bits (0 none, 1 half, 2 commit, 3 rollback) and two topics."""
        test = closure(node, "record")
        by_bits = [YES if test({"sysFlag": bits << 2, "topic": ""}) else NO for bits in range(4)]
        found = _lookup(by_bits, self._column("sys_flag") >> 2 & 3)
        topic = self._column("topic_id")
        for name in (HALF_TOPIC, OP_TOPIC):
            number = self._topics.find(name)
            if number >= 0:
                found[topic == number] = YES if test({"topic": name}) else NO
        found[topic < 0] = PERHAPS
        return found

    def _by_file(self, node: Node) -> Verdicts:
        """The rows of a block lie in one file."""
        names = {self._file_of(int(self._block.offset[self._at[end]])) if self._file_of else None for end in (0, -1)}
        if len(names) > 1:
            return self._all(PERHAPS)
        return self._all(YES if closure(node, "record")({"file": names.pop()}) else NO)

    # -- numbers and times

    def _by_number(self, node: Node) -> Verdicts | None:
        """None where the node does not compare numbers that stand in columns or in properties."""
        match node:
            case Compare(sign, left, right):
                return _told(self._compare(sign, left, right), negated=False)
            case Between(left, low, high, negated):
                above, below = self._compare("<=", low, left), self._compare("<=", left, high)
                return None if above is None or below is None else _told(above.both(below), negated)
            case In(left, items, negated):
                return _told(self._one_of(left, items), negated)
            case IsNull(left, negated):
                numbers = self._numbers(left) if kind_of(left) in _COUNTED else None
                return None if numbers is None else self._all(YES if negated else NO)
        return None

    def _compare(self, sign: str, left: Value, right: Value) -> _Compared | None:
        kinds = (kind_of(left), kind_of(right))
        if kinds[0] not in _COUNTED and kinds[1] not in _COUNTED:
            return None  # texts, or two properties, which are compared as texts
        a, b = self._numbers(left), self._numbers(right)
        if a is None or b is None:
            return None
        return _Compared(_COMPARISONS[sign](a.values, b.values), a.unsure | b.unsure, a.absent | b.absent)

    def _one_of(self, left: Value, items: tuple[Constant, ...]) -> _Compared | None:
        if kind_of(left) not in _COUNTED:
            return None  # a property's text that is no number is in no list of numbers, and so not absent
        sought = [item.value for item in items]
        if not all(isinstance(value, int) and _SMALLEST <= value <= _LARGEST for value in sought):
            return None
        a = self._numbers(left)
        return None if a is None else _Compared(np.isin(a.values, np.array(sought, np.int64)), a.unsure, a.absent)

    def _numbers(self, node: Node) -> _Known | None:
        """The value of ``node`` in each row, None where it is not to be had."""
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
                return _Known(values, self._unsure_tags_code() if name == "tagsCode" else self._none())
            case Arithmetic(sign, left, right, _):
                return self._sum(sign, left, right)
        return None

    def _none(self) -> Truths:
        return np.zeros(self._rows, np.bool_)

    def _unsure_tags_code(self) -> Truths:
        return unsure_tags_code(self._column("topic_id"), self._topics)

    def _constant(self, value: int | str | bool) -> _Known | None:
        if isinstance(value, str) or not _SMALLEST <= value <= _LARGEST:
            return None
        return _Known(np.full(self._rows, value, np.int64), self._none())

    def _property(self, name: str) -> _Known | None:
        sought = block_texts.searchable(name)
        if sought is None:
            return None
        found = block_texts.property_values(self._block, self._at, sought).parse_numbers()
        if found is None:
            return None
        values, states = found
        return _Known(values, states == block_texts.UNSURE, states == block_texts.NO_NUMBER)

    def _sum(self, sign: str, left: Value, right: Value) -> _Known | None:
        """Numbers that leave 64 bits on the way are left open: the unit's test counts without limit."""
        a, b = self._numbers(left), self._numbers(right)
        if a is None or b is None:
            return None
        unsure, absent = a.unsure | b.unsure, a.absent | b.absent
        if sign == "&":
            return _Known(a.values & b.values, unsure, absent)
        with np.errstate(over="ignore"):
            if sign == "+":
                values = a.values + b.values
                wrapped = ((a.values ^ values) & (b.values ^ values)) < 0
            else:
                values = a.values - b.values
                wrapped = ((a.values ^ b.values) & (a.values ^ values)) < 0
        return _Known(values, unsure | wrapped, absent)


class _Known:
    """A number per row, the rows where it may be another, and those that have none."""

    __slots__ = ("absent", "unsure", "values")

    def __init__(self, values: Numbers, unsure: Truths, absent: Truths | None = None) -> None:
        self.values = values
        self.unsure = unsure
        self.absent = np.zeros(len(values), np.bool_) if absent is None else absent


class _Compared:
    """What a comparison says per row, the rows where it may say otherwise, and those with an absent side."""

    __slots__ = ("absent", "true", "unsure")

    def __init__(self, true: Truths, unsure: Truths, absent: Truths) -> None:
        self.true = true
        self.unsure = unsure
        self.absent = absent

    def both(self, other: _Compared) -> _Compared:
        """Whether both comparisons hold."""
        return _Compared(self.true & other.true, self.unsure | other.unsure, self.absent | other.absent)


def _told(compared: _Compared | None, negated: bool) -> Verdicts | None:
    """The verdicts; with an absent side false, negated or not."""
    if compared is None:
        return None
    found: Verdicts = np.where(compared.true != negated, YES, NO)
    found[compared.unsure] = PERHAPS
    found[compared.absent & ~compared.unsure] = NO
    return found


def _cost(node: Node) -> int:
    """Which of several conditions is asked first: columns, then properties, then bodies, patterns last."""
    below = parts(node)
    if isinstance(node, Field):
        return cost(node)
    return reduce(max, map(_cost, below), cost(node))


def _lookup(table: Sequence[np.int8], rows: npt.NDArray[Any]) -> Verdicts:
    found: Verdicts = np.array(table, np.int8)[rows]
    return found


class BlockFilter:
    """A filter's tree on blocks that are scanned with these ``topics`` and their tags, and with their CRCs where it
    asks for them. Units are decoded with ``crc`` or without.

    ``file_of`` names the commit log file of an offset: without it a unit's ``file`` is null.
    """

    def __init__(self, tree: Node, topics: TopicTable, file_of: FileOf | None = None, *, crc: bool = True) -> None:
        self._tree = tree
        self._topics = topics
        self._file_of = file_of
        self._crc = crc
        self._test = closure(tree, "unit", file_of)

    def rows(self, block: UnitColumns, among: Rows | None = None) -> Rows:
        """The rows of the units that the filter takes, of those ``among``."""
        asked = np.flatnonzero(block["kind"] == UNIT) if among is None else among[block.kind[among] == UNIT]
        found = verdicts(self._tree, block, self._topics, self._file_of, asked)
        keep = found > 0
        for number in np.flatnonzero(found == 0).tolist():
            keep[number] = self._test(unit_of(block, int(asked[number]), self._crc))
        return asked[keep]

    def units(self, block: UnitColumns) -> Iterator[Unit]:
        """The units that the filter takes."""
        for row in self.rows(block).tolist():
            yield unit_of(block, row, self._crc)


def unit_of(block: UnitColumns, row: int, crc: bool = True) -> Unit:
    """The unit at a row, which the scan has proven."""
    offset, size = int(block.offset[row]), int(block.size[row])
    at = offset - block.base
    return decode(block.buffer[at : at + size].tobytes(), 0, offset, crc)
