from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from viewer.shell import breadcrumb_menu as crumb_drop
from viewer.shell.breadcrumb_menu import CrumbDrop


@pytest.fixture
def drop(qtbot):
    parent = QWidget()
    qtbot.addWidget(parent)
    made = CrumbDrop([(f"Topic-{n}", n) for n in range(30)], parent)
    made.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    made.heard, made.keeper = [], parent
    made.chosen.connect(made.heard.append)
    return made


def test_typing_narrows_down_and_enter_takes(drop, qtbot):
    qtbot.keyClicks(drop.field, "topic-2")
    assert [drop.list.item(n).text() for n in range(3)] == ["Topic-2", "Topic-20", "Topic-21"]
    qtbot.keyClick(drop.field, Qt.Key.Key_Down)
    qtbot.keyClick(drop.field, Qt.Key.Key_Return)
    assert drop.heard == [20]


def test_what_is_left_out_is_said(drop, monkeypatch):
    monkeypatch.setattr(crumb_drop, "MOST", 10)
    drop._narrow("")
    assert drop.list.count() == 11
    assert drop.list.item(10).text().startswith("20 more")
