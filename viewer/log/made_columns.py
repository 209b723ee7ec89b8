"""Columns that a person makes of a field of the decoded unit; no Qt.

The names are those of the tree (RocketMQ's, ``properties.NAME`` for a property) and of the filter language.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.codec.message import Unit
from engine.codec.unit_fields import INSTEAD
from viewer.look.formats import full_moment, hexadecimal, moment, number, plain
from viewer.widgets.columns import Column, Record

Getter = Callable[[Unit], Any]
PROPERTY = "properties."
LENGTHS: dict[str, Getter] = {
    "topicLength": lambda unit: len(unit.topic.encode("utf-8", "replace")),
    "propertiesLength": lambda unit: len(unit.properties_raw),
}
HEX = {"bodyCRC": 8, "sysFlag": 1}
"""Numbers that are read in hex, and their digits at least."""


def field_name(line: str) -> str:
    """What a line of the tree is called as a column; "" where none can be made of it."""
    name = INSTEAD.get(line, line)
    return name if name and reader(name) is not None else ""


def reader(name: str) -> Getter | None:
    """How the field is read from a unit; None where there is none."""
    from engine.query import FIELDS
    from engine.query.fields import property_getters

    if name.startswith(PROPERTY):
        return property_getters(name.removeprefix(PROPERTY))[0]
    if name in LENGTHS:
        return LENGTHS[name]
    spec = FIELDS.get(name)
    return spec.unit if spec is not None else None


def readers(names: Sequence[str]) -> tuple[tuple[str, Getter], ...]:
    """The fields that rows are to carry, each with how it is read; names that are none are left out."""
    return tuple((name, read) for name in names if (read := reader(name)) is not None)


def made_column(name: str) -> Column | None:
    """The column of a field; None where there is no such field."""
    from engine.query import FIELDS

    if reader(name) is None:
        return None
    kind = "number" if name in LENGTHS else FIELDS[name].kind if name in FIELDS else "text"
    write = _hex_digits(HEX[name]) if name in HEX else _WRITE.get(kind, _text)

    def value(row: Record) -> Any:
        return next((found for one, found in getattr(row, "extra", ()) if one == name), None)

    return Column(
        name,
        name.removeprefix(PROPERTY),
        110,
        lambda row: write(value(row)),
        value,
        right=kind == "number" and name not in HEX,
        mono=True,
        elide="middle" if kind in {"text", "property", "list"} else "never",
        tip=(lambda row: full_moment(value(row))) if kind == "time" else None,
        filterable=name not in LENGTHS,
    )


def _hex_digits(least: int) -> Callable[[Any], str]:
    return lambda value: "" if value is None else hexadecimal(value, 8) if least == 8 else f"0x{value & 0xFFFFFFFF:X}"


def _text(value: Any) -> str:
    if value is None or value is False:
        return ""
    return plain(" ".join(value)) if isinstance(value, list) else plain(str(value))


_WRITE: dict[str, Callable[[Any], str]] = {"number": number, "time": moment}
