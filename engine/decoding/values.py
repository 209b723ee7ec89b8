"""Values that decoders give: those of JSON, bounded in depth and number, and paths into them."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

from engine.sentences import sentence

MAX_DEPTH = 100
MAX_VALUES = 500_000
"""Maximum number of values in one body. A few bytes with shared references can stand for billions."""
MAX_NUMBER_BITS = 14_000
"""Larger whole numbers have more digits than Python writes."""
MAX_DECIMAL_EXPONENT = 10_000
_NUMBER = re.compile(r"\s*([+-]?[0-9]+)\s*|\s*[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,4})?\s*")
_MAX_NUMBER_CHARS = 40

Path = tuple[str | int, ...]
"""Steps into a value: names of an object, positions in a list."""


class BadBody(Exception):
    """The body is not what its decoder reads. ``position`` is the byte where, if the decoder knows it."""

    def __init__(self, problem: str, position: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.position = position


def as_json_value(value: object) -> Any:
    """Return ``value`` with the types of JSON. Bytes become base64, times and decimals text.

    Raises :class:`BadBody` if it is nested deeper than :data:`MAX_DEPTH` or has more than :data:`MAX_VALUES` values.
    """
    return _Converter().convert(value, 0)


class _Converter:
    def __init__(self) -> None:
        self._count = 0

    def convert(self, value: object, depth: int) -> Any:
        self._count += 1
        if self._count > MAX_VALUES:
            raise BadBody(sentence("more than {n:,} values", n=MAX_VALUES))
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return _valid_text(value)
        if isinstance(value, int):
            if value.bit_length() > MAX_NUMBER_BITS:
                raise BadBody(sentence("a number of {n:,} bits", n=value.bit_length()))
            return int(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else str(value)
        if isinstance(value, bytes | bytearray | memoryview):
            return base64.b64encode(value).decode()
        if depth >= MAX_DEPTH:
            raise BadBody(sentence("nested deeper than {n} levels", n=MAX_DEPTH))
        if isinstance(value, Mapping):
            return {self._name(name, depth): self.convert(item, depth + 1) for name, item in value.items()}
        if isinstance(value, Sequence | AbstractSet):
            return [self.convert(item, depth + 1) for item in value]
        return _text_of(value)

    def _name(self, name: object, depth: int) -> str:
        if isinstance(name, str):
            return _valid_text(name)
        value = self.convert(name, depth + 1)
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _valid_text(text: str) -> str:
    """Return ``text`` with ``?`` for what UTF-8 cannot hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _text_of(value: object) -> str:
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return f"{value.total_seconds()} s"
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        if isinstance(exponent, int) and abs(exponent) > MAX_DECIMAL_EXPONENT:
            raise BadBody(sentence("a decimal number with the exponent {n:,}", n=exponent))
        return str(value)
    if isinstance(value, Fraction):
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_NUMBER_BITS:
            raise BadBody(sentence("a number of {n:,} bits", n=value.numerator.bit_length()))
        return str(value)
    if isinstance(value, UUID):
        return str(value)
    return _valid_text(f"{type(value).__name__}: {value!r}"[:1000])


def json_text(value: object) -> str:
    """Return a decoded value as one line of JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()
"""The value of a path that a body does not have."""


def value_at(value: object, path: Path) -> Any:
    """Return the value at ``path``, :data:`ABSENT` if there is none."""
    for step in path:
        if isinstance(step, str):
            if not isinstance(value, dict) or step not in value:
                return ABSENT
            value = value[step]
        else:
            if not isinstance(value, list) or not -len(value) <= step < len(value):
                return ABSENT
            value = value[step]
    return value


def value_text(value: object) -> str | None:
    """Return a value as filters and columns compare it: a text as it is, anything else as JSON; None if absent."""
    if value is None or value is ABSENT:
        return None
    return value if isinstance(value, str) else json_text(value)


def value_number(value: object) -> int | Decimal | None:
    """Return a value as a number: one itself, or the text of one; None if it is none.

    A number with a fraction is the decimal that JSON would write for it: 10.1 is equal to 10.1, not a little smaller.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return Decimal(repr(value)) if math.isfinite(value) else None
    if isinstance(value, str) and len(value) <= _MAX_NUMBER_CHARS and (match := _NUMBER.fullmatch(value)):
        return int(match[1]) if match[1] else Decimal(value.strip())
    return None
