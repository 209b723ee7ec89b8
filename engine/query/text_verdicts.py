"""Decide conditions on texts of a block: keys, tags, unique keys, properties, bodies, hosts and ids.

If bytes can decide, all rows are compared in one call. If only a decoded text can (patterns, U+FFFD), the texts are
decoded one by one, never whole units. Compressed bodies stay open: only the plain test of the unit unpacks them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.codec import block_texts, message, properties
from engine.codec.block_texts import Texts
from engine.codec.columns import UnitColumns
from engine.codec.java import jhash, utf8
from engine.codec.topic_table import TopicTable
from engine.query.evaluate import REGEX_LIMIT, closure
from engine.query.fields import PROPERTIES
from engine.query.tree import (
    Compare,
    Constant,
    Field,
    In,
    IsNull,
    Matches,
    Node,
    TextTest,
    fields,
)
from engine.system_names import SCHEDULE_TOPIC

Verdicts = npt.NDArray[np.int8]
YES, PERHAPS, NO = np.int8(1), np.int8(0), np.int8(-1)
"""The three verdicts of a filter on a row."""
Rows = npt.NDArray[np.intp]

_OF_PROPERTIES = {"tags": properties.TAGS, "keys": properties.KEYS, "uniqueKey": properties.UNIQUE_KEY}
_HOSTS = ("bornHost", "storeHost")
_BORN_HOST_POSITION = 48
"""Position of the born host in a unit."""
_MAX_LISTED_TEXTS = 16
"""Maximum length of a list whose texts are searched one by one."""
_MAX_CACHED_TEXTS = 4096
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
"""A literal character, or an element of which only the end matters. Anything else (a choice, other escapes, flags,
nested groups) is not analysed.
"""
_REPEATED = re.compile(r"\{(\d+|(?=,))(,\d*)?\}")
_MAX_RUN = 64
_PLAIN_PATTERN = re.compile(r"[\w \-,:;/@#=<>!\"'&~`%]+")


def verdict(node: Node, block: UnitColumns, rows: Rows, topics: TopicTable) -> Verdicts | None:
    """Return the verdict on each of ``rows``; None if it needs the whole unit."""
    node_fields = set(fields(node))
    if len(node_fields) != 1:
        return None
    field = node_fields.pop()
    if field.label in _HOSTS:
        return _by_host(node, field.name, block, rows)
    if field.label == "offsetMsgId":
        return _by_message_id(node, block, rows)
    name = field.name if field.is_property else _OF_PROPERTIES.get(field.name)
    if name is None and field.label != "body":
        return None
    verdicts_ = np.full(len(rows), PERHAPS, np.int8)
    if name is None:
        open_rows = np.flatnonzero(block.sys_flag[rows] & message.COMPRESSED == 0)
        texts = block_texts.bodies(block, rows[open_rows])
    else:
        sought = block_texts.searchable(name)
        if sought is None:
            return None
        open_rows = np.arange(len(rows))
        if field.label == "tags":
            verdicts_, open_rows = _by_hash(node, block, rows, topics)
        texts = block_texts.property_values(block, rows[open_rows], sought)
    verdicts_[open_rows] = _TextCondition(node, field, texts).verdict()
    return verdicts_


def cost(node: Node) -> int:
    """Return the cost of a node: 0 for columns, 1 for the bytes of properties, 2 for bodies, 3 if texts are decoded."""
    match node:
        case Field("body", False):
            return 2
        case Field(name, is_property):
            return int(is_property or name in _OF_PROPERTIES or name in _HOSTS)
        case Matches() | TextTest("like", _, _, _):
            return 3
    return 0


def unsure_tags_code(topic: npt.NDArray[np.int32], topics: TopicTable) -> npt.NDArray[np.bool_]:
    """Return the rows whose tagsCode may be no hash: a queue of delayed messages holds delivery times instead."""
    unsure: npt.NDArray[np.bool_] = (topic < 0) | (topic == topics.find(SCHEDULE_TOPIC))
    return unsure


def _by_hash(node: Node, block: UnitColumns, rows: Rows, topics: TopicTable) -> tuple[Verdicts, Rows]:
    """Decide by the tag's hash: return the verdicts so far, and the rows that must be examined themselves."""
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
    may_match = codes == hashes[0] if len(hashes) == 1 else np.isin(codes, hashes)
    may_match |= unsure_tags_code(block.topic_id[rows], topics)
    return np.full(len(rows), NO, np.int8), np.flatnonzero(may_match)


