"""Real brokers in DLedger mode, killed (-9): the plan of the next start is what that start then has; a store that went
over to DLedger is read as its broker reads it.

``bash packaging/test.sh tests/clients/test_dledger.py --clients-full``
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dledger_damage
import pytest
import real_cluster

from engine.cli.main import main
from engine.client.messages import Message
from engine.client.producer import Producer, ProducerConfig
from engine.codec.message import Unit
from engine.inspection.recovery import plan
from engine.inspection.snapshot import open_store
from engine.releases import of_version
from engine.remoting.connection import connect
from engine.remoting.frame import Command

pytestmark = [pytest.mark.peer, pytest.mark.clients_full, pytest.mark.timeout(600)]
releases = pytest.mark.parametrize("release", ["4.9.7", "5.3.3", "5.5.1"])
MESSAGES = 400
Queues = dict[tuple[str, int], int]


@contextlib.contextmanager
def broker(folder: Path, release: str, *, dledger: bool = True, clean_end: bool = False) -> Iterator[dict[str, Any]]:
    namesrv, port = real_cluster.free_port(), real_cluster.free_port()
    options: list[object] = ["--namesrv-port", namesrv, "--port", port, "--small"]
    if dledger:
        settings = {
            "enableDLegerCommitLog": "true",
            "dLegerGroup": "broker-a",
            "dLegerSelfId": "n0",
            "dLegerPeers": f"n0-127.0.0.1:{real_cluster.free_port()}",
        }
        for key, value in settings.items():
            options += ["--set", f"{key}={value}"]
    with real_cluster.real(folder, *options, release=release, clean_end=clean_end) as started:
        yield started


def send(started: dict[str, Any], release: str, topic: str, count: int = MESSAGES) -> None:
    async def all_messages() -> None:
        async with Producer("senders", started["namesrv"], ProducerConfig(release=release[:3])) as producer:
            for number in range(count):
                await producer.send(Message(topic, b"%d " % number * 40, keys=f"{topic}-{number}"))

    asyncio.run(all_messages())


def ask(started: dict[str, Any], code: int, **fields: str) -> Command:
    async def answer() -> Command:
        host, _, port = started["broker"].rpartition(":")
        connection = await connect(host, int(port))
        try:
            return await connection.ask(Command(code, fields, version=395))
        finally:
            connection.close()
            await connection.closed.wait()

    return asyncio.run(answer())


def log_end(started: dict[str, Any]) -> int:
    """The end of the log by the broker; −1 while it is not the leader yet and does not answer."""
    answer = ask(started, 28)
    return int(json.loads(answer.body)["table"]["commitLogMaxOffset"]) if answer.code == 0 and answer.body else -1


def ends(started: dict[str, Any], queues: Queues) -> Queues:
    """What the broker says of the end of each of these queues."""
    answers = {
        (topic, number): ask(started, 30, topic=topic, queueId=str(number)).fields["offset"] for topic, number in queues
    }
    return {queue: int(offset) for queue, offset in answers.items()}


@releases
def test_the_plan_of_a_killed_broker_is_what_its_next_start_has(tmp_path: Path, release: str) -> None:
    line = of_version(release)
    assert line is not None
    with broker(tmp_path, release) as started:
        send(started, release, "Orders")
        time.sleep(4)
        send(started, release, "Late", 60)
    with open_store(tmp_path / "store") as store:
        units = sum(isinstance(item, Unit) for item in store.units())
        start = plan(store, line)
    assert units >= MESSAGES + 60
    assert start.will_start
    queues = {(queue.topic, queue.queue_id): queue.max_offset for queue in start.queues}
    with broker(tmp_path, release) as started:
        deadline = time.monotonic() + 30
        while log_end(started) != start.end_offset and time.monotonic() < deadline:
            time.sleep(0.5)
        time.sleep(2)
        assert log_end(started) == start.end_offset
        assert ends(started, queues) == queues


@pytest.mark.parametrize("kind", ["gap", "midbody", "torn-body", "blank-lost"])
def test_a_broker_has_every_entry_of_a_mended_log(golden, tmp_path: Path, kind: str) -> None:
    """Without the repair it lost up to 456 messages, and left out what was written behind a torn message."""
    root = dledger_damage.copy_store(golden("dledger-crash-5.5.1"), tmp_path / "store")
    with open_store(root) as store:
        undamaged = plan(store, "5.5")
    dledger_damage.DAMAGE[kind](root)
    assert main(["repair", str(root), "--apply", "--yes", "--quiet"]) == 0
    queues = {(queue.topic, queue.queue_id): queue.max_offset for queue in undamaged.queues}
    with broker(tmp_path, "5.5.1") as started:
        deadline = time.monotonic() + 30
        while log_end(started) != undamaged.end_offset and time.monotonic() < deadline:
            time.sleep(0.5)
        time.sleep(2)
        assert log_end(started) == undamaged.end_offset
        assert ends(started, queues) == queues
        send(started, "5.5.1", "Later", 20)
        time.sleep(2)
        assert sum(ends(started, {("Later", number): 0 for number in range(4)}).values()) == 20


@releases
def test_a_store_that_goes_over_to_dledger_is_read_as_its_broker_reads_it(tmp_path: Path, release: str) -> None:
    with broker(tmp_path, release, dledger=False, clean_end=True) as started:
        send(started, release, "Before")
    with broker(tmp_path, release) as started:
        send(started, release, "After")
        time.sleep(4)
        with open_store(tmp_path / "store") as store:
            assert store.commit_log.dledger is not None
            queues = {
                (topic, number): queue.max_offset
                for topic, by_number in store.topics().items()
                for number, queue in by_number.items()
            }
            assert {"Before", "After"} <= {topic for topic, _ in queues}
            # A 5.x broker with both logs answers this request with an IndexOutOfBoundsException.
            assert log_end(started) in {store.log.max_offset, -1}
            assert ends(started, queues) == queues
            units = [item for item in store.units() if isinstance(item, Unit)]
        keys = {key for unit in units for key in unit.keys}
        assert {f"{topic}-{number}" for topic in ("Before", "After") for number in range(MESSAGES)} <= keys
