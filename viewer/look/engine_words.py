"""Translate the engine's sentences into the window's language.

A :class:`~engine.sentences.Sentence` is looked up by its template in the catalogue, and its values are filled into the
translation. A text without a template is looked up as a whole. A text that the catalogue lacks is shown unchanged.
"""

from __future__ import annotations

from typing import Any

from engine.sentences import Sentence
from viewer.look.assets import language, language_state, tr, words

NEXT_START = words("next start")
NEXT_START_OF = words("next start of {release}")


def engine_words(text: str) -> str:
    """Return ``text`` of the engine in the current language; unchanged in English, or if the catalogue lacks it."""
    if language() == "en":
        return text
    return _translated(text) if isinstance(text, Sentence) else _find_exact(text) or text


def _translated(sentence: Sentence) -> str:
    """Return the translation of a sentence with its values; untranslated if the catalogue lacks it."""
    if sentence.plural_id:
        template = language_state.catalogue.find_plural(sentence.id, sentence.params["n"])
        source_template = sentence.id if sentence.params["n"] == 1 else sentence.plural_id
    else:
        template, source_template = None, sentence.id
    if template is None:
        template = _find_exact(source_template) or source_template
    if not sentence.params:
        text = template
    else:
        text = template.format(**{name: _value(value) for name, value in sentence.params.items()})
    if sentence.release:
        text = text.replace(tr(NEXT_START), tr(NEXT_START_OF, release=sentence.release))
    return text


def _value(value: Any) -> Any:
    """Return a value of a sentence for its translation: sentences and phrases are translated themselves."""
    return engine_words(value) if isinstance(value, Sentence) or _is_phrase(value) else value


def _is_phrase(value: Any) -> bool:
    return isinstance(value, str) and " " in value


def _find_exact(text: str) -> str | None:
    """Return the translation of a text without gaps, with either case of its first letter; None without one."""
    for form in (text, text[:1].lower() + text[1:], text[:1].upper() + text[1:]):
        translation = tr(form)
        if translation != form:
            return translation
    return None
