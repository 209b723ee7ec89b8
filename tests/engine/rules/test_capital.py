"""Sentences begin with a capital, names do not."""

from __future__ import annotations

import pytest

from engine.counted import capital


@pytest.mark.parametrize(
    "said", ["timermetrics is empty", "topics.json is empty", "physicMsgTimestamp zero", "timerlog"]
)
def test_a_name_stays_as_it_is_written(said):
    assert capital(said) == said


@pytest.mark.parametrize("said", ["the log is gone", "restore; then", "gone.", "so-called files"])
def test_a_word_gets_a_capital(said):
    assert capital(said) == said[0].upper() + said[1:]
