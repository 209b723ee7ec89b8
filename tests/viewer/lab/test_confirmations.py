"""The question before a store is opened for writing."""

from __future__ import annotations

from handmade_stores import healthy
from panes import on_store, wait_until

from engine.mapped.store_lock import StoreLock
from viewer.lab.confirmations import WriteConfirmation
from viewer.pane import Pane


def test_a_store_that_is_open_cannot_be_opened_for_writing(qapp, tmp_path) -> None:
    async def drive(pane, session) -> None:
        with StoreLock(session.path / "lock"):
            box = WriteConfirmation(pane, session)
            await wait_until(lambda: "refused" in box._holder_label.text())
            assert not box.agree.isEnabled()
        box.reject()
        box = WriteConfirmation(pane, session)
        await wait_until(box.agree.isEnabled)
        box.reject()

    on_store(qapp, Pane, healthy().write(tmp_path / "store"), drive)
