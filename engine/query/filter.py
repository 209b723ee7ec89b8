"""A parsed filter, and functions that build texts of conditions from values."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from engine.codec.message import Unit
from engine.decoding.values import value_text
from engine.errors import BadFilter
from engine.query import tree
from engine.query.evaluate import FileOf, closure
from engine.query.fields import FIELDS, PROPERTIES, FieldSpec
from engine.query.lexer import MAX_NUMBER, quote, words
from engine.query.parse import tree_of
from engine.query.tree import Node
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.codec.topic_table import TopicTable
    from engine.query.vector import BlockFilter

Record = Unit | Mapping[str, Any]


@dataclass(frozen=True)
class Filter:
    """A parsed filter. Two filters are equal if their trees are."""

    text: str = field(compare=False)
    tree: Node

    @cached_property
    def fields(self) -> frozenset[str]:
        """The fields that it reads, as they are written: ``topic``, ``properties.color``."""
        return frozenset(item.label for item in tree.fields(self.tree))

    @cached_property
    def reads_bodies(self) -> bool:
        """True if it reads bodies, or fields of decoded ones."""
        return any(item.name == "body" and not item.is_property for item in tree.fields(self.tree))

    @cached_property
    def body_fields(self) -> frozenset[str]:
        """The fields of decoded bodies that it reads, as they are written: ``body.customer.id``."""
        return frozenset(item.label for item in tree.fields(self.tree) if item.path)

    @cached_property
    def takes_all(self) -> bool:
        """True for the empty filter and ``true``."""
        return self.tree == tree.Constant(True, "condition")

    def matches(self, record: Record) -> bool:
        """Test a unit, or a mapping with the names of the ``unit`` record."""
        return self._test(record)

    def compile(self, file_of: FileOf | None = None) -> Callable[[Record], bool]:
        """Return the fast form of :meth:`matches`.

        ``file_of(offset)`` names the commit log file of a unit; without it a unit's ``file`` is null.

        """
        of_unit = closure(self.tree, "unit", file_of)
        of_record = closure(self.tree, "record")
        return lambda record: of_unit(record) if isinstance(record, Unit) else of_record(record)

    def on_blocks(self, topics: TopicTable, file_of: FileOf | None = None, *, crc: bool = True) -> BlockFilter:
        """Return the form of :meth:`compile` for blocks of a scan: see :class:`engine.query.vector.BlockFilter`."""
        from engine.query.vector import BlockFilter

        return BlockFilter(self.tree, topics, file_of, crc=crc)

    @cached_property
    def _test(self) -> Callable[[Record], bool]:
        return self.compile()


def parse(
    text: str, *, now_ms: int | None = None, zone: tzinfo | None = None, fields: Mapping[str, FieldSpec] = FIELDS
) -> Filter:
    """Return the filter of ``text``; an empty text matches everything.

    ``now`` in the text is ``now_ms`` (ms; None: the clock's). Times without an offset are in ``zone`` (None: the
    machine's). ``fields`` is the table of fields: a unit's, or other fields with ``record`` getters. Raises
    :class:`BadFilter` with the place of the invalid word.

    """
    return Filter(text, tree_of(text, time.time_ns() // 1_000_000 if now_ms is None else now_ms, zone, fields))


def condition(name: str, value: object, *, zone: tzinfo | None = None) -> str:
    """Return the condition that a field has this value, for "apply as filter" on a cell.

    ``name`` is a field or ``properties.NAME``, whatever characters NAME has. A list requires all its items, None
    requires absence. Times are written in ``zone``, UTC if None. Raises :class:`BadFilter` if there is no such
    field.

    """
    target = _field(name)
    if target.path and isinstance(value, float) and math.isfinite(value):
        return f"{target.label} = {Decimal(repr(value))}"
    is_wide = isinstance(value, int) and abs(value) > MAX_NUMBER
    if target.path and (is_wide or isinstance(value, bool) or not isinstance(value, str | int | None)):
        value = value_text(value)
    if value is None:
        return f"{target.label} is null"
    if isinstance(value, list | tuple):
        return " and ".join(condition(name, item) for item in value) or f"{target.label} is null"
    if isinstance(value, bool):
        return target.label if value else f"not {target.label}"
    if isinstance(value, int) and target.kind == "time":
        return f"{target.label} = {_time_literal(value, zone)}"
    return f"{target.label} = {quote(value) if isinstance(value, str) else int(str(value))}"


def scope_filter(topic: str | None = None, queue: int | None = None, where: str | None = None) -> Filter | None:
    """Return the filter of ``where`` for one topic, or one queue; None if there is no condition."""
    conditions: list[Node] = [] if where is None else [parse(where).tree]
    if queue is not None:
        conditions.insert(0, tree.Compare("=", tree.Field("queueId"), tree.Constant(queue, "number")))
    if topic is not None:
        conditions.insert(0, tree.Compare("=", tree.Field("topic"), tree.Constant(topic, "text")))
    return Filter(where or "", tree.all_of(*conditions)) if conditions else None


def negate(text: str) -> str:
    """Return the filter that matches what ``text`` does not."""
    node = parse(text, zone=UTC).tree
    return f"not {text.strip()}" if _binding(node) > tree.NOT else f"not ({text.strip()})"


def and_(text: str, other_text: str) -> str:
    """Return the filter that matches what both match; an empty one adds nothing."""
    return _join("and", text, other_text, tree.AND)


def or_(text: str, other_text: str) -> str:
    """Return the filter that matches what either matches; an empty one is left out."""
    return _join("or", text, other_text, tree.OR)


def _join(word: str, text: str, other_text: str, level: int) -> str:
    sides = [text.strip() for text in (text, other_text) if text.strip()]
    nodes = [parse(text, zone=UTC).tree for text in sides]
    if len(sides) < 2:
        return "".join(sides)
    operands = [text if _binding(node) >= level else f"({text})" for text, node in zip(sides, nodes, strict=True)]
    return f" {word} ".join(operands)


def _binding(node: Node) -> int:
    return tree.binding(node)


def _field(name: str) -> tree.Field:
    if name in FIELDS:
        return tree.Field(name)
    if name.startswith(("body.", "body[")):
        return tree.Field("body", path=words(name)[0].path)
    if name.startswith(f"{PROPERTIES}["):
        token, *_ = words(name)
        return tree.Field(str(token.value), True)
    if name.startswith(f"{PROPERTIES}."):
        return tree.Field(name.removeprefix(f"{PROPERTIES}."), True)
    raise BadFilter(sentence("there is no field {name}", name=repr(name)), 0, max(1, len(name)))


def _time_literal(ms: int, zone: tzinfo | None) -> str:
    try:
        return quote(tree.time_text(ms, zone or UTC))
    except (OverflowError, ValueError):
        return str(ms)
