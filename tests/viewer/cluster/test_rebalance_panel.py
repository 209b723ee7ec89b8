"""The rebalance beside its steps: the user can go back to each step, and forward to now."""

from __future__ import annotations

import pytest
import sample_clusters as made
from PySide6.QtWidgets import QApplication

from viewer.cluster.cluster_model import Reading, Selection
from viewer.cluster.rebalance_panel import AFTER_STEP_MS, BEFORE_STEP_MS, RebalancePanel
from viewer.widgets.basics import Label


@pytest.fixture
def panel(shown) -> RebalancePanel:
    made_panel = RebalancePanel()
    made_panel.model = made.looked_at(*made.rebalanced())
    made_panel.model.choose(Selection("group", "billing"))
    shown(made_panel, width=1400)
    made_panel.resize(1400, 800)
    made_panel.refresh()
    return made_panel


def words(panel: RebalancePanel) -> str:
    QApplication.processEvents()
    return " · ".join(label.text() for label in panel._impacts.findChildren(Label) if label.isVisible())


def test_the_newest_step_is_shown_while_following(panel):
    assert [panel.group.itemText(number) for number in range(panel.group.count())] == ["billing", "ledger"]
    assert panel.at.text() == "Step 3 of 3"
    assert panel.window_ms == (made.BEGUN, made.BEGUN + 59_000)
    assert "Idle consumers · 0 → 1" in words(panel)
    assert panel.steps.total_rows() == 3


def test_earlier_steps_can_be_chosen_and_now_follows_the_last(panel):
    went = []
    panel.timeRequested.connect(went.append)
    panel.walk(-1)
    assert panel.at.text() == "Step 2 of 3"
    assert went == [made.BEGUN + 19_000]
    step = panel.chosen_step
    assert panel.window_ms == (step.begin - BEFORE_STEP_MS, step.begin + BEFORE_STEP_MS + AFTER_STEP_MS)
    assert "Pause · 2.0–4.0 s" in words(panel)
    assert panel.moves.total_rows() == 6
    panel.walk(-1)
    panel.walk(-1)
    assert panel.at.text() == "Step 1 of 3"
    assert "at the first reading" in words(panel)
    for _ in range(3):
        panel.walk(1)
    assert went[-1] is None
    assert panel.step is None


def test_impacts_stay_in_sight_while_their_figures_change(panel):
    """Each reading made new labels, which stay empty until the next turn of the event loop. The impacts flickered, and
    a picture of the help showed none.
    """
    panel.choose_step(1)
    labels_before = [label for label in panel._impacts.findChildren(Label) if label.isVisible()]
    texts = [label.text() for label in labels_before]
    panel.choose_step(2)
    labels_after = [label for label in panel._impacts.findChildren(Label) if label.isVisible()]
    assert [label.text() for label in labels_after] != texts
    assert set(labels_before) & set(labels_after)
    assert all(label.text() for label in labels_after)


def test_zoom_and_fit(panel):
    begin, end = panel.window_ms
    panel._zoom(0.5, begin)
    assert panel.window_ms == (begin, begin + (end - begin) // 2)
    panel.fit()
    assert panel.window_ms == (begin, end)


def test_another_group_and_readings_that_come(panel):
    chosen = []
    panel.groupChosen.connect(chosen.append)
    panel.group.setCurrentText("ledger")
    panel._group_chosen()
    assert chosen == ["ledger"]
    panel.model.choose(Selection("group", "ledger"))
    panel.refresh()
    assert panel.line.group == "ledger"
    assert panel.at.text() == "Step 1 of 1"
    panel.model.take(Reading(made.small(61)))
    panel.refresh()
    assert panel.line.end == made.BEGUN + 61_000


def test_without_readings_there_is_a_message(shown):
    panel = shown(RebalancePanel())
    panel.refresh()
    assert panel.head.note.text() == "nothing was read yet"
    assert panel.steps.note.state is not None
    panel.walk(1)
    panel.fit()
