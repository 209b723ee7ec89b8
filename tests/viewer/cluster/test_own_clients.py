"""The window's side of our own clients: their messages become rows, and all clients end with the window."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from engine.broker.serving import serving_beside
from viewer.cluster.clients_process import ClientActivity, ClientStatus, Options
from viewer.cluster.own_clients import OwnClients

NAMES = ("127.0.0.1:9876",)


@pytest.fixture
def sent_commands(monkeypatch) -> list[tuple[object, ...]]:
    """Return the list of commands for the process; no process is started."""
    commands: list[tuple[object, ...]] = []
    monkeypatch.setattr(OwnClients, "_send_command", lambda _self, *command: commands.append(command))
    return commands


def until(condition: Callable[[], bool], expectation: str) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, expectation
        QApplication.processEvents()
        time.sleep(0.01)


def test_rows_follow_commands_and_reports(themed_app, sent_commands):
    own_clients = OwnClients()
    producer = own_clients.add("producer", NAMES, "senders", "Orders", 100)
    consumer = own_clients.add("consumer", NAMES, "readers", "Orders", 25)
    assert (producer.spec.rate, consumer.spec.delay) == (100, 0.025)
    own_clients._on_report(ClientStatus(1, "running", "p@1"))
    own_clients._on_report(ClientStatus(2, "running", "c@1"))
    assert own_clients.running == 2
    assert own_clients.find("c@1") is own_clients.rows[2]
    assert own_clients.find("") is None
    saw = []
    own_clients.activityReported.connect(saw.append)
    own_clients._on_report(ClientActivity(sent={"p@1": 12, "nobody": 3}))
    assert own_clients.rows[1].sent == 12
    assert len(saw) == 1
    own_clients.pause(2)
    own_clients.pause(2)
    own_clients.slow(2, 0.5)
    own_clients.stop(1)
    own_clients.kill(2)
    assert [command[0] for command in sent_commands] == ["add", "add", "pause", "resume", "slow", "stop", "kill"]
    own_clients._on_report(ClientStatus(1, "stopped", "p@1"))
    assert own_clients.find("p@1") is None
    own_clients._on_report(ClientStatus(2, "failed", "c@1", "no name server answers"))
    assert own_clients.rows[2].error == "no name server answers"
    assert own_clients.running == 0
    own_clients.pause(2)
    own_clients._on_report(ClientStatus(99, "running"))


def test_clients_end_with_their_process(themed_app, sent_commands):
    own_clients = OwnClients()
    own_clients.add("consumer", NAMES, "readers", "Orders", 0)
    own_clients._ended(own_clients._pipe)  # type: ignore[arg-type]
    assert own_clients.rows[1].status == "killed"
    own_clients.close()


def test_a_real_consumer_gets_a_real_producers_messages(themed_app, tmp_path: Path):
    with serving_beside(tmp_path) as addresses:
        own_clients = OwnClients()
        deliveries: list[object] = []
        own_clients.activityReported.connect(lambda observed: deliveries.extend(observed.deliveries))
        own_clients.add("producer", (addresses.namesrv,), "senders", "Orders", 100)
        until(lambda: own_clients.rows[1].sent > 3, "it sends")
        own_clients.add("consumer", (addresses.namesrv,), "readers", "Orders", 0)
        until(lambda: len(deliveries) > 3, "it consumes")
        process = own_clients._process
        own_clients.kill(2)
        until(lambda: own_clients.rows[2].status == "killed", "it is killed")
        own_clients.close()
        assert process is not None
        assert not process.is_alive()
        assert own_clients.running == 0


def test_a_lesson_broker_is_no_client_and_ends_on_request(themed_app, sent_commands):
    own_clients = OwnClients()
    own_clients.add("broker", NAMES, "slow-1", "T", 0, Options(flush_delay_s=0.5))
    own_clients._on_report(ClientStatus(1, "running", "slow-1"))
    assert own_clients.row(1).spec.options.flush_delay_s == 0.5
    assert (own_clients.running, own_clients.ended_brokers) == (0, set())
    own_clients.stop(1)
    assert own_clients.ended_brokers == {"slow-1"}
    assert sent_commands[-1] == ("stop", 1)
