"""Completion of a filter text: fields, the operators that fit a field's kind, values, and words that join
conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from engine.errors import BadFilter
from engine.query.fields import ALIASES, FIELDS, PROPERTIES, Kind
from engine.query.lexer import Token, quote, words
from engine.query.parse import KEYWORDS
from engine.query.tree import Field
from engine.sentences import msgid

Sort = Literal["field", "operator", "value", "word"]
Values = Callable[[str], Iterable[str]]
"""Known values of a field (``topic``, ``properties.color``), offered after operators; for ``properties``, the names;
for ``body.`` the fields of decoded bodies.
"""

_ORDER_OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "between", "in (", "is null", "is not null")
_TEXT_TESTS = (
    "=",
    "!=",
    "contains",
    "startswith",
    "endswith",
    "matches /",
    "like",
    "in (",
    "is null",
    "is not null",
)
_OPERATORS: dict[Kind, tuple[str, ...]] = {
    "number": _ORDER_OPERATORS,
    "time": _ORDER_OPERATORS,
    "duration": _ORDER_OPERATORS,
    "text": _TEXT_TESTS,
    "list": _TEXT_TESTS,
    "property": (*_TEXT_TESTS, "<", "<=", ">", ">=", "between"),
    "condition": ("and", "or"),
}
_COMPARING = frozenset(
    ("=", "==", "!=", "<>", "<", "<=", ">", ">=", "contains", "startswith", "endswith", "like", "between", ",", "in(")
)
_JOINS = frozenset(("and", "or", "not", "&&", "||", "!", "("))


@dataclass(frozen=True, slots=True)
class Completion:
    """A text that may replace the characters ``start`` to ``end``; ``about`` describes it."""

    text: str
    kind: Sort
    start: int
    end: int
    about: str = ""


def complete(text: str, cursor: int, values: Values | None = None, limit: int = 50) -> list[Completion]:
    """Return the texts that may come at ``cursor`` (characters), best first. Never raises, whatever the text."""
    cursor = max(0, min(cursor, len(text)))
    tokens, start = _split_at_cursor(text, cursor)
    typed = text[start:cursor]
    end = _end_of_word(text, start, cursor)
    candidates = _candidates(tokens, typed, values)
    sought = _normalized(typed)
    prefix_matches = [item for item in candidates if _normalized(item[0]).startswith(sought)]
    other_matches = [
        item for item in candidates if sought and sought in _normalized(item[0]) and item not in prefix_matches
    ]
    return [Completion(word, kind, start, end, about) for word, kind, about in (*prefix_matches, *other_matches)][
        :limit
    ]


def _normalized(text: str) -> str:
    """Return a word for comparison with the typed text: lower case, without its opening mark."""
    return text.lower().replace(f'{PROPERTIES}["', f"{PROPERTIES}.").lstrip("'\"")


def _split_at_cursor(text: str, cursor: int) -> tuple[list[Token], int]:
    """Return the complete words before the word at ``cursor``, and the begin of that word."""
    end = cursor
    while True:
        try:
            tokens = words(text[:end])[:-1]
            break
        except BadFilter as error:
            end = min(error.at, end - 1)
    if end < cursor or not tokens:
        return tokens, min(cursor, end)
    last_token = tokens[-1]
    unfinished = last_token.end == cursor and last_token.kind in ("name", "property", "path", "number", "duration")
    return (tokens[:-1], last_token.position) if unfinished else (tokens, cursor)


def _end_of_word(text: str, start: int, cursor: int) -> int:
    if text[start : start + 1] in ("'", '"'):
        close = text.find(text[start], max(cursor, start + 1))
        return close + 1 if close >= 0 else len(text) if "\n" not in text[cursor:] else cursor
    while cursor < len(text) and (text[cursor].isalnum() or text[cursor] in "_$"):
        cursor += 1
    return cursor


def _candidates(tokens: list[Token], typed: str, values: Values | None) -> list[tuple[str, Sort, str]]:
    last_token = tokens[-1] if tokens else None
    word = _word(last_token)
    if last_token is None or (word in _JOINS and not _opens_list(tokens) and not _is_between_and(tokens)):
        return _fields(values)
    if word in _COMPARING or _opens_list(tokens) or _is_between_and(tokens):
        return _values(_field_before(tokens), typed, values)
    if word == "is":
        return [("null", "word", "absent"), ("not null", "word", "present")]
    name = ALIASES.get(word, word)
    if (
        last_token.kind in ("name", "property", "path")
        and word not in KEYWORDS
        and (name in FIELDS or last_token.kind != "name")
    ):
        kind: Kind = FIELDS[name].kind if last_token.kind == "name" else "property"
        if _is_operand(tokens):
            return _joins()
        return [(operator, "operator", "") for operator in _OPERATORS[kind]]
    return _joins() if word in ("null", "true", "false", "now", ")") or last_token.kind not in ("name", "sign") else []


def _fields(values: Values | None) -> list[tuple[str, Sort, str]]:
    candidates: list[tuple[str, Sort, str]] = [(spec.name, "field", spec.about) for spec in FIELDS.values()]
    candidates.append((f"{PROPERTIES}.", "field", msgid("a property of the message")))
    for name in values(PROPERTIES) if values else ():
        candidates.append((Field(name, True).label, "field", msgid("a property of the message")))
    for name in values("body.") if values else ():
        candidates.append((name, "field", msgid("a field of the decoded body")))
    return [*candidates, ("not", "word", "the opposite")]


def _joins() -> list[tuple[str, Sort, str]]:
    return [("and", "word", "both"), ("or", "word", "one of them")]


def _values(field: Token | None, typed: str, values: Values | None) -> list[tuple[str, Sort, str]]:
    if field is None:
        return []
    spec = None if field.kind != "name" else FIELDS.get(ALIASES.get(field.text, field.text))
    kind: Kind = spec.kind if spec else "property"
    candidates: list[tuple[str, Sort, str]] = []
    if kind == "condition":
        return [("true", "value", ""), ("false", "value", "")]
    if kind == "time":
        candidates = [("now - 5m", "value", "five minutes ago"), ("now - 1h", "value", "an hour ago")]
    if kind in ("text", "list", "property"):
        known_values = spec.words if spec and spec.words else tuple(values(_label(field))) if values else ()
        mark = typed[:1] if typed[:1] == "'" else '"'
        candidates = [(quote(item) if mark == '"' else _single(item), "value", "") for item in known_values]
    return candidates


def _single(text: str) -> str:
    return "'" + quote(text)[1:-1].replace('\\"', '"').replace("'", "\\'") + "'"


def _label(field: Token) -> str:
    if field.kind == "path":
        return field.text
    return f"{PROPERTIES}.{field.value}" if field.kind == "property" else ALIASES.get(field.text, field.text)


def _word(token: Token | None) -> str:
    if token is None or token.kind not in ("name", "sign"):
        return ""
    return token.text.lower() if token.text.lower() in KEYWORDS else token.text


def _field_before(tokens: list[Token]) -> Token | None:
    """Return the field on the left of the comparison that is being typed."""
    for token in reversed(tokens):
        if token.kind in ("property", "path") or (
            token.kind == "name" and ALIASES.get(token.text, token.text) in FIELDS
        ):
            return token
        if _word(token) in ("or", "not") and tokens[-1] is not token and _word(tokens[-1]) != "in":
            break
    return None


def _opens_list(tokens: list[Token]) -> bool:
    """Return True if the last word is the parenthesis behind ``in``."""
    return len(tokens) > 1 and tokens[-1].text == "(" and _word(tokens[-2]) == "in"


def _is_between_and(tokens: list[Token]) -> bool:
    """Return True if the last word is the ``and`` of a ``between``."""
    if _word(tokens[-1]) not in ("and", "&&"):
        return False
    for token in reversed(tokens[:-1]):
        word = _word(token)
        if word == "between":
            return True
        if word in ("and", "or", "&&", "||", "("):
            return False
    return False


def _is_operand(tokens: list[Token]) -> bool:
    """Return True if the last word is a field on the right of a comparison."""
    previous_word = _word(tokens[-2]) if len(tokens) > 1 else ""
    return previous_word in _COMPARING or previous_word in ("+", "-", "&")