class _TextCondition:
    """A condition on one text of each row."""

    def __init__(self, node: Node, field: Field, texts: Texts) -> None:
        self._node = node
        self._field = field
        self._texts = texts
        self._keys = field.label == "keys"

    def verdict(self) -> Verdicts:
        verdicts_ = self._of_bytes()
        if verdicts_ is not None:
            return verdicts_
        texts, verdicts_ = self._texts, self._of_candidates()
        if verdicts_ is None:
            return self._one_by_one(texts)
        open_rows = np.flatnonzero(verdicts_ == PERHAPS)
        if len(open_rows):
            verdicts_[open_rows] = self._one_by_one(
                Texts(texts.buffer, texts.starts[open_rows], texts.sizes[open_rows])
            )
        return verdicts_

    def _of_candidates(self) -> Verdicts | None:
        """Decide a pattern by the longest text that every match of it contains; None if there is none."""
        match self._node:
            case Matches(Field(), pattern, flags, negated) if not set(flags) & set("ix"):
                text = needed_text(pattern)
                verdicts_ = self._ask("contains", text, negated=negated) if text else None
                if verdicts_ is not None:
                    verdicts_[verdicts_ == (NO if negated else YES)] = PERHAPS
                return verdicts_
        return None

    def _of_bytes(self) -> Verdicts | None:
        """Decide by comparing bytes; None if that is not possible."""
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
            case In(Field(), items, negated) if len(items) <= _MAX_LISTED_TEXTS:
                return self._one_of(items, negated=negated)
            case IsNull(Field(), negated):
                results = self._texts.match("contains", b"", keys=self._keys)
                return None if results is None else _verdicts(results == block_texts.NULL, negated=negated)
        return None

    def _ask(self, match_kind: block_texts.MatchKind, text: str, *, negated: bool) -> Verdicts | None:
        sought = block_texts.searchable(text)
        results = None if sought is None else self._texts.match(match_kind, sought, keys=self._keys)
        return None if results is None else _text_verdicts(results, negated=negated)

    def _like(self, pattern: str, *, negated: bool) -> Verdicts | None:
        """Decide patterns that only fix the position of one text."""
        plain = _PLAIN_LIKE.fullmatch(pattern)
        if plain is None or (plain[1] and not plain[2] and plain[3]):
            return None
        match_kind: block_texts.MatchKind = "contains" if plain[1] and plain[3] else "endswith" if plain[1] else "equal"
        return self._within_limit("startswith" if plain[3] and not plain[1] else match_kind, plain[2], negated=negated)

    def _within_limit(self, match_kind: block_texts.MatchKind, text: str, *, negated: bool) -> Verdicts | None:
        """Compare as patterns do, which see only the beginning of a text. Longer texts stay open."""
        verdicts_ = self._ask(match_kind, text, negated=negated)
        if verdicts_ is not None:
            verdicts_[self._texts.sizes > REGEX_LIMIT] = PERHAPS
        return verdicts_

    def _one_of(self, items: tuple[Constant, ...], *, negated: bool) -> Verdicts | None:
        results: npt.NDArray[np.int8] | None = None
        for item in items:
            sought = block_texts.searchable(item.value) if isinstance(item.value, str) else None
            item_results = None if sought is None else self._texts.match("equal", sought, keys=self._keys)
            if item_results is None:
                return None
            results = item_results if results is None else np.maximum(results, item_results)
        return None if results is None else _text_verdicts(results, negated=negated)

    def _in_order(self, sign: str, text: str) -> Verdicts | None:
        sought = block_texts.searchable(text)
        comparison = None if sought is None else self._texts.compare(sought)
        if comparison is None:
            return None
        signs, plain = comparison
        verdicts = _verdicts(_ORDER[sign](signs, 0), negated=False)
        verdicts[~plain] = PERHAPS
        verdicts[self._texts.starts < 0] = NO
        return verdicts

    def _one_by_one(self, texts: Texts) -> Verdicts:
        """Test each text with the plain test, once per different text."""
        test = closure(self._node, "record")
        cached: dict[bytes | None, bool] = {}
        verdicts_ = np.empty(len(texts), np.int8)
        for number, raw in enumerate(texts.to_list()):
            matches = cached.get(raw)
            if matches is None:
                matches = test(self._record(raw))
                if len(cached) >= _MAX_CACHED_TEXTS:
                    cached.clear()
                cached[raw] = matches
            verdicts_[number] = YES if matches else NO
        return verdicts_

    def _record(self, raw: bytes | None) -> dict[str, Any]:
        """Return a record that has only this text."""
        if raw is None:
            return {}
        if self._field.is_property:
            return {PROPERTIES: {self._field.name: utf8(raw)}}
        if self._keys:
            return {"keys": properties.split_keys(utf8(raw))}
        return {self._field.name: raw if self._field.name == "body" else utf8(raw)}


