"""The bench of repairs as a panel: it stays beside every view, goes back into a window of its own, and ends with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from broken_stores import BROKEN
from handmade_stores import healthy
from panes import wait_until
from PySide6.QtGui import QShortcut

from viewer.findings.pane import FindingsPane


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    store = healthy()
    path = store.write(tmp_path / "store")
    BROKEN["CK05"](path, store)
    return path


def test_the_bench_stays_beside_every_view_and_is_remembered(run, window, damaged: Path) -> None:
    async def walk() -> None:
        await window.open(damaged)
        window.actions_by_id["repair.show"].trigger()
        pane = window.panes["findings"]
        assert isinstance(pane, FindingsPane)
        box = pane.repair_box
        assert box is not None
        assert box.isWindow()
        box.dock.click()
        assert not box.isWindow()
        assert box.isVisible()
        assert window.settings.repair_docked
        assert not any(key.isEnabled() for key in box._own_keys), "the window's undo has these keys"
        window.show_view("log")
        assert box.isVisible()
        box.dock.click()
        assert box.isWindow()
        assert not window.settings.repair_docked
        assert all(key.isEnabled() for key in box.findChildren(QShortcut))
        box.dock.click()
        box.reject()
        await wait_until(lambda: window.workspace.repairs._dock is None, "the panel is gone")
        assert pane.repair_box is None
        window.actions_by_id["repair.show"].trigger()
        assert pane.repair_box is not None
        assert not pane.repair_box.isWindow(), "it comes back where it was"
        window.rebuild()
        await wait_until(lambda: window.workspace.repairs._dock is None, "its words are made again, so it closes")
        window.close_store()

    run(walk())


def test_the_panel_ends_with_the_store(run, window, damaged: Path) -> None:
    async def walk() -> None:
        window.settings.repair_docked = True
        await window.open(damaged)
        window.actions_by_id["repair.show"].trigger()
        assert window.workspace.repairs._dock is not None
        window.close_store()
        await wait_until(lambda: window.workspace.repairs._dock is None, "the panel is gone")

    run(walk())
