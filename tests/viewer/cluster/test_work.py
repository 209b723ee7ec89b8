"""What the worker does: readings of a cluster that runs, one after another, until it is told to stop."""

from __future__ import annotations

import threading
from pathlib import Path

from engine.broker.serving import serving_beside
from viewer.cluster.cluster_model import Reading
from viewer.cluster.work import watch


class CountingControl:
    """What :class:`viewer.runtime.worker.WorkerControl` gives; stops itself after some readings."""

    def __init__(self, most: int) -> None:
        self.stop = threading.Event()
        self.looks: list[Reading] = []
        self._most = most

    def emit(self, look: Reading) -> None:
        self.looks.append(look)
        if len(self.looks) == self._most:
            self.stop.set()


def test_a_cluster_is_read_again_and_again(tmp_path: Path):
    with serving_beside(tmp_path) as addresses:
        control = CountingControl(3)
        watch(control, (addresses.namesrv,), 0.05)
    assert [item.state.name_servers for item in control.looks] == [{addresses.namesrv: ""}] * 3
    assert {one.state.brokers[0].name for one in control.looks} == {"broker-a"}
    request = {question.name: times for question, times, _ in control.looks[-1].requests}
    assert request["GET_BROKER_CLUSTER_INFO"] == 1
    assert {"GET_BROKER_RUNTIME_INFO", "GET_ALL_TOPIC_CONFIG", "GET_ALL_PRODUCER_INFO"} <= request.keys()
    assert all(one.took_ms > 0 for one in control.looks)


def test_nobody_answering_is_a_reading_with_a_reason():
    control = CountingControl(1)
    watch(control, ("127.0.0.1:1",), 1.0)
    assert control.looks[0].state.name_servers["127.0.0.1:1"]
    assert control.looks[0].requests[0][0].answer == -1


def test_told_to_stop_while_it_reads_it_ends():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        control = CountingControl(1)
        threading.Timer(0.1, control.stop.set).start()
        watch(control, (f"127.0.0.1:{silent.getsockname()[1]}",), 1.0)
    assert control.looks == []
