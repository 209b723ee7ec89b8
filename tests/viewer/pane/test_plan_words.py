"""The plan's lines where the log is gone: the likely cause stands first, in the window's language."""

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
from viewer.runtime.store_work import OtherStart


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_a_log_that_is_gone_is_said_first(themed_app: QApplication, tmp_path: Path, language: str) -> None:
    root = healthy().write(tmp_path / "store")
    shutil.rmtree(root / "commitlog")
    with open_store(root) as store:
        actual_plan = plan(store)
        finding = next(check(store))
    assets.set_language(language)
    first = plan_rows(actual_plan, harmed=True)[0]
    output = {"en": "is its disk mounted?", "zh_CN": "它的磁盘挂载了吗？"}[language]
    assert first.mark == "error"
    assert first.why.endswith(output)
    assert engine_words(finding.message).endswith(output)
    assert headline(actual_plan, harmed=True)[0][1].endswith(output)


LOCKED = Blocker(
    "AB01",
    "A process holds the store's lock: a broker is running on it",
    "java.lang.RuntimeException: Lock failed,MQ already started",
    "/s/lock",
)
GAP = Blocker("CL07", "a file of the log is missing", "", "/s/commitlog")


def test_each_release_says_whether_it_would_start(tmp_path: Path) -> None:
    with open_store(healthy().write(tmp_path / "store")) as store:
        actual_plan = plan(store, "5.3")
    other = OtherStart("4.9", False, (GAP,))
    rows = start_rows(actual_plan, other, ("5.3", "it has timerwheel"))
    assert [(row.mark, row.what, row.value) for row in rows] == [
        ("ok", "RocketMQ 5.3.3", "would start"),
        ("error", "RocketMQ 4.9.8", "would not start"),
    ]
    assert "timerwheel" in rows[0].why
    assert rows[1].why == GAP.message
    sound = start_rows(actual_plan, OtherStart("4.9", True, ()), ("5.3", "it has timerwheel"))
    assert sound[1].why == "nothing in the store keeps it from starting"


def test_our_own_lock_keeps_no_broker_away(tmp_path: Path) -> None:
    with open_store(healthy().write(tmp_path / "store")) as store:
        held = replace(plan(store), blockers=(LOCKED,), will_start=False)
    assert headline(held, harmed=False) == [("error", "a broker would not start")]
    assert headline(without_own_lock(held), harmed=False) == [("ok", "nothing would be lost")]
    assert [row.mark for row in start_rows(held, None, None, lab=True)] == ["ok"]


def test_what_no_start_dispatches_is_told_by_topic_and_queue(tmp_path: Path) -> None:
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
    position = next(n for n, row in enumerate(rows) if row.what == "Never dispatched")
    assert rows[position].value == "41 messages"
    assert rows[position + 1].value == "OrderPaid/2"
    assert rows[position + 1].why.startswith("41 messages · queue offsets 100 to 140 · stored ")
    index = next(row for row in rows if row.what == "Index files deleted")
    assert (index.mark, index.why) == ("error", "900 entries · keys of units 1,000 to 20,000 will not be found")
    assert ("error", "41 messages never dispatched") in headline(actual_plan, harmed=False)


def test_wrong_queue_offsets_and_lost_puts_are_in_the_headline(tmp_path: Path) -> None:
    """Beside ``check``, which called the start an error, the headline said "nothing would be lost"."""
    with open_store(healthy().write(tmp_path / "store")) as store:
        recovery = plan(store)
    misnumbered = replace(recovery, queues=(replace(recovery.queues[0], shifted=3), *recovery.queues[1:]))
    assert headline(misnumbered, harmed=True) == [("error", "3 messages get wrong queue offsets")]
    doubled = replace(recovery, loses_new_messages=True)
    assert headline(doubled, harmed=True) == [("error", "every new message would be lost")]


def test_a_queue_that_a_start_stops_reading_is_counted_as_cut(tmp_path: Path) -> None:
    """The plan said "15 queues, 0 cut" over a queue whose last file is deleted and of which 318 entries go."""
    with open_store(healthy().write(tmp_path / "store")) as store:
        actual_plan = plan(store)
    first = actual_plan.queues[0]
    hurt = replace(first, files_deleted=("/s/consumequeue/x/0/00000000000000006000",))
    lost = QueueLoss(first.topic, first.queue_id, 318, 50, 367, 5_000, 0, 0)
    actual_plan = replace(
        actual_plan,
        queues=(hurt, *actual_plan.queues[1:]),
        undispatched=Loss((lost,), actual_plan.log_min, 5_000, 9_000),
    )
    assert cut_queues(actual_plan) == [(hurt, 318)]
    row = next(item for item in plan_rows(actual_plan, harmed=True) if item.what == "Queues cut")
    assert (row.value, row.why[:12]) == (f"1 of {len(actual_plan.queues)}", "318 entries;")
    fate = next(one for one in fates(actual_plan, 1) if one.name == "consumequeue")
    assert fate.why == f"{len(actual_plan.queues)} queues, 1 cut"


def test_the_reason_stands_before_the_path() -> None:
    """Three rows of the plan each showed the beginning of a path, and the reason was never in sight."""
    path = "/very/long/way/to/the/store/consumequeue/CartUpdates/0/00000000000000000000"
    blocker = Blocker("CQ01", f"{path}: expected a file of 6,000 bytes, found 1,000 bytes", f"{path}\t1000", path)
    parts = _blocker_parts(blocker)
    assert parts == {"reason": "expected a file of 6,000 bytes, found 1,000 bytes", "file": "CartUpdates/0/…0"}
    full_blocker = Blocker("AB01", "A process holds the store's lock: a broker is running on it", "", None)
    assert _blocker_parts(full_blocker) == {"reason": full_blocker.message, "file": ""}


def test_dropped_units_are_not_taken_for_messages(tmp_path: Path) -> None:
    """The incident card said 762 messages, and the plan below it 783 units of the same loss."""
    with open_store(healthy().write(tmp_path / "store")) as store:
        actual_plan = replace(plan(store), units_dropped=783, bytes_dropped=9000)
    (row,) = [row for row in plan_rows(actual_plan, harmed=True) if row.what == "Units dropped"]
    assert row.why.endswith("a batch is one unit, and some units hold no message")
    assert headline(actual_plan, harmed=True)[0][1] == "783 units would be lost"
    assert headline_tip(actual_plan) == "a batch is one unit, and some units hold no message"
    assert not headline_tip(replace(actual_plan, units_dropped=0))
