"""Parse a filter text into a tree by binding strength (Pratt parser), and check the kinds of its values.

Errors have the place of the invalid word. Every mistake of kind (values that cannot be compared, added or
searched) is found while the text is parsed.

"""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Mapping
from datetime import tzinfo
from decimal import Decimal

from engine.errors import BadFilter
from engine.query.fields import ALIASES, FIELDS, FieldSpec
from engine.query.kinds import Span, comparable, condition, describe, searchable, sum_kind, value
from engine.query.lexer import MAX_NUMBER, Token, words
from engine.query.tree import (
    AND,
    ATOM,
    BITS,
    COMPARE,
    NOT,
    OR,
    SUM,
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
    TextTest,
    all_of,
    any_of,
    kind_of,
)
from engine.sentences import msgid, sentence

MAX_DEPTH = 100
KEYWORDS = frozenset(
    "and or not in contains startswith endswith like matches between is null true false now".split()  # noqa: SIM905
)
_SIGNS = {"==": "=", "<>": "!=", "=": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_JOINING = {"&&": "and", "||": "or", "!": "not"}
_LEVELS = {"or": OR, "and": AND, "&": BITS, "+": SUM, "-": SUM} | dict.fromkeys(_SIGNS, COMPARE)
_LEVELS |= dict.fromkeys(("in", "contains", "startswith", "endswith", "like", "matches", "between", "is"), COMPARE)
_NEGATABLE = ("in", "contains", "startswith", "endswith", "like", "matches", "between")
_SUGGESTED_FIELDS = {
    **ALIASES,
    "offset": "physicalOffset",
    "phyOffset": "physicalOffset",
    "commitLogOffset": "physicalOffset",
    "time": "storeTimestamp",
    "date": "storeTimestamp",
    "msgId": "offsetMsgId",
    "storeTime": "storeTimestamp",
    "bornTime": "bornTimestamp",
    "length": "size",
    "hash": "tagsCode",
}
_REGEX_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def tree_of(text: str, now_ms: int, zone: tzinfo | None, fields: Mapping[str, FieldSpec] = FIELDS) -> Node:
    """Return the tree of ``text``; an empty text is the filter that matches everything.

    ``fields`` is the table of fields. Raises :class:`BadFilter`.

    """
    parser = _Parser(text, now_ms, zone, fields)
    if parser.at_end():
        return Constant(True, "condition")
    root = parser.expression(OR)
    if not parser.at_end():
        raise parser.unexpected()
    return condition(root)


def compiled(pattern: str, flags: str) -> re.Pattern[str]:
    """Return the regular expression; raises ``re.error``, ``OverflowError`` or ``RecursionError`` as ``re`` does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bits = re.NOFLAG
        for flag in flags:
            bits |= _REGEX_FLAGS[flag]
        return re.compile(pattern, bits)


class _Parser:
    def __init__(self, text: str, now_ms: int, zone: tzinfo | None, fields: Mapping[str, FieldSpec]) -> None:
        self._fields = fields
        self._words = words(text)
        self._next = 0
        self._depth = 0
        self._now = now_ms
        self._zone = zone
        self._compared_with: Node | None = None  # the node with which the next value will be compared

    @property
    def current(self) -> Token:
        return self._words[self._next]

    def at_end(self) -> bool:
        """Return True if every word is read."""
        return self.current.kind == "end"

    def expression(self, least: int) -> Span:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise BadFilter(
                sentence("the filter is nested deeper than {max_depth} levels", max_depth=MAX_DEPTH),
                self.current.position,
                self.current.length,
            )
        operand = self._prefix(least)
        for number in range(len(self._words)):
            level = self._level()
            if level is None or level < least:
                break
            if level > COMPARE and number + self._depth > MAX_DEPTH:
                raise BadFilter(
                    sentence("more than {max_depth} terms in one sum", max_depth=MAX_DEPTH),
                    self.current.position,
                    self.current.length,
                )
            operand = self._chain(operand) if level < NOT else self._infix(operand, level)
        self._depth -= 1
        return operand

    def unexpected(self) -> BadFilter:
        """Return the error for the next word."""
        token = self.current
        if token.kind == "end":
            return BadFilter(sentence("the filter ends too early; a field or a value is expected"), token.position)
        if _SIGNS.get(token.text):
            return BadFilter(
                sentence("comparisons do not chain; use between, or join two with and"), token.position, token.length
            )
        if token.kind == "name" and _keyword(token) not in KEYWORDS:
            return BadFilter(
                sentence("{text} is not expected here; and, or, or a comparison is", text=repr(token.text)),
                token.position,
                token.length,
            )
        return BadFilter(sentence("{text} is not expected here", text=token.text), token.position, token.length)

    def _level(self) -> int | None:
        word = _keyword(self.current)
        if word == "not":
            following = _keyword(self._words[self._next + 1]) if self.current.kind != "end" else ""
            return COMPARE if following in _NEGATABLE else None
        return _LEVELS.get(word)

    def _take(self) -> Token:
        token = self.current
        if token.kind != "end":
            self._next += 1
        return token

    def _expect(self, word: str, context: str) -> Token:
        if _keyword(self.current) != word:
            if self.current.kind == "end":
                problem = sentence("{word} is missing {context}", word=word, context=sentence(context))
            else:
                problem = sentence(
                    "{word} is expected {context}, not {text}",
                    word=word,
                    context=sentence(context),
                    text=self.current.text,
                )
            raise BadFilter(problem, self.current.position, self.current.length)
        return self._take()

    # -- begin of a value or a condition

    def _prefix(self, least: int) -> Span:
        token = self.current
        match token.kind:
            case "number" | "duration":
                return self._number(self._take(), minus=None)
            case "text":
                self._take()
                return Span(Constant(str(token.value), "text"), token.position, token.end)
            case "property":
                self._take()
                return Span(Field(str(token.value), True), token.position, token.end)
            case "path" if self._fields is FIELDS:
                self._take()
                return Span(Field("body", path=token.path), token.position, token.end)
            case "regex":
                raise BadFilter(
                    sentence("a regular expression follows matches: body matches /…/"), token.position, token.length
                )
            case "name":
                return self._name(token, least)
            case "sign" if token.text == "(":
                return self._group()
            case "sign" if token.text == "-":
                self._take()
                if self.current.kind not in ("number", "duration"):
                    raise BadFilter(sentence("a number follows a minus sign here"), token.position)
                return self._number(self._take(), minus=token)
            case "sign" if token.text == "!":
                return self._not(least)
        raise (
            self.unexpected()
            if token.kind == "end"
            else BadFilter(
                sentence("a field or a value is expected here, not {text}", text=token.text),
                token.position,
                token.length,
            )
        )

    def _number(self, token: Token, minus: Token | None) -> Span:
        position = minus.position if minus else token.position
        if isinstance(token.value, Decimal):
            value = token.value.copy_negate() if minus else token.value
            return Span(Constant(value, "number"), position, token.end)
        number = int(token.value) if isinstance(token.value, int) else 0
        if number > MAX_NUMBER and not minus:
            raise BadFilter(
                sentence(
                    "{text} does not fit 64 bits; the largest number is {largest}",
                    text=token.text,
                    largest=MAX_NUMBER,
                ),
                token.position,
                token.length,
            )
        kind = "duration" if token.kind == "duration" else "number"
        return Span(Constant(-number if minus else number, kind), position, token.end)  # type: ignore[arg-type]

    def _name(self, token: Token, least: int) -> Span:
        word = _keyword(token)
        if word == "not":
            return self._not(least)
        if word in ("true", "false"):
            self._take()
            return Span(Constant(word == "true", "condition"), token.position, token.end)
        if word == "now":
            self._take()
            return Span(Now(self._now), token.position, token.end)
        if word == "null":
            raise BadFilter(
                sentence("a comparison with null is never true; write is null or is not null"),
                token.position,
                token.length,
            )
        if word in KEYWORDS:
            raise BadFilter(
                sentence("a field or a value is expected before {text}", text=token.text), token.position, token.length
            )
        name = token.text if token.text in self._fields else ALIASES.get(token.text, token.text)
        spec = self._fields.get(name)
        if spec is None:
            raise BadFilter(self._no_field(token.text), token.position, token.length)
        self._take()
        return Span(Field(name, False, None if self._fields is FIELDS else spec), token.position, token.end)

    def _no_field(self, name: str) -> str:
        if self._compared_with is not None and kind_of(self._compared_with) in ("text", "property", "list"):
            return sentence('a text is written in quotes: "{name}"', name=name)
        close = (_SUGGESTED_FIELDS.get(name) or _SUGGESTED_FIELDS.get(name.lower())) if self._fields is FIELDS else None
        if close is None:
            by_lower = {field.lower(): field for field in self._fields}
            near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
            close = by_lower[near[0]] if near else None
        if close:
            return sentence("there is no field {name}; did you mean {close}?", name=repr(name), close=close)
        return sentence(
            "there is no field {name}; a message's own property is written properties.{bare}",
            name=repr(name),
            bare=name,
        )

    def _group(self) -> Span:
        opening = self._take()
        outer_operand, self._compared_with = self._compared_with, None
        inner = self.expression(OR)
        self._compared_with = outer_operand
        if self.current.text != ")" or self.current.kind != "sign":
            if self.current.kind == "end":
                raise BadFilter(sentence("the parenthesis that begins here is not closed"), opening.position)
            raise self.unexpected()
        return Span(inner.node, opening.position, self._take().end)

    def _not(self, least: int) -> Span:
        token = self._take()
        if least > NOT:
            raise BadFilter(
                sentence("'not' must be before a condition; use parentheses here"), token.position, token.length
            )
        item = self.expression(NOT)
        return Span(Not(condition(item)), token.position, item.end)

    # -- continuation

    def _chain(self, operand: Span) -> Span:
        """Read all items of one ``and`` or ``or`` chain."""
        word = _keyword(self.current)
        join, level = (all_of, NOT) if word == "and" else (any_of, AND)
        items = [condition(operand)]
        end = operand.end
        while _keyword(self.current) == word:
            self._take()
            item = self.expression(level)
            items.append(condition(item))
            end = item.end
        return Span(join(*items), operand.position, end)

    def _infix(self, operand: Span, level: int) -> Span:
        token = self._take()
        word = _keyword(token)
        if level > COMPARE:
            right = self._right(operand, ATOM if level == SUM else SUM)
            a, b, kind = sum_kind(word, operand, right, self._zone)
            return Span(Arithmetic(word, a, b, kind), operand.position, right.end)  # type: ignore[arg-type]
        negated = word == "not"
        if negated:
            word = _keyword(self._take())
        if word in _SIGNS:
            result = self._comparison(_SIGNS[word], operand)
        elif word == "in":
            result = self._in(operand, negated)
        elif word == "between":
            result = self._between(operand, negated)
        elif word == "matches":
            result = self._matches(operand, negated)
        elif word == "is":
            result = self._is(operand)
        else:
            result = self._text_test(word, operand, negated)
        if self._level() == COMPARE:
            raise (
                self.unexpected()
                if self.current.text in _SIGNS
                else BadFilter(
                    sentence("join conditions with and or or before {text}", text=self.current.text),
                    self.current.position,
                    self.current.length,
                )
            )
        return result

    def _right(self, operand: Span, least: int) -> Span:
        outer_operand, self._compared_with = self._compared_with, operand.node
        right = self.expression(least)
        self._compared_with = outer_operand
        return right

    def _comparison(self, sign: str, operand: Span) -> Span:
        right = self._right(operand, BITS)
        a, b = comparable(sign, operand, right, self._zone)
        return Span(Compare(sign, a, b), operand.position, right.end)

    def _in(self, operand: Span, negated: bool) -> Span:
        self._expect("(", msgid("after in"))
        items: list[Constant] = []
        while True:
            item = self._right(operand, BITS)
            _, constant = comparable("=", operand, item, self._zone)
            if not isinstance(constant, Constant):
                raise item.error("a list holds numbers, texts or times")
            items.append(constant)
            if self.current.text != ",":
                break
            self._take()
        end = self._expect(")", msgid("after the list")).end
        return Span(In(value(operand), tuple(items), negated), operand.position, end)

    def _between(self, operand: Span, negated: bool) -> Span:
        low_bound = self._right(operand, BITS)
        self._expect("and", msgid("after the lower bound of between"))
        high_bound = self._right(operand, BITS)
        value, low_value = comparable("<=", operand, low_bound, self._zone)
        value, high_value = comparable("<=", Span(value, operand.position, operand.end), high_bound, self._zone)
        return Span(Between(value, low_value, high_value, negated), operand.position, high_bound.end)

    def _matches(self, operand: Span, negated: bool) -> Span:
        node = searchable(operand, "matches")
        token = self.current
        if token.kind not in ("regex", "text"):
            raise BadFilter(
                sentence("a regular expression follows matches: /…/ or a text"), token.position, token.length
            )
        self._take()
        pattern, flags = token.value if isinstance(token.value, tuple) else (str(token.value), "")
        for flag in flags:
            if flag not in _REGEX_FLAGS or flags.count(flag) > 1:
                raise BadFilter(
                    sentence("{flags}: flags are i, m, s and x, each once", flags=repr(flags)),
                    token.end - len(flags),
                    len(flags),
                )
        if not pattern:
            raise BadFilter(sentence("the regular expression is empty"), token.position, token.length)
        pattern = _ESCAPED.sub(lambda escape: "/" if escape[1] == "/" else escape[0], pattern)
        try:
            compiled(pattern, flags)
        except re.error as error:
            place = token.position + 1 + min(error.pos or 0, max(0, token.length - 2))
            raise BadFilter(sentence("regular expression: {problem}", problem=error.msg), place) from None
        except (OverflowError, RecursionError):
            raise BadFilter(sentence("regular expression: too large"), token.position, token.length) from None
        ordered = "".join(flag for flag in _REGEX_FLAGS if flag in flags)
        return Span(Matches(node, pattern, ordered, negated), operand.position, token.end)

    def _is(self, operand: Span) -> Span:
        negated = _keyword(self.current) == "not"
        if negated:
            self._take()
        end = self._expect("null", msgid("after is")).end
        return Span(IsNull(value(operand), negated), operand.position, end)

    def _text_test(self, word: str, operand: Span, negated: bool) -> Span:
        node = searchable(operand, word)
        right = self._right(operand, BITS)
        sought = value(right)
        if kind_of(sought) not in ("text", "property") or (word == "like" and not isinstance(sought, Constant)):
            raise right.error(
                sentence("{what_it_is}; {word} takes a text in quotes", what_it_is=describe(sought), word=word)
            )
        return Span(TextTest(word, node, sought, negated), operand.position, right.end)  # type: ignore[arg-type]


def _keyword(token: Token) -> str:
    """Return the word as the grammar has it: keywords in lower case, ``&&`` as ``and``."""
    if token.kind == "sign":
        return _JOINING.get(token.text, token.text)
    if token.kind != "name":
        return ""
    lower = token.text.lower()
    return lower if lower in KEYWORDS else token.text
