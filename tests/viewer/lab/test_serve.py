"""The Serve panel: ports, errors below them, and the served store with its codes and clients."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication

from engine.lab.samples import ServeSettings
from engine.lab.serving import CodeCount, LastEntry, ServedClient, ServingState
from viewer.lab.serve import ServePanel
from viewer.runtime import places
from viewer.runtime.places import REQUESTS_LIVE, Place

STATE = ServingState(
    "127.0.0.1:10911",
    "127.0.0.1:9876",
    "broker-a",
    0,
    0.4,
    12.0,
    3,
    1,
    (
        CodeCount(10, "SEND_MESSAGE", 25, 0.25, 2.0, last_entry=LastEntry("Orders", 0, 7, 1234)),
        CodeCount(11, "PULL_MESSAGE", 4, None, None, 3, 1),
    ),
    (ServedClient("a@1", "127.0.0.1:9", "JAVA", "5.3.3", ("payers",), (), 1),),
)


@pytest.fixture
def panel(shown) -> ServePanel:
    serve_panel = ServePanel()
    shown(serve_panel, width=1100)
    serve_panel.resize(1100, 420)
    return serve_panel


def test_before_serving_it_shows_port_fields(panel: ServePanel) -> None:
    panel.show_state(None, able=True)
    settings: list[ServeSettings] = []
    panel.serveRequested.connect(settings.append)
    panel.go.click()
    panel.port.setText("0")
    panel.namesrv.setText("99999")
    panel.go.click()
    assert settings == [ServeSettings(10911, 9876)]
    assert panel.fault.text() == "99999 is not a port: expected 0 to 65,535"
    panel.fail("cannot listen on 127.0.0.1:9876: Address already in use")
    assert "127.0.0.1:9876" in panel.fault.text()
    assert panel.fault.isVisible()


def test_while_serving_it_shows_codes_clients_and_a_link_to_requests(panel: ServePanel) -> None:
    panel.show_state(STATE, able=True)
    assert panel.chip.isVisible()
    assert (panel.codes.total_rows(), panel.clients.total_rows()) == (2, 1)
    filters: list[str] = []
    panel.requestsRequested.connect(filters.append)
    panel.codes.go_to(1)
    panel.codes.doubleClicked.emit(panel.codes.currentIndex())
    assert filters == ["code = 11"]
    panel._copy()
    assert QGuiApplication.clipboard().text() == "127.0.0.1:9876"
    panel.retheme()
    panel.show_state(None, able=True)
    assert panel.go.isVisible()
    assert not panel.stop.isVisible()


def test_a_missing_client_is_reported(panel: ServePanel) -> None:
    panel.show_state(ServingState("h:1", "h:2", "b", 0, 0.1, 1.0), able=True)
    state = panel.clients.note.state
    assert state is not None
    assert state.text == "No client has sent a heartbeat yet."


def test_ports_and_a_configuration_are_passed_on(panel: ServePanel, tmp_path: Path) -> None:
    panel.show_state(None, able=True)
    assert (panel.ha.placeholderText(), panel.vip.text()) == ("10912", "VIP 10909")
    panel.port.setText("20000")
    assert (panel.ha.placeholderText(), panel.vip.text()) == ("20001", "VIP 19998")
    panel.port.setText("0")
    assert panel.vip.text() == "VIP"
    settings: list[ServeSettings] = []
    panel.serveRequested.connect(settings.append)
    panel.port.clear()
    panel.namesrv.clear()
    panel.ha.setText("20002")
    panel.vip.setChecked(False)
    panel.config.setText(str(tmp_path / "broker.conf"))
    assert panel.port.placeholderText() == "…", "what the file says"
    panel.go.click()
    assert settings == [ServeSettings(None, None, 20002, vip=False, config=tmp_path / "broker.conf")]
    panel.namesrv.setText("20002")
    panel.go.click()
    assert panel.fault.text() == "20002 is named twice: each needs a port of its own"
    assert len(settings) == 1


def test_plots_follow_and_rows_lead_to_entry_and_unit(panel: ServePanel) -> None:
    panel.plots_ready = True
    panel.show_state(STATE, able=True)
    assert "Nothing is known yet" in panel.rates.accessibleDescription()
    later = (replace(STATE.codes[0], count=125), replace(STATE.codes[1], not_ok=3))
    panel.show_state(replace(STATE, clock_s=13.0, held_pulls=2, codes=later), able=True)
    assert "all 100" in panel.rates.accessibleDescription()
    assert panel.waits.accessibleDescription() == "held pulls 2; not 0 /s 2"
    panel.grab()
    assert panel.codes.total_rows() == 2
    went: list[Place] = []
    panel.placeRequested.connect(went.append)
    panel.codes.go_to(0)
    row = panel.codes.current_row()
    assert (row.role, row.entry, row.unit) == ("posLog", places.queue("Orders", 0, 7), places.log(1234))
    for key in ("entry", "physicalOffset"):
        column = next(n for n, code_column in enumerate(panel.codes.kind.columns) if code_column.key == key)
        panel.codes.setCurrentIndex(panel.codes.table.index(0, column))
        assert panel.codes.follow()
    assert went == [places.queue("Orders", 0, 7), places.log(1234)]
    linked = {fact.name: fact.place for fact in panel.facts._shown if fact.place is not None}
    assert linked["Held pulls"] == Place("requests", name=REQUESTS_LIVE, part="held and waits")
    assert set(linked) == {"Held pulls", "Not 0"}
