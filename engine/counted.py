"""Counted nouns of English: "1 entry", "2 entries", wherever a sentence puts a number before a noun; pure, no Qt.

Sentences are written once, in the plural: ``"{n:,} entries are left out"``. Who fills them in asks :func:`in_number`
first: what is counted as one turns singular, and the verb behind it too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

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
"""Plural → singular of every noun that is counted in a sentence."""
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
"""Verbs that stand right behind a counted noun, or behind the number itself."""
_NOUN = "|".join(sorted(SINGULARS, key=len, reverse=True))
_VERB = "|".join(VERBS)
_APART = r"(?:of|in|on|to|and|or|from|with|at|by|behind|the|all|for|as)\b"
"""Words behind a number after which a noun is not the one that is counted."""
_COUNTED = re.compile(
    rf"\{{(?P<name>\w+)(?::[^}}]*)?\}} (?:(?P<between>(?:(?!{_APART})[a-z-]+ ){{0,3}}?)(?P<noun>{_NOUN})\b(?P<gap> )?)?"
    rf"(?:(?P<verb>{_VERB})\b)?"
)
_BETWEEN = r"(?P<between>(?:(?:more|further|other|new|index|queue|log|timer) )*)"
_BEHIND = r"(?P<behind> of (?:the|all) [a-z]+| from here on| behind it| up to [\d,]+)?"
"""What may stand between a counted noun and its verb."""
_ONE = re.compile(rf"(?<![\w,.:/-])1 {_BETWEEN}(?P<noun>{_NOUN})\b(?:{_BEHIND} (?P<verb>{_VERB})\b)?")
_PLURALS = {one: many for many, one in SINGULARS.items()}
_MANY_DO = {one: many for many, one in VERBS.items()}
_SINGLE = re.compile(
    rf"(?<![\w,.:/-])1 {_BETWEEN}(?P<noun>{'|'.join(sorted(_PLURALS, key=len, reverse=True))})\b"
    rf"(?:{_BEHIND} (?P<verb>{'|'.join(_MANY_DO)})\b)?"
)


_NAMED = tuple(f"{one} " for one in SINGULARS.values())
_WORD = re.compile(r"[a-z]+(?:['-][a-z]+)*(?=[ ,;.]*(?: |$))")
_NAMES = {"timermetrics", "timercheck", "timerlog", "timerwheel", "storescope", "mqadmin", "mqbroker"}
"""Files of a store and commands whose names look like words."""
_CAPITAL = re.compile(r"[A-Z][a-z]*(?=[ ,;.]*(?: |$))")


def capital(said: str) -> str:
    """``said`` with a capital, unless it begins with a name: of a file, of a field, of a command."""
    first = _WORD.match(said)
    return said[:1].upper() + said[1:] if first is not None and first[0] not in _NAMES else said


def small(said: str) -> str:
    """``said`` as it goes on behind other words: without a capital, unless it begins with a name (RocketMQ)."""
    return said[:1].lower() + said[1:] if _CAPITAL.match(said) else said


def in_number(template: str, values: Mapping[str, Any]) -> str:
    """``template`` with the nouns and verbs behind those of ``values`` that are 1 in the singular."""
    if not any(value == 1 and value is not True for value in values.values() if isinstance(value, int)):
        return template
    return _in_number(template, frozenset(n for n, v in values.items() if isinstance(v, int) and v == 1))


@lru_cache(maxsize=512)
def _in_number(template: str, ones: frozenset[str]) -> str:
    def singular(found: re.Match[str]) -> str:
        if found["name"] not in ones:
            return found[0]
        head = found[0][: found[0].index("}") + 1]
        noun = (found["between"] or "") + SINGULARS[found["noun"]] if found["noun"] else ""
        return f"{head} {noun}{found['gap'] or ''}{VERBS.get(found['verb'] or '', '')}"

    return _COUNTED.sub(singular, template)


def counted(number: int, nouns: str) -> str:
    """``1 message``, ``1,200 messages``; ``nouns`` is the plural."""
    return one_of(f"{number:,} {nouns}")


def one_of(text: str) -> str:
    """A sentence that is filled in already, with "1 entries are" as "1 entry is"."""
    return _turned(text, _ONE, SINGULARS, VERBS)


def many_of(text: str) -> str:
    """The sentence as it was before :func:`one_of`: with "1 entry is" as "1 entries are"."""
    return _turned(text, _SINGLE, _PLURALS, _MANY_DO)


def _turned(text: str, wanted: re.Pattern[str], nouns: Mapping[str, str], verbs: Mapping[str, str]) -> str:
    def turned(found: re.Match[str]) -> str:
        if text[: found.start()].endswith(_NAMED):
            return found[0]  # "entry 1 points at it": the number is the entry's name
        verb = f"{found['behind'] or ''} {verbs[found['verb']]}" if found["verb"] else ""
        return f"1 {found['between']}{nouns[found['noun']]}{verb}"

    return wanted.sub(turned, text) if "1 " in text else text
