"""The deck that serves: ports asked for, faults under them, what is served with its codes and clients."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QGuiApplication

from engine.lab.serving import CodeCount, ServedClient, ServingState
from viewer.lab.serve import ServePanel

STATE = ServingState(
    "127.0.0.1:10911", "127.0.0.1:9876", "broker-a", 0, 0.4, 12.0, 3, 1,
    (CodeCount(10, "SEND_MESSAGE", 25, 0.25, 2.0), CodeCount(11, "PULL_MESSAGE", 4, None, None, 3, 1)),
    (ServedClient("a@1", "127.0.0.1:9", "JAVA", "5.3.3", ("payers",), (), 1),),
)  # fmt: skip


@pytest.fixture
def panel(shown) -> ServePanel:
    made = ServePanel()
    shown(made, width=1100)
    made.resize(1100, 420)
    return made


def test_not_serving_it_asks_for_ports(panel: ServePanel) -> None:
    panel.show_state(None, able=True)
    asked: list[tuple[int, int]] = []
    panel.serveAsked.connect(lambda *ports: asked.append(ports))
    panel.go.click()
    panel.port.setText("0")
    panel.namesrv.setText("99999")
    panel.go.click()
    assert asked == [(10911, 9876)]
    assert panel.fault.text() == "99999 is no port: expected 0 to 65,535"
    panel.fail("cannot listen on 127.0.0.1:9876: Address already in use")
    assert "127.0.0.1:9876" in panel.fault.text()
    assert panel.fault.isVisible()


def test_serving_it_shows_codes_and_clients_and_leads_to_requests(panel: ServePanel) -> None:
    panel.show_state(STATE, able=True)
    assert panel.chip.isVisible()
    assert (panel.codes.total_rows(), panel.clients.total_rows()) == (2, 1)
    asked: list[str] = []
    panel.requestsAsked.connect(asked.append)
    panel.codes.go_to(1)
    panel.codes.doubleClicked.emit(panel.codes.currentIndex())
    assert asked == ["code = 11"]
    panel._copy()
    assert QGuiApplication.clipboard().text() == "127.0.0.1:9876"
    panel.retheme()
    panel.show_state(None, able=True)
    assert panel.go.isVisible()
    assert not panel.stop.isVisible()


def test_nobody_there_is_said(panel: ServePanel) -> None:
    panel.show_state(ServingState("h:1", "h:2", "b", 0, 0.1, 1.0), able=True)
    state = panel.clients.note.state
    assert state is not None
    assert state.text == "No client has sent a heartbeat yet."
