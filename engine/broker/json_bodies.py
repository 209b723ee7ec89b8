"""JSON bodies of requests and answers, in RocketMQ's dialect: bare integer keys, objects as keys
(docs/protocol/behaviour.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from engine.codec.json_dialect import ObjectKey, parse
from engine.codec.table_types import to_number
from engine.releases import JsonParser
from engine.remoting.codes import WrongRequest


def read_object(body: bytes | memoryview) -> dict[str, Any]:
    """Parse the body of a request as an object with text keys. Raises :class:`WrongRequest`."""
    read = parse(bytes(body)) if body else None
    if read is None or not isinstance(read.value, Mapping):
        raise WrongRequest("the body is no object" if read is None or read.fault is None else read.fault.words)
    return {str(key): value for key, value in read.value.items()}


def read_object_or_none(body: bytes | memoryview) -> dict[str, Any]:
    """:func:`read_object`; returns an empty object for a body that is empty, ``null`` or an empty list, as fastjson
    does.
    """
    return {} if bytes(body).strip() in {b"", b"null", b"[]"} else read_object(body)


def as_text(value: Any, parser: JsonParser) -> str | None:
    """Return the text that fastjson makes of a member of any type: its own JSON if it is no text; None for ``null``.
    fastjson 2 unwraps a list of one text, or of one ``null``.

    fastjson 2 takes a list of one text, or of one ``null``, for that member.
    """
    if parser == "fastjson 2" and isinstance(value, list) and len(value) == 1:
        value = value[0] if value[0] is None or isinstance(value[0], str) else value
    return value if value is None or isinstance(value, str) else _text(value)


def as_number(value: Any, name: str, default: int, parser: JsonParser) -> int:
    """Return the whole number that fastjson makes of a member; ``default`` for ``null`` and for an empty text.
    fastjson 2 makes 0 of an empty object. Raises :class:`WrongRequest`.
    """
    if value is None or value in ("", "null"):
        return default
    if parser == "fastjson 2" and value == {}:
        return 0
    number = int(value) if isinstance(value, bool) else to_number(value)
    if number is None:
        raise WrongRequest(f"{name}: expected a whole number, found {value!r}")
    return number


def as_objects(value: Any, name: str) -> list[Mapping[Any, Any]]:
    """Return the objects that fastjson makes of a list of them, or of a single one. Raises :class:`WrongRequest`."""
    rows = [value] if isinstance(value, Mapping) else value
    if not isinstance(rows, list | tuple) or not all(isinstance(row, Mapping) for row in rows):
        raise WrongRequest(f"{name} is no list of objects")
    return list(rows)


def write(value: Any) -> bytes:
    """Return ``value`` as fastjson writes it: keys sorted, integers and objects as bare keys."""
    return _text(value).encode("utf-8", "replace")


def write_table(name: str, rows: Sequence[tuple[Mapping[str, Any], Any]], extra_members: Mapping[str, Any]) -> bytes:
    """Return an object with the table ``name``, whose keys are objects themselves (202, 208, 220)."""
    table = ",".join(f"{_text(key)}:{_text(value)}" for key, value in rows)
    members = {**{key: _text(value) for key, value in extra_members.items()}, name: "{" + table + "}"}
    return ("{" + ",".join(f"{json.dumps(key)}:{members[key]}" for key in sorted(members)) + "}").encode()


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        keys = sorted(value, key=lambda key: (isinstance(key, str), key))
        return "{" + ",".join(f"{_key(key)}:{_text(value[key])}" for key in keys) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _key(key: str | int) -> str:
    return str(key) if isinstance(key, int | ObjectKey) else json.dumps(key, ensure_ascii=False)
