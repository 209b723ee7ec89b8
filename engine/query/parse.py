"""Filter text → tree, by binding strength (Pratt's way). Complaints carry the place of the offending word.

Which values a filter may compare, add or search: every mistake of kind is found while the text is read.
"""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from engine.errors import BadFilter
from engine.query.fields import ALIASES, FIELDS, FieldSpec, Kind
from engine.query.lexer import LARGEST, Token, words
from engine.query.tree import (
    AND,
    ATOM,
    BITS,
    COMPARE,
    EPOCH,
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
    Value,
    all_of,
    any_of,
    kind_of,
    literal_text,
)

DEEPEST = 100
KEYWORDS = frozenset(
    "and or not in contains startswith endswith like matches between is null true false now".split()  # noqa: SIM905
)
_SIGNS = {"==": "=", "<>": "!=", "=": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_JOINING = {"&&": "and", "||": "or", "!": "not"}
_LEVELS = {"or": OR, "and": AND, "&": BITS, "+": SUM, "-": SUM} | dict.fromkeys(_SIGNS, COMPARE)
_LEVELS |= dict.fromkeys(("in", "contains", "startswith", "endswith", "like", "matches", "between", "is"), COMPARE)
_NEGATABLE = ("in", "contains", "startswith", "endswith", "like", "matches", "between")
_INSTEAD = {
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
    """The tree of ``text``; an empty text is the filter that takes everything. ``fields`` is
    the table of fields. Raises :class:`BadFilter`.
    """
    parser = _Parser(text, now_ms, zone, fields)
    if parser.at_end():
        return Constant(True, "condition")
    found = parser.expression(OR)
    if not parser.at_end():
        raise parser.unexpected()
    return condition(found)


def compiled(pattern: str, flags: str) -> re.Pattern[str]:
    """The regular expression; raises ``re.error``, ``OverflowError`` or ``RecursionError`` as ``re`` does."""
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
        self._beside: Node | None = None  # what the value being read will be compared with

    @property
    def here(self) -> Token:
        return self._words[self._next]

    def at_end(self) -> bool:
        """Every word is read."""
        return self.here.kind == "end"

    def expression(self, least: int) -> Span:
        self._depth += 1
        if self._depth > DEEPEST:
            raise BadFilter(f"the filter is nested deeper than {DEEPEST} levels", self.here.at, self.here.length)
        left = self._prefix(least)
        for number in range(len(self._words)):
            level = self._level()
            if level is None or level < least:
                break
            if level > COMPARE and number + self._depth > DEEPEST:
                raise BadFilter(f"more than {DEEPEST} terms in one sum", self.here.at, self.here.length)
            left = self._joined(left) if level < NOT else self._infix(left, level)
        self._depth -= 1
        return left

    def unexpected(self) -> BadFilter:
        """The complaint about the word that is next."""
        token = self.here
        if token.kind == "end":
            return BadFilter("the filter ends too early; a field or a value is expected", token.at)
        if _SIGNS.get(token.text):
            return BadFilter("comparisons do not chain; use between, or join two with and", token.at, token.length)
        if token.kind == "name" and _keyword(token) not in KEYWORDS:
            return BadFilter(
                f"{token.text!r} is not expected here; and, or, or a comparison is", token.at, token.length
            )
        return BadFilter(f"{token.text} is not expected here", token.at, token.length)

    def _level(self) -> int | None:
        word = _keyword(self.here)
        if word == "not":
            following = _keyword(self._words[self._next + 1]) if self.here.kind != "end" else ""
            return COMPARE if following in _NEGATABLE else None
        return _LEVELS.get(word)

    def _take(self) -> Token:
        token = self.here
        if token.kind != "end":
            self._next += 1
        return token

    def _expect(self, word: str, after: str) -> Token:
        if _keyword(self.here) != word:
            at_end = self.here.kind == "end"
            what = f"{word} is missing {after}" if at_end else f"{word} is expected {after}, not {self.here.text}"
            raise BadFilter(what, self.here.at, self.here.length)
        return self._take()

    # -- what may begin a value or a condition

    def _prefix(self, least: int) -> Span:
        token = self.here
        match token.kind:
            case "number" | "duration":
                return self._number(self._take(), minus=None)
            case "text":
                self._take()
                return Span(Constant(str(token.value), "text"), token.at, token.end)
            case "property":
                self._take()
                return Span(Field(str(token.value), True), token.at, token.end)
            case "regex":
                raise BadFilter("a regular expression follows matches: body matches /…/", token.at, token.length)
            case "name":
                return self._name(token, least)
            case "sign" if token.text == "(":
                return self._group()
            case "sign" if token.text == "-":
                self._take()
                if self.here.kind not in ("number", "duration"):
                    raise BadFilter("a number follows a minus sign here", token.at)
                return self._number(self._take(), minus=token)
            case "sign" if token.text == "!":
                return self._not(least)
        raise (
            self.unexpected()
            if token.kind == "end"
            else BadFilter(f"a field or a value is expected here, not {token.text}", token.at, token.length)
        )

    def _number(self, token: Token, minus: Token | None) -> Span:
        number = int(token.value) if isinstance(token.value, int) else 0
        at = minus.at if minus else token.at
        if number > LARGEST and not minus:
            raise BadFilter(
                f"{token.text} does not fit 64 bits; the largest number is {LARGEST}", token.at, token.length
            )
        kind = "duration" if token.kind == "duration" else "number"
        return Span(Constant(-number if minus else number, kind), at, token.end)  # type: ignore[arg-type]

    def _name(self, token: Token, least: int) -> Span:
        word = _keyword(token)
        if word == "not":
            return self._not(least)
        if word in ("true", "false"):
            self._take()
            return Span(Constant(word == "true", "condition"), token.at, token.end)
        if word == "now":
            self._take()
            return Span(Now(self._now), token.at, token.end)
        if word == "null":
            raise BadFilter(
                "a comparison with null is never true; write is null or is not null", token.at, token.length
            )
        if word in KEYWORDS:
            raise BadFilter(f"a field or a value is expected before {token.text}", token.at, token.length)
        name = token.text if token.text in self._fields else ALIASES.get(token.text, token.text)
        spec = self._fields.get(name)
        if spec is None:
            raise BadFilter(self._no_field(token.text), token.at, token.length)
        self._take()
        return Span(Field(name, False, None if self._fields is FIELDS else spec), token.at, token.end)

    def _no_field(self, name: str) -> str:
        if self._beside is not None and kind_of(self._beside) in ("text", "property", "list"):
            return f'a text stands in quotes: "{name}"'
        close = (_INSTEAD.get(name) or _INSTEAD.get(name.lower())) if self._fields is FIELDS else None
        if close is None:
            by_lower = {field.lower(): field for field in self._fields}
            near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
            close = by_lower[near[0]] if near else None
        if close:
            return f"there is no field {name!r}; did you mean {close}?"
        return f"there is no field {name!r}; a message's own property is written properties.{name}"

    def _group(self) -> Span:
        opening = self._take()
        before, self._beside = self._beside, None
        inner = self.expression(OR)
        self._beside = before
        if self.here.text != ")" or self.here.kind != "sign":
            if self.here.kind == "end":
                raise BadFilter("the parenthesis that begins here is not closed", opening.at)
            raise self.unexpected()
        return Span(inner.node, opening.at, self._take().end)

    def _not(self, least: int) -> Span:
        token = self._take()
        if least > NOT:
            raise BadFilter("not stands before a condition; put it in parentheses here", token.at, token.length)
        item = self.expression(NOT)
        return Span(Not(condition(item)), token.at, item.end)

    # -- what may follow

    def _joined(self, left: Span) -> Span:
        """All items of one ``and`` or ``or`` chain."""
        word = _keyword(self.here)
        join, level = (all_of, NOT) if word == "and" else (any_of, AND)
        items = [condition(left)]
        end = left.end
        while _keyword(self.here) == word:
            self._take()
            item = self.expression(level)
            items.append(condition(item))
            end = item.end
        return Span(join(*items), left.at, end)

    def _infix(self, left: Span, level: int) -> Span:
        token = self._take()
        word = _keyword(token)
        if level > COMPARE:
            right = self._right(left, ATOM if level == SUM else SUM)
            a, b, kind = sum_kind(word, left, right, self._zone)
            return Span(Arithmetic(word, a, b, kind), left.at, right.end)  # type: ignore[arg-type]
        negated = word == "not"
        if negated:
            word = _keyword(self._take())
        if word in _SIGNS:
            found = self._comparison(_SIGNS[word], left)
        elif word == "in":
            found = self._in(left, negated)
        elif word == "between":
            found = self._between(left, negated)
        elif word == "matches":
            found = self._matches(left, negated)
        elif word == "is":
            found = self._is(left)
        else:
            found = self._text_test(word, left, negated)
        if self._level() == COMPARE:
            raise (
                self.unexpected()
                if self.here.text in _SIGNS
                else BadFilter(
                    f"join conditions with and or or before {self.here.text}", self.here.at, self.here.length
                )
            )
        return found

    def _right(self, left: Span, least: int) -> Span:
        before, self._beside = self._beside, left.node
        right = self.expression(least)
        self._beside = before
        return right

    def _comparison(self, sign: str, left: Span) -> Span:
        right = self._right(left, BITS)
        a, b = comparable(sign, left, right, self._zone)
        return Span(Compare(sign, a, b), left.at, right.end)

    def _in(self, left: Span, negated: bool) -> Span:
        self._expect("(", "after in")
        items: list[Constant] = []
        while True:
            item = self._right(left, BITS)
            _, constant = comparable("=", left, item, self._zone)
            if not isinstance(constant, Constant):
                raise item.wrong("a list holds numbers, texts or times")
            items.append(constant)
            if self.here.text != ",":
                break
            self._take()
        end = self._expect(")", "after the list").end
        return Span(In(value(left), tuple(items), negated), left.at, end)

    def _between(self, left: Span, negated: bool) -> Span:
        low = self._right(left, BITS)
        self._expect("and", "after the lower bound of between")
        high = self._right(left, BITS)
        value, least = comparable("<=", left, low, self._zone)
        value, most = comparable("<=", Span(value, left.at, left.end), high, self._zone)
        return Span(Between(value, least, most, negated), left.at, high.end)

    def _matches(self, left: Span, negated: bool) -> Span:
        node = searchable(left, "matches")
        token = self.here
        if token.kind not in ("regex", "text"):
            raise BadFilter("a regular expression follows matches: /…/ or a text", token.at, token.length)
        self._take()
        pattern, flags = token.value if isinstance(token.value, tuple) else (str(token.value), "")
        for flag in flags:
            if flag not in _REGEX_FLAGS or flags.count(flag) > 1:
                raise BadFilter(f"{flags!r}: flags are i, m, s and x, each once", token.end - len(flags), len(flags))
        if not pattern:
            raise BadFilter("the regular expression is empty", token.at, token.length)
        pattern = _ESCAPED.sub(lambda found: "/" if found[1] == "/" else found[0], pattern)
        try:
            compiled(pattern, flags)
        except re.error as error:
            place = token.at + 1 + min(error.pos or 0, max(0, token.length - 2))
            raise BadFilter(f"regular expression: {error.msg}", place) from None
        except (OverflowError, RecursionError):
            raise BadFilter("regular expression: too large", token.at, token.length) from None
        ordered = "".join(flag for flag in _REGEX_FLAGS if flag in flags)
        return Span(Matches(node, pattern, ordered, negated), left.at, token.end)

    def _is(self, left: Span) -> Span:
        negated = _keyword(self.here) == "not"
        if negated:
            self._take()
        end = self._expect("null", "after is").end
        return Span(IsNull(value(left), negated), left.at, end)

    def _text_test(self, word: str, left: Span, negated: bool) -> Span:
        node = searchable(left, word)
        right = self._right(left, BITS)
        sought = value(right)
        if kind_of(sought) not in ("text", "property") or (word == "like" and not isinstance(sought, Constant)):
            raise right.wrong(f"{told(sought)}; {word} takes a text in quotes")
        return Span(TextTest(word, node, sought, negated), left.at, right.end)  # type: ignore[arg-type]


def _keyword(token: Token) -> str:
    """The word as the grammar knows it: keywords in any case, ``&&`` as ``and``."""
    if token.kind == "sign":
        return _JOINING.get(token.text, token.text)
    if token.kind != "name":
        return ""
    lower = token.text.lower()
    return lower if lower in KEYWORDS else token.text


# Times in a filter: ISO texts in the reader's zone or with an offset of their own.

_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s*(Z|z|[+-]\d\d:?\d\d)?)?"
)
_EARLIEST = -62135596800000
_LATEST = 253402300799999


