"""Kinds of values in a filter: which can be compared, added or searched, and texts that are times.

A mistake of kind is an error of the text, with the place of the invalid word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal

from engine.errors import BadFilter
from engine.query.fields import Kind
from engine.query.tree import (
    EPOCH,
    Constant,
    Field,
    Node,
    Value,
    kind_of,
    literal_text,
)
from engine.sentences import msgid, sentence

_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s*(Z|z|[+-]\d\d:?\d\d)?)?"
)
_EARLIEST_MS = -62135596800000
_LATEST_MS = 253402300799999


def parse_time(text: str, zone: tzinfo | None, position: int, length: int) -> int:
    """Return the milliseconds of an ISO date or time; without an offset it is in ``zone`` (None: the machine's).

    A date alone is its first moment. Raises :class:`BadFilter` at ``position``.

    """
    match = _ISO.fullmatch(text.strip())
    if match is None:
        raise BadFilter(
            sentence('{text} is not a time; write it like "2026-11-20 09:41:07"', text=repr(text)), position, length
        )
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    ms = int((fraction or "0")[:3].ljust(3, "0"))
    try:
        moment = datetime(  # noqa: DTZ001 - the zone is added below
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), ms * 1000
        )
        aware = moment.replace(tzinfo=_offset(offset) if offset else zone) if offset or zone else moment.astimezone()
        epoch_ms = (aware - EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError, OSError):
        raise BadFilter(sentence("there is no such time as {text}", text=repr(text)), position, length) from None
    if not _EARLIEST_MS <= epoch_ms <= _LATEST_MS:
        raise BadFilter(sentence("{text} lies outside the years 1 to 9999", text=repr(text)), position, length)
    return epoch_ms


def _offset(text: str) -> tzinfo:
    if text in ("Z", "z"):
        return UTC
    hours, minutes = int(text[1:3]), int(text[-2:])
    away = timedelta(hours=hours, minutes=minutes)
    return timezone(-away if text[0] == "-" else away)


_KIND_WITH_ARTICLE = {
    "number": msgid("a number"),
    "time": msgid("a time"),
    "duration": msgid("a duration"),
    "text": msgid("a text"),
    "property": msgid("a property's text"),
    "list": msgid("a list of texts"),
    "condition": msgid("a condition"),
}
_WHAT_IT_IS = {
    "number": msgid("{name} is a number"),
    "time": msgid("{name} is a time"),
    "duration": msgid("{name} is a duration"),
    "text": msgid("{name} is a text"),
    "property": msgid("{name} is a property's text"),
    "list": msgid("{name} is a list of texts"),
    "condition": msgid("{name} is a condition"),
}
_COMPARABLE_KINDS: tuple[frozenset[Kind], ...] = tuple(
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
    """A node and the characters from which it was read."""

    node: Node
    position: int
    end: int

    def error(self, problem: str) -> BadFilter:
        """Return the error for these characters."""
        return BadFilter(problem, self.position, max(1, self.end - self.position))


def describe(node: Node) -> str:
    """Describe the node for an error: ``size is a number``."""
    template = _WHAT_IT_IS[kind_of(node)]
    if isinstance(node, Field) and node.path:
        return sentence("{name} is a field of the body", name=node.label)
    if isinstance(node, Field):
        return sentence(template, name=node.label)
    return sentence(template, name=literal_text(node) if isinstance(node, Constant) else sentence("this value"))


def value(span: Span) -> Value:
    """Return the node if it is a value; a condition is refused unless it is a field."""
    if not isinstance(span.node, Value):
        raise span.error(sentence("a value is expected here, not a condition"))
    return span.node


def condition(span: Span) -> Node:
    """Return the node if it is a condition."""
    if kind_of(span.node) != "condition":
        raise span.error(
            sentence("{what_it_is}, not a condition; compare it with something", what_it_is=describe(span.node))
        )
    return span.node


def sum_kind(sign: str, left_span: Span, right_span: Span, zone: tzinfo | None) -> tuple[Value, Value, Kind]:
    """Return both sides of ``+``, ``-`` or ``&`` and the kind of the result."""
    for span in (left_span, right_span):
        _check_fraction(span, None)
    a, b = _as_time(left_span, right_span, zone), _as_time(right_span, left_span, zone)
    kind = _SUMS.get((sign, kind_of(a), kind_of(b)))
    if kind is None:
        place = left_span if kind_of(a) not in ("number", "time", "duration") else right_span
        raise place.error(
            sentence(
                "{sign} does not join {left} and {right}",
                sign=sign,
                left=sentence(_KIND_WITH_ARTICLE[kind_of(a)]),
                right=sentence(_KIND_WITH_ARTICLE[kind_of(b)]),
            )
        )
    return a, b, kind


def comparable(sign: str, left_span: Span, right_span: Span, zone: tzinfo | None) -> tuple[Value, Value]:
    """Return both sides of a comparison, with a text beside a time converted to a time."""
    a, b = _as_time(left_span, right_span, zone), _as_time(right_span, left_span, zone)
    a, b = _as_text(a, b), _as_text(b, a)
    kinds: tuple[Kind, Kind] = (kind_of(a), kind_of(b))
    if kinds[1] == "list":
        raise right_span.error(sentence("{what_it_is}; write it on the left side", what_it_is=describe(b)))
    if frozenset(kinds) not in _COMPARABLE_KINDS or _plain_number_is_a_field(a, b):
        raise right_span.error(
            sentence(
                "{left}, {right}: they cannot be compared{advice}",
                left=describe(a),
                right=describe(b),
                advice=_advice(a, b),
            )
        )
    if kinds[0] in ("list", "condition") and sign not in ("=", "!="):
        raise left_span.error(
            sentence(
                "{what_it_is}; it can be equal or not, but {sign} has no meaning for it",
                what_it_is=describe(a),
                sign=sign,
            )
        )
    for value_node, compared_with, span in ((a, b, right_span), (b, a, left_span)):
        _check_word(value_node, compared_with, span)
        _check_fraction(span, value_node)
    return a, b


def searchable(span: Span, word: str) -> Value:
    """Return the left side of ``contains`` and similar tests."""
    node = value(span)
    if kind_of(node) not in ("text", "property", "list"):
        raise span.error(sentence("{what_it_is}; {word} looks into texts", what_it_is=describe(node), word=word))
    return node


def _as_time(span: Span, compared_with: Span, zone: tzinfo | None) -> Value:
    node = span.node
    if isinstance(node, Constant) and isinstance(node.value, str) and kind_of(compared_with.node) == "time":
        return Constant(parse_time(node.value, zone, span.position, span.end - span.position), "time")
    return node if isinstance(node, Value) else _refuse_deep(span)


def _as_text(node: Value, compared_with: Value) -> Value:
    """Return ``true`` and ``false`` beside a field of the body as texts, as such a field is compared."""
    if isinstance(node, Constant) and isinstance(node.value, bool) and _is_of_body(compared_with):
        return Constant("true" if node.value else "false", "text")
    return node


def _is_of_body(node: Node) -> bool:
    return isinstance(node, Field) and bool(node.path)


def _check_fraction(span: Span, compared_with: Value | None) -> None:
    """Refuse a number with a fraction except beside a field of the body."""
    node = span.node
    if compared_with is not None and _is_of_body(compared_with):
        return
    if isinstance(node, Constant) and isinstance(node.value, Decimal):
        raise span.error(
            sentence(
                "{value} is not a whole number; only fields of the body, as in body.price, have a fraction",
                value=literal_text(node),
            )
        )


def _refuse_deep(span: Span) -> Value:
    raise span.error(sentence("a condition cannot be compared; join conditions with and, or, not"))


def _plain_number_is_a_field(a: Value, b: Value) -> bool:
    """Return True if a time or duration is compared with a number that is no literal: only a literal counts as
    milliseconds.
    """
    for value_node, compared_with in ((a, b), (b, a)):
        if (
            kind_of(value_node) in ("time", "duration")
            and kind_of(compared_with) == "number"
            and not isinstance(compared_with, Constant)
        ):
            return True
    return False


def _advice(a: Value, b: Value) -> str:
    if kind_of(a) in ("text", "list") and isinstance(b, Constant) and not isinstance(b.value, str):
        return sentence("; a text is written in quotes")
    if kind_of(a) == "number" and kind_of(b) == "duration":
        return sentence("; mebibytes are written MiB")
    return ""


def _check_word(node: Value, compared_with: Value, span: Span) -> None:
    if isinstance(node, Field) and not node.is_property and isinstance(compared_with, Constant):
        known_words = node.spec.words
        if known_words and compared_with.value not in known_words:
            raise span.error(
                sentence(
                    "{name} is one of {words}; it is never {value}",
                    name=node.name,
                    words=", ".join(known_words),
                    value=literal_text(compared_with),
                )
            )
