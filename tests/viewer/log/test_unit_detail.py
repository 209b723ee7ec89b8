from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics

from viewer.log.unit_detail import UnitDetail, value_beside_link
from viewer.log.unit_fields import Group, Line
from viewer.look.theme import mono, ui

GROUPS = [
    Group(
        "Identity",
        "orders / 1",
        (
            Line("physicalOffset", "81,604,377,362", "equals its place"),
            Line("queueOffset", "7", "→ queue entry", "place"),
        ),
    ),
    Group("Hosts", "", (Line("bornHost", "10.0.0.1:1"),), opened=False),
    Group(
        "Properties",
        "1",
        (Line("properties.KEYS", "a", label="KEYS", lines=(Line("", "x", label="key", place="trace"),)),),
    ),
    Group("In words", "", (Line("", "half message: waits"),)),
]


@pytest.fixture
def detail(qtbot):
    unit_detail = UnitDetail()
    qtbot.addWidget(unit_detail)
    unit_detail.resize(436, 400)
    unit_detail.show()
    unit_detail.show_groups(GROUPS)
    return unit_detail


def test_choosing_from_outside_opens_the_group_without_a_signal(detail):
    emitted = []
    detail.fieldChosen.connect(emitted.append)
    assert detail.choose_field("bornHost")
    assert detail.chosen_field == "bornHost"
    assert detail.isExpanded(detail.currentIndex().parent())
    assert emitted == []
    assert not detail.choose_field("no such field")


def test_chosen_field_and_folded_groups_stay_for_the_next_unit(detail, qtbot):
    detail.choose_field("properties.KEYS")
    detail.collapse(detail.model().index(0, 0))
    detail.show_groups(GROUPS)
    assert detail.chosen_field == "properties.KEYS"
    assert not detail.isExpanded(detail.model().index(0, 0))


def test_keys_choose_fields_and_enter_follows_the_link(detail, qtbot):
    emitted, places = [], []
    detail.fieldChosen.connect(emitted.append)
    detail.placeRequested.connect(places.append)
    detail.choose_field("physicalOffset")
    qtbot.keyClick(detail, Qt.Key.Key_Down)
    assert emitted == ["queueOffset"]
    qtbot.keyClick(detail, Qt.Key.Key_Return)
    assert places == ["place"]


def test_a_click_on_a_value_follows_its_link(detail, qtbot):
    places = []
    detail.placeRequested.connect(places.append)
    detail.choose_field("queueOffset")
    rect = detail.visualRect(detail.currentIndex().siblingAtColumn(1))
    qtbot.mouseClick(detail.viewport(), Qt.MouseButton.LeftButton, pos=rect.topLeft() + rect.topLeft().__class__(8, 10))
    assert places == ["place"]


def test_screen_readers_get_name_value_and_remark(detail):
    detail.choose_field("physicalOffset")
    spoken = detail.currentIndex().data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken == "physicalOffset 81,604,377,362 equals its place"


def test_a_sentence_runs_over_the_whole_width(detail):
    index = detail.model().index(3, 0)
    assert detail.isFirstColumnSpanned(0, index)
    assert detail.grab().height() == 400


def test_a_chosen_field_becomes_a_condition_of_the_filter(detail):
    detail.choose_field("physicalOffset")
    assert detail.term() is None, "without its unit a field is only words"
    expected = []
    detail.termRequested.connect(lambda how, term: expected.append((how, term)))
    detail._use_term("and", "size = 3")
    assert expected == [("and", "size = 3")]


def test_a_long_value_keeps_its_link_visible(detail):
    """Beside a message lost in damage, "→ queue entry" was cut to "→ queue e…"."""
    metrics, small = QFontMetrics(mono(12)), QFontMetrics(ui(12))
    line = Line("lost.0", "CartUpdates/0/1234567", "→ queue entry", "place", label="was")
    width = metrics.horizontalAdvance(line.value) + 40
    shown = value_beside_link(line, line.value, metrics, small, width)
    assert "…" in shown
    assert metrics.horizontalAdvance(shown) + 10 + small.horizontalAdvance(line.note) <= width
    plain = Line("", line.value, line.note)
    assert value_beside_link(plain, plain.value, metrics, small, width) == line.value
