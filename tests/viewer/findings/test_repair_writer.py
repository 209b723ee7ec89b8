"""The store itself is mended after a question, and restored from its backup."""

from __future__ import annotations

from pathlib import Path

import golden_stores
import pytest
from broken_stores import BROKEN
from handmade_stores import healthy
from panes import on_store, wait_until, wait_until_idle
from PySide6.QtWidgets import QLabel

from engine.mapped.store_lock import StoreLock
from viewer.findings.mend_confirmations import MendConfirmation, UndoConfirmation
from viewer.findings.pane import FindingsPane


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store with a damaged log and a wrong checkpoint."""
    store = healthy()
    path = store.write(tmp_path / "store")
    BROKEN["CL01"](path, store)
    BROKEN["CK05"](path, store)
    return path


def test_the_store_itself_is_mended_and_restored_from_the_window(qapp, root) -> None:
    """The window could only copy; an operator had to leave it to mend the store itself."""
    before = {}

    async def drive(pane, session) -> None:
        pane.show_repairs()
        box = pane.repair_box
        await wait_until(lambda: box.model.plan is not None)
        await wait_until_idle(session.jobs)
        box.writer.ask_undo()
        await wait_until_idle(session.jobs)
        assert box.note.text() == "Nothing to undo: no backup of this store lies beside it."
        with StoreLock(root / "lock"):
            box.writer.ask_apply()
            question = box.findChild(MendConfirmation, "repair.apply.dialog")
            await wait_until_idle(session.jobs)
            assert "has the store open for writing" in question.holder_label.text()
            assert not question.agree.isEnabled()
            question.reject()
            box.writer.mend(box.model.plan.patches)
            await wait_until_idle(session.jobs)
            assert "The store was not changed" in box.note.text()
        (root / "lock").unlink()
        before.update(golden_stores.fingerprint(root))
        box.writer.ask_apply()
        question = box.findChildren(MendConfirmation)[-1]
        await wait_until(question.agree.isEnabled)
        assert question.cancel.isDefault()
        assert any(" → 0 messages" in label.text() for label in question.findChildren(QLabel))
        question.agree.click()
        await wait_until(lambda: box.model.offered == ())
        (folder,) = root.parent.glob("store.kept-*")
        assert box.note.text() == f"The store is mended (2 patches). Backup and journal: {folder}"
        assert golden_stores.changes(before, golden_stores.fingerprint(root)) != []
        box.undo_change.setFocus()
        box.undo_change.click()
        await wait_until(lambda: box.findChild(UndoConfirmation) is not None)
        question = box.findChild(UndoConfirmation)
        await wait_until(question.agree.isEnabled)
        question.agree.click()
        await wait_until(lambda: bool(box.model.offered))
        assert str(folder) in box.note.text()
        assert box.focusWidget() is box.close_button, "not a button that Enter would press by surprise"
        assert session.snapshot.log.unit_at(0) is not None

    on_store(qapp, FindingsPane, root, drive)
    assert golden_stores.changes(before, golden_stores.fingerprint(root)) == []
