"""The panel of a power loss: the possible actions, and its text before the first power loss."""

from __future__ import annotations

from PySide6.QtWidgets import QPushButton

from viewer.lab.power_loss_panel import LEGEND, PowerLossPanel, Swatch


def test_possible_actions_are_requested(qtbot):
    panel = PowerLossPanel()
    qtbot.addWidget(panel)
    requests = []
    panel.powerLossRequested.connect(lambda: requests.append("plug"))
    panel.recoverRequested.connect(lambda: requests.append("recover"))
    panel.show_able(can_cut=True, recover=False)
    for name in ("lab.plug", "lab.recover"):
        panel.findChild(QPushButton, name).click()
    assert requests == ["plug"]
    panel.show_able(can_cut=False, recover=True)
    panel.recover.click()
    assert requests == ["plug", "recover"]


def test_before_a_power_loss_the_table_explains_itself(qtbot):
    panel = PowerLossPanel()
    qtbot.addWidget(panel)
    panel.show_report(None)
    assert panel.table.note.state.text.startswith("After a power cut this compares three states")
    assert (panel.recover.isHidden(), panel.again.isHidden()) == (False, True)
    panel.set_slim(True)
    assert panel._legend.isHidden()


def test_every_kind_of_range_has_a_swatch(qtbot):
    for kind, _ in LEGEND:
        swatch = Swatch(kind)
        qtbot.addWidget(swatch)
        assert not swatch.grab().isNull()
