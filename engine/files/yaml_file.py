"""YAML as far as RocketMQ writes and documents it: maps, lists and plain values by indentation, and ``[a, b]`` in a
line (``plain_acl.yml``, ``tools.yml``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import CannotRead, UsageError
from engine.sentences import sentence

MAX_FILE_BYTES = 1 << 20
_KEY = re.compile(r"""^("[^"]*"|'[^']*'|[^\s'"\[{#&*!|>%@`-][^:#]*?|-[^\s:#][^:#]*?)\s*:(?:\s+(.*))?$""")


def read_yaml(path: Path) -> Any:
    """Return maps, lists and texts of a file. Raises :class:`CannotRead`, or :class:`UsageError` with file, line and
    what was expected.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise CannotRead(error.strerror or str(error), file=str(path)) from error
    if len(raw) > MAX_FILE_BYTES:
        raise UsageError(
            sentence("expected at most {largest_file:,} bytes, found more", largest_file=MAX_FILE_BYTES), file=str(path)
        )
    try:
        return parse(raw.decode("utf-8"))
    except (UnicodeDecodeError, UsageError) as error:
        raise UsageError(str(error), file=str(path)) from error


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    indent: int
    text: str


def parse(text: str) -> Any:
    """Parse a file into maps, lists and texts. Raises :class:`UsageError` with the line."""
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        bare = _without_comment(line.rstrip())
        if not bare.strip() or bare in {"---", "..."}:
            continue
        if "\t" in bare[: len(bare) - len(bare.lstrip())]:
            raise UsageError(sentence("line {number}: expected spaces for indentation, found a tab", number=number))
        lines.append(_Line(number, len(bare) - len(bare.lstrip()), bare.strip()))
    if not lines:
        return {}
    value, next_line = _block(lines, 0)
    if next_line < len(lines):
        raise UsageError(sentence("line {number}: is indented less than its parent", number=lines[next_line].number))
    return value


def _without_comment(line: str) -> str:
    quote = ""
    for index, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "#" and (index == 0 or line[index - 1] == " "):
            return line[:index].rstrip()
    return line


def _block(lines: list[_Line], index: int) -> tuple[Any, int]:
    line = lines[index]
    if line.text == "-" or line.text.startswith("- "):
        return _items(lines, index, line.indent)
    return _members(lines, index, line.indent)


def _items(lines: list[_Line], index: int, indent: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    while index < len(lines) and lines[index].indent == indent and (lines[index].text + " ").startswith("- "):
        line = lines[index]
        content = line.text[1:].lstrip()
        if not content:
            value, index = _nested(lines, index + 1, indent)
        elif _KEY.match(content):
            inner = indent + len(line.text) - len(content)
            lines[index] = _Line(line.number, inner, content)
            value, index = _members(lines, index, inner)
        else:
            value, index = _value(content, line.number), index + 1
        items.append(value)
    return items, index


def _members(lines: list[_Line], index: int, indent: int) -> tuple[dict[str, Any], int]:
    members: dict[str, Any] = {}
    while index < len(lines) and lines[index].indent == indent:
        line = lines[index]
        match = _KEY.match(line.text)
        if match is None:
            if line.text.startswith("-"):
                break
            raise UsageError(
                sentence(
                    "line {number}: expected NAME: VALUE, found {text}", number=line.number, text=repr(line.text[:60])
                )
            )
        name, content = match[1].strip("'\""), (match[2] or "").strip()
        if content:
            members[name], index = _value(content, line.number), index + 1
        else:
            members[name], index = _nested(lines, index + 1, indent, lists_may_stand_at=indent)
    if index < len(lines) and lines[index].indent > indent:
        raise UsageError(sentence("line {number}: is indented more than its neighbours", number=lines[index].number))
    return members, index


def _nested(lines: list[_Line], index: int, indent: int, lists_may_stand_at: int = -1) -> tuple[Any, int]:
    if index >= len(lines):
        return "", index
    line = lines[index]
    if line.indent > indent or (line.indent == lists_may_stand_at and (line.text + " ").startswith("- ")):
        return _block(lines, index)
    return "", index


def _value(text: str, number: int) -> Any:
    if text[0] in "'\"":
        if len(text) < 2 or text[-1] != text[0]:
            raise UsageError(sentence("line {number}: a quote is not closed", number=number))
        return text[1:-1]
    if text[0] == "[":
        if text[-1] != "]":
            raise UsageError(sentence("line {number}: expected ] at the end", number=number))
        return [_value(item.strip(), number) for item in text[1:-1].split(",") if item.strip()]
    if text[0] in "{&*!|>%@`":
        raise UsageError(
            sentence(
                "line {number}: expected a plain value or a list, found {text}", number=number, text=repr(text[:60])
            )
        )
    return "" if text in {"~", "null"} else text
