"""The window's end of one's own clients: what they say stands in rows, and all are gone with it."""

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
    """What the process would have been asked; none is started."""
    commands: list[tuple[object, ...]] = []
    monkeypatch.setattr(OwnClients, "_ask", lambda _self, *command: commands.append(command))
    return commands


def until(true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, what
        QApplication.processEvents()
        time.sleep(0.01)


def test_rows_follow_what_is_asked_and_told(themed_app, sent_commands):
    own = OwnClients()
    producer = own.add("producer", NAMES, "senders", "Orders", 100)
    consumer = own.add("consumer", NAMES, "readers", "Orders", 25)
    assert (producer.spec.rate, consumer.spec.delay) == (100, 0.025)
    own._take(ClientStatus(1, "running", "p@1"))
    own._take(ClientStatus(2, "running", "c@1"))
    assert own.running == 2
    assert own.find("c@1") is own.rows[2]
    assert own.find("") is None
    saw = []
    own.activityReported.connect(saw.append)
    own._take(ClientActivity(sent={"p@1": 12, "nobody": 3}))
    assert own.rows[1].sent == 12
    assert len(saw) == 1
    own.pause(2)
    own.pause(2)
    own.slow(2, 0.5)
    own.stop(1)
    own.kill(2)
    assert [command[0] for command in sent_commands] == ["add", "add", "pause", "resume", "slow", "stop", "kill"]
    own._take(ClientStatus(1, "stopped", "p@1"))
    assert own.find("p@1") is None
    own._take(ClientStatus(2, "failed", "c@1", "no name server answers"))
    assert own.rows[2].words == "no name server answers"
    assert own.running == 0
    own.pause(2)
    own._take(ClientStatus(99, "running"))


def test_a_process_that_ends_takes_its_clients_along(themed_app, sent_commands):
    own = OwnClients()
    own.add("consumer", NAMES, "readers", "Orders", 0)
    own._ended(own._pipe)  # type: ignore[arg-type]
    assert own.rows[1].status == "killed"
    own.close()


def test_a_real_one_consumes_what_another_sends(themed_app, tmp_path: Path):
    with serving_beside(tmp_path) as addresses:
        own = OwnClients()
        handed: list[object] = []
        own.activityReported.connect(lambda observed: handed.extend(observed.handed))
        own.add("producer", (addresses.namesrv,), "senders", "Orders", 100)
        until(lambda: own.rows[1].sent > 3, "it sends")
        own.add("consumer", (addresses.namesrv,), "readers", "Orders", 0)
        until(lambda: len(handed) > 3, "it consumes")
        process = own._process
        own.kill(2)
        until(lambda: own.rows[2].status == "killed", "it is killed")
        own.close()
        assert process is not None
        assert not process.is_alive()
        assert own.running == 0


def test_a_broker_of_a_lesson_is_no_client_and_is_gone_when_it_is_told_to_end(themed_app, sent_commands):
    own = OwnClients()
    own.add("broker", NAMES, "slow-1", "T", 0, Options(slow=0.5))
    own._take(ClientStatus(1, "running", "slow-1"))
    assert own.row(1).spec.options.slow == 0.5
    assert (own.running, own.ended_brokers) == (0, set())
    own.stop(1)
    assert own.ended_brokers == {"slow-1"}
    assert sent_commands[-1] == ("stop", 1)
