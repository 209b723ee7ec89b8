"""The tree of a filter: frozen nodes, the fields that they read, and the text that parses to the same tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Literal

from engine.query.fields import FIELDS, PROPERTIES, FieldSpec, Kind
from engine.query.lexer import quote

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLAIN_NAME = re.compile(r"[\w$]+")

# Binding strengths; a node that binds less tightly than its parent needs parentheses.
OR, AND, NOT, COMPARE, BITS, SUM, ATOM = range(1, 8)


@dataclass(frozen=True, slots=True)
class Field:
    """A field, or with ``is_property`` the property of that name. ``own_spec`` is the spec of a field that units do not
    have. With ``path`` it is a field of the decoded body.
    """

    name: str
    is_property: bool = False
    own_spec: FieldSpec | None = field(default=None, compare=False, repr=False)
    path: tuple[str | int, ...] = ()

    @property
    def spec(self) -> FieldSpec:
        """The field's row in the table of fields; not for properties."""
        return self.own_spec or FIELDS[self.name]

    @property
    def kind(self) -> Kind:
        return "property" if self.is_property or self.path else self.spec.kind

    @property
    def label(self) -> str:
        """The field as it is written in a filter."""
        if self.path:
            return self.name + "".join(map(_step_text, self.path))
        if not self.is_property:
            return self.name
        plain = _PLAIN_NAME.fullmatch(self.name)
        return f"{PROPERTIES}.{self.name}" if plain else f"{PROPERTIES}[{quote(self.name)}]"


def _step_text(step: str | int) -> str:
    if isinstance(step, str):
        return f".{step}" if _PLAIN_NAME.fullmatch(step) else f"[{quote(step)}]"
    return f"[{step}]"


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant: number, duration and time in ms, text, or condition. A ``Decimal`` is no whole number of 64 bits."""

    value: int | Decimal | str | bool
    kind: Kind


@dataclass(frozen=True, slots=True)
class Now:
    """The time of the query, ms."""

    ms: int
    kind: Kind = "time"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``+``, ``-`` or ``&`` of two numbers or times; null if one side is."""

    sign: Literal["+", "-", "&"]
    left: Value
    right: Value
    kind: Kind


@dataclass(frozen=True, slots=True)
class Compare:
    """``=``, ``!=``, ``<``, ``<=``, ``>`` or ``>=``; false if one side is null."""

    sign: str
    left: Value
    right: Value


@dataclass(frozen=True, slots=True)
class TextTest:
    """``contains``, ``startswith``, ``endswith`` or ``like``; false on null, negated or not."""

    word: Literal["contains", "startswith", "endswith", "like"]
    operand: Value
    right: Value
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Matches:
    """A regular expression is found in the first 64 KiB of the text; false on null, negated or not."""

    operand: Value
    pattern: str
    flags: str = ""
    negated: bool = False


@dataclass(frozen=True, slots=True)
class In:
    """The value is one of ``items``; false on null, negated or not."""

    operand: Value
    items: tuple[Constant, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Between:
    """``lower <= operand <= upper``; false if one of them is null, negated or not."""

    operand: Value
    lower: Value
    upper: Value
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNull:
    """The value is absent."""

    operand: Value
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Not:
    """True if ``item`` is not."""

    item: Node


@dataclass(frozen=True, slots=True)
class And:
    """True if all items are; made by :func:`all_of`, which keeps it flat."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """True if at least one item is; made by :func:`any_of`, which keeps it flat."""

    items: tuple[Node, ...]


Value = Field | Constant | Now | Arithmetic
Test = Compare | TextTest | Matches | In | Between | IsNull | Not | And | Or
Node = Value | Test


def all_of(*items: Node) -> Node:
    """Return the conjunction, flat: ``a and (b and c)`` is ``a and b and c``."""
    flat = [part for item in items for part in (item.items if isinstance(item, And) else (item,))]
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def any_of(*items: Node) -> Node:
    """Return the disjunction, flat."""
    flat = [part for item in items for part in (item.items if isinstance(item, Or) else (item,))]
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def kind_of(node: Node) -> Kind:
    """Return the kind of the node's value."""
    return node.kind if isinstance(node, Field | Constant | Now | Arithmetic) else "condition"


def parts(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly below."""
    match node:
        case Field() | Constant() | Now():
            return ()
        case Not(item):
            return (item,)
        case And(items) | Or(items):
            return items
        case Arithmetic() | Compare():
            return (node.left, node.right)
        case TextTest():
            return (node.operand, node.right)
        case In():
            return (node.operand, *node.items)
        case Between():
            return (node.operand, node.lower, node.upper)
        case Matches() | IsNull():
            return (node.operand,)


def fields(node: Node) -> Iterator[Field]:
    """Yield every field that the node reads, with repetitions."""
    if isinstance(node, Field):
        yield node
    for part in parts(node):
        yield from fields(part)


def binding(node: Node) -> int:
    """Return the binding strength of the node's text."""
    match node:
        case Or():
            return OR
        case And():
            return AND
        case Not():
            return NOT
        case Arithmetic():
            return BITS if node.sign == "&" else SUM
        case Field() | Constant() | Now():
            return ATOM
        case _:
            return COMPARE


def text_of(node: Node) -> str:
    """Return the filter text of a tree; it parses to an equal tree."""
    match node:
        case Field():
            return node.label
        case Constant():
            return literal_text(node)
        case Now():
            return "now"
        case Not(item):
            return f"not {_within(item, NOT)}"
        case And(items):
            return " and ".join(_within(item, NOT) for item in items)
        case Or(items):
            return " or ".join(_within(item, AND) for item in items)
        case Arithmetic(sign, left, right):
            level = binding(node)
            return f"{_within(left, level)} {sign} {_within(right, level + 1)}"
        case Compare(sign, left, right):
            return f"{_within(left, BITS)} {sign} {_within(right, BITS)}"
        case _:
            return f"{_within(node.operand, BITS)} {_tail(node)}"


def _tail(node: TextTest | Matches | In | Between | IsNull) -> str:
    no = "not " if node.negated else ""
    match node:
        case TextTest():
            return f"{no}{node.word} {_within(node.right, BITS)}"
        case Matches():
            return f"{no}matches /{node.pattern.replace('/', chr(92) + '/')}/{node.flags}"
        case In():
            return f"{no}in ({', '.join(literal_text(item) for item in node.items)})"
        case Between():
            return f"{no}between {_within(node.lower, BITS)} and {_within(node.upper, BITS)}"
        case IsNull():
            return f"is {no}null"


def _within(node: Node, least: int) -> str:
    text = text_of(node)
    return text if binding(node) >= least else f"({text})"


def literal_text(node: Constant) -> str:
    """Return a constant as the language writes it."""
    if isinstance(node.value, bool):
        return "true" if node.value else "false"
    if isinstance(node.value, str):
        return quote(node.value)
    if node.kind == "time" and isinstance(node.value, int):
        return quote(time_text(node.value))
    if node.kind == "duration":
        return f"{node.value}ms"
    return str(node.value)


def time_text(ms: int, zone: tzinfo = UTC) -> str:
    """ISO text with milliseconds and offset, ``2026-11-20T09:41:07.000Z`` in UTC."""
    moment = (EPOCH + timedelta(milliseconds=ms)).astimezone(zone)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
