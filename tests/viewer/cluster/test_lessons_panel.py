"""Lessons by a click: begun, gone on with each reading, stopped; only where clients may be added."""

from __future__ import annotations

import made_clusters as made
import pytest

from viewer.cluster.cluster_model import Look
from viewer.cluster.lessons import LESSONS
from viewer.cluster.lessons_panel import LessonsPanel
from viewer.cluster.own_clients import OwnClients


@pytest.fixture
def panel(shown, monkeypatch) -> LessonsPanel:
    asked: list[tuple[object, ...]] = []
    monkeypatch.setattr(OwnClients, "_ask", lambda _self, *command: asked.append(command))
    made_panel = LessonsPanel()
    made_panel.model, made_panel.own = made.looked_at(made.small()), OwnClients(made_panel)
    made_panel.asked = asked  # type: ignore[attr-defined]
    shown(made_panel, width=250)
    made_panel.refresh()
    return made_panel


def test_a_click_runs_a_lesson_and_another_one_stops_it(panel):
    said = []
    panel.did.connect(said.append)
    button = panel._buttons["more"]
    button.click()
    assert said == ["One more consumer"]
    assert [command[0] for command in panel.asked] == ["add"] * 3
    assert button.text() == "Stop"
    assert panel._results["more"].text() == "running, 3 of 9"
    panel.model.take(Look(made.small(1)))
    panel.go_on()
    button.click()
    assert panel._results["more"].text() == "stopped"
    assert button.text() == "Run again"
    assert [command[0] for command in panel.asked[3:]] == ["stop"] * 3
    button.click()
    assert panel.runs["more"].standing == "running"


def test_elsewhere_none_can_be_run(panel):
    panel.model.address = "10.0.0.1:9876"
    panel.refresh()
    assert not any(button.isEnabled() for button in panel._buttons.values())
    panel.run(LESSONS[0])
    assert panel.runs == {}
    panel.own = None
    panel.go_on()
