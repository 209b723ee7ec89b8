"""The load that is put on a lab store."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication

from viewer.lab.load import LoadPanel


def test_sliders_are_settings_of_a_load(qapp: QApplication) -> None:
    panel = LoadPanel()
    started: list[object] = []
    panel.startAsked.connect(started.append)
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
    panel.stopAsked.connect(lambda: stopped.append(True))
    panel.show_state(able=True, running=True, paused=False)
    panel.toggle()
    assert stopped == [True]
    panel.show_answers(4212.0, {"PUT_OK": 99, "FLUSH_DISK_TIMEOUT": 1}, 0.29, 2.1, 1_614_807.0)
    texts = panel.facts.texts()
    assert texts[0] == "answered: 4,212 /s PUT_OK 99.00 %"
    assert "FLUSH_DISK_TIMEOUT 1" in texts[1]
    assert texts[2] == "median: 0.29 ms p99 2.1 ms"
    panel.deleteLater()
