"""The engine's sentences in the language of the window.

A :class:`~engine.sentences.Sentence` is looked up by its template in the language's catalogue. A text that lost its
template, or never had one, is matched with patterns: ``i18n/NAME.engine.json`` has each as a pattern with
named gaps, ``{n} bytes are invalid: {said_reason}``, and its translation; a gap whose name begins with ``said`` holds
a sentence itself, one whose name begins with ``one_`` a word without blanks, with ``span`` a stretch of time. A
sentence that fits no pattern is shown
as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from engine.english import many_of, one_of
from engine.sentences import Sentence
from viewer.look.assets import language, language_state, resource_bytes, tr, words

DEEPEST = 4
PARTS = (" · ", "; ")
"""What the engine joins sentences with, and the translation too."""
SAYING = 4
"""Letters of its own from which on a pattern says something; others only join sentences: ``{place}: {said_role}``"""

NEXT_START = words("next start")
NEXT_START_OF = words("next start of {release}")
_NEXT_START_OF = re.compile(r"\b([Tt]he next start) of (RocketMQ [0-9.]*[0-9])")

UNITS = {
    "ms": words("{n} ms"),
    "s": words("{n} s"),
    "min": words("{n} min"),
    "h": words("{n} h"),
    "days": words("{n} days"),
    "years": words("{n} years"),
}
"""Units of ``codec.words.lasting``, as a stretch of time is said with them."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    fits: re.Pattern[str]
    translation: str
    letters: int


def engine_words(text: str, depth: int = 0) -> str:
    """``text`` of the engine in the language in force; unchanged where nothing fits, and in English but for "1
    entries".
    """
    if language() == "en":
        return one_of(text)
    if isinstance(text, Sentence):
        return _translated(text, depth)
    if not text or depth > DEEPEST:
        return text
    starts = _NEXT_START_OF.search(text)
    if starts is not None:
        unnamed = _NEXT_START_OF.sub(r"\1", text)
        translated = engine_words(unnamed, depth)
        if translated == unnamed:
            return text
        return translated.replace(tr(NEXT_START), tr(NEXT_START_OF, release=starts[2]))
    forms = dict.fromkeys((text, many_of(text)))
    for form in forms:
        translation = _exactly(form)
        if translation is not None:
            return translation
    if PARTS[0] in text:
        return PARTS[0].join(engine_words(part, depth + 1) for part in text.split(PARTS[0]))
    patterns = _patterns(language())
    bare = next((n for n, pattern in enumerate(patterns) if pattern.letters < SAYING), len(patterns))
    fitted = _fitted(patterns[:bare], forms, depth)
    if fitted is None and PARTS[1] in text:
        return PARTS[1].join(engine_words(part, depth + 1) for part in text.split(PARTS[1]))
    return fitted or _fitted(patterns[bare:], forms, depth) or text


def _translated(sentence: Sentence, depth: int) -> str:
    """The sentence's translation with its values; its own template where the catalogue lacks it."""
    if sentence.plural_id:
        template = language_state.catalogue.find_plural(sentence.id, sentence.params["n"])
        own = sentence.id if sentence.params["n"] == 1 else sentence.plural_id
    else:
        template, own = None, sentence.id
    if template is None:
        template = _exactly(own) or own
    if not sentence.params:
        text = template
    else:
        values = {name: _value(value, depth) for name, value in sentence.params.items()}
        text = template.format(**values)
    if sentence.release:
        text = text.replace(tr(NEXT_START), tr(NEXT_START_OF, release=sentence.release))
    return text


def _value(value: Any, depth: int) -> Any:
    """A value of a sentence as it is filled in: sentences are translated, and so are words that are not one yet."""
    return engine_words(value, depth) if isinstance(value, Sentence) or _is_phrase(value) else value


def _is_phrase(value: Any) -> bool:
    return isinstance(value, str) and " " in value


def _fitted(patterns: Iterable[_Pattern], forms: Iterable[str], depth: int) -> str | None:
    for pattern in patterns:
        for form in forms:
            match = pattern.fits.fullmatch(form)
            if match is not None:
                return pattern.translation.format(**_filled(match.groupdict(), depth))
    return None


def _exactly(text: str) -> str | None:
    """The translation of a sentence without gaps, however its first letter is written."""
    for form in (text, text[:1].lower() + text[1:], text[:1].upper() + text[1:]):
        translation = tr(form)
        if translation != form:
            return translation
    return None


def _filled(gaps: dict[str, str], depth: int) -> dict[str, str]:
    return {name: _gap_words(name, value, depth) for name, value in gaps.items()}


def _gap_words(name: str, value: str, depth: int) -> str:
    if name.startswith("said"):
        return engine_words(value, depth + 1)
    return _span_words(value) if name.startswith("span") else value


def _span_words(value: str) -> str:
    """``2.8 h`` with its unit in words, in the language in force; anything else as it is."""
    count, _, unit = many_of(value).rpartition(" ")
    word = tr(UNITS[unit], n=count) if unit in UNITS else value
    return word if word != UNITS.get(unit) else value


@lru_cache(maxsize=4)
def _patterns(language: str) -> tuple[_Pattern, ...]:
    """Patterns with gaps, those with the most letters of their own first."""
    try:
        listed = json.loads(resource_bytes(f"i18n/{language}.engine.json"))
    except FileNotFoundError:
        return ()
    patterns = [_pattern(english, chinese) for english, chinese in listed.items() if "{" in english]
    return tuple(sorted(patterns, key=lambda pattern: -pattern.letters))


def _pattern(english: str, translation: str) -> _Pattern:
    pieces = re.split(r"\{(\w+)\}", english)
    first_letter = pieces[0][:1]
    if first_letter.isalpha():
        pieces[0] = pieces[0][1:]
    fits = "".join(
        re.escape(piece) if index % 2 == 0 else _gap(piece, pieces[:index]) for index, piece in enumerate(pieces)
    )
    fits = f"[{first_letter.lower()}{first_letter.upper()}]{fits}" if first_letter.isalpha() else fits
    return _Pattern(re.compile(fits, re.DOTALL), translation, sum(len(piece) for piece in pieces[::2]))


def _gap(name: str, earlier_pieces: list[str]) -> str:
    """A named group the first time, the same text again after that; only a sentence goes on behind a joint, and the
    name of a field is one word.
    """
    if name in earlier_pieces[1::2]:
        return f"(?P={name})"
    if name == "field":
        return r"(?P<field>[\w.]+)"
    if name.startswith("one_"):
        return rf"(?P<{name}>\S+)"
    return f"(?P<{name}>.+?)" if name.startswith("said") else rf"(?P<{name}>(?:(?!{'|'.join(PARTS)}).)+?)"
