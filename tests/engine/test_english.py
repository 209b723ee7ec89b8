"""Sentences begin with a capital, names do not."""

from __future__ import annotations

import pytest

from engine.english import capital, number_of, small
from engine.rules.findings import Rule


@pytest.mark.parametrize(
    "text",
    [
        "timermetrics is empty",
        "topics.json is empty",
        "physicMsgTimestamp zero",
        "timerlog",
        "storescope dispatch STORE builds them",
        "mqadmin tells it",
    ],
)
def test_a_name_stays_as_it_is_written(text):
    assert capital(text) == text


@pytest.mark.parametrize("text", ["the log is gone", "restore; then", "gone.", "so-called files"])
def test_a_word_gets_a_capital(text):
    assert capital(text) == text[0].upper() + text[1:]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RocketMQ 5.3 starts", "RocketMQ 5.3 starts"),
        ("Nothing.", "nothing."),
        ("A file", "a file"),
        ("DLedger logs", "DLedger logs"),
    ],
)
def test_inside_a_sentence_only_ordinary_words_are_lowercase(text, expected):
    assert small(text) == expected


@pytest.mark.parametrize(
    "step", ["brokerRole has to be set", "storescope dispatch builds them", "topics.json lacks it"]
)
def test_a_step_that_begins_with_a_name_keeps_it(step):
    rule = Rule("XX01", "log", "note", "A title", "An explanation.", step)
    assert rule.finding("seen").next_step == step


def test_a_noun_after_a_number_is_singular_for_one() -> None:
    assert number_of(1, "unit is", "units are") == "1 unit is"
    assert number_of(1_200, "unit is", "units are") == "1,200 units are"
