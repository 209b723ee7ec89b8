"""What a unit is and what happened to it, as sentences in the language in force; no Qt.

The engine gives kinds and facts (:mod:`engine.codec.words`); the sentences are translated here and times are shown in
the viewer's zone.
"""

from __future__ import annotations

from engine.codec.words import MOST_LISTED, TEXTS, TIMES, Word
from viewer.look.assets import tr
from viewer.look.formats import moment, number, plain


def say(word: Word) -> str:
    """One sentence, without a full stop."""
    return tr(TEXTS[word.kind]).format_map({name: _said(name, value) for name, value in word.facts.items()})


def _said(name: str, value: object) -> str:
    if value is None:
        return "?"
    if isinstance(value, int) and not isinstance(value, bool):
        return moment(value) if name in TIMES else number(value)
    if isinstance(value, list):
        listed = ", ".join(_said(name, item) for item in value[:MOST_LISTED])
        rest = len(value) - MOST_LISTED
        return listed + (" " + tr("and {rest:,} more", rest=rest) if rest > 0 else "")
    return plain(str(value))
