"""Epochs of masters in a real group in controller mode: our ``getBrokerEpoch`` shows what mqadmin's shows.

``bash packaging/test.sh tests/clients/test_controller_epochs.py --clients-full``
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import agree
import mqadmin_texts
import pytest
import real_cluster
from served_stores import responses_of

from engine.client.messages import Message
from engine.client.producer import Producer, ProducerConfig
from engine.remoting.codes import RequestCode
from engine.remoting.frame import Command

pytestmark = [pytest.mark.peer, pytest.mark.clients_full, pytest.mark.timeout(600)]
TIMEOUT_S = 120.0
TERMS = 4


class Group:
    """Two brokers in controller mode, and a name server that is their controller."""

    def __init__(self, folder: Path, release: str) -> None:
        self.folder = folder
        self.release = release
        self.namesrv_port, self.controller_port = real_cluster.free_port(), real_cluster.free_port()
        self.ports = [real_cluster.free_port() for _ in range(2)]
        self.running: dict[int, contextlib.ExitStack] = {}

    @property
    def namesrv(self) -> str:
        return f"127.0.0.1:{self.namesrv_port}"

    def address(self, member: int) -> str:
        return f"127.0.0.1:{self.ports[member]}"

    def store(self, member: int) -> Path:
        return self.folder / f"n{member}" / "store"

    def start(self, *members: int) -> None:
        with ThreadPoolExecutor(len(members)) as pool:
            list(pool.map(self._start, members))

    def _start(self, member: int) -> None:
        options: list[object] = ["--namesrv", self.namesrv, "--port", self.ports[member], "--small"]
        options += ["--set", "enableControllerMode=true", "--set", f"controllerAddr=127.0.0.1:{self.controller_port}"]
        stack = contextlib.ExitStack()
        stack.enter_context(real_cluster.real(self.folder / f"n{member}", *options, release=self.release))
        self.running[member] = stack

    def kill(self, *members: int) -> None:
        for member in members:
            self.running.pop(member).close()

    def master(self) -> int:
        """Return the running member that the name server knows as master, once there is one."""
        masters: list[int] = []

        def is_elected() -> bool:
            (route,) = responses_of(self.namesrv, Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TBW102"}))
            brokers = json.loads(route.body or b"{}").get("brokerDatas", ())
            addresses = {broker["brokerAddrs"].get("0") for broker in brokers}
            masters[:] = [member for member in self.running if self.address(member) in addresses]
            return len(masters) == 1

        wait_until(is_elected, "no master")
        return masters[0]

    def log_end(self, member: int) -> int:
        (answer,) = responses_of(self.address(member), Command(RequestCode.GET_BROKER_RUNTIME_INFO, {}))
        return int(json.loads(answer.body or b"{}")["table"]["commitLogMaxOffset"])

    def send(self, count: int) -> None:
        async def send_all() -> None:
            async with Producer("senders", self.namesrv, ProducerConfig(release=self.release[:3])) as producer:
                for number in range(count):
                    await producer.send(Message("Orders", b"body %d" % number))

        asyncio.run(send_all())


def wait_until(condition: Callable[[], bool], message: str) -> None:
    until = time.monotonic() + TIMEOUT_S
    while True:
        with contextlib.suppress(OSError, TimeoutError):
            if condition():
                return
        assert time.monotonic() < until, message
        time.sleep(0.5)


def rows_of(records: list[dict]) -> list[tuple[int, int, int]]:
    return mqadmin_texts.records_as_rows("getBrokerEpoch", records)


@pytest.mark.parametrize("release", ["5.3.3", "5.4.0", "5.5.1"])
def test_epochs_of_a_group_are_those_that_mqadmin_shows(release: str, tmp_path: Path) -> None:
    """The master is killed after each term; both members and their stores have the same epochs in the end."""
    group = Group(tmp_path, release)
    ports = ("--namesrv-port", group.namesrv_port, "--controller-port", group.controller_port)
    with real_cluster.real(tmp_path / "ns", *ports, release=release), contextlib.ExitStack() as ended:
        ended.callback(lambda: group.kill(*list(group.running)))
        group.start(0, 1)
        masters = []
        for term in range(TERMS):
            masters.append(group.master())
            group.send(20 + term)
            wait_until(lambda: group.log_end(0) == group.log_end(1), "the slave does not follow")
            if term < TERMS - 1:
                group.kill(masters[-1])
                group.master()
                group.start(masters[-1])
        commands = "getBrokerEpoch -b broker-a\ngetBrokerEpoch -c PeerCluster\n"
        outputs = mqadmin_texts.outputs_by_command(real_cluster.mqadmin(group.namesrv, commands, release))
        for line, output in outputs.items():
            name, *options = line.split()
            records = agree.records_of(name, "-n", group.namesrv, *options)
            rows = rows_of(records)
            assert rows == mqadmin_texts.epochs(output)
            assert len(rows) == 2 * TERMS
            assert {record["address"] for record in records} == {group.address(0), group.address(1)}
        assert len(outputs) == 2
        group.kill(0, 1)
    for member in range(2):
        assert rows_of(agree.records_of("getBrokerEpoch", "-s", group.store(member))) == rows[:TERMS]
