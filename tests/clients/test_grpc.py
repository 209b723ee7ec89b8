"""A gRPC client of RocketMQ sends and consumes through RocketMQ's own proxy and our broker, the full path of RocketMQ 5
(docs/protocol/proxy.md).
"""

from __future__ import annotations

import asyncio
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import real_cluster

from engine.broker.config import BrokerConfig
from engine.broker.serving import Addresses, serving_beside
from engine.remoting.connection import Connection, connect
from engine.remoting.frame import Command

pytestmark = [pytest.mark.peer, pytest.mark.clients_full, pytest.mark.timeout(600)]
TOPICS = {"Normal": "NORMAL", "Fifo": "FIFO", "Delay": "DELAY", "Transactional": "TRANSACTION", "Pushed": "NORMAL"}
GROUPS = {
    "simple": {},
    "filtered": {},
    "ordered": {"consumeMessageOrderly": True},
    "waiting": {},
    "decided": {},
    "pushed": {"retryMaxTimes": 2},
}


async def _opened(address: str) -> Connection:
    host, _, port = address.rpartition(":")
    return await connect(host, int(port))


async def declare(addresses: Addresses) -> None:
    """Declare topics and groups as an administrator; a proxy creates none."""
    broker = await _opened(addresses.broker)
    for name, kind in TOPICS.items():
        fields = {
            "topic": name,
            "defaultTopic": "TBW102",
            "readQueueNums": "2",
            "writeQueueNums": "2",
            "perm": "6",
            "topicFilterType": "SINGLE_TAG",
            "attributes": f"+message.type={kind}",
        }
        assert (await broker.ask(Command(17, fields))).code == 0
    for name, group in GROUPS.items():
        row = {"groupName": name, "retryQueueNums": 1, "retryMaxTimes": 16, **group}
        assert (
            await broker.ask(Command(200, body=str(row).replace("'", '"').replace("True", "true").encode()))
        ).code == 0
    broker.close()


async def dead_letters(addresses: Addresses) -> int:
    broker = await _opened(addresses.broker)
    response = await broker.ask(Command(30, {"topic": "%DLQ%pushed", "queueId": "0"}))
    broker.close()
    return int(response.fields["offset"])


def test_a_grpc_client_sends_and_consumes_through_the_proxy(tmp_path: Path) -> None:
    """Simple and push consumers, in order, delayed, in transactions, by tag; retries, and dead letters at the end."""
    config = BrokerConfig(transaction_check_interval_ms=5_000)
    with serving_beside(tmp_path / "store", config) as addresses:
        asyncio.run(declare(addresses))
        words = ["bash", str(real_cluster.JAVA / "grpc" / "run"), addresses.namesrv, config.cluster]
        done = subprocess.run(
            words, env=real_cluster.environment(), capture_output=True, text=True, timeout=500, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr[-6000:]
        assert asyncio.run(dead_letters(addresses)) == 1
    lines = [line.split() for line in done.stdout.splitlines()]
    received_by_case: dict[str, list[tuple[str, int]]] = {}
    for case, body, attempt in lines:
        received_by_case.setdefault(case, []).append((body, int(attempt)))
    assert sorted(received_by_case.pop("simple")) == [(f"n{number}", 1) for number in range(5)]
    assert sorted(received_by_case.pop("again")) == [("n1", 2), ("n2", 2)]
    assert received_by_case.pop("filtered") == [("n3", 1)]
    ordered = [body for body, _ in received_by_case.pop("fifo")]
    assert [[body for body in ordered if int(body[1]) % 2 == parity] for parity in (0, 1)] == [
        ["f0", "f2", "f4"],
        ["f1", "f3", "f5"],
    ]
    assert received_by_case.pop("delayed") == [("d0", 1)]
    assert sorted(received_by_case.pop("decided")) == [("t0", 1), ("t2", 1)]
    assert Counter(received_by_case.pop("pushed")) == Counter(
        [("p0", 1), ("p0", 2), ("p0", 3), ("p1", 1), ("p1", 2), ("p2", 1)]
    )
    assert received_by_case == {}
