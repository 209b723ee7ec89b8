"""The side column: facts, a minute of the rate, links. Folded, it names the chosen item."""

from __future__ import annotations

from collections import deque

import pytest
import sample_clusters as made
from PySide6.QtCore import Qt

from viewer.cluster.cluster_model import Reading, Selection
from viewer.cluster.side import FoldedSide, MinuteCurve, SidePanel, _round_up
from viewer.widgets.basics import Link


@pytest.fixture
def model():
    return made.looked_at(*(made.small(second) for second in range(0, 20, 2)))


def test_the_chosen_item_has_its_facts_and_links(shown, model, qtbot):
    panel = SidePanel()
    shown(panel)
    model.choose(Selection("client", made.C3.client_id, "billing"))
    panel.show_chosen(model, lambda chosen: [(f"to {chosen.group}", "place"), ("no way", None)])
    text = "\n".join(panel.facts.texts())
    assert "Client: 10.0.1.3@23#3" in text
    assert "OrderPaid / broker-b / 0 16,000 · 5,800 behind" in text
    assert panel.curve.isVisibleTo(panel)
    assert len(panel.curve._points) == 10
    chosen, followed = [], []
    panel.chosen.connect(chosen.append)
    panel.placeRequested.connect(followed.append)
    links = panel.findChildren(Link)
    qtbot.mouseClick(next(link for link in links if link.text() == "billing"), Qt.MouseButton.LeftButton)
    qtbot.mouseClick(next(link for link in links if link.text() == "to billing"), Qt.MouseButton.LeftButton)
    assert chosen == [Selection("group", "billing")]
    assert followed == ["place"]
    model.choose(Selection("names"))
    panel.show_chosen(model, lambda _chosen: [])
    assert not panel.curve.isVisibleTo(panel)


def test_many_lines_are_cut_with_a_note(shown):
    model = made.looked_at(made.large(0, topics=2, queues=200, clients=3))
    model.choose(Selection("topic", "Topic000"))
    panel = shown(SidePanel())
    panel.show_chosen(model, lambda _chosen: [])
    assert panel.hidden_note.text().endswith("more lines: see Tables")
    model.take(Reading(made.large(5, topics=2, queues=200, clients=3)))


def test_the_curve_has_gaps_without_measurements(shown):
    curve = shown(MinuteCurve())
    curve.show_minute(deque([(0, None), (1000, 5.0), (2000, None), (3000, 20.0)]), 3)
    assert curve.accessibleDescription() == "20 /s"
    first_image = curve.grab().toImage()
    curve.show_minute(deque([(0, None), (1000, 5.0), (2000, 12.0), (3000, 20.0)]), 3)
    assert curve.grab().toImage() != first_image
    curve.show_minute(deque(), -1)
    assert curve.accessibleDescription() == "…"


def test_scales_end_at_round_figures():
    assert [_round_up(value) for value in (0, 9, 11, 49, 51, 999, 1001)] == [10, 10, 20, 50, 100, 1000, 2000]


def test_the_folded_column_names_the_chosen_item(shown, model):
    folded = shown(FoldedSide())
    model.choose(Selection("group", "billing"))
    folded.show_chosen(model)
    assert folded.accessibleName() == "Side column: billing consumer group"
    folded.click()
    assert folded.isChecked()
    folded.grab()
