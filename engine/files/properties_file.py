r"""Parse Java's properties syntax, the format of a broker's configuration file.

``key=value``, ``key:value`` or ``key value``; comment lines begin with ``#`` or ``!``; a backslash at the end of a line
continues in the next one; ``\t \n \r \f``, ``\uXXXX`` and a backslash before any other character stand for that
character. Blanks after a value belong to it, as in Java. Only :func:`read_text` does I/O.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from engine.errors import CannotRead, UsageError
from engine.sentences import sentence

MAX_FILE_BYTES = 1 << 20
_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_HEX = frozenset("0123456789abcdefABCDEF")


@dataclass(frozen=True, slots=True)
class Property:
    """A key, its value and the number of its first line, counted from 1."""

    key: str
    value: str
    line: int


def read_text(path: Path | str) -> str:
    """Return the text of a properties file. Raises :class:`CannotRead`, or :class:`UsageError` if it is too long."""
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise CannotRead(error.strerror or str(error), file=str(path)) from error
    if len(raw) > MAX_FILE_BYTES:
        raise UsageError(
            sentence("expected a configuration file of at most {most:,} bytes, found more", most=MAX_FILE_BYTES),
            file=str(path),
        )
    return raw.decode("latin-1")


def parse(text: str, file: str | None = None) -> list[Property]:
    r"""Return every pair of ``text`` in order, repeated keys included (in Java the last one counts).

    Raises :class:`UsageError` for a ``\u`` without four hex digits, as Java refuses the whole file for it.
    """
    pairs = []
    for line, logical in _logical_lines(text):
        key_end, value_start = _cut(logical)
        key = _unescape(logical[:key_end], line, file)
        pairs.append(Property(key, _unescape(logical[value_start:], line, file), line))
    return pairs


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Return (number of the first natural line, content) of each line that has a pair, with continuations joined."""
    lines: list[tuple[int, str]] = []
    pieces: list[str] = []
    start_line = 0
    for number, natural in enumerate(_LINE_END.split(text), 1):
        content = natural.lstrip(_BLANK)
        if not pieces and (not content or content[0] in "#!"):
            continue
        if not pieces:
            start_line = number
        backslashes = len(content) - len(content.rstrip("\\"))
        continues = backslashes % 2 == 1
        pieces.append(content[:-1] if continues else content)
        if not continues:
            lines.append((start_line, "".join(pieces)))
            pieces = []
    if pieces:
        lines.append((start_line, "".join(pieces)))
    return [line for line in lines if line[1]]


def _cut(logical: str) -> tuple[int, int]:
    """Return (end of the key, start of the value): at the first unescaped ``=``, ``:`` or blank."""
    position = 0
    while position < len(logical) and logical[position] not in "=:" + _BLANK:
        position += 2 if logical[position] == "\\" else 1
    end = min(position, len(logical))
    start = end
    while start < len(logical) and logical[start] in _BLANK:
        start += 1
    if start < len(logical) and logical[start] in "=:":
        start += 1
        while start < len(logical) and logical[start] in _BLANK:
            start += 1
    return end, start


def _unescape(text: str, line: int, file: str | None) -> str:
    if "\\" not in text:
        return text
    out = []
    position = 0
    while position < len(text):
        if text[position] != "\\":
            out.append(text[position])
            position += 1
            continue
        letter = text[position + 1 : position + 2]
        position += 2
        if letter == "u":
            digits = text[position : position + 4]
            if len(digits) != 4 or not _HEX.issuperset(digits):
                raise UsageError(
                    sentence(
                        "line {line}: expected four hex digits after \\u, found {digits}",
                        line=line,
                        digits=repr(digits),
                    ),
                    file=file,
                )
            out.append(chr(int(digits, 16)))
            position += 4
        else:
            out.append(_ESCAPES.get(letter, letter))
    joined = "".join(out)
    if joined.isascii():
        return joined
    return joined.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")  # two \u make one character
