"""Texts of the power loss report."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtWidgets import QApplication

from engine.codec.checkpoint import Checkpoint
from engine.lab.power_loss_report import Figure, Loss, PowerLossReport, RepeatedRecovery, StoreState
from engine.store.put_message import PutMessageStatus
from engine.store.recovery.plan import IndexPlan, RecoveryPlan
from viewer.lab.power_loss_panel import PowerLossPanel
from viewer.lab.power_loss_words import MEANINGS, CompareRow, power_loss_view, waiting_view
from viewer.lab.put_statistics import status_facts

TIME_MS = 1_700_000_000_000
PLAN = RecoveryPlan(
    "5.3",
    True,
    (),
    "abnormal",
    "00000000000000000000",
    "",
    0,
    5000,
    "",
    50,
    3,
    300,
    1000,
    40,
    (),
    (),
    (),
    (),
    (),
    5000,
    None,
    5300,
    0,
    5300,
)
STATE_BEFORE = StoreState(
    TIME_MS,
    0,
    9000,
    90,
    False,
    {("T", 0): 90},
    90,
    1,
    Checkpoint(TIME_MS - 17_000, TIME_MS, TIME_MS),
    1,
    flushed=4000,
    committed=6000,
)
STATE_ON_DISK = StoreState(
    TIME_MS + 1, 0, 5300, 53, True, {("T", 0): 60}, 60, 1, Checkpoint(TIME_MS - 17_000, TIME_MS, TIME_MS), 1
)
STATE_RECOVERED = replace(STATE_ON_DISK, end_offset=5000, units=50, torn=False, queues={("T", 0): 50}, index_entries=50)
PULLED = PowerLossReport(7, 0.3, "ASYNC_FLUSH", True, STATE_BEFORE, STATE_ON_DISK, PLAN, 12, 3, 1, 0)
DONE = replace(
    PULLED,
    state_after=STATE_RECOVERED,
    recovered_ms=1100.0,
    loss=Loss(40),
    figures=(Figure("endOffset", 5000, 5000),) * 14,
)


def _row(report: PowerLossReport, figure: str) -> CompareRow:
    return next(row for row in power_loss_view(report).rows if row.what == figure)


def test_three_lines_have_one_scale() -> None:
    lines = power_loss_view(DONE).lines
    for line in lines:
        assert sum(part.share for part in line.parts) == pytest.approx(1.0)
    before_line, kept_line, after_line = lines
    assert [part.kind for part in before_line.parts] == ["disk", "cache", "pool", "zero"]
    assert [part.words for part in before_line.parts][:3] == [
        "on disk 3.91 KiB",
        "page cache 1.95 KiB",
        "transient pool 2.93 KiB",
    ]
    assert [part.kind for part in kept_line.parts] == ["disk", "cache", "drop", "gone", "zero"]
    assert kept_line.parts[3].words == "3.61 KiB gone"
    assert kept_line.flags[0].words == "torn unit"
    assert kept_line.flags[0].at == pytest.approx(sum(part.share for part in kept_line.parts[:2]))
    assert kept_line.parts[0].share == pytest.approx(before_line.parts[0].share)
    assert after_line.flags[-1].at == pytest.approx(sum(part.share for part in after_line.parts[:3]))
    assert (before_line.note[-9:], after_line.note) == ("in memory", "took 1.1 s")


def test_rows_judge_the_losses() -> None:
    assert _row(DONE, "end of log") == CompareRow(
        "end of log", "9,000", "5,300", "5,000", "ok", "cut at a unit boundary"
    )
    units = _row(DONE, "units")
    assert (units.before, units.kept, units.after, units.mark) == ("90", "53 + 1 torn", "50", "warn")
    assert units.verdict == "40 lost · they had been answered PUT_OK, as ASYNC_FLUSH allows"
    assert _row(DONE, "T / 0").verdict == "10 entries pointed after the end of the log · 40 messages fewer than before"
    assert _row(DONE, "checkpoint").verdict == "17.0 s old at the power cut"
    assert _row(DONE, "plan and result").verdict == "equal in all 14 figures"
    broken = replace(DONE, flush_mode="SYNC_FLUSH", loss=Loss(5, 2, allowed=False))
    assert _row(broken, "units").mark == "error"
    assert "SYNC_FLUSH had promised" in _row(broken, "units").verdict
    differs = replace(DONE, figures=(Figure("endOffset", 5000, 4900),))
    assert _row(differs, "plan and result").verdict == "differs: endOffset 5,000 ≠ 4,900"
    assert _row(replace(DONE, loss=Loss()), "units").mark == "ok"


def test_a_further_recovery_is_compared_with_the_first() -> None:
    assert "recovered again" not in [row.what for row in power_loss_view(DONE).rows]
    same = replace(
        DONE, repeated_recovery=RepeatedRecovery(2, 900.0, (Figure("endOffset", 5000, 5000), Figure("units", 50, 50)))
    )
    row = _row(same, "recovered again")
    assert (row.kept, row.after, row.mark) == ("5,300", "5,000", "ok")
    assert row.verdict == "the same disk gives the same store: equal in all 2 figures · round 2 · took 900 ms"
    differing = replace(DONE, repeated_recovery=RepeatedRecovery(3, 900.0, (Figure("endOffset", 5000, 4000),)))
    assert _row(differing, "recovered again").verdict.startswith(
        "the same disk gave another store: endOffset 5,000 ≠ 4,000"
    )


def test_before_recovery_the_plan_is_shown_in_place_of_the_result() -> None:
    assert _row(PULLED, "end of log").verdict == "recovery will cut at 5,000"
    assert _row(PULLED, "plan and result").verdict == "known when the store was recovered"
    assert power_loss_view(PULLED).lines[2].note == "the plan; not done yet"
    plan = replace(PLAN, index_deleted=(IndexPlan("a", "/index/a", 60, 0, TIME_MS, 0, 5200),))
    assert _row(replace(PULLED, plan=plan), "index entries").verdict == "1 file deleted, built again from 1,000 on"


def test_the_panel_shows_lines_and_rows(qapp: QApplication) -> None:
    panel = PowerLossPanel()
    panel.show_report(None)
    assert panel.table.total_rows() == 0
    assert len(waiting_view().lines) == 3
    panel.show_report(DONE)
    assert "torn unit" in panel.lines[1].accessibleDescription()
    assert panel.table.total_rows() == len(power_loss_view(DONE).rows)
    panel.show_able(can_cut=False, recover=True)
    assert panel.recover.isEnabled()
    assert not panel.cut.isEnabled()
    assert panel.recover.isHidden()
    assert not panel.again.isHidden()
    panel.deleteLater()


def test_answers_have_texts_and_refusals_are_marked() -> None:
    facts = status_facts({"OS_PAGE_CACHE_BUSY": 12, "PUT_OK": 3, "FLUSH_DISK_TIMEOUT": 1_200, "UNKNOWN_ERROR": 0})
    assert [(fact.value, fact.role) for fact in facts] == [
        ("PUT_OK 3", "ok"),
        ("FLUSH_DISK_TIMEOUT 1,200", "warn"),
        ("OS_PAGE_CACHE_BUSY 12", "warn"),
    ]
    assert facts[2].note == "not stored: a put has held the log for too long"
    assert set(MEANINGS) <= {status.name for status in PutMessageStatus}