def parse_time(text: str, zone: tzinfo | None, at: int, length: int) -> int:
    """Milliseconds of an ISO date or time; without an offset it is meant in ``zone`` (None: the machine's).

    A date alone is its first moment. Raises :class:`BadFilter` at ``at``.
    """
    match = _ISO.fullmatch(text.strip())
    if match is None:
        raise BadFilter(f'{text!r} is no time; write it like "2026-11-20 09:41:07"', at, length)
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    ms = int((fraction or "0")[:3].ljust(3, "0"))
    try:
        moment = datetime(  # noqa: DTZ001 - the zone is put on below
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), ms * 1000
        )
        aware = moment.replace(tzinfo=_offset(offset) if offset else zone) if offset or zone else moment.astimezone()
        found = (aware - EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError, OSError):
        raise BadFilter(f"there is no such time as {text!r}", at, length) from None
    if not _EARLIEST <= found <= _LATEST:
        raise BadFilter(f"{text!r} lies outside the years 1 to 9999", at, length)
    return found


def _offset(text: str) -> tzinfo:
    if text in ("Z", "z"):
        return UTC
    hours, minutes = int(text[1:3]), int(text[-2:])
    away = timedelta(hours=hours, minutes=minutes)
    return timezone(-away if text[0] == "-" else away)


