"""Split a filter text into words: numbers, texts, regular expressions, names and signs, each with its place in
characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from engine.errors import BadFilter
from engine.sentences import msgid, sentence

TokenKind = Literal["number", "duration", "text", "regex", "property", "path", "name", "sign", "end"]

SIZES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
DURATIONS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
MAX_FILTER_CHARS = 1 << 16
"""Maximum number of characters of a filter text."""
MAX_NUMBER = (1 << 63) - 1
MAX_DECIMAL_CHARS = 100
MAX_EXPONENT = 9999
MAX_STEPS = 100
"""Maximum number of steps into a decoded body."""

_SPACE = re.compile(r"\s*")
_UNIT = "|".join([*SIZES, *DURATIONS])
_NUMBER = re.compile(
    r"(0[xX][0-9a-fA-F_]+|[0-9][0-9_]*)((?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
    rf"(\s+(?:{_UNIT})(?!\w)|[^\W\d_]*)"  # a space between them is allowed
)
_NAME = re.compile(r"[^\W\d]\w*")
_PROPERTY_NAME = re.compile(r"[\w$]+")
_INDEX = re.compile(r"-?[0-9]{1,9}")
_SIGN = re.compile(r"&&|\|\||==|!=|<>|<=|>=|[=<>!()&+,\-]")
_REGEX = re.compile(r"/((?:[^/\\]|\\.)+)/([A-Za-z]*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_SIMPLE_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", "'": "'", '"': '"', "/": "/"}
_HINTS = {
    "~": msgid("; a regular expression is written matches /…/"),
    "|": msgid("; or is written or"),
    "*": msgid("; a pattern is written with like, as in like 'Order%'"),
    "%": msgid("; a text is written in quotes"),
    "[": msgid('; only properties and bodies have brackets: properties["NAME"], body.items[0]'),
}
_CURLY = dict.fromkeys("“”„", '"') | dict.fromkeys("‘’", "'")


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a filter. ``value`` is the number, the text's characters, the property's name, or (pattern, flags).
    ``path`` are the steps behind ``body``.
    """

    kind: TokenKind
    text: str
    value: int | Decimal | str | tuple[str, str]
    position: int
    path: tuple[str | int, ...] = ()

    @property
    def length(self) -> int:
        return max(1, len(self.text))

    @property
    def end(self) -> int:
        return self.position + len(self.text)


def words(text: str) -> list[Token]:
    """Return every word of ``text``, the last one of kind ``end``; raises :class:`BadFilter` at the first invalid
    word.
    """
    if len(text) > MAX_FILTER_CHARS:
        raise BadFilter(
            sentence(
                "the filter has {n:,} characters; at most {most:,} are read",
                n=len(text),
                most=MAX_FILTER_CHARS,
            ),
            MAX_FILTER_CHARS,
        )
    tokens: list[Token] = []
    position = 0
    while True:
        position = _after_space(text, position)
        if position == len(text):
            tokens.append(Token("end", "", "", position))
            return tokens
        word = _word(text, position)
        tokens.append(word)
        position = word.end


def _word(text: str, position: int) -> Token:
    character = text[position]
    if character.isdecimal():
        return _number(text, position)
    if character in "'\"":
        raw = _quoted(text, position)
        return Token("text", raw, _unescaped(raw, position), position)
    if character == "/":
        return _regex(text, position)
    if match := _NAME.match(text, position):
        if match[0] == "properties":
            return _property(text, position, match.end())
        if match[0] == "body" and text[match.end() : match.end() + 1] in (".", "["):
            return _body_path(text, position, match.end())
        return Token("name", match[0], match[0], position)
    if match := _SIGN.match(text, position):
        return Token("sign", match[0], match[0], position)
    if character in _CURLY:
        raise BadFilter(
            sentence(
                "put texts in straight quotes, {value}, not in {character}",
                value=_CURLY[character],
                character=character,
            ),
            position,
        )
    raise BadFilter(
        sentence(
            "{character} has no meaning here{hint}",
            character=repr(character),
            hint=sentence(_HINTS[character]) if character in _HINTS else "",
        ),
        position,
    )


def _number(text: str, position: int) -> Token:
    match = _NUMBER.match(text, position)
    if match is None:
        raise BadFilter(sentence("numbers are written with the digits 0 to 9"), position)
    digits, fraction, unit = match[1], match[2], match[3].strip()
    if fraction and (unit or digits[:2] in ("0x", "0X")):
        raise BadFilter(
            sentence("{value} is not a whole number; numbers here have no fraction", value=match[0]),
            position,
            len(match[0]),
        )
    if "__" in digits or digits.endswith("_"):
        raise BadFilter(
            sentence("in {digits} an underscore must be between two digits", digits=digits), position, len(digits)
        )
    if fraction:
        return Token("number", match[0], _decimal(digits + fraction, position), position)
    try:
        value = int(digits, 16 if digits[:2] in ("0x", "0X") else 10)
    except ValueError:
        raise BadFilter(sentence("{value}… has too many digits", value=digits[:20]), position, len(digits)) from None
    if unit not in SIZES and unit not in DURATIONS and unit:
        units = " ".join([*SIZES, *DURATIONS])
        raise BadFilter(
            sentence("{unit} is not a unit of size or time; the units are {units}", unit=unit, units=units),
            position + len(digits),
            len(unit),
        )
    value *= SIZES.get(unit) or DURATIONS.get(unit) or 1
    if value > MAX_NUMBER + 1:
        raise BadFilter(
            sentence(
                "{value} does not fit 64 bits; the largest number is {largest}",
                value=match[0],
                largest=MAX_NUMBER,
            ),
            position,
            len(match[0]),
        )
    return Token("duration" if unit in DURATIONS else "number", match[0], value, position)


