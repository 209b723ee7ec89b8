"""RocketMQ's SQL92 message filter (docs/formats/reading.md#filters): the expression that a broker evaluates against
a message's properties.

Values are property texts. A text beside a number or boolean is converted to its kind; if that fails, the whole
expression fails, which is no match. AND and OR are three-valued; only TRUE matches. The broker's peculiarities
are kept: an integer literal within 32 bits converts by 32-bit rules, ``0.0`` is refused, IN takes texts only.

"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine.errors import BadFilter
from engine.sentences import sentence

Properties = Mapping[str, str]
Value = str | int | float | bool | None
Evaluate = Callable[[Properties], Value]

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\r\n]*|/\*.*?\*/)
      |(?P<float>\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
      |(?P<int>\d+[lL]?)
      |(?P<text>'(?:[^']|'')*')
      |(?P<name>[A-Za-z_$][A-Za-z0-9_$]*)
      |(?P<sign><>|<=|>=|[=<>(),+\-])""",
    re.VERBOSE | re.DOTALL,
)
_KEYWORDS = frozenset(
    ["AND", "OR", "NOT", "BETWEEN", "IN", "IS", "NULL", "TRUE", "FALSE", "CONTAINS", "STARTSWITH", "ENDSWITH"]
)
_INT = re.compile(r"[+-]?\d+")
_I32, _I64 = 1 << 31, 1 << 63
_ORDER_TESTS: dict[str, Callable[[int], bool]] = {
    ">": lambda sign: sign > 0,
    ">=": lambda sign: sign >= 0,
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
}
_MAX_DEPTH = 200


class _NoMatch(Exception):
    """Two values cannot be compared: the broker logs it and does not deliver."""


@dataclass(frozen=True, slots=True)
class _Word:
    kind: str
    text: str
    position: int


@dataclass(frozen=True, slots=True)
class _Node:
    """An expression: how to evaluate it, and the facts about it that the parser needs."""

    evaluate: Evaluate
    constant: bool = False
    value: Value = None
    name: str | None = None
    boolean: bool = False


def compile_sql(text: str) -> Callable[[Properties], bool]:
    """Return a test of a message's properties; raises :class:`BadFilter` with the place of the word that a broker
    would refuse.
    """
    root = _Parser(_words(text), text).parse()

    def matches(properties: Properties) -> bool:
        try:
            return root.evaluate(properties) is True
        except _NoMatch:
            return False

    return matches


def _words(text: str) -> list[_Word]:
    tokens = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise BadFilter(
                sentence("expected a word of an SQL expression, found '{value}'", value=text[position : position + 10]),
                position,
            )
        kind = match.lastgroup or ""
        word = match.group()
        if kind != "space":
            upper = word.upper()
            tokens.append(
                _Word("key", upper, position) if kind == "name" and upper in _KEYWORDS else _Word(kind, word, position)
            )
        position = match.end()
    tokens.append(_Word("end", "", len(text)))
    return tokens


