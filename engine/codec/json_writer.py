"""JSON as RocketMQ's brokers write it (fastjson 1.2, pretty form; spec 14.1).

Tabs, no blank behind ``:``; entries with text keys on lines of their own, entries with integer keys in one line and
unquoted, lists in one line. :mod:`engine.codec.json_dialect` reads it back. Pure.
"""

from __future__ import annotations

import re
from typing import Any

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SPECIAL = re.compile(r'["\\\x00-\x1f\x7f-\x9f\u2028\u2029]')
_SPECIAL_ASCII = re.compile(r'["\\\x00-\x1f]|[^\x00-\x7e]')


def render(value: Any) -> str:
    """The text of ``value``: objects (keys text or whole numbers), lists, texts, numbers, booleans, None."""
    out: list[str] = []
    _write(value, 0, out)
    return "".join(out)


def render_line(value: Any) -> str:
    """``value`` on one line in ASCII, as brokers write ``timermetrics`` and ``transactionMetrics``."""
    if isinstance(value, dict):
        pairs = (f"{_key(key, _SPECIAL_ASCII)}:{render_line(member)}" for key, member in value.items())
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(render_line, value)) + "]"
    return _text(value, _SPECIAL_ASCII) if isinstance(value, str) else _plain(value)


def _write(value: Any, depth: int, out: list[str]) -> None:
    if isinstance(value, dict):
        _write_object(value, depth, out)
    elif isinstance(value, list | tuple):
        out.append("[")
        for number, item in enumerate(value):
            if number:
                out.append(",")
            _write(item, depth, out)
        out.append("]")
    else:
        out.append(_text(value, _SPECIAL) if isinstance(value, str) else _plain(value))


def _write_object(value: dict[str | int, Any], depth: int, out: list[str]) -> None:
    if not value:
        out.append("{}")
        return
    inner = "\n" + "\t" * (depth + 1)
    comma = "{"
    for key, member in value.items():
        out.append(comma)
        if isinstance(key, str):
            out.append(inner)
        out.append(_key(key, _SPECIAL))
        out.append(":")
        _write(member, depth + 1, out)
        comma = ","
    out.append("\n" + "\t" * depth + "}")


def _key(key: str | int, special: re.Pattern[str]) -> str:
    return str(key) if isinstance(key, int) else _text(key, special)


def _text(text: str, special: re.Pattern[str]) -> str:
    return '"' + special.sub(_escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    sign = match.group()
    if sign in _ESCAPES:
        return _ESCAPES[sign]
    units = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04X}" for at in range(0, len(units), 2))


def _plain(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    raise TypeError(f"expected what JSON knows, found {type(value).__name__}")
