"""JSON bodies of requests and answers, in RocketMQ's dialect: bare integer keys, objects as keys
(docs/protocol/behaviour.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from engine.codec.json_dialect import ObjectKey, parse
from engine.remoting.codes import WrongRequest


def read_object(body: bytes | memoryview) -> dict[str, Any]:
    """The body of a request as an object, keys as text. Raises :class:`WrongRequest`."""
    read = parse(bytes(body)) if body else None
    if read is None or not isinstance(read.value, Mapping):
        raise WrongRequest("the body is no object" if read is None or read.fault is None else read.fault.words)
    return {str(key): value for key, value in read.value.items()}


def read_object_or_none(body: bytes | memoryview) -> dict[str, Any]:
    """:func:`read_object`, empty for a body that is empty, ``null`` or an empty list: fastjson reads none out of it."""
    return {} if bytes(body).strip() in {b"", b"null", b"[]"} else read_object(body)


def write(value: Any) -> bytes:
    """``value`` as fastjson writes it: keys in their order, integers and objects as keys bare."""
    return _text(value).encode("utf-8", "replace")


def write_table(name: str, rows: Sequence[tuple[Mapping[str, Any], Any]], more: Mapping[str, Any]) -> bytes:
    """An object with the table ``name``, whose keys are objects themselves (202, 208, 220)."""
    table = ",".join(f"{_text(key)}:{_text(value)}" for key, value in rows)
    members = {**{key: _text(value) for key, value in more.items()}, name: "{" + table + "}"}
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
