"""Groups of three real brokers in DLedger mode: a leader whose last entries the next leader replaces. The plans of the
members' stores are what their next starts have.

``bash packaging/test.sh tests/clients/test_dledger_groups.py --clients-full``
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import real_cluster

from engine.client.messages import Message
from engine.client.producer import Producer, ProducerConfig
from engine.config import read_config
from engine.inspection.dledger_members import plan_following
from engine.inspection.recovery import plan
from engine.inspection.snapshot import open_store
from engine.releases import of_version
from engine.remoting.connection import connect
from engine.remoting.frame import Command

pytestmark = [pytest.mark.peer, pytest.mark.clients_full, pytest.mark.timeout(900)]
TIMEOUT_S = 90.0
GONE_MESSAGES = 14


class Group:
    """Three members, each a process of its own, and a name server."""

    def __init__(self, folder: Path, release: str) -> None:
        self.folder = folder
        self.release = release
        self.namesrv = f"127.0.0.1:{real_cluster.free_port()}"
        self.ports = [real_cluster.free_port() for _ in range(3)]
        self.peers = ";".join(f"n{member}-127.0.0.1:{real_cluster.free_port()}" for member in range(3))
        self.running: dict[int, contextlib.ExitStack] = {}

    def store(self, member: int) -> Path:
        return self.folder / f"n{member}" / "store"

    def start(self, *members: int) -> None:
        """Start members at the same time: alone none of them registers."""
        with ThreadPoolExecutor(len(members)) as pool:
            list(pool.map(self._start, members))

    def _start(self, member: int) -> None:
        settings = {
            "enableDLegerCommitLog": "true",
            "dLegerGroup": "broker-a",
            "dLegerSelfId": f"n{member}",
            "dLegerPeers": self.peers,
        }
        options: list[object] = ["--namesrv", self.namesrv, "--port", self.ports[member], "--small"]
        for key, value in settings.items():
            options += ["--set", f"{key}={value}"]
        stack = contextlib.ExitStack()
        stack.enter_context(real_cluster.real(self.folder / f"n{member}", *options, release=self.release))
        self.running[member] = stack

    def kill(self, *members: int) -> None:
        for member in members:
            self.running.pop(member).close()

    def ask(self, member: int, code: int, **fields: str) -> Command:
        return asyncio.run(_ask(f"127.0.0.1:{self.ports[member]}", code, fields))

    def leader(self) -> int:
        """The running member that the name server knows as master."""
        leaders: list[int] = []

        def is_known() -> bool:
            body = asyncio.run(_ask(self.namesrv, 105, {"topic": "TBW102"})).body or b""
            leaders[:] = [m for m in self.running if f'0:"127.0.0.1:{self.ports[m]}"'.encode() in body]
            return len(leaders) == 1

        wait_until(is_known, "no leader")
        return leaders[0]

    def send(self, topics: Iterable[str], timeout_s: float | None = None) -> None:
        """Send a message to each of ``topics``; with ``timeout_s`` none of them must be acknowledged."""

        async def send_all() -> None:
            config = ProducerConfig(release=self.release[:3])
            async with Producer("senders", self.namesrv, config) as producer:
                sends = [asyncio.ensure_future(producer.send(Message(topic, b"body " * 30))) for topic in topics]
                done, waiting = await asyncio.wait(sends, timeout=timeout_s)
                for send in waiting:
                    send.cancel()
                acknowledged = [send for send in done if send.exception() is None]
                assert len(acknowledged) == (len(sends) if timeout_s is None else 0)

        asyncio.run(send_all())

    def log_end(self, member: int) -> int:
        answer = self.ask(member, 28)
        return int(json.loads(answer.body)["table"]["commitLogMaxOffset"]) if answer.code == 0 and answer.body else -1

    def queue_ends(self, member: int, topics: Iterable[str]) -> dict[tuple[str, int], int]:
        queues = [(topic, queue_id) for topic in topics for queue_id in range(4)]
        answers = [self.ask(member, 30, topic=topic, queueId=str(queue_id)) for topic, queue_id in queues]
        return {queue: int(answer.fields["offset"]) for queue, answer in zip(queues, answers, strict=True)}


async def _ask(address: str, code: int, fields: dict[str, str]) -> Command:
    host, _, port = address.rpartition(":")
    connection = await connect(host, int(port))
    try:
        return await connection.ask(Command(code, fields, version=395))
    finally:
        connection.close()
        await connection.closed.wait()


def wait_until(condition: Callable[[], bool], message: str) -> None:
    until = time.monotonic() + TIMEOUT_S
    while True:
        with contextlib.suppress(OSError, TimeoutError):
            if condition():
                return
        assert time.monotonic() < until, message
        time.sleep(0.5)


def ends(start: Any, topics: Iterable[str]) -> dict[tuple[str, int], int]:
    queues = {(queue.topic, queue.queue_id): queue.max_offset for queue in start.queues}
    return {(topic, queue_id): queues.get((topic, queue_id), 0) for topic in topics for queue_id in range(4)}


@pytest.mark.parametrize("release", ["4.9.7", "5.3.3", "5.4.0", "5.5.1"])
def test_plans_of_members_are_what_their_starts_have(tmp_path: Path, release: str) -> None:
    line = of_version(release)
    assert line is not None
    group = Group(tmp_path, release)
    port = group.namesrv.rpartition(":")[2]
    with real_cluster.real(tmp_path / "ns", "--namesrv-port", port, release=release), contextlib.ExitStack() as ended:
        ended.callback(lambda: group.kill(*list(group.running)))
        group.start(0, 1, 2)
        old_leader = group.leader()
        followers = [member for member in range(3) if member != old_leader]
        group.send(["Orders"] * 200)
        time.sleep(5)
        group.kill(followers[0])
        group.send(["Orders"] * 100)
        time.sleep(4)
        group.kill(followers[1])
        group.send(["Orders", "Gone"] * (GONE_MESSAGES // 2), timeout_s=4)
        time.sleep(4)
        group.kill(old_leader)
        group.start(*followers)
        new_leader = group.leader()
        group.send(["Orders"] * 5)
        time.sleep(6)
        group.kill(*followers)
        config = read_config(tmp_path / f"n{old_leader}" / "broker.conf")
        shutil.copytree(group.store(new_leader) / f"dledger-n{new_leader}", tmp_path / "leader" / "dledger-n9")
        with open_store(group.store(old_leader), config) as store, open_store(tmp_path / "leader") as leader:
            start = plan(store, line, losses=False)
            following = plan_following(store, leader)
        assert 0 < following.replaced_entries == sum(following.replaced.values())
        assert following.committed_lost == 0
        group.start(0, 1, 2)
        wait_until(
            lambda: all(group.log_end(member) == following.end_offset for member in range(3)),
            "the members do not get the log of the plan",
        )
        time.sleep(2)
        actual_ends = group.queue_ends(old_leader, ["Gone"])
    assert actual_ends == ends(start, ["Gone"])
