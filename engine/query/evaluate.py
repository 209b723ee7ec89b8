"""Tree → one Python closure that says yes or no to a unit or a record. A comparison with null is false."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, Literal

from engine.query.fields import FIELDS, Getter, property_getters
from engine.query.parse import compiled
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
    kind_of,
)

REGEX_LIMIT = 1 << 16
"""Characters of a text that a regular expression sees."""
Form = Literal["unit", "record"]
Test = Callable[[Any], bool]
FileOf = Callable[[int], str | None]

_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,40}\s*")
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SUMS: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "&": operator.and_}
_TEXT_TESTS: dict[str, Callable[[str, str], bool]] = {
    "contains": operator.contains,
    "startswith": str.startswith,
    "endswith": str.endswith,
}


def closure(node: Node, form: Form, file_of: FileOf | None = None) -> Test:
    """The test that ``node`` makes of records in ``form``; ``file_of`` names the commit log file of an offset."""
    match node:
        case Not(item):
            inner = closure(item, form, file_of)
            return lambda record: not inner(record)
        case And(items):
            return _every(tuple(closure(item, form, file_of) for item in items))
        case Or(items):
            return _some(tuple(closure(item, form, file_of) for item in items))
        case Compare(sign, left, right):
            return _comparison(sign, left, right, form, file_of)
        case Constant(value, _):
            return lambda _: value is True
        case Field():
            get = getter(node, form, file_of)
            return lambda record: get(record) is True
        case Now() | Arithmetic():
            raise TypeError("a value is no condition")
        case _:
            return _value_test(node, form, file_of)


def getter(node: Node, form: Form, file_of: FileOf | None = None) -> Getter:
    """What ``node`` gives for a record: a value, or a truth value where it is a condition."""
    match node:
        case Constant(value, _):
            return lambda _: value
        case Now(ms, _):
            return lambda _: ms
        case Field(name, is_property, told):
            if is_property:
                return property_getters(name)[form == "record"]
            if name == "file" and form == "unit" and file_of is not None:
                return lambda unit: file_of(unit.offset)
            spec = told or FIELDS[name]
            return spec.unit if form == "unit" else spec.record
        case Arithmetic(sign, left, right, _):
            return _sum(_SUMS[sign], getter(left, form, file_of), getter(right, form, file_of))
        case _:
            return closure(node, form, file_of)


def _every(tests: tuple[Test, ...]) -> Test:
    if len(tests) == 2:
        first, second = tests
        return lambda record: first(record) and second(record)
    return lambda record: all(test(record) for test in tests)


def _some(tests: tuple[Test, ...]) -> Test:
    if len(tests) == 2:
        first, second = tests
        return lambda record: first(record) or second(record)
    return lambda record: any(test(record) for test in tests)


def _sum(add: Callable[[Any, Any], Any], left: Getter, right: Getter) -> Getter:
    def read(record: object) -> object:
        a, b = left(record), right(record)
        return None if a is None or b is None else add(a, b)

    return read


def _comparison(sign: str, left: Node, right: Node, form: Form, file_of: FileOf | None) -> Test:
    test = _COMPARISONS[sign]
    a, b = _as(left, right, form, file_of), _as(right, left, form, file_of)
    if kind_of(left) == "list":
        return _in_list(a, b, sign == "!=")
    if isinstance(right, Constant | Now):
        constant = b(None)

        def with_constant(record: object) -> bool:
            value = a(record)
            return value is not None and test(value, constant)

        return with_constant

    def with_both(record: object) -> bool:
        value, other = a(record), b(record)
        return value is not None and other is not None and test(value, other)

    return with_both


def _in_list(texts: Getter, sought: Getter, negated: bool) -> Test:
    def any_is(record: object) -> bool:
        found, text = texts(record), sought(record)
        return found is not None and text is not None and (text in found) is not negated

    return any_is


def _as(node: Node, other: Node, form: Form, file_of: FileOf | None) -> Getter:
    """The getter of ``node`` where it is compared with ``other``: a property beside a number is read as one."""
    read = getter(node, form, file_of)
    if kind_of(node) != "property" or kind_of(other) not in ("number", "time", "duration"):
        return read

    def as_number(record: object) -> int | None:
        text = read(record)
        return int(text) if text is not None and _INTEGER.fullmatch(text) else None

    return as_number


def _value_test(node: TextTest | Matches | In | Between | IsNull, form: Form, file_of: FileOf | None) -> Test:
    left = getter(node.left, form, file_of)
    negated = node.negated
    match node:
        case IsNull():
            return lambda record: (left(record) is None) is not negated
        case In():
            return _in(node, form, file_of)
        case Between():
            return _between(node, form, file_of)
        case Matches():
            search = compiled(node.pattern, node.flags).search
            return _on_texts(node.left, left, lambda text: search(text[:REGEX_LIMIT]) is not None, negated)
        case TextTest(word, _, Constant(str(sought), _), _):
            if word == "like":
                return _on_texts(node.left, left, like(sought), negated)
            test = _TEXT_TESTS[word]
            return _on_texts(node.left, left, lambda text: test(text, sought), negated)
        case TextTest():
            return _with_field(node, left, getter(node.right, form, file_of))


def _on_texts(node: Value, read: Getter, test: Callable[[str], bool], negated: bool) -> Test:
    if kind_of(node) == "list":

        def any_text(record: object) -> bool:
            texts = read(record)
            return texts is not None and any(test(text) for text in texts) is not negated

        return any_text

    def one_text(record: object) -> bool:
        text = read(record)
        return text is not None and test(text) is not negated

    return one_text


def _with_field(node: TextTest, left: Getter, right: Getter) -> Test:
    test = _TEXT_TESTS[node.word]
    is_list, negated = kind_of(node.left) == "list", node.negated

    def both(record: object) -> bool:
        found, sought = left(record), right(record)
        if found is None or sought is None:
            return False
        texts = found if is_list else (found,)
        return any(test(text, sought) for text in texts) is not negated

    return both


def _in(node: In, form: Form, file_of: FileOf | None) -> Test:
    negated = node.negated
    texts = frozenset(item.value for item in node.items if isinstance(item.value, str))
    numbers = frozenset(item.value for item in node.items if not isinstance(item.value, str))
    left = getter(node.left, form, file_of)
    if kind_of(node.left) == "list":
        return _on_list(left, texts, negated)
    if kind_of(node.left) == "property" and numbers:
        as_number = _as(node.left, Constant(0, "number"), form, file_of)

        def property_in(record: object) -> bool:
            text = left(record)
            return text is not None and (text in texts or as_number(record) in numbers) is not negated

        return property_in
    values = texts | numbers

    def value_in(record: object) -> bool:
        value = left(record)
        return value is not None and (value in values) is not negated

    return value_in


def _on_list(read: Getter, sought: frozenset[Any], negated: bool) -> Test:
    def any_in(record: object) -> bool:
        texts = read(record)
        return texts is not None and (not sought.isdisjoint(texts)) is not negated

    return any_in


def _between(node: Between, form: Form, file_of: FileOf | None) -> Test:
    low, high = _as(node.low, node.left, form, file_of), _as(node.high, node.left, form, file_of)
    above, below = _as(node.left, node.low, form, file_of), _as(node.left, node.high, form, file_of)
    negated = node.negated

    def inside(record: object) -> bool:
        a, b, bottom, top = above(record), below(record), low(record), high(record)
        if a is None or b is None or bottom is None or top is None:
            return False
        return bool(bottom <= a and b <= top) is not negated

    return inside


def like(pattern: str) -> Callable[[str], bool]:
    """SQL's pattern: ``%`` for any characters, ``_`` for one, a backslash takes the meaning from the next."""
    pieces = []
    for piece in re.findall(r"\\.|.", pattern, re.DOTALL):
        pieces.append(".*" if piece == "%" else "." if piece == "_" else re.escape(piece[-1]))
    whole = re.compile("".join(pieces), re.DOTALL).fullmatch
    return lambda text: whole(text[:REGEX_LIMIT]) is not None
