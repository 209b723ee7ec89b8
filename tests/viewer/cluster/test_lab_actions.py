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
    brokers=tuple(
        ServedBroker(part.name, part.address, Path(part.name), part.name == "broker-a") for part in made.small().brokers
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
    monkeypatch.setattr(OwnClients, "_send_command", lambda _self, *_command: None)
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
    actions, desk = bar.lab, bar.lab.session
    bar.model.choose(Selection("queue", queue=made.B[0]))
    actions.queues.click()
    assert (actions.topic.text(), actions.broker_choice.currentText(), actions.amount.text()) == (
        "OrderPaid",
        "broker-b",
        "4",
    )
    assert actions.note.text() == "2 queues there now"
    actions.amount.setText("none")
    actions.apply_form()
    assert actions.form_error.text() == "Expected a topic and a number of queues."
    actions.amount.setText("3")
    actions.submit.click()
    assert desk.done == [("queues", "broker-b", "OrderPaid", 5)]
    assert not actions.form.isVisible()
    assert bar.notes == [("cluster.add.queues", {"topic": "OrderPaid", "broker": "broker-b", "queues": 5})]
    (edit,) = bar.edits
    assert edit.title == "3 queues of OrderPaid at broker-b"
    edit.put(edit.old_value)
    assert desk.done[-1] == ("queues", "broker-b", "OrderPaid", 2)


def test_a_users_own_store_is_written_only_after_a_confirmation(bar):
    actions, desk = bar.lab, bar.lab.session
    desk.folder = None
    actions.open_form("queues")
    actions.submit.click()
    assert desk.done == []
    assert "your own store" in actions.form_error.text()
    assert actions.submit.text() == "Change it"
    actions.topic.textEdited.emit("Orders")
    assert actions.submit.text() == "Add"
    actions.submit.click()
    actions.submit.click()
    assert desk.done[0][0] == "queues"


def test_a_broker_is_added_beside_the_lab_ended_and_restarted(bar):
    actions, desk = bar.lab, bar.lab.session
    actions.broker.click()
    assert actions.name.text() == "broker-c", "the first that is free"
    assert actions.note.text() == "its store: orders-7-broker-c"
    actions.name.setText("broker-a")
    actions.apply_form()
    assert actions.form_error.text().startswith("Expected the name of a new broker")
    actions.name.setText("broker-c")
    desk.refuses = "there is a broker broker-c already"
    actions.apply_form()
    assert actions.form_error.text() == bar.status_texts[-1] == "there is a broker broker-c already"
    desk.refuses = ""
    actions.apply_form()
    folder = Path("/labs/orders-7-broker-c")
    assert desk.done == [("add", "broker-c", folder)]
    bar.edits[-1].put(False)
    assert desk.done[-1] == ("end", "broker-c")
    bar.model.choose(Selection("broker", "broker-a"))
    bar.refresh()
    assert not actions.end.isVisible(), "that of the lab's own store"
    actions.end_selected()
    bar.model.choose(Selection("broker", "broker-b"))
    bar.refresh()
    assert actions.end.isVisible()
    assert bar.selected_name.text() == "broker-b"
    assert bar.handle_key(key(Qt.Key.Key_Delete))
    assert desk.done[-1] == ("end", "broker-b")
    bar.edits[-1].put(True)
    assert desk.done[-1] == ("add", "broker-b", Path("broker-b"))


def test_a_client_is_cut_from_one_broker_or_from_all(bar):
    actions, desk = bar.lab, bar.lab.session
    bar.model.choose(Selection("client", made.C2.client_id, "billing"))
    bar.refresh()
    assert not actions.cut.isEnabled()
    assert actions.cut.toolTip() == "This client has no connection to a broker of the lab."
    actions.cut_selected()
    assert bar.status_texts == [actions.cut.toolTip()]
    bar.model.choose(Selection("client", made.C1.client_id, "billing"))
    bar.refresh()
    assert actions.cut.isEnabled()
    assert bar.handle_key(key(Qt.Key.Key_Delete, Qt.KeyboardModifier.ControlModifier))
    menu = actions.cut.findChild(QMenu, "cluster.cut.menu")
    assert [action.text() for action in menu.actions()] == ["To broker-a", "To broker-b", "To all of them"]
    menu.actions()[1].trigger()
    menu.actions()[2].trigger()
    menu.close()
    assert desk.done == [("cut", made.C1.client_id, "broker-b"), ("cut", made.C1.client_id, "")]
    assert bar.status_texts[-1] == "Cut 2 connections of C2: it reconnects by itself."
    desk.serving = replace(SERVING, clients=SERVING.clients[:1])
    actions.cut_selected()
    assert desk.done[-1] == ("cut", made.C1.client_id, "broker-a")


def test_actions_are_disabled_with_a_reason_elsewhere(bar):
    actions, desk = bar.lab, bar.lab.session
    assert {"cluster.add.queues", "cluster.add.broker"} <= bar.possible_commands().keys()
    assert bar.model.of_lab
    actions.open_form("queues")
    for serving, output in (
        (replace(SERVING, namesrv="127.0.0.1:9"), "Read-only: the lab of this window serves 127.0.0.1:9."),
        (None, "Read-only: only a cluster that the lab serves can be changed (Lab, Serve)."),
    ):
        desk.serving = serving
        bar.refresh()
        assert not actions.form.isVisible()
        assert not bar.model.of_lab
        for tool in (actions.queues, actions.broker):
            assert not tool.isEnabled()
            assert tool.toolTip() == tool.accessibleDescription() == output
        assert bar.handle_key(key(Qt.Key.Key_Plus))
        assert bar.handle_key(key(Qt.Key.Key_Insert, Qt.KeyboardModifier.ControlModifier))
        actions.cut_client("")
        assert bar.status_texts[-3:] == [output] * 3
    assert not {"cluster.add.queues", "cluster.cut"} & bar.possible_commands().keys()
    assert desk.done == []


def test_keys_add_clients(bar):
    assert bar.handle_key(key(Qt.Key.Key_Insert))
    assert bar.form_title.text() == "New consumer"
    assert bar.handle_key(key(Qt.Key.Key_Insert, Qt.KeyboardModifier.ShiftModifier))
    assert bar.form_title.text() == "New producer"
    assert not bar.handle_key(key(Qt.Key.Key_A))


def key(which: Qt.Key, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> QKeyEvent:
    return QKeyEvent(QKeyEvent.Type.KeyPress, which, modifiers)
