"""Tabs whose pages are in two views: Cluster and Requests, Where and Trace."""

from __future__ import annotations

from PySide6.QtWidgets import QLineEdit, QWidget

from viewer.pane.view_tabs import OF_CLUSTER, REQUESTS, ClusterTabs
from viewer.runtime.places import Place, trace


def test_a_tab_of_the_other_view_opens_it_and_this_tab_stays(qtbot) -> None:
    tabs = ClusterTabs("tabs", OF_CLUSTER)
    qtbot.addWidget(tabs)
    places, chosen = [], []
    tabs.placeRequested.connect(places.append)
    tabs.chosen.connect(chosen.append)
    tabs.choose("tables")
    tabs.choose(REQUESTS)
    assert (tabs.key, chosen, places) == ("tables", ["tables"], [Place("requests")])
    beside = ClusterTabs("beside", (REQUESTS,))
    qtbot.addWidget(beside)
    beside.placeRequested.connect(places.append)
    beside.choose("rebalance")
    assert (beside.key, places[-1]) == (REQUESTS, Place("cluster", field="rebalance"))


def test_requests_are_beside_tables_and_rebalance(run, window) -> None:
    """Cluster and Requests were two rail entries, so a user of the cluster view did not find its requests."""

    async def look() -> None:
        window.show_view("cluster")
        window.pane("cluster").tabs.choose(REQUESTS)
        assert window.view == "requests"
        window.pane("requests").tabs.choose("tables")
        assert window.view == "cluster"
        assert window.pane("cluster").tabs.key == "tables"

    run(look())


def test_where_and_trace_share_the_sought_key(run, window, golden) -> None:
    """A key typed in one of both had to be typed again in the other."""

    async def look() -> None:
        assert await window.open(golden("broker-orders"), "where")
        assert await window.settled()
        where = window.pane("where")
        where.field.setText("SO-000421")
        where._form_paper.findChild(QWidget, "where.tabs").choose("chain")
        assert window.view == "index"
        index = window.pane("index")
        assert (index.form.key.text(), index.form.topic.text()) == ("SO-000421", "")
        index.form.ask()
        assert index.form.question() is None
        index.form.topic.setText("OrderPaid")
        index.form.messageRequested.emit()
        assert window.view == "where"
        field = window.findChild(QLineEdit, "where.topic")
        assert (where.field.text(), field.text()) == ("SO-000421", "OrderPaid")
        where._open_other_tab("chain")
        assert window.history.current == trace("OrderPaid", "SO-000421")

    run(look())
