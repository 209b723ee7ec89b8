"""The rail: one button per view, one of them active, slim in a narrow window."""

from __future__ import annotations

import pytest

from viewer.shell.rail import Rail


@pytest.fixture
def rail(shown):
    return shown(
        Rail((("log", "log", "Log", "Ctrl+1"), ("queue", "queue", "Queues", "")), (("help", "search", "Help", "F1"),))
    )


def test_one_view_is_in_front(rail):
    rail.set_current("queue")
    assert [name for name, button in rail.buttons.items() if button.isChecked()] == ["queue"]
    rail.set_current("log")
    assert [name for name, button in rail.buttons.items() if button.isChecked()] == ["log"]


def test_a_click_is_signalled_and_keys_are_in_the_tooltip(rail):
    chosen: list[str] = []
    rail.chosen.connect(chosen.append)
    rail.buttons["help"].click()
    assert chosen == ["help"]
    assert rail.buttons["log"].toolTip() == "Log   Ctrl+1"
    assert rail.buttons["queue"].toolTip() == "Queues"
    assert rail.buttons["queue"].accessibleName() == "Queues"


def test_the_rail_becomes_slim_and_wide_again(rail):
    wide = rail.width()
    rail.set_slim(True)
    assert rail.width() < wide
    rail.grab()
    rail.set_slim(False)
    assert rail.width() == wide
