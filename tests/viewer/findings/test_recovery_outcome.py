"""The result of a recovery in a copy, figure by figure: differences come first and are counted."""

from __future__ import annotations

from pathlib import Path

from engine.lab.power_loss_report import Figure
from viewer.findings.recovery_outcome import tried_chip, tried_note, tried_rows
from viewer.findings.recovery_trial import Trial


def trial(*figures: Figure, round_: int = 1) -> Trial:
    return Trial(Path("/copies/one"), "5.3", 100, figures, 0.25, round_)


def test_a_difference_comes_first_and_is_counted() -> None:
    sample = trial(Figure("endOffset", 100, 100), Figure("Orders/1", 7, 6))
    assert [(row.what, row.verdict, row.mark) for row in tried_rows(sample)] == [
        ("Orders / 1", "differs", "error"),
        ("end of log", "equal", "ok"),
    ]
    assert tried_chip(sample) == ("error", "1 of 2 figures differs")
    assert tried_note(sample) == "1 of 2 figures differs · 250 ms · /copies/one"


def test_a_further_round_reports_no_change() -> None:
    sample = trial(Figure("units", 3, 3), round_=2)
    assert tried_note(sample).startswith("a further recovery changed nothing: equal in all 1 figure ·")
    assert (tried_chip(sample), tried_chip(trial())) == (("ok", "nothing changed"), ("ok", "as planned"))
    assert tried_note(trial(Figure("units", 3, 3))).startswith("equal in all 1 figure ·")