_A = {
    "number": "a number",
    "time": "a time",
    "duration": "a duration",
    "text": "a text",
    "property": "a property's text",
    "list": "a list of texts",
    "condition": "a condition",
}
_SAME: tuple[frozenset[Kind], ...] = tuple(
    frozenset(pair)
    for pair in (
        ("number",),
        ("time",),
        ("duration",),
        ("text",),
        ("property",),
        ("condition",),
        ("text", "property"),
        ("text", "list"),
        ("list", "property"),
        ("number", "property"),
        ("time", "property"),
        ("duration", "property"),
        ("time", "number"),
        ("duration", "number"),
    )
)
_SUMS: dict[tuple[str, Kind, Kind], Kind] = {
    ("+", "number", "number"): "number",
    ("-", "number", "number"): "number",
    ("&", "number", "number"): "number",
    ("-", "time", "time"): "duration",
    ("+", "time", "duration"): "time",
    ("-", "time", "duration"): "time",
    ("+", "duration", "time"): "time",
    ("+", "duration", "duration"): "duration",
    ("-", "duration", "duration"): "duration",
}


@dataclass(frozen=True, slots=True)
class Span:
    """A node and the characters it was read from."""

    node: Node
    at: int
    end: int

    def wrong(self, what: str) -> BadFilter:
        """The complaint about these characters."""
        return BadFilter(what, self.at, max(1, self.end - self.at))


