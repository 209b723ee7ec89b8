"""No sentence of the window says "1 entries"."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

import viewer
from engine.cli.output import Output
from engine.english import in_number, many_of, one_of
from engine.rules.catalogue import RULES
from tests.support.said_words import said
from viewer.look.assets import tr
from viewer.look.engine_words import engine_words

GAP = re.compile(r"\{(\w+)(?::([^}]*))?\}")
COUNT = re.compile(r"\{\w+:,\}")
PLURAL_LOOK = re.compile(r"(?<![\w,.])1 (?:[a-z]+ ){0,2}?(?P<word>[a-z]{3,}s)\b")
NO_NOUNS = frozenset(
    (
        "this",
        "has",
        "less",
        "its",
        "was",
        "does",
        "goes",
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
        "waits",
    )
)
"""Words on s that are no plural."""
SAYINGS = [text for text in said(Path(viewer.__file__).parent) if COUNT.search(text)]


@pytest.mark.parametrize("text", SAYINGS)
def test_every_saying_is_right_for_one(text):
    names = {found[1] for found in GAP.finditer(text)}
    values = {name: 1 if re.search(rf"\{{{name}:,", text) else "x" for name in names}
    try:
        sentence = in_number(text, values).format(**values)
    except ValueError:  # a gap with a form of its own, a rate for example
        values = dict.fromkeys(names, 1)
        sentence = in_number(text, values).format(**values)
    wrong = [found[0] for found in PLURAL_LOOK.finditer(sentence) if found["word"] not in NO_NOUNS]
    assert wrong == [], sentence


@pytest.mark.parametrize(
    ("text", "values", "sentence"),
    [
        ("{n:,} entries", {"n": 1}, "1 entry"),
        ("{n:,} entries", {"n": 11}, "11 entries"),
        (", {n:,} files left out", {"n": 1}, ", 1 file left out"),
        ("in {n:,} queues", {"n": 1}, "in 1 queue"),
        ("{n:,} units are left over", {"n": 1}, "1 unit is left over"),
        ("{n:,} do not agree", {"n": 1}, "1 does not agree"),
        ("{n:,} index files, {m:,} bytes", {"n": 1, "m": 2}, "1 index file, 2 bytes"),
        ("{done:,} of {all:,} files", {"done": 1, "all": 3}, "1 of 3 files"),
        ("{n:,} of the entries", {"n": 1}, "1 of the entries"),
        ("{on} files", {"on": True}, "True files"),
    ],
)
def test_what_is_counted_as_one_is_singular(text, values, sentence):
    assert tr(text, **values) == sentence


def test_sentences_of_the_engine_are_too():
    assert engine_words("470 queue entries go in 1 queues") == "470 queue entries go in 1 queue"
    assert one_of("11 files, 1.1 files, offset-1 files") == "11 files, 1.1 files, offset-1 files"
    assert one_of("1 entries are gone") == "1 entry is gone"
    said = "1 more queues of the group end before it; the 1 entries behind it go; 1 units from here on are left"
    one = "1 more queue of the group ends before it; the 1 entry behind it goes; 1 unit from here on is left"
    assert (one_of(said), many_of(one)) == (one, said)


def test_what_a_rule_finds_begins_with_a_capital_unless_it_begins_with_a_name():
    assert RULES["CL07"].found("nothing holds these bytes").message == "Nothing holds these bytes"
    assert RULES["CF07"].found("topics.json hides 1 queue").message == "topics.json hides 1 queue"


def test_lines_of_the_terminal_count_right():
    told = io.StringIO()
    Output(as_json=False, stream=told).line("1 files, 2 files")
    assert told.getvalue() == "1 file, 2 files\n"


ONES = [
    ("1 units from here on belong to another place", "1 unit from here on belongs to another place"),
    ("1 entries of all queues point after its end", "1 entry of all queues points after its end"),
    ("1 more entries lead nowhere", "1 more entry leads nowhere"),
    ("1 keys are in no index file, of messages from 5 to 5", "1 key is in no index file, of messages from 5 to 5"),
]


@pytest.mark.parametrize(("many", "one"), ONES)
def test_a_finding_on_one_thing_counts_it_as_one(many: str, one: str) -> None:
    """The verb stayed in the plural: "1 unit from here on belong to another place"."""
    assert (one_of(many), many_of(one)) == (one, many)
