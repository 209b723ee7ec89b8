"""A search term for bytes: text, hex, a regular expression, or a number; no Qt.

Text ignores the case of Latin letters by default. Hex may contain ``??`` for any byte. A number is a value or a
range, ``42``, ``0x2A``, ``10..20``; it is searched in the numeric fields of units.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Kind = Literal["text", "hex", "regex", "number"]
KINDS: tuple[Kind, ...] = ("text", "hex", "regex", "number")
Span = tuple[int, int]
_DIGITS = r"\s*(-?(?:0[xX][0-9A-Fa-f]+|[0-9][0-9_,]*))\s*"
_NUMBER = re.compile(_DIGITS + r"(?:(?:\.\.|…|–)" + _DIGITS + ")?")
MAX_MATCH_BYTES = 4096
"""Maximum bytes of one occurrence of an expression: more would be the rest of the file."""


class InvalidSearch(ValueError):
    """The term is invalid. The message says what was expected and found."""


@dataclass(frozen=True)
class SearchTerm:
    """A search term: ``text`` as typed, its kind and its options. ``bodies`` also searches unpacked bodies."""

    kind: Kind
    text: str
    case: bool = False
    bodies: bool = True

    def check(self) -> None:
        """Raise :class:`InvalidSearch` if the term is invalid."""
        if not self.text.strip() and self.kind != "text":
            from viewer.look.assets import tr

            raise InvalidSearch(tr("Nothing to search for."))
        _ = self.range if self.kind == "number" else self._needle

    @cached_property
    def range(self) -> tuple[int, int]:
        """Lowest and highest number that matches."""
        match = _NUMBER.fullmatch(self.text)
        if match is None:
            from viewer.look.assets import tr

            raise InvalidSearch(tr("Expected a number or a range like 10..20, found {text}", text=self.text))
        lowest = _number(match[1])
        highest = _number(match[2]) if match[2] else lowest
        if highest < lowest:
            from viewer.look.assets import tr

            raise InvalidSearch(tr("The range {text} ends before it begins", text=self.text))
        return lowest, highest

    @cached_property
    def _needle(self) -> bytes | re.Pattern[bytes]:
        if not self.text:
            from viewer.look.assets import tr

            raise InvalidSearch(tr("Nothing to search for."))
        if self.kind == "text":
            raw = self.text.encode("utf-8", "surrogatepass")
            return raw if self.case else raw.lower()
        try:
            if self.kind == "hex":
                return re.compile(_hex_pattern(self.text), re.DOTALL)
            pattern = re.compile(self.text.encode(), re.DOTALL | (0 if self.case else re.IGNORECASE))
        except re.error as error:
            from viewer.look.assets import tr

            raise InvalidSearch(tr("Not a regular expression: {error}", error=str(error))) from error
        if pattern.match(b""):
            from viewer.look.assets import tr

            raise InvalidSearch(tr("This expression matches everywhere"))
        return pattern

    def find(self, data: bytes, start: int = 0) -> Span | None:
        """The first occurrence in ``data`` from ``start`` on. Numbers never occur in bytes."""
        if self.kind == "number":
            return None
        needle = self._needle
        if isinstance(needle, bytes):
            index = (data if self.case else data.lower()).find(needle, start)
            return None if index < 0 else (index, index + len(needle))
        match = needle.search(data, start)
        return None if match is None else (match.start(), min(match.end(), match.start() + MAX_MATCH_BYTES))

    def folded(self, data: bytes) -> tuple[bytes, SearchTerm]:
        """``data`` and this term, both in lower case unless case matters."""
        if self.case or self.kind != "text":
            return data, self
        letters = self.text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
        return data.lower(), SearchTerm("text", letters, True, self.bodies)

    def find_all(self, data: bytes, max_count: int = 64) -> list[Span]:
        """The first ``max_count`` occurrences, without overlaps."""
        if self.kind == "number":
            return []
        hay, exact = self.folded(data)
        spans: list[Span] = []
        position = 0
        while len(spans) < max_count and (span := exact.find(hay, position)) is not None:
            spans.append(span)
            position = max(span[1], span[0] + 1)
        return spans


def _hex_pattern(text: str) -> bytes:
    bare = re.sub(r"0[xX]|[\s,:_-]", "", text)
    if not bare or len(bare) % 2 or not re.fullmatch(r"(?:[0-9A-Fa-f]{2}|\?\?)+", bare):
        from viewer.look.assets import tr

        raise InvalidSearch(tr("Expected bytes as hex, like DA A3 20 A7 or DA ?? 20, found {text}", text=text))
    pairs = [bare[n : n + 2] for n in range(0, len(bare), 2)]
    return b"".join(b"." if pair == "??" else re.escape(bytes.fromhex(pair)) for pair in pairs)


def _number(text: str) -> int:
    text = text.replace(",", "").replace("_", "")
    return int(text, 16 if "x" in text.lower() else 10)