def told(node: Node) -> str:
    """The node as a complaint names it: ``size is a number``."""
    name = node.label if isinstance(node, Field) else literal_text(node) if isinstance(node, Constant) else "this"
    return f"{name} is {_A[kind_of(node)]}"


def value(span: Span) -> Value:
    """The node where a value must stand; a condition is refused unless it is a field that is one."""
    if not isinstance(span.node, Value):
        raise span.wrong("a value is expected here, not a condition")
    return span.node


def condition(span: Span) -> Node:
    """The node where a condition must stand."""
    if kind_of(span.node) != "condition":
        raise span.wrong(f"{told(span.node)}, not a condition; compare it with something")
    return span.node


def sum_kind(sign: str, left: Span, right: Span, zone: tzinfo | None) -> tuple[Value, Value, Kind]:
    """Both sides of ``+``, ``-`` or ``&`` and the kind of the result."""
    a, b = _as_time(left, right, zone), _as_time(right, left, zone)
    kind = _SUMS.get((sign, kind_of(a), kind_of(b)))
    if kind is None:
        place = left if kind_of(a) not in ("number", "time", "duration") else right
        raise place.wrong(f"{sign} does not join {_A[kind_of(a)]} and {_A[kind_of(b)]}")
    return a, b, kind


def comparable(sign: str, left: Span, right: Span, zone: tzinfo | None) -> tuple[Value, Value]:
    """Both sides of a comparison, a text beside a time turned into one."""
    a, b = _as_time(left, right, zone), _as_time(right, left, zone)
    kinds: tuple[Kind, Kind] = (kind_of(a), kind_of(b))
    if kinds[1] == "list":
        raise right.wrong(f"{told(b)}; write it on the left side")
    if frozenset(kinds) not in _SAME or _plain_number_is_a_field(a, b):
        raise right.wrong(f"{told(a)}, {told(b)}: they cannot be compared{_advice(a, b)}")
    if kinds[0] in ("list", "condition") and sign not in ("=", "!="):
        raise left.wrong(f"{told(a)}; it can be equal or not, but {sign} has no meaning for it")
    for one, other, span in ((a, b, right), (b, a, left)):
        _check_word(one, other, span)
    return a, b


