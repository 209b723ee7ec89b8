"""English words: capitals at the beginning of sentences, and nouns behind numbers. Pure, no Qt."""

from __future__ import annotations

import re

from engine.sentences import with_text

_WORD = re.compile(r"[a-z]+(?:['-][a-z]+)*(?=[ ,;.]*(?: |$))")
_NAMES = {"timermetrics", "timercheck", "timerlog", "timerwheel", "storescope", "mqadmin", "mqbroker"}
"""Files of a store and commands whose names look like words."""
_CAPITAL = re.compile(r"[A-Z][a-z]*(?=[ ,;.]*(?: |$))")


def capital(sentence: str) -> str:
    """Return the sentence with a capital, unless it begins with a name of a file, field or command."""
    first_word = _WORD.match(sentence)
    if first_word is None or first_word[0] in _NAMES:
        return sentence
    return with_text(sentence, lambda text: text[:1].upper() + text[1:])


def small(sentence: str) -> str:
    """Return the sentence without a capital, for use behind other words, unless it begins with a name (RocketMQ)."""
    if _CAPITAL.match(sentence) is None:
        return sentence
    return with_text(sentence, lambda text: text[:1].lower() + text[1:])


def number_of(number: int, singular: str, several: str) -> str:
    """Return ``1 message``, ``1,200 messages``: for the command line, which speaks English only. What the window shows
    is made by :func:`engine.sentences.plural`.
    """
    return f"{number:,} {singular if number == 1 else several}"