def _decimal(text: str, position: int) -> int | Decimal:
    """Return a number with a fraction or an exponent; a whole one of 64 bits as an ``int``."""
    exponent = text.lower().partition("e")[2]
    if len(text) > MAX_DECIMAL_CHARS or abs(int(exponent or 0)) > MAX_EXPONENT:
        raise BadFilter(sentence("{value}… has too many digits", value=text[:20]), position, len(text))
    value = Decimal(text.replace("_", ""))
    is_whole = value <= MAX_NUMBER and value == value.to_integral_value()
    return int(value) if is_whole else value


def _quoted(text: str, position: int) -> str:
    end = position + 1
    while end < len(text):
        if text[end] == text[position]:
            return text[position : end + 1]
        end += 2 if text[end] == "\\" else 1
    raise BadFilter(
        sentence("the text that begins here has no closing {value}", value=text[position]),
        position,
        len(text) - position,
    )


def _unescaped(raw: str, position: int) -> str:
    def plain(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] in "uUx" and len(code) > 1:
            value = int(code[1:], 16)
            if value <= 0x10FFFF:
                return chr(value)
        elif code in _SIMPLE_ESCAPES:
            return _SIMPLE_ESCAPES[code]
        raise BadFilter(
            sentence("\\{code} is not an escape; a backslash itself is written \\\\", code=code),
            position + 1 + match.start(),
            len(match[0]),
        )

    return _ESCAPE.sub(plain, raw[1:-1])


def _regex(text: str, position: int) -> Token:
    match = _REGEX.match(text, position)
    if match is None:
        raise BadFilter(
            sentence("the regular expression that begins here has no closing /"), position, len(text) - position
        )
    return Token("regex", match[0], (match[1], match[2]), position)


def _property(text: str, position: int, end: int) -> Token:
    """Read ``properties.NAME`` or ``properties["NAME"]`` as one word."""
    if text.startswith(".", end):
        match = _PROPERTY_NAME.match(text, end + 1)
        if match is None:
            raise BadFilter(
                sentence("a property's name follows the point: properties.NAME"), position, end + 1 - position
            )
        if text.startswith(".", match.end()):
            raise BadFilter(sentence('a name with a point in it is written properties["a.b"]'), match.end())
        return Token("property", text[position : match.end()], match[0], position)
    bracket = _after_space(text, end)
    if text.startswith("[", bracket):
        quote = _after_space(text, bracket + 1)
        if text[quote : quote + 1] not in ("'", '"'):
            raise BadFilter(sentence('a property\'s name is written in quotes: properties["NAME"]'), bracket)
        raw = _quoted(text, quote)
        close = _after_space(text, quote + len(raw))
        if not text.startswith("]", close):
            raise BadFilter(sentence("] is missing after the property's name"), min(close, len(text) - 1))
        return Token("property", text[position : close + 1], _unescaped(raw, quote), position)
    raise BadFilter(sentence('name one property: properties.NAME or properties["NAME"]'), position, end - position)


def _body_path(text: str, position: int, end: int) -> Token:
    """Read ``body.customer.id``, ``body["a b"]`` or ``body.items[0]`` as one word."""
    steps: list[str | int] = []
    while text[end : end + 1] in (".", "["):
        if text[end] == ".":
            match = _PROPERTY_NAME.match(text, end + 1)
            if match is None:
                raise BadFilter(
                    sentence("the name of a field follows the point: body.NAME"), position, end + 1 - position
                )
            steps.append(match[0])
            end = match.end()
        else:
            step, end = _bracket(text, end)
            steps.append(step)
        if len(steps) > MAX_STEPS:
            raise BadFilter(sentence("more than {n} steps into a body", n=MAX_STEPS), position, end - position)
    return Token("path", text[position:end], "", position, tuple(steps))


def _bracket(text: str, start: int) -> tuple[str | int, int]:
    """Read ``[0]`` or ``["NAME"]``; return the step, and the place behind it."""
    inside = _after_space(text, start + 1)
    step: str | int
    if text[inside : inside + 1] in ("'", '"'):
        raw = _quoted(text, inside)
        step, end = _unescaped(raw, inside), inside + len(raw)
    elif match := _INDEX.match(text, inside):
        step, end = int(match[0]), match.end()
    else:
        raise BadFilter(sentence('brackets hold a number or a name in quotes: body.items[0], body["a b"]'), start)
    close = _after_space(text, end)
    if not text.startswith("]", close):
        raise BadFilter(sentence("] is missing"), min(close, len(text) - 1))
    return step, close + 1


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def quote(text: str) -> str:
    """Write ``text`` as a literal: in double quotes, with control characters and lone surrogates escaped."""
    pieces = []
    for character in text:
        code = ord(character)
        if character in '"\\':
            pieces.append("\\" + character)
        elif code < 32 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000 or code in (0x2028, 0x2029, 0xFEFF):
            pieces.append(f"\\u{code:04x}")
        else:
            pieces.append(character)
    return '"' + "".join(pieces) + '"'


def without_values(text: str) -> str:
    """Return the filter with ``…`` for each number, time, text and expression, so that it shows only the fields."""
    pieces, done = [], 0
    for word in words(text):
        if word.kind in ("number", "duration", "text", "regex"):
            pieces += [text[done : word.position], "…"]
            done = word.end
    return "".join((*pieces, text[done:]))
