"""Crumbs: the path from the store to a place. Each crumb is a place itself."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.shell import crumbs as crumb_drop
from viewer.shell.crumbs import SiblingList, crumbs_of, siblings


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (places.queue("Orders", 2, 5), ["Orders", "Queue 2", "5"]),
        (places.queue(""), ["Queues"]),
        (places.log(1234), ["Commit log", "1,234"]),
        (places.index("2024"), ["Index", "2024"]),
        (Place("config", name="topics.json"), ["Config", "topics.json"]),
    ],
)
def test_the_path_to_a_place(place, expected):
    assert [words for words, _place in crumbs_of(place, None)] == expected


def test_every_crumb_leads_somewhere_and_the_last_to_the_place_itself():
    place = places.queue("Orders", 2, 5)
    crumbs = crumbs_of(place, None)
    assert all(isinstance(target, Place) for _words, target in crumbs)
    assert crumbs[-1][1] == place
    assert crumbs[0][1] == places.queue("Orders")


def test_without_a_store_there_are_no_siblings():
    assert siblings(1, places.log(), None) == []


@pytest.fixture
def drop(qtbot):
    parent = QWidget()
    qtbot.addWidget(parent)
    new_crumb_drop = SiblingList([(f"Topic-{n}", n) for n in range(30)], parent)
    new_crumb_drop.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    new_crumb_drop.heard, new_crumb_drop.file_saver = [], parent
    new_crumb_drop.chosen.connect(new_crumb_drop.heard.append)
    return new_crumb_drop


def test_typing_narrows_down_and_enter_takes(drop, qtbot):
    qtbot.keyClicks(drop.field, "topic-2")
    assert [drop.list.item(n).text() for n in range(3)] == ["Topic-2", "Topic-20", "Topic-21"]
    qtbot.keyClick(drop.field, Qt.Key.Key_Down)
    qtbot.keyClick(drop.field, Qt.Key.Key_Return)
    assert drop.heard == [20]


def test_omitted_entries_are_counted(drop, monkeypatch):
    monkeypatch.setattr(crumb_drop, "MAX_SIBLINGS", 10)
    drop._narrow("")
    assert drop.list.count() == 11
    assert drop.list.item(10).text().startswith("20 more")
