"""The report of a pulled plug says itself whether recovery did what its plan said."""

from __future__ import annotations

from dataclasses import replace

from engine.lab.power_loss_report import Figure, PowerLossReport, RepeatedRecovery, StoreState

STATE = StoreState(0, 0, 100, 3, False, {}, 0, 0, None, 1)
EQUAL, OTHER = Figure("end", 5, 5), Figure("units", 5, 6)


def test_a_figure_that_differs_is_seen():
    assert (EQUAL.equal, OTHER.equal) == (True, False)
    report = PowerLossReport(1, 0.5, "ASYNC_FLUSH", False, STATE, STATE, plan=None)  # type: ignore[arg-type]
    assert report.as_planned
    assert not replace(report, figures=(EQUAL, OTHER)).as_planned


def test_a_further_recovery_is_the_same_or_not():
    assert RepeatedRecovery(2, 1.0, (EQUAL,)).same
    assert not RepeatedRecovery(2, 1.0, (EQUAL, OTHER)).same
