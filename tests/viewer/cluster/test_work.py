"""The worker's task: it reads a running cluster again and again until it is stopped."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from guarded_broker import credential_files, guarded_beside

from engine.broker.serving import serving_beside
from engine.errors import StoreError
from engine.message_store import MessageStore
from viewer.cluster.access import AccessFiles
from viewer.cluster.cluster_model import Reading
from viewer.cluster.work import watch


class CountingControl:
    """A :class:`viewer.runtime.worker.WorkerControl` that stops itself after some readings."""

    def __init__(self, max_readings: int) -> None:
        self.stop = threading.Event()
        self.looks: list[Reading] = []
        self._most = max_readings

    def emit(self, look: Reading) -> None:
        self.looks.append(look)
        if len(self.looks) == self._most:
            self.stop.set()


def test_a_cluster_is_read_again_and_again(tmp_path: Path):
    with serving_beside(tmp_path) as addresses:
        control = CountingControl(3)
        watch(control, (addresses.namesrv,), 0.05)
    assert [reading.state.name_servers for reading in control.looks] == [{addresses.namesrv: ""}] * 3
    assert {reading.state.brokers[0].name for reading in control.looks} == {"broker-a"}
    request = {question.name: times for question, times, _ in control.looks[-1].requests}
    assert request["GET_BROKER_CLUSTER_INFO"] == 1
    assert {"GET_BROKER_RUNTIME_INFO", "GET_ALL_TOPIC_CONFIG", "GET_ALL_PRODUCER_INFO"} <= request.keys()
    assert all(reading.took_ms > 0 for reading in control.looks)


def test_a_cluster_that_requires_tls_and_an_account_is_read_with_their_files(tmp_path: Path):
    with MessageStore(tmp_path / "store", release="5.5") as store:
        store.tables.create_topic("Orders", 1)
    _option, account, _other_option, tls = credential_files(tmp_path)
    with guarded_beside(tmp_path / "store", tmp_path, "5.5") as addresses:
        control, plain = CountingControl(1), CountingControl(1)
        watch(control, (addresses.namesrv,), 0.05, AccessFiles(account, tls))
        watch(plain, (addresses.namesrv,), 0.05)
    assert {broker.name for broker in control.looks[0].state.brokers} == {"broker-a"}
    assert plain.looks[0].state.brokers == ()


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path):
    with pytest.raises(StoreError, match=r"nowhere\.yml"):
        watch(CountingControl(1), ("127.0.0.1:1",), 1.0, AccessFiles(str(tmp_path / "nowhere.yml")))


def test_an_unreachable_cluster_is_a_reading_with_a_reason():
    control = CountingControl(1)
    watch(control, ("127.0.0.1:1",), 1.0)
    assert control.looks[0].state.name_servers["127.0.0.1:1"]
    assert control.looks[0].requests[0][0].answer == -1


def test_a_stop_ends_a_reading():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        control = CountingControl(1)
        threading.Timer(0.1, control.stop.set).start()
        watch(control, (f"127.0.0.1:{silent.getsockname()[1]}",), 1.0)
    assert control.looks == []
