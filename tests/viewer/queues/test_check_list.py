from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from viewer.queues.check_list import CheckList


@pytest.fixture
def chooser(qtbot):
    check_list = CheckList("queue.topics", "Topics", 250, ("{n:,} topic", "{n:,} topics"))
    qtbot.addWidget(check_list)
    check_list.set_items([(name, name) for name in ("A", "B", "C")], ["A"])
    check_list.show()
    return check_list


def test_the_button_shows_one_name_or_the_count(chooser) -> None:
    assert "A" in chooser.text()
    chooser.set_items([(n, f"queue {n}") for n in range(5)], [1, 3])
    assert "2 topics" in chooser.text()
    assert chooser.keys == [1, 3]


def test_in_a_narrow_form_the_name_loses_its_middle(chooser) -> None:
    """In a window of half a screen, the topic choice overlapped the texts beside it."""
    name = "OrdersOfTheShop-" * 4
    chooser.set_items([(name, name)], [name])
    assert chooser.minimumSizeHint().width() < 80
    chooser.resize(110, chooser.height())
    narrow = chooser.text()
    assert "…" in narrow
    assert chooser.fontMetrics().horizontalAdvance(narrow) < 80
    chooser.resize(250, chooser.height())
    assert len(chooser.text()) > len(narrow)


def test_enter_chooses_one_and_space_adds_to_the_choice(chooser, qtbot) -> None:
    emitted = []
    chooser.chosen.connect(emitted.append)
    chooser.open_list()
    rows = chooser._popup._list
    rows.setCurrentRow(2)
    qtbot.keyClick(chooser._popup, Qt.Key.Key_Space)
    assert emitted == [["A", "C"]]
    rows.setCurrentRow(1)
    qtbot.keyClick(chooser._popup, Qt.Key.Key_Return)
    assert emitted[-1] == ["B"]
    assert chooser.keys == ["B"]


def test_a_click_on_a_row_chooses_it_alone_and_on_its_box_adds_it(chooser) -> None:
    emitted = []
    chooser.chosen.connect(emitted.append)
    chooser.open_list()
    item = chooser._popup._list.item(1)
    item.setCheckState(Qt.CheckState.Checked)
    chooser._popup._list.itemClicked.emit(item)
    assert emitted == [["A", "B"]]
    chooser._popup._list.itemClicked.emit(chooser._popup._list.item(2))
    assert emitted[-1] == ["C"]


def test_a_long_list_can_be_narrowed(chooser) -> None:
    chooser.set_items([(n, f"Topic{n}") for n in range(40)], [0])
    chooser.open_list()
    popup = chooser._popup
    popup._field.setText("topic3")
    shown = [popup._list.item(n).text() for n in range(40) if not popup._list.item(n).isHidden()]
    assert shown == ["Topic3", *(f"Topic3{n}" for n in range(10))]