class _Parser:
    def __init__(self, words: list[_Word], text: str) -> None:
        self._words, self._index, self._text, self._depth = words, 0, text, 0

    def parse(self) -> _Node:
        node = self._or()
        if self._word.kind != "end":
            raise self._unexpected(sentence("the end of the expression"))
        if not node.boolean and node.name is None:
            raise BadFilter(sentence("expected a condition, found a value"), 0, len(self._text))
        return node

    @property
    def _word(self) -> _Word:
        return self._words[self._index]

    def _unexpected(self, expected: str) -> BadFilter:
        word = self._word
        return BadFilter(
            sentence(
                "expected {expected}, found {text}",
                expected=expected,
                text=repr(word.text) if word.text else sentence("the end"),
            ),
            word.position,
            max(len(word.text), 1),
        )

    def _take(self, *texts: str) -> bool:
        if self._word.kind in ("key", "sign") and self._word.text in texts:
            self._index += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._unexpected(text)

    def _or(self) -> _Node:
        node = self._and()
        while self._take("OR"):
            node = _logic(node, self._and(), decides=True)
        return node

    def _and(self) -> _Node:
        node = self._equality()
        while self._take("AND"):
            node = _logic(node, self._equality(), decides=False)
        return node

    def _equality(self) -> _Node:
        node = self._comparison()
        while True:
            position = self._word.position
            if self._take("="):
                node = _equal(node, self._comparison(), position)
            elif self._take("<>"):
                node = _not(_equal(node, self._comparison(), position))
            elif self._take("IS"):
                negated = self._take("NOT")
                self._expect("NULL")
                node = _is_null(node)
                node = _not(node) if negated else node
            else:
                return node

    def _comparison(self) -> _Node:
        node = self._unary()
        while True:
            word = self._word
            if word.kind == "sign" and word.text in _ORDER_TESTS:
                self._index += 1
                node = _compare(word.text, node, self._unary(), word.position)
                continue
            start = self._index
            negated = self._take("NOT")
            if self._take("BETWEEN"):
                node = self._between(node, negated, word.position)
            elif self._take("IN"):
                node = self._in(node, negated, word.position)
            elif self._word.kind == "key" and self._word.text in ("CONTAINS", "STARTSWITH", "ENDSWITH"):
                node = self._text_test(node, negated)
            else:
                self._index = start
                return node

    def _between(self, node: _Node, negated: bool, position: int) -> _Node:
        low_node = self._unary()
        self._expect("AND")
        high_node = self._unary()
        if low_node.constant and high_node.constant:
            if low_node.value is None or high_node.value is None:
                raise BadFilter(sentence("values of BETWEEN cannot be NULL"), position)
            if _sign(high_node.value, low_node.value) < 0:
                raise BadFilter(sentence("the left value of BETWEEN must not exceed the right one"), position)
        if negated:
            return _logic(
                _compare("<", node, low_node, position), _compare(">", node, high_node, position), decides=True
            )
        return _logic(
            _compare(">=", node, low_node, position), _compare("<=", node, high_node, position), decides=False
        )

    def _in(self, node: _Node, negated: bool, position: int) -> _Node:
        if node.name is None:
            raise BadFilter(sentence("IN takes a property on its left"), position)
        self._expect("(")
        listed = {self._literal_text()}
        while self._take(","):
            listed.add(self._literal_text())
        self._expect(")")

        def evaluate(properties: Properties) -> Value:
            value = node.evaluate(properties)
            return (value in listed) != negated if isinstance(value, str) else None

        return _Node(evaluate, boolean=True)

    def _text_test(self, node: _Node, negated: bool) -> _Node:
        kind = self._word.text
        self._index += 1
        sought = self._literal_text()
        tests: dict[str, Callable[[str], bool]] = {
            "CONTAINS": lambda value: sought in value,
            "STARTSWITH": lambda value: value.startswith(sought),
            "ENDSWITH": lambda value: value.endswith(sought),
        }
        test = tests[kind]

        def evaluate(properties: Properties) -> Value:
            value = node.evaluate(properties)
            if not isinstance(value, str) or not sought:
                return False
            return test(value) != negated

        return _Node(evaluate, boolean=True)

    def _unary(self) -> _Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise BadFilter(
                sentence("more than {max_depth} levels of brackets and signs", max_depth=_MAX_DEPTH),
                self._word.position,
            )
        try:
            if self._take("NOT"):
                return _not(self._unary())
            if self._take("+"):
                return self._unary()
            if self._take("-"):
                return self._negated()
            return self._primary()
        finally:
            self._depth -= 1

    def _negated(self) -> _Node:
        position = self._word.position
        node = self._unary()
        if node.constant and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            return _constant(-node.value)
        raise BadFilter(sentence("a minus sign needs a number after it"), position)

    def _primary(self) -> _Node:
        word = self._word
        if self._take("("):
            node = self._or()
            self._expect(")")
            return node
        if word.kind == "key" and word.text in ("TRUE", "FALSE", "NULL"):
            self._index += 1
            value = {"TRUE": True, "FALSE": False, "NULL": None}[word.text]
            return _Node(lambda _: value, constant=True, value=value, boolean=True)
        if word.kind == "name":
            self._index += 1
            name = word.text
            return _Node(lambda properties: properties.get(name), name=name)
        if word.kind in ("int", "float", "text"):
            self._index += 1
            return _constant(self._number(word) if word.kind != "text" else word.text[1:-1].replace("''", "'"))
        raise self._unexpected(sentence("a property, a value or a bracket"))

    def _number(self, word: _Word) -> int | float:
        if word.kind == "float":
            number = float(word.text)
            if number == 0.0 or number == float("inf"):
                raise BadFilter(
                    sentence("a broker refuses this number: it is out of range"), word.position, len(word.text)
                )
            return number
        value = int(word.text.rstrip("lL"))
        if value >= _I64:
            raise BadFilter(sentence("the number does not fit 64 bits"), word.position, len(word.text))
        return value

    def _literal_text(self) -> str:
        word = self._word
        if word.kind != "text":
            raise self._unexpected(sentence("a text in single quotes"))
        self._index += 1
        return word.text[1:-1].replace("''", "'")


