"""Settings of a server from a properties file: attributes of a frozen dataclass that carry Java's names."""

from __future__ import annotations

from dataclasses import Field, field, fields, replace
from typing import Any, TypeVar

from engine.errors import UsageError
from engine.files.properties_file import parse
from engine.sentences import sentence

Settings = TypeVar("Settings")


def key(java: str, default: Any) -> Any:
    """An attribute that the key ``java`` sets."""
    return field(default=default, metadata={"java": java})


def attributes_by_key(settings: Any) -> dict[str, Field[Any]]:
    """Index the attributes by Java's names."""
    return {
        str(attribute.metadata["java"]): attribute for attribute in fields(settings) if "java" in attribute.metadata
    }


def key_value_pairs(settings: Any) -> list[tuple[str, str]]:
    """Return keys and values as text, in the order of the attributes."""
    values = [(java, getattr(settings, attribute.name)) for java, attribute in attributes_by_key(settings).items()]
    return [(java, str(value).lower() if isinstance(value, bool) else str(value)) for java, value in values]


def overlay(settings: Settings, text: str, file: str | None = None) -> tuple[Settings, list[str]]:
    """Return ``settings`` with the properties of ``text``, and the keys that are unknown. Raises
    :class:`UsageError`.
    """
    attributes = attributes_by_key(settings)
    values: dict[str, Any] = {}
    unknown = []
    for item in parse(text, file):
        attribute = attributes.get(item.key)
        if attribute is None:
            unknown.append(item.key)
            continue
        values[attribute.name] = _value(
            item.key, item.value.strip(), getattr(settings, attribute.name), item.line, file
        )
    return replace(settings, **values), unknown  # type: ignore[type-var]


def _value(key: str, text: str, usual: Any, line: int, file: str | None) -> Any:
    if isinstance(usual, bool):
        if text not in {"true", "false"}:
            raise UsageError(
                sentence(
                    "line {line}, {key}: expected true or false, found {text}", line=line, key=key, text=repr(text)
                ),
                file=file,
            )
        return text == "true"
    if isinstance(usual, int):
        if not (text.removeprefix("-") if usual < 0 else text).isdecimal():
            raise UsageError(
                sentence("line {line}, {key}: expected a number, found {text}", line=line, key=key, text=repr(text)),
                file=file,
            )
        return int(text)
    return text
