"""What is looked for in bytes: text, hex, a regular expression, or a number; no Qt.

Text ignores the case of Latin letters unless told otherwise. Hex may hold ``??`` for any byte. A number is a value or a
range, ``42``, ``0x2A``, ``10..20``, and is looked for in the numeric fields of units.
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
LARGEST = 4096
"""Bytes that one occurrence of an expression may have: more would be the rest of the file."""


class NotSought(ValueError):
    """The text cannot be looked for; says what was expected and found."""


@dataclass(frozen=True)
class Sought:
    """``text`` as typed, how it is meant, and where else than in stored bytes: ``bodies`` unpacked ones."""

    kind: Kind
    text: str
    case: bool = False
    bodies: bool = True

    def check(self) -> None:
        """Raise :class:`NotSought` where it cannot be looked for."""
        if not self.text.strip() and self.kind != "text":
            from viewer.look.assets import tr

            raise NotSought(tr("Nothing is asked for."))
        _ = self.range if self.kind == "number" else self._needle

    @cached_property
    def range(self) -> tuple[int, int]:
        """Lowest and highest number that counts."""
        found = _NUMBER.fullmatch(self.text)
        if found is None:
            from viewer.look.assets import tr

            raise NotSought(tr("Expected a number or a range like 10..20, found {text}", text=self.text))
        low = _number(found[1])
        high = _number(found[2]) if found[2] else low
        if high < low:
            from viewer.look.assets import tr

            raise NotSought(tr("The range {text} ends before it begins", text=self.text))
        return low, high

    @cached_property
    def _needle(self) -> bytes | re.Pattern[bytes]:
        if not self.text:
            from viewer.look.assets import tr

            raise NotSought(tr("Nothing is asked for."))
        if self.kind == "text":
            raw = self.text.encode("utf-8", "surrogatepass")
            return raw if self.case else raw.lower()
        try:
            if self.kind == "hex":
                return re.compile(_hex_pattern(self.text), re.DOTALL)
            made = re.compile(self.text.encode(), re.DOTALL | (0 if self.case else re.IGNORECASE))
        except re.error as error:
            from viewer.look.assets import tr

            raise NotSought(tr("No regular expression: {error}", error=str(error))) from error
        if made.match(b""):
            from viewer.look.assets import tr

            raise NotSought(tr("This expression is found between any two bytes"))
        return made

    def find(self, data: bytes, start: int = 0) -> Span | None:
        """The first occurrence in ``data`` from ``start`` on; numbers are in no bytes."""
        if self.kind == "number":
            return None
        needle = self._needle
        if isinstance(needle, bytes):
            at = (data if self.case else data.lower()).find(needle, start)
            return None if at < 0 else (at, at + len(needle))
        found = needle.search(data, start)
        return None if found is None else (found.start(), min(found.end(), found.start() + LARGEST))

    def folded(self, data: bytes) -> tuple[bytes, Sought]:
        """``data`` and what to look for in it once the case of Latin letters is gone from both, where it may."""
        if self.case or self.kind != "text":
            return data, self
        letters = self.text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
        return data.lower(), Sought("text", letters, True, self.bodies)

    def find_all(self, data: bytes, most: int = 64) -> list[Span]:
        """The first ``most`` occurrences, none overlapping."""
        if self.kind == "number":
            return []
        hay, exact = self.folded(data)
        found: list[Span] = []
        at = 0
        while len(found) < most and (span := exact.find(hay, at)) is not None:
            found.append(span)
            at = max(span[1], span[0] + 1)
        return found


def _hex_pattern(text: str) -> bytes:
    bare = re.sub(r"0[xX]|[\s,:_-]", "", text)
    if not bare or len(bare) % 2 or not re.fullmatch(r"(?:[0-9A-Fa-f]{2}|\?\?)+", bare):
        from viewer.look.assets import tr

        raise NotSought(tr("Expected bytes as hex, like DA A3 20 A7 or DA ?? 20, found {text}", text=text))
    pairs = [bare[n : n + 2] for n in range(0, len(bare), 2)]
    return b"".join(b"." if pair == "??" else re.escape(bytes.fromhex(pair)) for pair in pairs)


def _number(text: str) -> int:
    text = text.replace(",", "").replace("_", "")
    return int(text, 16 if "x" in text.lower() else 10)
