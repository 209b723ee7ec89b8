"""The tab Lag: a row for each group and topic below their sum, a chart of the chosen one, export of every point."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sample_clusters as made

from viewer.cluster.cluster_model import ClusterModel, Reading
from viewer.cluster.lag_panel import LagPanel, lag_rows, sampling_words, write_csv


@pytest.fixture
def model() -> ClusterModel:
    model = ClusterModel()
    model.begin(("127.0.0.1:9876",))
    for second in range(5):
        model.take(Reading(made.small(second)))
    return model


def test_rows_have_their_sum_at_the_top(model: ClusterModel) -> None:
    total, *rows = lag_rows(model.lag)
    assert [(row.group, row.topic) for row in rows] == [("billing", "OrderPaid"), ("ledger", "StockReserved")]
    assert (total.group, total.lag) == ("All groups", sum(row.lag or 0 for row in rows))
    assert len(rows[0].line) == 5
    assert sampling_words(model).startswith("a point each 1 s since ")


def test_the_chart_shows_the_chosen_row(qtbot: Any, themed_app: Any, model: ClusterModel) -> None:
    panel = LagPanel()
    qtbot.addWidget(panel)
    panel.model = model
    panel.show()
    panel.refresh()
    chosen: list[str] = []
    panel.groupChosen.connect(chosen.append)
    panel.table.go_to(1)
    assert chosen == ["billing"]
    assert panel.chart.accessibleDescription() == "Behind 8,804"
    panel.table.go_to(0)
    assert chosen == ["billing"], "the sum is no group"


def test_without_offsets_the_table_says_so(qtbot: Any, themed_app: Any) -> None:
    panel = LagPanel()
    qtbot.addWidget(panel)
    panel.refresh()
    assert panel.table.note.state is not None
    assert panel.table.note.state.text == "No group has an offset at a broker."
    assert not panel.export.isEnabled()


def test_every_point_is_exported(model: ClusterModel, tmp_path: Path) -> None:
    assert write_csv(list(model.lag.rows()), tmp_path / "lag.csv") == 10
    head, first, *_ = (tmp_path / "lag.csv").read_text().splitlines()
    assert head == "time,group,topic,lag"
    assert first == f"{made.BEGUN},billing,OrderPaid,8004"