def _constant(value: Value) -> _Node:
    return _Node(lambda _: value, constant=True, value=value)


def _logic(left_node: _Node, right_node: _Node, *, decides: bool) -> _Node:
    """Combine by OR (``decides`` True) or AND (False): the deciding value wins, else an unknown side makes the
    result unknown.
    """

    def evaluate(properties: Properties) -> Value:
        left_truth = _truth(left_node.evaluate(properties))
        if left_truth is decides:
            return decides
        right_truth = _truth(right_node.evaluate(properties))
        if right_truth is decides:
            return decides
        return None if left_truth is None or right_truth is None else not decides

    return _Node(evaluate, boolean=True)


def _truth(value: Value) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise _NoMatch


def _not(node: _Node) -> _Node:
    def evaluate(properties: Properties) -> Value:
        value = _truth(node.evaluate(properties))
        return None if value is None else not value

    return _Node(evaluate, boolean=True)


def _is_null(node: _Node) -> _Node:
    return _Node(lambda properties: node.evaluate(properties) is None, boolean=True)


def _equal(left_node: _Node, right_node: _Node, position: int) -> _Node:
    if any(side.constant and side.value is None for side in (left_node, right_node)):
        raise BadFilter(sentence("NULL cannot be compared; ask with IS NULL"), position)

    def evaluate(properties: Properties) -> Value:
        left_value, right_value = left_node.evaluate(properties), right_node.evaluate(properties)
        if left_value is None and right_value is None:
            return True
        if left_value is None:
            return None
        return False if right_value is None else _sign(left_value, right_value) == 0

    return _Node(evaluate, boolean=True)


def _compare(symbol: str, left_node: _Node, right_node: _Node, position: int) -> _Node:
    for side in (left_node, right_node):
        number = isinstance(side.value, (int, float)) and not isinstance(side.value, bool)
        if (side.constant and not number) or (side.boolean and not side.constant):
            raise BadFilter(
                sentence("only numbers and properties can be compared by {symbol}", symbol=symbol),
                position,
                len(symbol),
            )
    is_true_for = _ORDER_TESTS[symbol]

    def evaluate(properties: Properties) -> Value:
        left_value = left_node.evaluate(properties)
        if left_value is None:
            return None
        right_value = right_node.evaluate(properties)
        if right_value is None:
            return None
        if isinstance(left_value, str) and isinstance(right_value, str):
            left_value, right_value = _double(left_value), _double(right_value)
        return is_true_for(_sign(left_value, right_value))

    return _Node(evaluate, boolean=True)


def _sign(left_value: Value, right_value: Value) -> int:
    """Return −1, 0 or 1 as Java's compareTo, after converting a text to the kind of the other value."""
    if isinstance(left_value, str) != isinstance(right_value, str):
        if isinstance(left_value, str):
            left_value = _convert(left_value, right_value)
        elif isinstance(left_value, bool):
            raise _NoMatch
        else:
            right_value = _convert(str(right_value), left_value)
    if isinstance(left_value, bool) != isinstance(right_value, bool):
        return -1
    if left_value is None or right_value is None:
        raise _NoMatch
    return (left_value > right_value) - (left_value < right_value)  # type: ignore[operator]  # both are of one kind now


def _convert(text: str, target: Value) -> Value:
    if isinstance(target, bool):
        return text.lower() == "true"
    if isinstance(target, float):
        return _double(text)
    if not isinstance(target, int) or not _INT.fullmatch(text):
        raise _NoMatch
    value, limit = int(text), _I32 if -_I32 <= target < _I32 else _I64
    if not -limit <= value < limit:
        raise _NoMatch
    return value


def _double(text: str) -> float:
    try:
        return float(text.strip().rstrip("dDfF")) if "_" not in text else float("not a number")
    except ValueError:
        raise _NoMatch from None
