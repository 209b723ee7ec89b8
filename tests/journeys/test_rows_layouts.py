"""Layouts with names: saved, used again, deleted, beside the reset."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QListWidget
from walker import Run, Walker

from viewer.shell.command_handlers import show_choices
from viewer.shell.named_layouts import BUILT_IN, ChooseBox, SaveBox

pytestmark = pytest.mark.journey


def test_layouts_are_saved_under_a_name_used_and_deleted(run: Run, walker: Walker, orders: Path) -> None:
    window = walker.window

    async def save(name: str) -> None:
        await walker.act("layout.save")
        box = walker.find(SaveBox, "layout.saveBox")
        field = box.findChild(QLineEdit, "layout.name")
        assert field is not None
        field.setText(name)
        walker.press(field, Qt.Key.Key_Return)
        await walker.until(lambda: window.findChild(SaveBox, "layout.saveBox") is None, "its box has gone")

    async def choose() -> tuple[ChooseBox, QListWidget]:
        await walker.until(lambda: not window.findChildren(ChooseBox), "no such box stands")
        await walker.act("layout.choose")
        box = next(item for item in window.findChildren(ChooseBox) if item.isVisible())
        widget = box.findChild(QListWidget, "layout.list")
        assert widget is not None
        return box, widget

    def names(shown: QListWidget) -> list[str]:
        return [shown.item(n).text() for n in range(len(BUILT_IN), shown.count())]

    async def walk() -> None:
        await walker.open(orders)
        show_choices()
        await walker.act("view.queues")
        window.split.setSizes([400, 1200])
        await walker.rest()
        width = window.side.width()
        await save("wide tree")
        assert "wide tree" in walker.status_text
        await walker.act("view.units")
        await walker.act("view.tree")
        assert not window.side.isVisible()
        await save("log alone")
        _, shown = await choose()
        assert names(shown) == ["wide tree", "log alone"]
        shown.setCurrentRow(len(BUILT_IN))
        walker.press(shown, Qt.Key.Key_Return)
        await walker.rest()
        await walker.until(lambda: not window.findChildren(ChooseBox), "the box has gone")
        assert (window.view, window.side.isVisible()) == ("queue", True)
        assert abs(window.side.width() - width) <= 2
        assert walker.action("view.tree").isChecked()
        _, shown = await choose()
        shown.setCurrentRow(len(BUILT_IN) + 1)
        walker.press(shown, Qt.Key.Key_Return)
        await walker.rest()
        assert (window.view, window.side.isVisible()) == ("log", False)
        await walker.act("layout.reset")
        box, shown = await choose()
        assert names(shown) == ["wide tree", "log alone"], "the reset leaves what was saved"
        shown.setCurrentRow(len(BUILT_IN) + 1)
        box.forget.click()
        assert names(shown) == ["wide tree"]
        shown.setCurrentRow(len(BUILT_IN))
        box.new_name.setText("wide")
        box.rename.click()
        assert names(shown) == ["wide"]
        box.forget.click()
        assert names(shown) == []
        assert not box.forget.isEnabled(), "the profiles of the program stay"
        box.reject()
        await walker.act("profile.student")
        assert window.view == "positions"
        await walker.act("profile.developer")
        assert window.view == "log"
        window.settings.tree_shown = True

    run(walk())
