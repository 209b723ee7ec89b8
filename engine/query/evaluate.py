"""Turn a tree into one Python closure that tests a unit or a record. A comparison with null is false."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, Literal

from engine.decoding.bodies import UNDECODED, decoders_in_force
from engine.decoding.values import value_number, value_text
from engine.errors import UsageError
from engine.query.fields import FIELDS, Getter, path_getters, property_getters
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
from engine.sentences import sentence

REGEX_LIMIT = 1 << 16
"""Number of characters of a text that a regular expression searches."""
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
    """Return the test of ``node`` for records in ``form``; ``file_of`` names the commit log file of an offset."""
    match node:
        case Not(item):
            inner = closure(item, form, file_of)
            return lambda record: not inner(record)
        case And(items):
            return _all_tests(tuple(closure(item, form, file_of) for item in items))
        case Or(items):
            return _any_test(tuple(closure(item, form, file_of) for item in items))
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
    """Return a function that computes ``node`` for a record: a value, or a truth value if it is a condition."""
    match node:
        case Constant(value, _):
            return lambda _: value
        case Now(ms, _):
            return lambda _: ms
        case Field() if node.path:
            get_value = path_getter(node, form)
            return lambda record: value_text(_decoded(get_value(record)))
        case Field(name, is_property, own_spec):
            if is_property:
                return property_getters(name)[form == "record"]
            if name == "file" and form == "unit" and file_of is not None:
                return lambda unit: file_of(unit.offset)
            spec = own_spec or FIELDS[name]
            return spec.unit if form == "unit" else spec.record
        case Arithmetic(sign, left, right, _):
            return _sum(_SUMS[sign], getter(left, form, file_of), getter(right, form, file_of))
        case _:
            return closure(node, form, file_of)


def path_getter(node: Field, form: Form) -> Getter:
    """Return the getter of a field of the body: its value, or :data:`UNDECODED`.

    Raises :class:`UsageError` where no rules are in force: nothing could be said about any message.
    """
    if decoders_in_force() is None:
        raise UsageError(sentence("{name}: bodies are not decoded here", name=node.label))
    return path_getters(node.path)[form == "record"]


def _decoded(value: Any) -> Any:
    return None if value is UNDECODED else value


def _all_tests(tests: tuple[Test, ...]) -> Test:
    if len(tests) == 2:
        first_test, second_test = tests
        return lambda record: first_test(record) and second_test(record)
    return lambda record: all(test(record) for test in tests)


def _any_test(tests: tuple[Test, ...]) -> Test:
    if len(tests) == 2:
        first_test, second_test = tests
        return lambda record: first_test(record) or second_test(record)
    return lambda record: any(test(record) for test in tests)


def _sum(add: Callable[[Any, Any], Any], get_left: Getter, get_right: Getter) -> Getter:
    def read(record: object) -> object:
        a, b = get_left(record), get_right(record)
        return None if a is None or b is None else add(a, b)

    return read


def _comparison(sign: str, left_node: Node, right_node: Node, form: Form, file_of: FileOf | None) -> Test:
    test = _COMPARISONS[sign]
    a, b = (
        _operand_getter(left_node, right_node, form, file_of),
        _operand_getter(right_node, left_node, form, file_of),
    )
    if kind_of(left_node) == "list":
        return _in_list(a, b, sign == "!=")
    if isinstance(right_node, Constant | Now):
        constant = b(None)

        def with_constant(record: object) -> bool:
            value = a(record)
            return value is not None and test(value, constant)

        return with_constant

    def with_both(record: object) -> bool:
        value, right_value = a(record), b(record)
        return value is not None and right_value is not None and test(value, right_value)

    return with_both


def _in_list(texts: Getter, sought: Getter, negated: bool) -> Test:
    def any_is(record: object) -> bool:
        values, text = texts(record), sought(record)
        return values is not None and text is not None and (text in values) is not negated

    return any_is


def _operand_getter(node: Node, compared_with: Node, form: Form, file_of: FileOf | None) -> Getter:
    """Return the getter of ``node`` for a comparison with ``compared_with``: a property beside a number is read as a
    number.
    """
    if isinstance(node, Field) and node.path and kind_of(compared_with) in ("number", "time", "duration"):
        value = path_getter(node, form)
        return lambda record: value_number(_decoded(value(record)))
    read = getter(node, form, file_of)
    if kind_of(node) != "property" or kind_of(compared_with) not in ("number", "time", "duration"):
        return read

    def as_number(record: object) -> int | None:
        text = read(record)
        return int(text) if text is not None and _INTEGER.fullmatch(text) else None

    return as_number


def _value_test(node: TextTest | Matches | In | Between | IsNull, form: Form, file_of: FileOf | None) -> Test:
    get_operand = getter(node.operand, form, file_of)
    negated = node.negated
    match node:
        case IsNull(Field() as operand) if operand.path:
            value = path_getter(operand, form)
            return lambda record: (item := value(record)) is not UNDECODED and (item is None) is not negated
        case IsNull():
            return lambda record: (get_operand(record) is None) is not negated
        case In():
            return _in(node, form, file_of)
        case Between():
            return _between(node, form, file_of)
        case Matches():
            search = compiled(node.pattern, node.flags).search
            return _on_texts(node.operand, get_operand, lambda text: search(text[:REGEX_LIMIT]) is not None, negated)
        case TextTest(word, _, Constant(str(sought), _), _):
            if word == "like":
                return _on_texts(node.operand, get_operand, like(sought), negated)
            test = _TEXT_TESTS[word]
            return _on_texts(node.operand, get_operand, lambda text: test(text, sought), negated)
        case TextTest():
            return _with_field(node, get_operand, getter(node.right, form, file_of))


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


def _with_field(node: TextTest, get_operand: Getter, get_right: Getter) -> Test:
    test = _TEXT_TESTS[node.word]
    is_list, negated = kind_of(node.operand) == "list", node.negated

    def both(record: object) -> bool:
        left_value, sought = get_operand(record), get_right(record)
        if left_value is None or sought is None:
            return False
        texts = left_value if is_list else (left_value,)
        return any(test(text, sought) for text in texts) is not negated

    return both


def _in(node: In, form: Form, file_of: FileOf | None) -> Test:
    negated = node.negated
    texts = frozenset(item.value for item in node.items if isinstance(item.value, str))
    numbers = frozenset(item.value for item in node.items if not isinstance(item.value, str))
    get_value = getter(node.operand, form, file_of)
    if kind_of(node.operand) == "list":
        return _on_list(get_value, texts, negated)
    if kind_of(node.operand) == "property" and numbers:
        as_number = _operand_getter(node.operand, Constant(0, "number"), form, file_of)

        def property_in(record: object) -> bool:
            text = get_value(record)
            return text is not None and (text in texts or as_number(record) in numbers) is not negated

        return property_in
    values = texts | numbers

    def value_in(record: object) -> bool:
        value = get_value(record)
        return value is not None and (value in values) is not negated

    return value_in


def _on_list(read: Getter, sought: frozenset[Any], negated: bool) -> Test:
    def any_in(record: object) -> bool:
        texts = read(record)
        return texts is not None and (not sought.isdisjoint(texts)) is not negated

    return any_in


def _between(node: Between, form: Form, file_of: FileOf | None) -> Test:
    get_low, get_high = (
        _operand_getter(node.lower, node.operand, form, file_of),
        _operand_getter(node.upper, node.operand, form, file_of),
    )
    value_for_low, value_for_high = (
        _operand_getter(node.operand, node.lower, form, file_of),
        _operand_getter(node.operand, node.upper, form, file_of),
    )
    negated = node.negated

    def inside(record: object) -> bool:
        a, b, bottom, top = value_for_low(record), value_for_high(record), get_low(record), get_high(record)
        if a is None or b is None or bottom is None or top is None:
            return False
        return bool(bottom <= a and b <= top) is not negated

    return inside


def like(pattern: str) -> Callable[[str], bool]:
    """Return a test for SQL's pattern: ``%`` for any characters, ``_`` for one, a backslash escapes the next."""
    pieces = []
    for piece in re.findall(r"\\.|.", pattern, re.DOTALL):
        pieces.append(".*" if piece == "%" else "." if piece == "_" else re.escape(piece[-1]))
    match_all = re.compile("".join(pieces), re.DOTALL).fullmatch
    return lambda text: match_all(text[:REGEX_LIMIT]) is not None
