"""English sentences: nouns and verbs behind a number ("1 entry is", "2 entries are"), and capitals. Pure, no Qt.

A sentence that counts has both forms (:func:`engine.sentences.plural`); :func:`one_of` mends lines of the terminal that
were written in the plural only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from engine.sentences import Sentence, plural, with_text

_IRREGULAR = {
    "entries": "entry",
    "matches": "match",
    "hashes": "hash",
    "losses": "loss",
    "batches": "batch",
    "bodies": "body",
    "properties": "property",
    "copies": "copy",
    "addresses": "address",
    "branches": "branch",
    "retries": "retry",
    "queries": "query",
    "flushes": "flush",
    "patches": "patch",
}
_REGULAR = (
    "errors",
    "warnings",
    "notes",
    "remarks",
    "findings",
    "rules",
    "places",
    "spans",
    "blanks",
    "holes",
    "units",
    "messages",
    "bytes",
    "files",
    "queues",
    "slots",
    "chains",
    "steps",
    "groups",
    "offsets",
    "topics",
    "tags",
    "keys",
    "collisions",
    "loops",
    "links",
    "rows",
    "columns",
    "values",
    "names",
    "tables",
    "cells",
    "figures",
    "differences",
    "consequences",
    "bookmarks",
    "characters",
    "times",
    "looks",
    "samples",
    "rounds",
    "runs",
    "tasks",
    "jobs",
    "splits",
    "stores",
    "stages",
    "seconds",
    "hours",
    "days",
    "parts",
    "points",
    "positions",
    "marks",
    "services",
    "producers",
    "consumers",
    "clients",
    "requests",
    "snapshots",
    "windows",
    "tabs",
    "results",
    "filters",
    "fields",
    "members",
    "records",
    "lines",
    "calls",
    "pages",
    "partitions",
    "executors",
    "brokers",
    "folders",
    "words",
    "kinds",
    "years",
    "frames",
    "exchanges",
    "slaves",
    "pulls",
    "connections",
    "sends",
)
SINGULARS = {plural: plural[:-1] for plural in _REGULAR} | _IRREGULAR
"""Plural → singular of every noun that sentences count."""
VERBS = {
    "are": "is",
    "were": "was",
    "have": "has",
    "do": "does",
    "go": "goes",
    "stay": "stays",
    "lie": "lies",
    "stand": "stands",
    "point": "points",
    "differ": "differs",
    "match": "matches",
    "agree": "agrees",
    "begin": "begins",
    "end": "ends",
    "remain": "remains",
    "hold": "holds",
    "need": "needs",
    "come": "comes",
    "follow": "follows",
    "carry": "carries",
    "wait": "waits",
    "fit": "fits",
    "read": "reads",
    "say": "says",
    "lack": "lacks",
    "lead": "leads",
    "belong": "belongs",
}
"""Verbs that may follow a counted noun, or the number itself."""
_NOUN = "|".join(sorted(SINGULARS, key=len, reverse=True))
_VERB = "|".join(VERBS)
_BETWEEN = r"(?P<between>(?:(?:more|further|other|new|index|queue|log|timer) )*)"
_BEHIND = r"(?P<behind> of (?:the|all) [a-z]+| from here on| (?:behind|after) it| up to [\d,]+)?"
"""Texts that may come between a counted noun and its verb."""
_ONE = re.compile(rf"(?<![\w,.:/-])1 {_BETWEEN}(?P<noun>{_NOUN})\b(?:{_BEHIND} (?P<verb>{_VERB})\b)?")
_PLURALS = {singular: plural for plural, singular in SINGULARS.items()}
_PLURAL_VERBS = {singular: plural for plural, singular in VERBS.items()}
_SINGLE = re.compile(
    rf"(?<![\w,.:/-])1 {_BETWEEN}(?P<noun>{'|'.join(sorted(_PLURALS, key=len, reverse=True))})\b"
    rf"(?:{_BEHIND} (?P<verb>{'|'.join(_PLURAL_VERBS)})\b)?"
)


_NAMED = tuple(f"{singular} " for singular in SINGULARS.values())
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


def counted(number: int, nouns: str) -> str:
    """Return ``1 message``, ``1,200 messages``; ``nouns`` is the plural."""
    return plural(f"{{n:,}} {SINGULARS[nouns]}", f"{{n:,}} {nouns}", n=number)


def one_of(text: str) -> str:
    """Return a filled-in sentence with "1 entries are" as "1 entry is"; a :class:`Sentence` has the right form."""
    return text if isinstance(text, Sentence) else _turned(text, _ONE, SINGULARS, VERBS)


def many_of(text: str) -> str:
    """Undo :func:`one_of`: return the sentence with "1 entry is" as "1 entries are"."""
    return _turned(text, _SINGLE, _PLURALS, _PLURAL_VERBS)


def _turned(text: str, pattern: re.Pattern[str], nouns: Mapping[str, str], verbs: Mapping[str, str]) -> str:
    def turned(match: re.Match[str]) -> str:
        if text[: match.start()].endswith(_NAMED):
            return match[0]  # "entry 1 points at it": the number is the entry's name
        verb = f"{match['behind'] or ''} {verbs[match['verb']]}" if match["verb"] else ""
        return f"1 {match['between']}{nouns[match['noun']]}{verb}"

    return pattern.sub(turned, text) if "1 " in text else text
