"""Which values a filter may compare, add or search: every mistake of kind is found while the text is read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from engine.errors import BadFilter
from engine.query.fields import Kind
from engine.query.tree import EPOCH, Constant, Field, Node, Value, kind_of, literal_text

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
)  # fmt: skip
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
