"""Sentences begin with a capital, names do not."""

from __future__ import annotations

import pytest

from engine.english import capital, one_of, small
from engine.rules.findings import Rule


@pytest.mark.parametrize(
    "said",
    [
        "timermetrics is empty",
        "topics.json is empty",
        "physicMsgTimestamp zero",
        "timerlog",
        "storescope dispatch STORE builds them",
        "mqadmin tells it",
    ],
)
def test_a_name_stays_as_it_is_written(said):
    assert capital(said) == said


@pytest.mark.parametrize("said", ["the log is gone", "restore; then", "gone.", "so-called files"])
def test_a_word_gets_a_capital(said):
    assert capital(said) == said[0].upper() + said[1:]


@pytest.mark.parametrize(
    ("said", "behind"),
    [
        ("RocketMQ 5.3 starts", "RocketMQ 5.3 starts"),
        ("Nothing.", "nothing."),
        ("A file", "a file"),
        ("DLedger logs", "DLedger logs"),
    ],
)
def test_behind_other_words_only_a_word_is_small(said, behind):
    assert small(said) == behind


@pytest.mark.parametrize(
    "step", ["brokerRole has to be set", "storescope dispatch builds them", "topics.json lacks it"]
)
def test_a_step_that_begins_with_a_name_keeps_it(step):
    rule = Rule("XX01", "log", "note", "A title", "An explanation.", step)
    assert rule.found("seen").next_step == step


def test_a_number_that_is_a_name_counts_nothing() -> None:
    """Where said "entry 1 point at it" of the second entry of a queue."""
    assert one_of("entry 1 points at it") == "entry 1 points at it"
    assert one_of("in queue 1 entries are missing") == "in queue 1 entries are missing"
    assert one_of("behind it 1 entries are missing") == "behind it 1 entry is missing"
