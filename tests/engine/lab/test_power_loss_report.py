"""The report of a power loss states whether recovery followed its plan."""

from __future__ import annotations

from dataclasses import replace

from engine.lab.power_loss_report import Figure, PowerLossReport, RepeatedRecovery, StoreState

STATE = StoreState(0, 0, 100, 3, False, {}, 0, 0, None, 1)
EQUAL, DIFFERENT = Figure("end", 5, 5), Figure("units", 5, 6)


def test_a_different_figure_is_detected():
    assert (EQUAL.equal, DIFFERENT.equal) == (True, False)
    report = PowerLossReport(1, 0.5, "ASYNC_FLUSH", False, STATE, STATE, plan=None)  # type: ignore[arg-type]
    assert report.as_planned
    assert not replace(report, figures=(EQUAL, DIFFERENT)).as_planned


def test_a_further_recovery_is_compared():
    assert RepeatedRecovery(2, 1.0, (EQUAL,)).same
    assert not RepeatedRecovery(2, 1.0, (EQUAL, DIFFERENT)).same
