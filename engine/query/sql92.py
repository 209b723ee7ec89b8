"""RocketMQ's SQL92 message filter (docs/formats/reading.md#filters): what a broker evaluates against a message's
properties.

Values are property texts; a text meets a number or boolean by being converted to it, and a text that cannot be
converted makes the whole expression fail, which is no match. AND and OR are three-valued; only TRUE matches. Its
oddities are kept: an integer literal within 32 bits converts by 32-bit rules, ``0.0`` is refused, IN takes texts only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine.errors import BadFilter

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
_ORDERED: dict[str, Callable[[int], bool]] = {
    ">": lambda sign: sign > 0,
    ">=": lambda sign: sign >= 0,
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
}
_DEEPEST = 200


class _NoMatch(Exception):
    """Two values that cannot be compared: the broker logs it and does not deliver."""


@dataclass(frozen=True, slots=True)
class _Word:
    kind: str
    text: str
    at: int


@dataclass(frozen=True, slots=True)
class _Node:
    """An expression: how it is evaluated, and what is known of it while parsing."""

    evaluate: Evaluate
    constant: bool = False
    value: Value = None
    name: str | None = None
    boolean: bool = False


def compile_sql(text: str) -> Callable[[Properties], bool]:
    """A test of a message's properties; raises :class:`BadFilter` with the place of the word that a broker would
    refuse.
    """
    root = _Parser(_words(text), text).parse()

    def matches(properties: Properties) -> bool:
        try:
            return root.evaluate(properties) is True
        except _NoMatch:
            return False

    return matches


def _words(text: str) -> list[_Word]:
    found = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise BadFilter(f"expected a word of an SQL expression, found '{text[at : at + 10]}'", at)
        kind = match.lastgroup or ""
        word = match.group()
        if kind != "space":
            upper = word.upper()
            found.append(_Word("key", upper, at) if kind == "name" and upper in _KEYWORDS else _Word(kind, word, at))
        at = match.end()
    found.append(_Word("end", "", len(text)))
    return found


class _Parser:
    def __init__(self, words: list[_Word], text: str) -> None:
        self._words, self._at, self._text, self._depth = words, 0, text, 0

    def parse(self) -> _Node:
        node = self._or()
        if self._word.kind != "end":
            raise self._wrong("the end of the expression")
        if not node.boolean and node.name is None:
            raise BadFilter("expected a condition, found a value", 0, len(self._text))
        return node

    @property
    def _word(self) -> _Word:
        return self._words[self._at]

    def _wrong(self, expected: str) -> BadFilter:
        word = self._word
        return BadFilter(f"expected {expected}, found {word.text or 'the end'!r}", word.at, max(len(word.text), 1))

    def _take(self, *texts: str) -> bool:
        if self._word.kind in ("key", "sign") and self._word.text in texts:
            self._at += 1
            return True
        return False

    def _need(self, text: str) -> None:
        if not self._take(text):
            raise self._wrong(text)

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
            at = self._word.at
            if self._take("="):
                node = _equal(node, self._comparison(), at)
            elif self._take("<>"):
                node = _not(_equal(node, self._comparison(), at))
            elif self._take("IS"):
                negated = self._take("NOT")
                self._need("NULL")
                node = _is_null(node)
                node = _not(node) if negated else node
            else:
                return node

    def _comparison(self) -> _Node:
        node = self._unary()
        while True:
            word = self._word
            if word.kind == "sign" and word.text in _ORDERED:
                self._at += 1
                node = _compare(word.text, node, self._unary(), word.at)
                continue
            start = self._at
            negated = self._take("NOT")
            if self._take("BETWEEN"):
                node = self._between(node, negated, word.at)
            elif self._take("IN"):
                node = self._in(node, negated, word.at)
            elif self._word.kind == "key" and self._word.text in ("CONTAINS", "STARTSWITH", "ENDSWITH"):
                node = self._text_test(node, negated)
            else:
                self._at = start
                return node

    def _between(self, node: _Node, negated: bool, at: int) -> _Node:
        low = self._unary()
        self._need("AND")
        high = self._unary()
        if low.constant and high.constant:
            if low.value is None or high.value is None:
                raise BadFilter("values of BETWEEN cannot be NULL", at)
            if _sign(high.value, low.value) < 0:
                raise BadFilter("the left value of BETWEEN must not exceed the right one", at)
        if negated:
            return _logic(_compare("<", node, low, at), _compare(">", node, high, at), decides=True)
        return _logic(_compare(">=", node, low, at), _compare("<=", node, high, at), decides=False)

    def _in(self, node: _Node, negated: bool, at: int) -> _Node:
        if node.name is None:
            raise BadFilter("IN takes a property on its left", at)
        self._need("(")
        listed = {self._literal_text()}
        while self._take(","):
            listed.add(self._literal_text())
        self._need(")")

        def evaluate(properties: Properties) -> Value:
            value = node.evaluate(properties)
            return (value in listed) != negated if isinstance(value, str) else None

        return _Node(evaluate, boolean=True)

    def _text_test(self, node: _Node, negated: bool) -> _Node:
        kind = self._word.text
        self._at += 1
        wanted = self._literal_text()
        tests: dict[str, Callable[[str], bool]] = {
            "CONTAINS": lambda value: wanted in value,
            "STARTSWITH": lambda value: value.startswith(wanted),
            "ENDSWITH": lambda value: value.endswith(wanted),
        }
        test = tests[kind]

        def evaluate(properties: Properties) -> Value:
            value = node.evaluate(properties)
            if not isinstance(value, str) or not wanted:
                return False
            return test(value) != negated

        return _Node(evaluate, boolean=True)

    def _unary(self) -> _Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise BadFilter(f"more than {_DEEPEST} levels of brackets and signs", self._word.at)
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
        at = self._word.at
        node = self._unary()
        if node.constant and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            return _constant(-node.value)
        raise BadFilter("a minus sign needs a number behind it", at)

    def _primary(self) -> _Node:
        word = self._word
        if self._take("("):
            node = self._or()
            self._need(")")
            return node
        if word.kind == "key" and word.text in ("TRUE", "FALSE", "NULL"):
            self._at += 1
            value = {"TRUE": True, "FALSE": False, "NULL": None}[word.text]
            return _Node(lambda _: value, constant=True, value=value, boolean=True)
        if word.kind == "name":
            self._at += 1
            name = word.text
            return _Node(lambda properties: properties.get(name), name=name)
        if word.kind in ("int", "float", "text"):
            self._at += 1
            return _constant(self._number(word) if word.kind != "text" else word.text[1:-1].replace("''", "'"))
        raise self._wrong("a property, a value or a bracket")

    def _number(self, word: _Word) -> int | float:
        if word.kind == "float":
            number = float(word.text)
            if number == 0.0 or number == float("inf"):
                raise BadFilter("a broker refuses this number: it is out of range", word.at, len(word.text))
            return number
        value = int(word.text.rstrip("lL"))
        if value >= _I64:
            raise BadFilter("the number does not fit 64 bits", word.at, len(word.text))
        return value

    def _literal_text(self) -> str:
        word = self._word
        if word.kind != "text":
            raise self._wrong("a text in single quotes")
        self._at += 1
        return word.text[1:-1].replace("''", "'")


def _constant(value: Value) -> _Node:
    return _Node(lambda _: value, constant=True, value=value)


def _logic(left: _Node, right: _Node, *, decides: bool) -> _Node:
    """OR (``decides`` True) or AND (False): the deciding value wins, else an unknown side makes the whole unknown."""

    def evaluate(properties: Properties) -> Value:
        one = _truth(left.evaluate(properties))
        if one is decides:
            return decides
        other = _truth(right.evaluate(properties))
        if other is decides:
            return decides
        return None if one is None or other is None else not decides

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


def _equal(left: _Node, right: _Node, at: int) -> _Node:
    if any(side.constant and side.value is None for side in (left, right)):
        raise BadFilter("NULL cannot be compared; ask with IS NULL", at)

    def evaluate(properties: Properties) -> Value:
        one, other = left.evaluate(properties), right.evaluate(properties)
        if one is None and other is None:
            return True
        if one is None:
            return None
        return False if other is None else _sign(one, other) == 0

    return _Node(evaluate, boolean=True)


def _compare(symbol: str, left: _Node, right: _Node, at: int) -> _Node:
    for side in (left, right):
        number = isinstance(side.value, (int, float)) and not isinstance(side.value, bool)
        if (side.constant and not number) or (side.boolean and not side.constant):
            raise BadFilter(f"only numbers and properties can be compared by {symbol}", at, len(symbol))
    holds = _ORDERED[symbol]

    def evaluate(properties: Properties) -> Value:
        one = left.evaluate(properties)
        if one is None:
            return None
        other = right.evaluate(properties)
        if other is None:
            return None
        if isinstance(one, str) and isinstance(other, str):
            one, other = _double(one), _double(other)
        return holds(_sign(one, other))

    return _Node(evaluate, boolean=True)


def _sign(one: Value, other: Value) -> int:
    """−1, 0 or 1 as Java's compareTo after the text of the two has been converted to the other's kind."""
    if isinstance(one, str) != isinstance(other, str):
        if isinstance(one, str):
            one = _convert(one, other)
        elif isinstance(one, bool):
            raise _NoMatch
        else:
            other = _convert(str(other), one)
    if isinstance(one, bool) != isinstance(other, bool):
        return -1
    if one is None or other is None:
        raise _NoMatch
    return (one > other) - (one < other)  # type: ignore[operator]  # both are of one kind now


def _convert(text: str, like: Value) -> Value:
    if isinstance(like, bool):
        return text.lower() == "true"
    if isinstance(like, float):
        return _double(text)
    if not isinstance(like, int) or not _INT.fullmatch(text):
        raise _NoMatch
    value, limit = int(text), _I32 if -_I32 <= like < _I32 else _I64
    if not -limit <= value < limit:
        raise _NoMatch
    return value


def _double(text: str) -> float:
    try:
        return float(text.strip().rstrip("dDfF")) if "_" not in text else float("not a number")
    except ValueError:
        raise _NoMatch from None
