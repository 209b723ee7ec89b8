"""A parsed filter, and texts of conditions built from values."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from functools import cached_property
from typing import TYPE_CHECKING, Any

from engine.codec.message import Unit
from engine.errors import BadFilter
from engine.query import tree
from engine.query.evaluate import FileOf, closure
from engine.query.fields import FIELDS, PROPERTIES, FieldSpec
from engine.query.lexer import quote, words
from engine.query.parse import tree_of
from engine.query.tree import Node

if TYPE_CHECKING:
    from engine.codec.topic_table import TopicTable
    from engine.query.vector import BlockFilter

Record = Unit | Mapping[str, Any]


@dataclass(frozen=True)
class Filter:
    """What a text asks for. Two filters are equal if their trees are."""

    text: str = field(compare=False)
    tree: Node

    @cached_property
    def fields(self) -> frozenset[str]:
        """Fields it asks for, as they are written: ``topic``, ``properties.color``."""
        return frozenset(item.label for item in tree.fields(self.tree))

    @cached_property
    def takes_all(self) -> bool:
        """The empty filter, or ``true``."""
        return self.tree == tree.Constant(True, "condition")

    def matches(self, record: Record) -> bool:
        """The answer for a unit, or for a mapping with the names of the ``unit`` record."""
        return self._test(record)

    def compile(self, file_of: FileOf | None = None) -> Callable[[Record], bool]:
        """The fast form of :meth:`matches`.

        ``file_of(offset)`` names the commit log file of a unit: without it a unit's ``file`` is null.
        """
        of_unit = closure(self.tree, "unit", file_of)
        of_record = closure(self.tree, "record")
        return lambda record: of_unit(record) if isinstance(record, Unit) else of_record(record)

    def on_blocks(self, topics: TopicTable, file_of: FileOf | None = None, *, crc: bool = True) -> BlockFilter:
        """The form of :meth:`compile` for whole blocks of a scan: see :class:`engine.query.vector.BlockFilter`."""
        from engine.query.vector import BlockFilter

        return BlockFilter(self.tree, topics, file_of, crc=crc)

    @cached_property
    def _test(self) -> Callable[[Record], bool]:
        return self.compile()


def parse(
    text: str, *, now_ms: int | None = None, zone: tzinfo | None = None, fields: Mapping[str, FieldSpec] = FIELDS
) -> Filter:
    """The filter of ``text``; an empty one takes everything.

    ``now`` in the text is ``now_ms`` (ms, the clock's where None); times without an offset are in ``zone`` (the
    machine's where None). ``fields`` is the table of fields: a unit's, or whatever else ``record``
    getters read. Raises :class:`BadFilter` with the place of the offending word.
    """
    return Filter(text, tree_of(text, time.time_ns() // 1_000_000 if now_ms is None else now_ms, zone, fields))


def condition(name: str, value: object, *, zone: tzinfo | None = None) -> str:
    """The condition that a field has this value: what "apply as filter" on a cell gives.

    ``name`` is a field or ``properties.NAME``, whatever characters NAME has; a list asks for all its items, None for
    absence. Times are written in ``zone``, UTC where None. Raises :class:`BadFilter` where there is no such field.
    """
    target = _field(name)
    if value is None:
        return f"{target.label} is null"
    if isinstance(value, list | tuple):
        return " and ".join(condition(name, item) for item in value) or f"{target.label} is null"
    if isinstance(value, bool):
        return target.label if value else f"not {target.label}"
    if isinstance(value, int) and target.kind == "time":
        return f"{target.label} = {_moment(value, zone)}"
    return f"{target.label} = {quote(value) if isinstance(value, str) else int(str(value))}"


def only(topic: str | None = None, queue: int | None = None, where: str | None = None) -> Filter | None:
    """The filter of ``where`` for one topic, or one queue; None where nothing is asked."""
    asked: list[Node] = [] if where is None else [parse(where).tree]
    if queue is not None:
        asked.insert(0, tree.Compare("=", tree.Field("queueId"), tree.Constant(queue, "number")))
    if topic is not None:
        asked.insert(0, tree.Compare("=", tree.Field("topic"), tree.Constant(topic, "text")))
    return Filter(where or "", tree.all_of(*asked)) if asked else None


def negate(text: str) -> str:
    """The filter that takes what ``text`` does not."""
    node = parse(text, zone=UTC).tree
    return f"not {text.strip()}" if _binds(node) > tree.NOT else f"not ({text.strip()})"


def and_(first: str, second: str) -> str:
    """The filter that takes what both do; an empty one adds nothing."""
    return _join("and", first, second, tree.AND)


def or_(first: str, second: str) -> str:
    """The filter that takes what one of them does; an empty one is left out."""
    return _join("or", first, second, tree.OR)


def _join(word: str, first: str, second: str, level: int) -> str:
    sides = [text.strip() for text in (first, second) if text.strip()]
    nodes = [parse(text, zone=UTC).tree for text in sides]
    if len(sides) < 2:
        return "".join(sides)
    whole = [text if _binds(node) >= level else f"({text})" for text, node in zip(sides, nodes, strict=True)]
    return f" {word} ".join(whole)


def _binds(node: Node) -> int:
    return tree.binding(node)


def _field(name: str) -> tree.Field:
    if name in FIELDS:
        return tree.Field(name)
    if name.startswith(f"{PROPERTIES}["):
        only, *_ = words(name)
        return tree.Field(str(only.value), True)
    if name.startswith(f"{PROPERTIES}."):
        return tree.Field(name.removeprefix(f"{PROPERTIES}."), True)
    raise BadFilter(f"there is no field {name!r}", 0, max(1, len(name)))


def _moment(ms: int, zone: tzinfo | None) -> str:
    try:
        return quote(tree.time_text(ms, zone or UTC))
    except (OverflowError, ValueError):
        return str(ms)
