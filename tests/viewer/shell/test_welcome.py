"""The welcome page: recent stores, samples, and its requests."""

from __future__ import annotations

import time

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from viewer.runtime.settings import RecentStore
from viewer.shell import welcome
from viewer.shell.welcome import WelcomePage, remember_store, samples, unpacked
from viewer.widgets.basics import Card


@pytest.fixture
def page(qtbot, tmp_path):
    recent = [RecentStore(str(tmp_path), "here", 0), RecentStore("/not/there", "gone", 0)]
    welcome_page = WelcomePage(recent, samples())
    qtbot.addWidget(welcome_page)
    welcome_page.resize(1200, 800)
    welcome_page.show()
    return welcome_page


def test_recent_stores_and_samples_are_chosen_by_key_except_missing_ones(page, qtbot, tmp_path):
    chosen = []
    page.storeChosen.connect(chosen.append)
    page.sampleChosen.connect(lambda sample: chosen.append(sample.name))
    sample = samples()[0]
    for name in (f"recent.{tmp_path}", "recent./not/there", f"sample.{sample.name}"):
        pick = page.findChild(QWidget, f"welcome.{name}")
        qtbot.keyClick(pick, Qt.Key.Key_Return)
    assert chosen == [str(tmp_path), sample.name]


def test_a_running_broker_another_machine_and_the_first_steps_are_rows(page, qtbot):
    chosen = []
    for name in ("cluster", "ssh", "help", "tour", "lab"):
        getattr(page, f"{name}Requested").connect(lambda name=name: chosen.append(name))
        qtbot.keyClick(page.findChild(QWidget, f"welcome.{name}"), Qt.Key.Key_Space)
    assert chosen == ["cluster", "ssh", "help", "tour", "lab"]


def test_a_sample_is_unpacked_once_and_completely(tmp_path):
    sample = next(item for item in samples() if item.name == "orders")
    first_path = unpacked(sample, tmp_path)
    assert (first_path / "commitlog").is_dir()
    assert unpacked(sample, tmp_path) == first_path


def test_the_time_since_a_store_was_opened_is_shown():
    now = int(time.time() * 1000)
    assert welcome._when(0) == ""
    assert welcome._when(now).startswith("today ")
    assert welcome._when(now - 86_400_000) == "yesterday"
    assert welcome._when(1_700_000_000_000)[:4] == "2023"


def test_the_home_folder_is_shortened(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert welcome._short_home("/home/me/store") == "~/store"
    assert welcome._short_home("/home/meister/store") == "/home/meister/store"


def test_a_store_is_remembered_after_its_survey(run, window, golden):
    remember_store(window.settings, None)
    assert list(window.settings.recent) == []
    assert run(window.open(golden("broker-orders")))
    run(window.settled())
    remember_store(window.settings, window.session)
    (item, *_) = window.settings.recent
    assert item.path == str(window.session.path)
    assert item.facts[0] == window.session.survey.log_bytes


def test_the_page_is_four_cards_and_fits_a_small_window(qtbot, tmp_path):
    """It had eleven cards in two columns and a line of keys, so nobody saw where to begin."""
    recent = [RecentStore(str(tmp_path / str(number)), f"store-{number}", 0) for number in range(9)]
    page = WelcomePage(recent, samples())
    qtbot.addWidget(page)
    page.resize(1280, 660)
    page.show()
    cards = [part for part in page.findChildren(Card) if part.isVisible()]
    assert len(cards) == 4
    assert page.verticalScrollBar().maximum() == 0
    assert len([part for part in page.findChildren(QWidget) if part.objectName().startswith("welcome.recent.")]) == 4


def test_the_first_part_has_the_focus_and_tab_reaches_every_row(run, window):
    """The focus stood on the page itself, where nothing showed it."""
    window.show()
    window.show_welcome()
    page = window.findChild(WelcomePage, "welcome")
    assert window.focusWidget().objectName() == "welcome.open"
    names = set()
    for _ in range(20):
        QTest.keyClick(window.focusWidget(), Qt.Key.Key_Tab)
        names.add(window.focusWidget().objectName())
    assert names >= {f"welcome.{name}" for name in ("cluster", "ssh", "help", "tour", "lab", "sample.orders")}
    assert page.objectName() not in names
