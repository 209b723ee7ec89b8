"""Questions to begin with."""

from __future__ import annotations

from viewer.sql.examples import EXAMPLES


def test_there_are_ten_questions_each_with_a_title_of_its_own() -> None:
    assert len({example.title for example in EXAMPLES}) == len({example.text for example in EXAMPLES}) == 10
    assert max(len(line) for example in EXAMPLES for line in example.text.splitlines()) <= 110
