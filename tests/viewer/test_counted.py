"""Sentences of the window never say "1 entries"."""

from __future__ import annotations

import re

import pytest
from source_texts import texts_of

from engine.rules.catalogue import RULES
from viewer.look.assets import tr_plural

GAP = re.compile(r"\{(\w+)(?::([^}]*))?\}")
COUNT = re.compile(r"\{\w+:,\}")
PLURAL_LOOK = re.compile(r"(?<![\w,.])1 (?:[a-z]+ ){0,2}?(?P<word>[a-z]{3,}s)\b")
NO_NOUNS = frozenset(
    (
        "this",
        "yours",
        "has",
        "less",
        "its",
        "was",
        "does",
        "goes",
        "gets",
        "stands",
        "lies",
        "ends",
        "points",
        "differs",
        "agrees",
        "matches",
        "always",
        "leads",
        "belongs",
        "owns",
        "reads",
        "waits",
        "comes",
    )
)
"""Words on s that are no plural."""


def number_errors(text: str, several: str) -> list[str]:
    """Return the plurals that stand behind "1" where the numbers of ``text`` are one."""
    names = {match[1] for match in GAP.finditer(text)}
    values = {name: 1 if re.search(rf"\{{{name}:,", text) and (not several or name == "n") else "x" for name in names}
    try:
        sentence = text.format(**values)
    except ValueError:  # a gap with a form of its own, a rate for example
        sentence = text.format(**dict.fromkeys(names, 1))
    return [record[0] for record in PLURAL_LOOK.finditer(sentence) if record["word"] not in NO_NOUNS]


def test_every_text_with_a_count_is_right_for_one() -> None:
    """A text whose number may be one has a singular: ``tr_plural``."""
    counted = [text for text in texts_of("viewer") if COUNT.search(text[0])]
    assert len(counted) > 100
    assert {text[0]: wrong for text in counted if (wrong := number_errors(*text))} == {}


@pytest.mark.parametrize(
    ("forms", "n", "sentence"),
    [
        (("{n:,} entry", "{n:,} entries"), 1, "1 entry"),
        (("{n:,} entry", "{n:,} entries"), 11, "11 entries"),
        (("{n:,} unit is left over", "{n:,} units are left over"), 0, "0 units are left over"),
        (("{n:,} does not agree", "{n:,} do not agree"), 1, "1 does not agree"),
    ],
)
def test_a_count_of_one_takes_the_singular(forms: tuple[str, str], n: int, sentence: str) -> None:
    assert tr_plural(*forms, n=n) == sentence


def test_a_finding_begins_with_a_capital_unless_it_begins_with_a_name():
    assert RULES["CL07"].finding("nothing holds these bytes").message == "Nothing holds these bytes"
    assert RULES["CF07"].finding("topics.json hides 1 queue").message == "topics.json hides 1 queue"
