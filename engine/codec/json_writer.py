"""Write JSON as RocketMQ does: fastjson's pretty form, bare integer keys (docs/formats/config-tables.md#rules)."""

from __future__ import annotations

import re
from typing import Any

_WRITTEN = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SPECIAL = re.compile(r'["\\\x00-\x1f\x7f-\x9f\u2028\u2029]')
_SPECIAL_ASCII = re.compile(r'["\\\x00-\x1f]|[^\x00-\x7e]')


def render(value: Any) -> str:
    """Return the text of ``value``: objects (keys text or whole numbers), lists, texts, numbers, booleans, None."""
    out: list[str] = []
    _write(value, 0, out)
    return "".join(out)


class RowTexts:
    """A cache of the texts of a table's rows, so that saving renders only changed rows. A row is recognised by its
    object: to change a row, put a new object in its place.
    """

    def __init__(self) -> None:
        self._known: dict[str | int, tuple[Any, str]] = {}

    def render(self, value: dict[str | int, Any], table: str) -> str:
        """:func:`render` of ``value``, whose member ``table`` holds the rows."""
        rows = value.get(table)
        if not isinstance(rows, dict) or not rows or not all(type(key) is str for key in rows):
            return render(value)
        previous_texts, row_texts = self._known, {}
        for key, row in rows.items():
            text = previous_texts.get(key)
            if text is None or text[0] is not row:
                out = [_text(str(key), _SPECIAL), ":"]
                _write(row, 2, out)
                text = (row, "".join(out))
            row_texts[key] = text
        self._known = row_texts
        inner = ",\n\t\t".join(text for _, text in row_texts.values())
        out, comma = [], "{"
        for key, member in value.items():
            out += [comma, "\n\t" if isinstance(key, str) else "", _key(key, _SPECIAL), ":"]
            if key == table:
                out.append("{\n\t\t" + inner + "\n\t}")
            else:
                _write(member, 1, out)
            comma = ","
        return "".join([*out, "\n}"])


def render_line(value: Any) -> str:
    """Return ``value`` on one line in ASCII, as brokers write ``timermetrics`` and ``transactionMetrics``."""
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
    if sign in _WRITTEN:
        return _WRITTEN[sign]
    units = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[index] << 8 | units[index + 1]:04X}" for index in range(0, len(units), 2))


def _plain(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    raise TypeError(f"expected what JSON knows, found {type(value).__name__}")
