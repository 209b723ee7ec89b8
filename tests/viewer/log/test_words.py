"""What happened to a unit, in sentences."""

from __future__ import annotations

from engine.codec.words import Word
from viewer.log.words import say


def test_sentences_show_numbers_with_separators_and_absent_facts_as_such():
    assert say(Word("checked", {"checks": 15_000})) == "its producer was asked 15,000 times"
    assert (
        say(Word("op", {"count": 2, "offsets": [1234, 5]}))
        == "answers for 2 half messages, by half-queue offset: 1,234, 5"
    )
    assert "?" in say(Word("retryTopic", {"group": None}))
