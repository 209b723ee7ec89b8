"""The load of a lab store.

Sliders of a load: every step has its own text, and a value is shown at the nearest step.
"""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication

from viewer.lab.load import BY_KEY, KNOBS, LoadPanel, spread_bytes


def test_sliders_are_settings_of_a_load(qapp: QApplication) -> None:
    panel = LoadPanel()
    started: list[object] = []
    panel.startRequested.connect(started.append)
    panel.toggle()
    assert not started
    panel.show_state(able=True, running=False, paused=False)
    for key, value in (("producers", 2), ("rate", 500), ("body_size", 1000), ("body_spread", 50), ("keys", 10)):
        panel.set_value(key, value)
    panel.zipf.setChecked(False)
    panel.toggle()
    settings = panel.settings()
    assert started == [settings]
    assert (settings.producers, settings.rate, settings.body_size, settings.body_spread) == (2, 500, 1000, 500)
    assert (settings.topics, settings.zipf, settings.keys, settings.batch) == (3, False, 10, 1)
    panel.set_value("rate", 0)
    assert panel.settings().rate == 0
    stopped: list[bool] = []
    panel.stopRequested.connect(lambda: stopped.append(True))
    panel.show_state(able=True, running=True, paused=False)
    panel.toggle()
    assert stopped == [True]
    panel.show_answers(4212.0, {"PUT_OK": 99, "FLUSH_DISK_TIMEOUT": 1}, 0.29, 2.1, 1_614_807.0)
    texts = panel.facts.texts()
    assert texts[0] == "answered: 4,212 /s PUT_OK 99.00 %"
    assert "FLUSH_DISK_TIMEOUT 1" in texts[1]
    assert texts[2] == "median: 0.29 ms p99 2.1 ms"
    panel.deleteLater()


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.key)
def test_every_step_has_its_own_text_and_is_restored(knob):
    labels = [knob.say(step) for step in knob.steps]
    assert all(labels)
    assert len(set(labels)) == len(labels)
    assert [knob.step_of(step) for step in knob.steps] == list(range(len(knob.steps)))
    assert knob.initial in knob.steps


def test_values_between_steps_are_shown_at_the_nearest():
    body = BY_KEY["body_size"]
    assert body.steps[body.step_of(210)] == 200
    assert body.steps[body.step_of(10**9)] == 1_048_576
    assert BY_KEY["rate"].say(0) == "no limit"


def test_a_spread_is_a_share_of_the_body():
    assert (spread_bytes(200, 25), spread_bytes(0, 50)) == (50, 0)
