"""The questions before the store itself is changed."""

from __future__ import annotations

import os

from handmade_stores import healthy
from panes import on_store, wait_until

from engine.mapped.backup import find_backups
from engine.patching.patches import WriteBytes
from engine.repair.mend_in_place import mend_in_place
from viewer.findings.mend_confirmations import MendConfirmation, UndoConfirmation
from viewer.pane import Pane


def test_a_file_with_a_second_name_is_not_changed_but_may_be_restored(qapp, tmp_path) -> None:
    root = healthy().write(tmp_path / "store")
    old = (root / "checkpoint").read_bytes()[:8]
    patch = WriteBytes(file="checkpoint", offset=0, old=old, new=bytes(8), why="")
    mend_in_place(root, None, [patch])

    async def drive(pane, session) -> None:
        os.link(root / "checkpoint", tmp_path / "copy")
        question = MendConfirmation(pane, session, [patch])
        await wait_until(lambda: "second name" in question.holder_label.text())
        assert not question.agree.isEnabled()
        question.reject()
        chosen = []
        question = UndoConfirmation(pane, session, find_backups(root))
        question.chosen.connect(chosen.append)
        await wait_until(question.agree.isEnabled)
        question.agree.click()
        assert [backup.command for backup in chosen] == ["repair"]

    on_store(qapp, Pane, root, drive)
