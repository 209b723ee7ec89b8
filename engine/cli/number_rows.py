"""Writes many records of whole numbers at once: listing a queue of millions of entries is bound by this.

Each digit of a column is one array operation over all rows. The characters are put into a matrix; zero bytes stand for
"nothing" and are left out at the end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Fields = Mapping[str, Any]
"""The fields of many records: an array of whole numbers, or a value that all of them have."""

Bytes = NDArray[np.uint8]
_NOTHING, _COMMA, _MINUS, _ZERO, _SPACE = 0, ord(","), ord("-"), ord("0"), ord(" ")


def row_count(fields: Fields) -> int:
    """Return the number of records."""
    return next(len(values) for values in fields.values() if isinstance(values, np.ndarray))


def record_at(fields: Fields, row: int) -> dict[str, Any]:
    """Return one of the records."""
    return {name: int(value[row]) if isinstance(value, np.ndarray) else value for name, value in fields.items()}


def rows_from(fields: Fields, row: int) -> Fields:
    """Return the fields of the records from ``row`` on."""
    return {name: value[row:] if isinstance(value, np.ndarray) else value for name, value in fields.items()}


def json_lines(fields: Fields) -> str:
    """Return the records as JSON lines."""
    parts: list[str | NumberCells] = []
    for name, value in fields.items():
        parts.append(f"{',' if parts else '{'}{json.dumps(name)}:")
        is_array = isinstance(value, np.ndarray)
        parts.append(NumberCells(value) if is_array else json.dumps(value, separators=(",", ":")))
    text = rows_text([*parts, "}\n"])
    assert text is not None  # cells without a width always fit
    return text


@dataclass(frozen=True, slots=True)
class NumberCells:
    """A column of numbers: ``width`` 0 writes each as it is; else right-aligned in so many characters, with commas."""

    values: NDArray[np.int64]
    width: int = 0


def rows_text(parts: Sequence[str | NumberCells]) -> str | None:
    """Return the text of all rows: in each row the parts one after the other; texts are ASCII, the same in all rows.

    None if a number does not fit into the width of its column.
    """
    columns: list[Bytes] = []  # a text's characters, or one character of each row
    for part in parts:
        if isinstance(part, str):
            columns += [np.full(1, character, np.uint8) for character in part.encode("ascii")]
            continue
        places = _characters(part.values, has_commas=bool(part.width))
        if part.width:
            if len(places) > part.width:
                return None
            for place in places:
                place[place == _NOTHING] = _SPACE
            columns += [np.full(1, _SPACE, np.uint8)] * (part.width - len(places))
        columns += places
    matrix = np.empty((max(map(len, columns)), len(columns)), np.uint8)
    for position, column in enumerate(columns):
        matrix[:, position] = column
    flat: Bytes = matrix.ravel()
    text: bytes = flat[flat != _NOTHING].tobytes()
    return text.decode("ascii")


def _characters(values: NDArray[np.int64], *, has_commas: bool) -> list[Bytes]:
    """The characters of the numbers by place, the leftmost first; zero where a number has none."""
    is_negative = values < 0
    remainder = np.abs(values).astype(np.uint64)  # abs() of the least int64 is itself, and as uint64 its magnitude
    places: list[Bytes] = []
    digit_count = 0
    while digit_count == 0 or remainder.any():
        has_digit = remainder > 0
        if has_commas and digit_count and digit_count % 3 == 0:
            places.append(np.where(has_digit, _COMMA, _NOTHING).astype(np.uint8))
        higher = remainder // np.uint64(10)
        digits = (remainder - higher * np.uint64(10)).astype(np.uint8) + np.uint8(_ZERO)
        places.append(digits if digit_count == 0 else np.where(has_digit, digits, np.uint8(_NOTHING)))
        remainder = higher
        digit_count += 1
    if is_negative.any():
        signed = np.zeros((len(places) + 1, len(values)), np.uint8)
        signed[:-1] = places
        lengths = (signed != _NOTHING).sum(0)
        signed[lengths, np.arange(len(values))] = np.where(is_negative, _MINUS, _NOTHING)
        places = list(signed)
    return places[::-1]