def searchable(span: Span, word: str) -> Value:
    """The left side of ``contains`` and its like."""
    node = value(span)
    if kind_of(node) not in ("text", "property", "list"):
        raise span.wrong(f"{told(node)}; {word} looks into texts")
    return node


def _as_time(span: Span, other: Span, zone: tzinfo | None) -> Value:
    node = span.node
    if isinstance(node, Constant) and isinstance(node.value, str) and kind_of(other.node) == "time":
        return Constant(parse_time(node.value, zone, span.at, span.end - span.at), "time")
    return node if isinstance(node, Value) else _refuse_deep(span)


def _refuse_deep(span: Span) -> Value:
    raise span.wrong("a condition cannot be compared; join conditions with and, or, not")


def _plain_number_is_a_field(a: Value, b: Value) -> bool:
    """Beside a time or a duration a number is milliseconds, and only where someone wrote it so."""
    for one, other in ((a, b), (b, a)):
        if kind_of(one) in ("time", "duration") and kind_of(other) == "number" and not isinstance(other, Constant):
            return True
    return False


def _advice(a: Value, b: Value) -> str:
    if kind_of(a) in ("text", "list") and isinstance(b, Constant) and not isinstance(b.value, str):
        return "; a text stands in quotes"
    if kind_of(a) == "number" and kind_of(b) == "duration":
        return "; mebibytes are written MiB"
    return ""


def _check_word(one: Value, other: Value, span: Span) -> None:
    if isinstance(one, Field) and not one.is_property and isinstance(other, Constant):
        known = one.spec.words
        if known and other.value not in known:
            raise span.wrong(f"{one.name} is one of {', '.join(known)}; it is never {literal_text(other)}")
