"""Parse and write JSON as RocketMQ does (fastjson 1.2; docs/formats/config-tables.md#rules): bare integer keys,
objects as keys.

Accepts more than the standard, because a broker accepts it: keys that are bare integers (also negative), bare
words or objects; single quotes; numbers with a plus sign or with Java's suffix (``5L``); doubled and trailing
commas; control characters in strings and between tokens. For a broker, text behind the closing brace is an error;
here it is returned as the tail, with its place. The order of keys is kept.

Pure and bounded in length, depth and number of values. Normal files go through the standard library after one
substitution; all others through the slower reader below, which tracks places. Both give the same values. The
written form is fastjson's pretty form.

"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any, Never, Self

from engine.sentences import Sentence, plural, sentence

MAX_TEXT_BYTES = 64 << 20
MAX_DEPTH = 64
MAX_VALUES = 4_000_000
MAX_DUPLICATES = 100
MAX_TAIL_CHARS = 200
_MARK = "\ue9f7"  # private use character: marks an integer key in the text for the standard library
_BARE_KEY = re.compile(r"(?<=[{,\s])(-?\d{1,19})(?=\s*:)", re.ASCII)
_BLANK = re.compile(r"[\x00-\x20\x7f]*")
_COMMENT = re.compile(r"//[^\n]*\n|/\*.*?\*/", re.DOTALL)
_COMMENT_AT_END = re.compile(r"[\x00-\x20\x7f]*(//[^\n]*(\n|$)|/\*.*?(\*/|$))", re.DOTALL)
_NUMBER = re.compile(r"([+-]?\d+(\.\d*)?([eE][+-]?\d+)?)[LSBFD]?", re.ASCII)
_WORD = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_STRING = {
    '"': re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL),
    "'": re.compile(r"'([^'\\]*(?:\\.[^'\\]*)*)'", re.DOTALL),
}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES = dict(zip("\"\\/'bfnrtv01234567", "\"\\/'\b\f\n\r\t\v\0\1\2\3\4\5\6\7", strict=True))
_CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_RISKY_ESCAPE = re.compile(r"\\u(?:d[89a-f]|e9f7)", re.IGNORECASE)
_SURROGATE = re.compile("[\ud800-\udfff]")


class ObjectKey(str):
    """An object in the place of a key, as in a client's ``offsets.json``: its standard JSON text."""

    __slots__ = ("value",)
    value: dict[str | int, Any]

    def __new__(cls, value: dict[str | int, Any]) -> Self:
        """Return the key for ``value``."""
        key = super().__new__(cls, json.dumps(value, ensure_ascii=False, separators=(",", ":")))
        key.value = value
        return key


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a text: ``offset`` in bytes, ``line`` and ``column`` in characters counted from 1."""

    offset: int
    line: int
    column: int

    @property
    def words(self) -> str:
        return sentence(
            "line {line:,} column {column:,} (offset {offset:,})",
            line=self.line,
            column=self.column,
            offset=self.offset,
        )


@dataclass(frozen=True, slots=True)
class Fault:
    """The reason why a text is no JSON, and the place."""

    problem: str
    place: Place

    @property
    def words(self) -> str:
        return sentence("{place}: {what}", place=self.place.words, what=self.problem)


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A repeated key; the later value counts, as in Java."""

    key: str
    place: Place


@dataclass(frozen=True, slots=True)
class Tail:
    """The text behind the closing brace: its first characters, its length in characters, its place."""

    text: str
    length: int
    place: Place
    is_harmless: bool  # only control characters, which a broker's reader skips


