"""The engine's sentences in the language of the window.

The engine speaks English and puts its values into its sentences. ``i18n/NAME.engine.json`` has each as a pattern with
named gaps, ``{n} bytes are no unit: {said_reason}``, and its translation; a gap whose name begins with ``said`` holds
a sentence itself. A sentence that fits no pattern is shown as it is.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache

from viewer import assets

DEEPEST = 4
PARTS = (" · ", "; ")
"""What the engine joins sentences with, and the translation too."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    fits: re.Pattern[str]
    translation: str
    letters: int


def engine_words(text: str, depth: int = 0) -> str:
    """``text`` of the engine in the language in force; unchanged where nothing fits, and in English."""
    if assets.language() == "en" or not text or depth > DEEPEST:
        return text
    known = assets.tr(text)
    if known != text:
        return known
    for pattern in _patterns(assets.language()):
        found = pattern.fits.fullmatch(text)
        if found is not None:
            return pattern.translation.format(**_filled(found.groupdict(), depth))
    for joint in PARTS:
        if joint in text:
            return joint.join(engine_words(part, depth + 1) for part in text.split(joint))
    return text


def _filled(gaps: dict[str, str], depth: int) -> dict[str, str]:
    return {name: engine_words(value, depth + 1) if name.startswith("said") else value for name, value in gaps.items()}


@lru_cache(maxsize=4)
def _patterns(language: str) -> tuple[_Pattern, ...]:
    """Patterns with gaps, those with the most letters of their own first."""
    try:
        listed = json.loads(assets.resource_bytes(f"i18n/{language}.engine.json"))
    except FileNotFoundError:
        return ()
    made = [_pattern(english, chinese) for english, chinese in listed.items() if "{" in english]
    return tuple(sorted(made, key=lambda one: -one.letters))


def _pattern(english: str, translation: str) -> _Pattern:
    pieces = re.split(r"\{(\w+)\}", english)
    fits = "".join(re.escape(piece) if at % 2 == 0 else _gap(piece, pieces[:at]) for at, piece in enumerate(pieces))
    return _Pattern(re.compile(fits, re.DOTALL), translation, sum(len(piece) for piece in pieces[::2]))


def _gap(name: str, before: list[str]) -> str:
    """A named group the first time, the same text again after that."""
    return f"(?P={name})" if name in before[1::2] else f"(?P<{name}>.+?)"