def needed_text(pattern: str) -> str:
    """Return the longest text that every match of the regular expression ``pattern`` contains (without the flags i
    and x), as far as its outermost level shows; empty if it shows nothing.
    """
    runs, run, position = [], "", 0
    last_is_plain = False
    """Whether the last thing was the last character of ``run``: what a repetition belongs to."""
    while position < len(pattern):
        if pattern[position] in "*?" or _REPEATED.match(pattern, position):
            repeated = _REPEATED.match(pattern, position)
            low_count, high_count = (repeated[1], repeated[2]) if repeated else ("", None)
            min_count = int(low_count or 0)
            if last_is_plain:
                run = run[:-1] + run[-1] * min(min_count, _MAX_RUN)
            exact = last_is_plain and repeated is not None and high_count is None and min_count <= _MAX_RUN
            position = repeated.end() if repeated else position + 1
            position += pattern[position : position + 1] in ("?", "+")
            if not exact:
                runs.append(run)
                run = ""
            last_is_plain = False
            continue
        if pattern[position] == "+":
            runs.append(run)
            run, last_is_plain = "", False
            position += 2 if pattern[position + 1 : position + 2] in ("?", "+") else 1
            continue
        piece = _PIECE.match(pattern, position)
        if piece is None:
            return ""
        position = piece.end()
        if piece["plain"] is not None:
            run, last_is_plain = run + piece["plain"][-1], True
        else:
            runs.append(run)
            run, last_is_plain = "", False
    return max([*runs, run], key=len)


def _by_host(node: Node, name: str, block: UnitColumns, rows: Rows) -> Verdicts:
    """Test each host once: there are few."""
    flags = block.sys_flag[rows]
    born = np.where(flags & message.BORN_HOST_V6, 20, 8)
    positions = block.offset[rows] - block.base + _BORN_HOST_POSITION
    widths = born
    if name == "storeHost":
        positions, widths = positions + born + 8, np.where(flags & message.STORE_HOST_V6, 20, 8)
    test = closure(node, "record")
    verdicts_ = np.empty(len(rows), np.int8)
    for width in (8, 20):
        rows_of_width = np.flatnonzero(widths == width)
        hosts, numbers = np.unique(
            block_texts.fixed_width_bytes(block, positions[rows_of_width], width), return_inverse=True
        )
        texts = [message.host_text(host.ljust(width, b"\0")) for host in hosts.tolist()]
        verdicts_[rows_of_width] = np.array([YES if test({name: text}) else NO for text in texts], np.int8)[numbers]
    return verdicts_


def _by_message_id(node: Node, block: UnitColumns, rows: Rows) -> Verdicts | None:
    """Decide an offset message id: only the unit at the offset that it names can match."""
    match node:
        case Compare("=", Field(), Constant(str(text), _)) | Compare("=", Constant(str(text), _), Field()):
            sought = [text]
        case In(Field(), items, False):
            sought = [item.value for item in items if isinstance(item.value, str)]
        case _:
            return None
    offsets = [named[1] for named in map(message.parse_offset_message_id, sought) if named is not None]
    return np.where(np.isin(block.physical_offset[rows], np.array(offsets, np.int64)), PERHAPS, NO)


def _text_verdicts(results: npt.NDArray[np.int8], *, negated: bool) -> Verdicts:
    """Turn text comparisons into verdicts: a test of an absent text is false, negated or not."""
    verdicts_ = _verdicts(results == block_texts.TRUE, negated=negated)
    verdicts_[results == block_texts.NULL] = NO
    return verdicts_


def _verdicts(true: npt.NDArray[np.bool_], *, negated: bool) -> Verdicts:
    return np.where(true != negated, YES, NO)