@dataclass(frozen=True, slots=True)
class Parsed:
    """The result of parsing. ``value`` is None beside a fault; the text's own ``null`` is None without one."""

    value: Any
    fault: Fault | None = None
    tail: Tail | None = None
    duplicates: tuple[Duplicate, ...] = field(default=())
    loose: Fault | None = None  # first deviation that fastjson 1 accepts and fastjson 2 refuses
    doubled: Fault | None = None  # doubled commas between integer keys, which neither accepts

    def complaint_of(self, parser: str) -> str | None:
        """Return why a broker with this parser does not read the text; None if it reads it."""
        refused = self.doubled or (self.loose if parser == "fastjson 2" else None)
        return self.complaint or (refused.words if refused is not None else None)

    @property
    def accepted(self) -> bool:
        """True if a broker reads this text without complaint."""
        return self.fault is None and (self.tail is None or self.tail.is_harmless)

    @property
    def complaint(self) -> str | None:
        """The reason why a broker refuses the text; None if it accepts it."""
        if self.fault is not None:
            return self.fault.words
        if self.tail is not None and not self.tail.is_harmless:
            problem = plural(
                "{n:,} character after the end: {text!r}",
                "{n:,} characters after the end: {text!r}",
                n=self.tail.length,
                text=self.tail.text[:40],
            )
            return sentence("{place}: {what}", place=self.tail.place.words, what=problem)
        return None


class _NeedsFullParser(Exception):
    """The text needs the slower reader."""


class _SyntaxFault(Exception):
    """The text is not JSON."""

    def __init__(self, problem: str, position: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.position = position


def parse(data: bytes | str) -> Parsed:
    """Parse a text; never raises. Malformed UTF-8 becomes U+FFFD, as in Java."""
    if len(data) > MAX_TEXT_BYTES:
        return Parsed(
            None,
            Fault(
                plural(
                    "longer than the {n:,} byte that are read",
                    "longer than the {n:,} bytes that are read",
                    n=MAX_TEXT_BYTES,
                ),
                Place(0, 1, 1),
            ),
        )
    text = data if isinstance(data, str) else data.decode("utf-8", "surrogateescape")
    try:
        value, end = _parse_fast(text)
    except (_NeedsFullParser, ValueError, RecursionError):
        return _parse_fully(text)
    return Parsed(value, None, _tail(text, end))


def _parse_fast(text: str) -> tuple[Any, int]:
    """Return value and end (in characters) of a text that is standard JSON but for bare integer keys. Raises
    :class:`_NeedsFullParser` or ``ValueError`` for every other text.

    If a key-like number inside a string were marked too, the mark behind the quote would be outside any string:
    an error, never a wrong value.

    """
    if _MARK in text or _SURROGATE.search(text) or _RISKY_ESCAPE.search(text):
        raise _NeedsFullParser
    if sum(text.count(char) for char in ",[{:") > MAX_VALUES:
        raise _NeedsFullParser
    marked = _BARE_KEY.sub(rf'"{_MARK}\1"', text)
    blanks = len(marked) - len(marked.lstrip(" \t\r\n"))
    value, end = _DECODER.raw_decode(marked, blanks)
    if not isinstance(value, dict | list):
        raise _NeedsFullParser
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return value, end - 3 * marked.count(_MARK, 0, end)
    raise _NeedsFullParser


def _object(pairs: list[tuple[str, Any]]) -> dict[str | int, Any]:
    members = {int(key[1:]) if key[:1] == _MARK else key: value for key, value in pairs}
    if len(members) != len(pairs):
        raise _NeedsFullParser
    return members


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _NeedsFullParser
    return value


def _constant(_: str) -> Never:
    raise _NeedsFullParser


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_constant=_constant)


def _parse_fully(text: str) -> Parsed:
    reader = _Reader(text)
    try:
        value = reader.value(0)
    except _SyntaxFault as broken:
        if text and not text.strip("\0"):
            return Parsed(
                None,
                Fault(
                    plural("{n:,} zero byte and nothing else", "{n:,} zero bytes and nothing else", n=len(text)),
                    Place(0, 1, 1),
                ),
            )
        return Parsed(None, Fault(broken.problem, _place(text, broken.position)), None, tuple(reader.duplicates))
    faults = [fault and Fault(fault[0], _place(text, fault[1])) for fault in (reader.loose, reader.doubled)]
    return Parsed(value, None, _tail(text, reader.position), tuple(reader.duplicates), *faults)


