"""The recovery plan is saved, tried on a copy, compared with its result, repeated, and the copy is opened."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog
from walker import Run, Walker

from viewer.findings.pane import FindingsPane
from viewer.pane.target_folder import TargetBox
from viewer.shell.windows import windows
from viewer.widgets.basics import Button

pytestmark = [pytest.mark.journey, pytest.mark.golden]


def pick(walker: Walker, path: Path) -> None:
    """Choose a path in the open dialog."""
    dialog = walker.find(QFileDialog, "recovery.dialog")
    dialog.fileSelected.emit(str(path))
    dialog.close()


def test_a_recovery_plan_is_saved_and_tried_on_a_copy(run: Run, walker: Walker, golden, tmp_path: Path) -> None:
    store = golden("crash-flip-5.3.3")
    saved, copy = tmp_path / "plan.json", tmp_path / "copy"

    async def walk() -> None:
        window = walker.window
        await walker.open(store)
        assert window.view == "log"
        assert not walker.action("recovery.again").isEnabled()
        walker.action("recovery.save").trigger()
        await walker.until(
            lambda: window.findChild(QFileDialog, "recovery.dialog"), "the plan is there, a place is asked"
        )
        assert window.view == "findings"
        pick(walker, saved)
        await walker.until(saved.exists, "the plan is written")
        plan = json.loads(saved.read_text("utf-8"))
        assert plan["type"] == "recoveryPlan"
        await walker.rest()

        walker.action("recovery.try").trigger()
        await walker.until(lambda: window.findChild(TargetBox, "recovery.target"), "a place is asked")
        box = walker.find(TargetBox, "recovery.target")
        await walker.until(box.field.text, "a folder is proposed")
        assert box.field.text().endswith("-copy")
        box.field.setText(str(copy))
        box.take()
        pane = window.pane("findings")
        assert isinstance(pane, FindingsPane)
        await walker.until(lambda: pane.recovery.outcome.trial is not None, "the copy is recovered")
        rows = walker.rows("recovery.tried")
        assert rows[0]["Figure"] == "end of log"
        assert rows[0]["Expected"] == rows[0]["In the copy"] == f"{plan['endOffset']:,}"
        assert {row["Verdict"] for row in rows} == {"equal"}
        assert len(rows) > len(plan["queues"])
        assert f"ends at {plan['endOffset']:,}" in walker.status_text
        assert "copy" not in {entry.name for entry in store.iterdir()}

        assert walker.action("recovery.again").isEnabled()
        await walker.act("recovery.again")
        await walker.until(lambda: pane.recovery.outcome.trial.round == 2, "it is recovered once more")
        assert "changed nothing" in walker.texts(pane.recovery.outcome)
        dispatched = next(row for row in walker.rows("recovery.tried") if row["Figure"] == "units dispatched again")
        assert (dispatched["Expected"], dispatched["In the copy"]) == ("0", "0")

        walker.find(Button, "recovery.open").click()
        await walker.until(lambda: any(item.session is not None for item in windows()), "the copy is open beside")
        assert windows()[0].session.path == copy
        assert windows()[0].session.snapshot.log.max_offset == plan["endOffset"]

    run(walk())
