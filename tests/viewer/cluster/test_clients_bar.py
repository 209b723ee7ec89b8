"""Our own clients are offered only after the user declared the cluster to be theirs, also on this machine."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sample_clusters as made
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLabel

from viewer.cluster.clients_bar import SLOW_S, ClientsBar
from viewer.cluster.clients_process import ClientStatus
from viewer.cluster.cluster_model import Reading, Selection
from viewer.cluster.own_clients import OwnClients
from viewer.pane.confirmation import Confirmation


@pytest.fixture
def bar(shown, monkeypatch) -> ClientsBar:
    made_bar = ClientsBar()
    commands: list[tuple[object, ...]] = []
    monkeypatch.setattr(OwnClients, "_send_command", lambda _self, *command: commands.append(command))
    made_bar.model, made_bar.own = made.looked_at(made.small()), OwnClients(made_bar)
    made_bar.commands = commands  # type: ignore[attr-defined]
    shown(made_bar, width=1200)
    made_bar.refresh()
    return made_bar


def test_escape_closes_the_form_and_restores_the_focus(bar, qtbot):
    """Esc did nothing, and after Add and Close the focus was on an arbitrary widget."""
    bar.producer.setFocus()
    bar.open_form("consumer")
    assert bar.topic.hasFocus()
    event = QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_Escape, Qt.KeyboardModifier.NoModifier)
    assert bar.handle_key(event)
    assert not bar.form.isVisible()
    assert bar.producer.hasFocus()
    assert not bar.handle_key(event), "nothing is open"
    bar.open_form("consumer")
    bar.add()
    assert bar.producer.hasFocus()


def test_a_cluster_is_read_only_until_the_user_declares_it_also_on_this_machine(bar):
    """A cluster behind an address of this machine counted as declared. Behind an ssh tunnel the window offered to send
    messages to somebody else's cluster.
    """
    done = []
    bar.operationDone.connect(lambda name, _words, parameters: done.append((name, parameters)))
    bar.model.withdraw()
    bar.refresh()
    assert bar.read_only_label.text() == "Read-only"
    assert not bar.producer.isVisible()
    bar.open_form("producer")
    assert not bar.form.isVisible()
    bar.add()
    assert bar.own.rows == {}
    bar.own_button.click()
    assert not bar.producer.isVisible(), "the question is not answered yet"
    box = bar.findChild(Confirmation, "cluster.declare")
    assert any(made.NAMES in label.text() for label in box.findChildren(QLabel))
    assert any("10.0.0.9:10911" in label.text() for label in box.findChildren(QLabel))
    box.agree.click()
    assert bar.producer.isVisible()
    assert not bar.own_button.isVisible()
    bar.withdraw_button.click()
    assert not bar.producer.isVisible()
    assert [(name, parameters["address"]) for name, parameters in done] == [("cluster.mine", made.NAMES)] * 2


def test_other_brokers_behind_the_declared_address_make_the_cluster_read_only(bar):
    """The near end of a tunnel keeps its address when the tunnel is opened to another cluster."""
    state = made.small()
    other = replace(state.brokers[0], name="other", address="10.9.9.9:10911")
    bar.model.take(Reading(replace(state, time_ms=state.time_ms + 1000, brokers=(other,))))
    bar.refresh()
    assert not bar.producer.isVisible()
    assert bar.status_label.text() == "brokers that you did not declare: 10.9.9.9:10911"
    assert bar.possible_commands().keys() == {"cluster.mine"}


def test_the_cluster_that_the_lab_serves_needs_no_declaration(bar):
    bar.model.withdraw()
    bar.model.of_lab, bar.model.lab_brokers = True, bar.model.brokers
    assert bar.model.is_own
    bar.model.lab_brokers = frozenset(list(bar.model.brokers)[:-1])
    assert not bar.model.is_own, "a broker that the lab does not serve registered itself there"


def test_a_client_is_added_with_the_chosen_start(bar):
    bar.model.choose(Selection("group", "billing"))
    bar.consumer.click()
    assert (bar.group.text(), bar.topic.text(), bar.amount.text()) == ("billing", "OrderPaid", "0")
    bar.amount.setText("x")
    bar.add()
    assert bar.form_error.text() == "Expected a group, a topic and a number."
    bar.amount.setText("25")
    bar.add()
    assert not bar.form.isVisible()
    assert bar.own.rows[1].spec.delay == 0.025
    bar.producer.click()
    assert (bar.group.text(), bar.topic.text(), bar.amount.text()) == ("senders", "OrderPaid", "100")
    bar.amount.setText("0")
    bar.add()
    assert bar.form_error.text()
    bar.amount.setText("50")
    bar.add()
    assert bar.own.rows[2].spec.rate == 50
    bar.model.choose(Selection("queue", queue=made.S[0]))
    bar.open_form("producer")
    assert bar.topic.text() == "StockReserved"


def test_a_killed_or_slowed_client_is_labelled_so(bar):
    """A killed client of ours was shown as "not one of yours", and Slow gave no sign that it was on."""
    bar.own.add("consumer", bar.model.addresses, "billing", "OrderPaid", 0)
    bar.own._on_report(ClientStatus(1, "running", made.C1.client_id))
    bar.model.choose(Selection("client", made.C1.client_id, "billing"))
    bar.refresh()
    bar.slow.click()
    bar.refresh()
    assert bar.slow.isChecked()
    assert bar.status_label.text() == "slowed: each message takes 25 ms longer"
    bar.own._on_report(ClientStatus(1, "killed", made.C1.client_id))
    bar.refresh()
    assert bar.status_label.text() == "you killed this client"


def test_the_chosen_client_is_slowed_paused_stopped_and_killed(bar):
    bar.own.add("consumer", bar.model.addresses, "billing", "OrderPaid", 0)
    bar.own._on_report(ClientStatus(1, "running", made.C1.client_id))
    bar.model.choose(Selection("client", made.C2.client_id, "billing"))
    bar.refresh()
    assert not bar.kill.isVisible()
    assert bar.status_label.text() == "this client is not one of yours"
    bar.model.choose(Selection("client", made.C1.client_id, "billing"))
    bar.refresh()
    assert bar.selected_name.text() == "C2"
    assert bar.status_label.text() == "1 client, your own"
    bar.slow.click()
    assert bar.own.rows[1].delay == SLOW_S
    bar.slow.click()
    bar.pause.click()
    assert bar.own.rows[1].paused
    bar.stop.click()
    bar.kill.click()
    assert [command[0] for command in bar.commands] == ["add", "slow", "slow", "pause", "stop", "kill"]
    bar.own.rows[1] = replace(bar.own.rows[1], error="no answer")
    bar.refresh()
    assert bar.status_label.text() == "consumer billing: no answer"
    bar.model.choose(Selection())
    for action in (bar.toggle_slow, bar.toggle_pause, lambda: bar.end_selected(kill=True)):
        action()
    assert len(bar.commands) == 6