def _tail(text: str, end: int) -> Tail | None:
    remaining = text[end:]
    while comment := _COMMENT_AT_END.match(remaining):
        remaining = remaining[comment.end() :]
    end = len(text) - len(remaining)
    bare = remaining.strip(" \t\r\n")
    if not bare:
        return None
    place = _place(text, end + remaining.index(bare[0]))
    return Tail(_clean(bare[:MAX_TAIL_CHARS]), len(bare), place, _BLANK.fullmatch(bare) is not None)


def _place(text: str, position: int) -> Place:
    preceding = text[:position]
    return Place(
        len(preceding.encode("utf-8", "surrogateescape" if _escaped(preceding) else "surrogatepass")),
        preceding.count("\n") + 1,
        position - (preceding.rfind("\n") + 1) + 1,
    )


def _escaped(text: str) -> bool:
    """Return True if every surrogate in ``text`` stands for one malformed byte."""
    return all("\udc80" <= surrogate <= "\udcff" for surrogate in _SURROGATE.findall(text))


def _clean(text: str) -> str:
    """Return ``text`` without lone surrogates, which no output can carry; pairs become their character."""
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class _Reader:
    """The slower parser: a position in the text, which each method advances behind the part that it reads."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 1 if text.startswith("\ufeff") else 0
        self.duplicates: list[Duplicate] = []
        self.loose: tuple[str, int] | None = None
        self.doubled: tuple[str, int] | None = None
        self._values = 0

    def value(self, depth: int) -> Any:
        """Parse the value at the position, skipping blanks before it."""
        char = self._peek()
        self._values += 1
        if self._values > MAX_VALUES:
            raise _SyntaxFault(plural("more than {n:,} value", "more than {n:,} values", n=MAX_VALUES), self.position)
        if depth > MAX_DEPTH:
            raise _SyntaxFault(sentence("nested deeper than {n}", n=MAX_DEPTH), self.position)
        if char == "{":
            return self._members(depth)
        if char == "[":
            return self._items(depth)
        if char in _STRING:
            return self._string(char)
        return self._bare_value()

    def _peek(self) -> str:
        """Skip blanks and return the next character without consuming it; empty at the end."""
        while True:
            blank = _BLANK.match(self.text, self.position)
            self.position = blank.end() if blank else self.position
            comment = _COMMENT.match(self.text, self.position)
            if comment is None:
                return self.text[self.position : self.position + 1]
            if self._values:
                self._note_loose(sentence("a comment"))
            self.position = comment.end()

    def _note_loose(self, deviation: Sentence) -> None:
        note = sentence("{what}, which RocketMQ 5.4 and later do not read everywhere", what=deviation)
        self.loose = self.loose or (note, self.position)

    def _members(self, depth: int) -> dict[str | int, Any]:
        members: dict[str | int, Any] = {}
        self.position += 1
        stray: int | None = None  # a comma with no member in front of it
        may_follow = False
        while True:
            char = self._peek()
            if char == ",":
                if not may_follow:
                    self._note_loose(sentence("a comma without a value"))
                    stray = self.position if stray is None else stray
                may_follow = False
                self.position += 1
                continue
            if stray is not None and any(isinstance(key, int) for key in members):
                self.doubled = self.doubled or (sentence("a comma without a value between numbers"), stray)
            if char == "}":
                self.position += 1
                return members
            may_follow = True
            key_start = self.position
            key = self._key(char, depth)
            if stray is not None and isinstance(key, int):
                self.doubled = self.doubled or (sentence("a comma without a value between numbers"), stray)
            if self._peek() != ":":
                raise _SyntaxFault(
                    sentence(
                        "expected ':' after the key {key!r}, found {found}", key=str(key)[:40], found=self._next_text()
                    ),
                    self.position,
                )
            self.position += 1
            if key in members and len(self.duplicates) < MAX_DUPLICATES:
                self.duplicates.append(Duplicate(str(key), _place(self.text, key_start)))
            members[key] = self.value(depth + 1)
            if self._peek() not in {",", "}"}:
                message = sentence("expected ',' or '}}' after a value, found {found}", found=self._next_text())
                raise _SyntaxFault(message, self.position)

    def _key(self, char: str, depth: int) -> str | int:
        if char in _STRING:
            return self._string(char)
        if char == "{":
            if depth >= MAX_DEPTH:
                raise _SyntaxFault(sentence("nested deeper than {n}", n=MAX_DEPTH), self.position)
            return ObjectKey(self._members(depth + 1))
        number = _NUMBER.match(self.text, self.position)
        if number and number[1].lstrip("+-").isdigit() and len(number[1]) <= 20:
            self.position = number.end()
            return int(number[1])
        word = _WORD.match(self.text, self.position)
        if word:
            self._note_loose(sentence("the name {name!r} without quotes", name=word.group()[:40]))
            self.position = word.end()
            return word.group()
        raise _SyntaxFault(sentence("expected a key, found {found}", found=self._next_text()), self.position)

    def _items(self, depth: int) -> list[Any]:
        items: list[Any] = []
        self.position += 1
        may_follow = False
        while True:
            char = self._peek()
            if char == ",":
                if not may_follow:
                    self._note_loose(sentence("a comma without a value"))
                may_follow = False
                self.position += 1
                continue
            may_follow = True
            if char == "]":
                self.position += 1
                return items
            items.append(self.value(depth + 1))
            if self._peek() not in {",", "]"}:
                message = sentence("expected ',' or ']' after a value, found {found}", found=self._next_text())
                raise _SyntaxFault(message, self.position)

    def _string(self, quote: str) -> str:
        match = _STRING[quote].match(self.text, self.position)
        if match is None:
            raise _SyntaxFault(sentence("a string is not closed"), self.position)
        raw, string_start = match.group(1), self.position
        self.position = match.end()
        return _clean(raw if "\\" not in raw else _ESCAPE.sub(lambda escape: self._escape(escape, string_start), raw))

    @staticmethod
    def _escape(match: re.Match[str], string_start: int) -> str:
        char = match.group(1)
        if len(char) > 1:
            return chr(int(char[1:], 16))
        if char not in _ESCAPES:
            raise _SyntaxFault(
                sentence("unknown escape {escape!r} in a string", escape=match.group()),
                string_start + 1 + match.start(),
            )
        return _ESCAPES[char]

    def _bare_value(self) -> Any:
        number = _NUMBER.match(self.text, self.position)
        if number:
            self.position = number.end()
            return self._number(number)
        word = _WORD.match(self.text, self.position)
        if word and word.group() in _CONSTANTS:
            self.position = word.end()
            return _CONSTANTS[word.group()]
        raise _SyntaxFault(sentence("expected a value, found {found}", found=self._next_text()), self.position)

    @staticmethod
    def _number(match: re.Match[str]) -> int | float:
        try:
            value = int(match[1]) if match[2] is None and match[3] is None else float(match[1])
        except ValueError:  # more than 4,300 digits
            raise _SyntaxFault(sentence("a number has too many digits"), match.start()) from None
        if isinstance(value, float) and math.isinf(value):
            raise _SyntaxFault(sentence("a number is too large"), match.start())
        return value

    def _next_text(self) -> str:
        """Return the next character, quoted, for a message."""
        char = self.text[self.position : self.position + 1]
        return repr(_clean(char)) if char else sentence("the end of the text")


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
        self._texts: dict[str | int, tuple[Any, str]] = {}

    def render(self, value: dict[str | int, Any], table: str) -> str:
        """Return what :func:`render` returns for ``value``, whose member ``table`` holds the rows."""
        rows = value.get(table)
        if not isinstance(rows, dict) or not rows or not all(type(key) is str for key in rows):
            return render(value)
        previous_texts, row_texts = self._texts, {}
        for key, row in rows.items():
            text = previous_texts.get(key)
            if text is None or text[0] is not row:
                out = [_text(str(key), _SPECIAL), ":"]
                _write(row, 2, out)
                text = (row, "".join(out))
            row_texts[key] = text
        self._texts = row_texts
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
    char = match.group()
    if char in _WRITTEN:
        return _WRITTEN[char]
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[index] << 8 | units[index + 1]:04X}" for index in range(0, len(units), 2))


def _plain(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    raise TypeError(f"expected a JSON value, found {type(value).__name__}")
