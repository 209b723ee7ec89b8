"""Actions on the lab's cluster: offered for the chosen item, done by the lab, undone; disabled for other clusters."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sample_clusters as made
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QMenu

from engine.errors import UsageError
from engine.lab.serving import ServedBroker, ServedClient, ServingState
from viewer.cluster.clients_bar import ClientsBar
from viewer.cluster.cluster_model import Selection
from viewer.cluster.own_clients import OwnClients

SERVING = ServingState(
    "127.0.0.1:1",
    made.NAMES,
    "broker-a",
    0,
    0.1,
    1.0,
    clients=tuple(
        ServedClient(made.C1.client_id, "127.0.0.1:7", "JAVA", "5.3.3", broker=name)
        for name in ("broker-a", "broker-b")
    ),
    brokers=(
        ServedBroker("broker-a", "127.0.0.1:1", Path("x"), True),
        ServedBroker("broker-b", "127.0.0.1:2", Path("y")),
    ),
)


class FakeLabDesk(QObject):
    """A lab that records the calls it gets."""

    served = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.serving: ServingState | None = SERVING
        self.folder: Path | None = Path("/labs/orders-7")
        self.store: Path | None = Path("/stores/orders")
        self.done: list[tuple[Any, ...]] = []
        self.refuses = ""

    def begin(self, work: Coroutine[Any, Any, Any]) -> None:
        asyncio.run(work)

    async def _do(self, *arguments: Any) -> int:
        if self.refuses:
            raise UsageError(self.refuses)
        self.done.append(arguments)
        return 2

    async def set_queues(self, *arguments: Any) -> None:
        await self._do("queues", *arguments)

    async def add_broker(self, *arguments: Any) -> None:
        await self._do("add", *arguments)

    async def end_broker(self, *arguments: Any) -> None:
        await self._do("end", *arguments)

    async def cut_client(self, *arguments: Any) -> int:
        return await self._do("cut", *arguments)


@pytest.fixture
def bar(shown, monkeypatch) -> ClientsBar:
    clients_bar = ClientsBar()
    monkeypatch.setattr(OwnClients, "_ask", lambda _self, *_command: None)
    clients_bar.model, clients_bar.own = made.looked_at(made.small()), OwnClients(clients_bar)
    clients_bar.lab.session = FakeLabDesk()  # type: ignore[assignment]
    clients_bar.notes, clients_bar.edits, clients_bar.status_texts = [], [], []  # type: ignore[attr-defined]
    clients_bar.operationDone.connect(lambda name, _words, reported: clients_bar.notes.append((name, reported)))  # type: ignore[attr-defined]
    clients_bar.lab.edited.connect(clients_bar.edits.append)  # type: ignore[attr-defined]
    clients_bar.lab.statusText.connect(clients_bar.status_texts.append)  # type: ignore[attr-defined]
    shown(clients_bar, width=1200)
    clients_bar.refresh()
    return clients_bar


def test_queues_are_added_to_the_chosen_topic_and_removed(bar):
    acts, desk = bar.lab, bar.lab.session
    bar.model.choose(Selection("queue", queue=made.B[0]))
    acts.queues.click()
    assert (acts.topic.text(), acts.at.currentText(), acts.amount.text()) == ("OrderPaid", "broker-b", "4")
    assert acts.note.text() == "2 queues there now"
    acts.amount.setText("none")
    acts.do()
    assert acts.fault.text() == "Expected a topic and a number of queues."
    acts.amount.setText("3")
    acts.go.click()
    assert desk.done == [("queues", "broker-b", "OrderPaid", 5)]
    assert not acts.form.isVisible()
    assert bar.notes == [("cluster.add.queues", {"topic": "OrderPaid", "broker": "broker-b", "queues": 5})]
    (edit,) = bar.edits
    assert edit.title == "3 queues of OrderPaid at broker-b"
    edit.put(edit.old_value)
    assert desk.done[-1] == ("queues", "broker-b", "OrderPaid", 2)


def test_a_users_own_store_is_written_only_after_a_confirmation(bar):
    acts, desk = bar.lab, bar.lab.session
    desk.folder = None
    acts.ask("queues")
    acts.go.click()
    assert desk.done == []
    assert "your own store" in acts.fault.text()
    assert acts.go.text() == "Change it"
    acts.topic.textEdited.emit("Orders")
    assert acts.go.text() == "Add"
    acts.go.click()
    acts.go.click()
    assert desk.done[0][0] == "queues"


def test_a_broker_is_added_beside_the_lab_ended_and_restarted(bar):
    acts, desk = bar.lab, bar.lab.session
    acts.broker.click()
    assert acts.name.text() == "broker-c", "the first that is free"
    assert acts.note.text() == "its store: orders-7-broker-c"
    acts.name.setText("broker-a")
    acts.do()
    assert acts.fault.text().startswith("Expected the name of a new broker")
    acts.name.setText("broker-c")
    desk.refuses = "there is a broker broker-c already"
    acts.do()
    assert acts.fault.text() == bar.status_texts[-1] == "there is a broker broker-c already"
    desk.refuses = ""
    acts.do()
    folder = Path("/labs/orders-7-broker-c")
    assert desk.done == [("add", "broker-c", folder)]
    bar.edits[-1].put(False)
    assert desk.done[-1] == ("end", "broker-c")
    bar.model.choose(Selection("broker", "broker-a"))
    bar.refresh()
    assert not acts.end.isVisible(), "that of the lab's own store"
    acts.end_now()
    bar.model.choose(Selection("broker", "broker-b"))
    bar.refresh()
    assert acts.end.isVisible()
    assert bar.name.text() == "broker-b"
    assert bar.press(key(Qt.Key.Key_Delete))
    assert desk.done[-1] == ("end", "broker-b")
    bar.edits[-1].put(True)
    assert desk.done[-1] == ("add", "broker-b", Path("y"))


def test_a_client_is_cut_from_one_broker_or_from_all(bar):
    acts, desk = bar.lab, bar.lab.session
    bar.model.choose(Selection("client", made.C2.client_id, "billing"))
    bar.refresh()
    assert not acts.cut.isEnabled()
    assert acts.cut.toolTip() == "This client has no connection to a broker of the lab."
    acts.cut_now()
    assert bar.status_texts == [acts.cut.toolTip()]
    bar.model.choose(Selection("client", made.C1.client_id, "billing"))
    bar.refresh()
    assert acts.cut.isEnabled()
    assert bar.press(key(Qt.Key.Key_Delete, Qt.KeyboardModifier.ControlModifier))
    menu = acts.cut.findChild(QMenu, "cluster.cut.menu")
    assert [action.text() for action in menu.actions()] == ["To broker-a", "To broker-b", "To all of them"]
    menu.actions()[1].trigger()
    menu.actions()[2].trigger()
    menu.close()
    assert desk.done == [("cut", made.C1.client_id, "broker-b"), ("cut", made.C1.client_id, "")]
    assert bar.status_texts[-1] == "Cut 2 connections of C2: it reconnects by itself."
    desk.serving = replace(SERVING, clients=SERVING.clients[:1])
    acts.cut_now()
    assert desk.done[-1] == ("cut", made.C1.client_id, "broker-a")


def test_actions_are_disabled_with_a_reason_elsewhere(bar):
    acts, desk = bar.lab, bar.lab.session
    assert {"cluster.add.queues", "cluster.add.broker"} <= bar.possible_commands().keys()
    assert bar.model.of_lab
    acts.ask("queues")
    for serving, output in (
        (replace(SERVING, namesrv="127.0.0.1:9"), "Read-only: the lab of this window serves 127.0.0.1:9."),
        (None, "Read-only: only a cluster that the lab serves can be changed (Lab, Serve)."),
    ):
        desk.serving = serving
        bar.refresh()
        assert not acts.form.isVisible()
        assert not bar.model.of_lab
        for tool in (acts.queues, acts.broker):
            assert not tool.isEnabled()
            assert tool.toolTip() == tool.accessibleDescription() == output
        assert bar.press(key(Qt.Key.Key_Plus))
        assert bar.press(key(Qt.Key.Key_Insert, Qt.KeyboardModifier.ControlModifier))
        acts.cut_client("")
        assert bar.status_texts[-3:] == [output] * 3
    assert not {"cluster.add.queues", "cluster.cut"} & bar.possible_commands().keys()
    assert desk.done == []


def test_keys_add_clients(bar):
    assert bar.press(key(Qt.Key.Key_Insert))
    assert bar.what.text() == "New consumer"
    assert bar.press(key(Qt.Key.Key_Insert, Qt.KeyboardModifier.ShiftModifier))
    assert bar.what.text() == "New producer"
    assert not bar.press(key(Qt.Key.Key_A))


def key(which: Qt.Key, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> QKeyEvent:
    return QKeyEvent(QKeyEvent.Type.KeyPress, which, modifiers)
