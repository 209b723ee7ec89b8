"""Lessons run on a click, continue with each reading and can be stopped, only where clients may be added."""

from __future__ import annotations

import pytest
import sample_clusters as made
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from viewer.cluster.cluster_model import Reading
from viewer.cluster.lessons import LESSONS, LessonRun
from viewer.cluster.lessons_panel import LessonsPanel, LessonsSidebar
from viewer.cluster.own_clients import OwnClients
from viewer.cluster.rebalance_words import Impact
from viewer.widgets.basics import Label


@pytest.fixture
def panel(shown, monkeypatch) -> LessonsPanel:
    commands: list[tuple[object, ...]] = []
    monkeypatch.setattr(OwnClients, "_send_command", lambda _self, *command: commands.append(command))
    made_panel = LessonsPanel()
    made_panel.model, made_panel.own = made.looked_at(made.small()), OwnClients(made_panel)
    made_panel.commands = commands  # type: ignore[attr-defined]
    shown(made_panel, width=290)
    made_panel.refresh()
    return made_panel


def test_a_click_runs_a_lesson_and_another_one_stops_it(panel):
    emitted = []
    panel.operationDone.connect(emitted.append)
    entry = panel.entries["more"]
    button = entry.button
    button.click()
    assert emitted == ["One more consumer"]
    assert [command[0] for command in panel.commands] == ["add"] * 3
    assert button.text() == "Stop"
    assert entry.line.text() == "running, 3 of 9"
    panel.model.take(Reading(made.small(1)))
    panel.go_on()
    button.click()
    assert entry.line.text() == "stopped"
    assert button.text() == "Run again"
    assert [command[0] for command in panel.commands[3:]] == ["stop"] * 3 + ["forget"]
    button.click()
    assert panel.runs["more"].status == "running"


def test_elsewhere_none_can_be_run(panel):
    panel.model.address = "10.0.0.1:9876"
    panel.refresh()
    assert not any(button.isEnabled() for button in [entry.button for entry in panel.entries.values()])
    panel.run(LESSONS[0])
    assert panel.runs == {}
    panel.own = None
    panel.go_on()


def test_one_lesson_is_open_and_the_others_show_their_results(panel):
    assert panel.chosen == "more"
    assert [key for key, entry in panel.entries.items() if entry.details.isVisible()] == ["more"]
    panel.entries["retry"].fold.click()
    assert [key for key, entry in panel.entries.items() if entry.details.isVisible()] == ["retry"]
    panel.entries["retry"].fold.click()
    assert not any(entry.details.isVisible() for entry in panel.entries.values())
    assert all(entry.brief.isVisible() for entry in panel.entries.values())


def test_figures_are_below_their_lesson(panel):
    lesson = next(item for item in LESSONS if item.key == "retry")
    run = panel.runs["retry"] = LessonRun(lesson, 1, status="done", result="Refused 4 · Dead letters 4")
    run.figures = (
        Impact("Refused", "4", "each delivered 3 times", "warn"),
        Impact("Dead letters", "4", "read", "warn"),
    )
    panel.refresh()
    panel.refresh()
    entry = panel.entries["retry"]
    assert entry.line.text() == "Refused 4 · Dead letters 4"
    assert panel.head.note.text() == "1 of 8 run"
    assert [label.text() for label in entry.findChildren(Label) if label.text() == "each delivered 3 times"] != []
    assert entry.result.text() == ""


@pytest.fixture
def beside(shown) -> LessonsSidebar:
    """Show lessons and rebalance of a cluster on this machine."""
    made_page = LessonsSidebar()
    made_page.lessons.model = made_page.rebalance.model = made.looked_at(made.small())
    shown(made_page, width=1400)
    made_page.resize(1400, 700)
    made_page.refresh()
    return made_page


def shown_parts(page: LessonsSidebar) -> tuple[bool, bool, bool]:
    """Return whether strip, lessons and impact are shown."""
    return page.strip.isVisible(), page.lessons.isVisible(), page.rebalance.side.isVisible()


def test_a_narrow_window_folds_the_lessons_and_a_click_opens_them_in_place_of_the_impact(beside, qtbot):
    """Below 1180 px the lessons were missing, also in the menu and the shortcuts."""
    assert shown_parts(beside) == (False, True, True)
    beside.resize(880, 560)
    assert shown_parts(beside) == (True, False, True)
    qtbot.mouseClick(beside.strip, Qt.MouseButton.LeftButton)
    assert shown_parts(beside) == (True, True, False)
    assert beside.strip.accessibleName() == "Lessons"
    beside.strip.grab()
    beside.resize(1400, 700)
    assert shown_parts(beside) == (False, True, True)


def test_esc_folds_the_opened_lessons_and_other_clusters_have_none(beside, qtbot):
    beside.resize(880, 560)
    beside.bring()
    fold = beside.lessons.entries["more"].fold
    assert QApplication.focusWidget() is fold
    qtbot.keyClick(fold, Qt.Key.Key_Escape)
    assert shown_parts(beside) == (True, False, True)
    assert QApplication.focusWidget() is beside.strip
    qtbot.keyClick(beside.strip, Qt.Key.Key_Space)
    assert shown_parts(beside) == (True, True, False)
    beside.lessons.model.address = "10.0.0.1:9876"
    beside.refresh()
    assert shown_parts(beside) == (False, False, True)
