"""The plan's lines for a missing log: the likely cause comes first, in the window's language."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from handmade_stores import healthy
from PySide6.QtWidgets import QApplication

from engine.inspection.findings import check
from engine.inspection.recovery import plan
from engine.inspection.snapshot import open_store
from engine.store.recovery.plan import Blocker, IndexPlan, Loss, QueueLoss
from viewer.look import assets
from viewer.look.engine_words import engine_words
from viewer.pane.plan_words import (
    _blocker_parts,
    cut_queues,
    fates,
    headline,
    headline_tip,
    plan_rows,
    start_rows,
    without_own_lock,
)
from viewer.runtime.store_work import OtherReleaseStart


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_a_missing_log_is_mentioned_first(themed_app: QApplication, tmp_path: Path, language: str) -> None:
    root = healthy().write(tmp_path / "store")
    shutil.rmtree(root / "commitlog")
    with open_store(root) as store:
        recovery_plan = plan(store)
        finding = next(check(store))
    assets.set_language(language)
    first_row = plan_rows(recovery_plan, harmed=True)[0]
    expected_end = {"en": "is its disk mounted?", "zh_CN": "它的磁盘挂载了吗？"}[language]
    assert first_row.mark == "error"
    assert first_row.reason.endswith(expected_end)
    assert engine_words(finding.message).endswith(expected_end)
    assert headline(recovery_plan, harmed=True)[0][1].endswith(expected_end)


LOCKED = Blocker(
    "AB01",
    "A process holds the store's lock: a broker is running on it",
    "java.lang.RuntimeException: Lock failed,MQ already started",
    "/s/lock",
)
GAP = Blocker("CL07", "a file of the log is missing", "", "/s/commitlog")


def test_each_release_shows_whether_it_would_start(tmp_path: Path) -> None:
    with open_store(healthy().write(tmp_path / "store")) as store:
        recovery_plan = plan(store, "5.3")
    other_start = OtherReleaseStart("4.9", False, (GAP,))
    rows = start_rows(recovery_plan, other_start, ("5.3", "it has timerwheel"))
    assert [(row.mark, row.subject, row.amount) for row in rows] == [
        ("ok", "RocketMQ 5.3.3", "would start"),
        ("error", "RocketMQ 4.9.8", "would not start"),
    ]
    assert "timerwheel" in rows[0].reason
    assert rows[1].reason == GAP.message
    fitting_rows = start_rows(recovery_plan, OtherReleaseStart("4.9", True, ()), ("5.3", "it has timerwheel"))
    assert fitting_rows[1].reason == "nothing in the store keeps it from starting"


def test_our_own_lock_is_no_blocker(tmp_path: Path) -> None:
    with open_store(healthy().write(tmp_path / "store")) as store:
        locked_plan = replace(plan(store), blockers=(LOCKED,), will_start=False)
    assert headline(locked_plan, harmed=False) == [("error", "a broker would not start")]
    assert headline(without_own_lock(locked_plan), harmed=False) == [("ok", "nothing would be lost")]
    assert [row.mark for row in start_rows(locked_plan, None, None, lab=True)] == ["ok"]


def test_undispatched_messages_are_listed_by_topic_and_queue(tmp_path: Path) -> None:
    queue = QueueLoss("OrderPaid", 2, 41, 100, 140, 5_000, 1_795_280_000_000, 1_795_280_060_000)
    index_plan = IndexPlan("20261121081849110", "/s/index/1", 900, 1, 2, 1_000, 9_000)
    with open_store(healthy().write(tmp_path / "store")) as store:
        actual_plan = plan(store)
    actual_plan = replace(
        actual_plan,
        undispatched=Loss((queue,), actual_plan.log_min, 5_000, 9_000),
        index_deleted=(index_plan,),
        end_offset=20_000,
        first_pass=None,
    )
    rows = plan_rows(actual_plan, harmed=False)
    position = next(n for n, row in enumerate(rows) if row.subject == "Never dispatched")
    assert rows[position].amount == "41 messages"
    assert rows[position + 1].amount == "OrderPaid/2"
    assert rows[position + 1].reason.startswith("41 messages · queue offsets 100 to 140 · stored ")
    index = next(row for row in rows if row.subject == "Index files deleted")
    assert (index.mark, index.reason) == ("error", "900 entries · keys of units 1,000 to 20,000 will not be found")
    assert ("error", "41 messages never dispatched") in headline(actual_plan, harmed=False)


def test_wrong_queue_offsets_and_lost_puts_are_in_the_headline(tmp_path: Path) -> None:
    """``check`` called the start an error, but the headline said "nothing would be lost"."""
    with open_store(healthy().write(tmp_path / "store")) as store:
        recovery = plan(store)
    misnumbered = replace(recovery, queues=(replace(recovery.queues[0], shifted=3), *recovery.queues[1:]))
    assert headline(misnumbered, harmed=True) == [("error", "3 messages get wrong queue offsets")]
    doubled = replace(recovery, loses_new_messages=True)
    assert headline(doubled, harmed=True) == [("error", "every new message would be lost")]


def test_a_queue_that_a_start_stops_reading_is_counted_as_cut(tmp_path: Path) -> None:
    """The plan said "15 queues, 0 cut" for a queue whose last file is deleted and which loses 318 entries."""
    with open_store(healthy().write(tmp_path / "store")) as store:
        recovery_plan = plan(store)
    first_queue = recovery_plan.queues[0]
    cut_queue = replace(first_queue, files_deleted=("/s/consumequeue/x/0/00000000000000006000",))
    lost = QueueLoss(first_queue.topic, first_queue.queue_id, 318, 50, 367, 5_000, 0, 0)
    recovery_plan = replace(
        recovery_plan,
        queues=(cut_queue, *recovery_plan.queues[1:]),
        undispatched=Loss((lost,), recovery_plan.log_min, 5_000, 9_000),
    )
    assert cut_queues(recovery_plan) == [(cut_queue, 318)]
    row = next(plan_row for plan_row in plan_rows(recovery_plan, harmed=True) if plan_row.subject == "Queues cut")
    assert (row.amount, row.reason[:12]) == (f"1 of {len(recovery_plan.queues)}", "318 entries;")
    fate = next(candidate for candidate in fates(recovery_plan, 1) if candidate.name == "consumequeue")
    assert fate.reason == f"{len(recovery_plan.queues)} queues, 1 cut"


def test_the_reason_comes_before_the_path() -> None:
    """Three rows of the plan showed only the beginning of a path, and never the reason."""
    path = "/very/long/way/to/the/store/consumequeue/CartUpdates/0/00000000000000000000"
    blocker = Blocker("CQ01", f"{path}: expected a file of 6,000 bytes, found 1,000 bytes", f"{path}\t1000", path)
    parts = _blocker_parts(blocker)
    assert parts == {"reason": "expected a file of 6,000 bytes, found 1,000 bytes", "file": "CartUpdates/0/…0"}
    full_blocker = Blocker("AB01", "A process holds the store's lock: a broker is running on it", "", None)
    assert _blocker_parts(full_blocker) == {"reason": full_blocker.message, "file": ""}


def test_dropped_units_are_not_taken_for_messages(tmp_path: Path) -> None:
    """For the same loss the incident card showed 762 messages and the plan below it 783 units."""
    with open_store(healthy().write(tmp_path / "store")) as store:
        actual_plan = replace(plan(store), units_dropped=783, bytes_dropped=9000)
    (row,) = [row for row in plan_rows(actual_plan, harmed=True) if row.subject == "Units dropped"]
    assert row.reason.endswith("a batch is one unit, and some units hold no message")
    assert headline(actual_plan, harmed=True)[0][1] == "783 units would be lost"
    assert headline_tip(actual_plan) == "a batch is one unit, and some units hold no message"
    assert not headline_tip(replace(actual_plan, units_dropped=0))
