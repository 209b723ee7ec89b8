"""Conditions on texts over a block: keys, tags, unique keys, properties, bodies, hosts and ids.

What bytes can tell is asked of the bytes, all rows in one call; what only a decoded text can (patterns, U+FFFD) is
asked of the texts one by one, never of whole units. Compressed bodies stay open: only the unit's own test unpacks
them.
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
from engine.query.tree import Compare, Constant, Field, In, IsNull, Matches, Node, TextTest, fields
from engine.query.verdicts import NO, PERHAPS, YES, Verdicts

Rows = npt.NDArray[np.intp]

_OF_PROPERTIES = {"tags": properties.TAGS, "keys": properties.KEYS, "uniqueKey": properties.UNIQUE_KEY}
_HOSTS = ("bornHost", "storeHost")
_HOST_AT = 48
"""Bytes in front of the born host."""
_MANY = 16
"""Texts of a list that are sought one by one."""
_REMEMBERED = 4096
_ORDER: dict[str, Callable[[Any, int], Any]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip
_PLAIN_LIKE = re.compile(r"(%?)([^%_\\]*)(%?)", re.DOTALL)
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
        return self._one_by_one() if found is None else found

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
                answers = self._texts.ask("contains", b"", keys=self._keys)
                return None if answers is None else _verdicts(answers == block_texts.NULL, negated=negated)
        return None

    def _ask(self, how: block_texts.How, text: str, *, negated: bool) -> Verdicts | None:
        sought = block_texts.searchable(text)
        answers = None if sought is None else self._texts.ask(how, sought, keys=self._keys)
        return None if answers is None else _answered(answers, negated=negated)

    def _like(self, pattern: str, *, negated: bool) -> Verdicts | None:
        """Patterns that only say where one text stands."""
        plain = _PLAIN_LIKE.fullmatch(pattern)
        if plain is None or (plain[1] and not plain[2] and plain[3]):
            return None
        how: block_texts.How = "contains" if plain[1] and plain[3] else "endswith" if plain[1] else "equal"
        return self._within_limit("startswith" if plain[3] and not plain[1] else how, plain[2], negated=negated)

    def _within_limit(self, how: block_texts.How, text: str, *, negated: bool) -> Verdicts | None:
        """As patterns see a text: its beginning only. Longer ones stay open."""
        found = self._ask(how, text, negated=negated)
        if found is not None:
            found[self._texts.sizes > REGEX_LIMIT] = PERHAPS
        return found

    def _one_of(self, items: tuple[Constant, ...], *, negated: bool) -> Verdicts | None:
        answers: npt.NDArray[np.int8] | None = None
        for item in items:
            sought = block_texts.searchable(item.value) if isinstance(item.value, str) else None
            more = None if sought is None else self._texts.ask("equal", sought, keys=self._keys)
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

    def _one_by_one(self) -> Verdicts:
        """The plain test of each text, once for each that differs."""
        test = closure(self._node, "record")
        known: dict[bytes | None, bool] = {}
        found = np.empty(len(self._texts), np.int8)
        for number, raw in enumerate(self._texts.every()):
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
        hosts, numbers = np.unique(block_texts.pieces(block, at[mine], width), return_inverse=True)
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
