"""Rows beside a running broker that keeps timers, open transactions and popped messages in a RocksDB: they are those
that it leaves behind, and it goes on undisturbed.
"""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import agree
import pytest
import real_cluster
from file_access_audit import watching
from golden_stores import changes, fingerprint
from made_rocksdb import binding

from engine.client import broker_api
from engine.client.messages import Message, ReceivedMessage
from engine.client.producer import Producer, TransactionState
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.remoting.subscriptions import Subscription

pytestmark = [pytest.mark.peer, pytest.mark.clients_full, pytest.mark.timeout(300)]
SETTINGS = (
    "timerRocksDBEnable=true",
    "transRocksDBEnable=true",
    "transWriteOriginTransHalfEnable=false",
    "popConsumerKVServiceInit=true",
    "popConsumerKVServiceEnable=true",
)
HOUR_MS = 3_600_000
TIMEOUT_S = 60.0


class Undecided:
    """A producer that does not know the outcome of its transactions."""

    def execute(self, _message: Message, _argument: object) -> TransactionState:
        return TransactionState.UNKNOWN

    def check(self, _message: ReceivedMessage) -> TransactionState:
        return TransactionState.UNKNOWN


async def leave_open(addresses: dict[str, Any]) -> None:
    """Two timers, a transaction and three popped messages, one of which is acknowledged."""
    producer = Producer("shop", addresses["namesrv"], listener=Undecided())
    async with producer:
        topic = {"defaultTopic": "TBW102", "readQueueNums": 1, "writeQueueNums": 1, "perm": 6}
        more = {"topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": False}
        await producer.instance.call(addresses["broker"], 17, {"topic": "Orders", **topic, **more})
        group = {"groupName": "billing", "consumeEnable": True, "retryQueueNums": 1, "retryMaxTimes": 16}
        await producer.instance.call(addresses["broker"], 200, {}, json.dumps(group).encode())
        while await producer.instance.fresh_route("Orders") is None:
            await asyncio.sleep(0.1)
        for hours in (1, 2):
            due = int(time.time() * 1000) + hours * HOUR_MS
            await producer.send(Message("Orders", b"later", keys=f"T{hours}", deliver_at=due))
        undecided = Message("Orders", b"perhaps", properties={"CHECK_IMMUNITY_TIME_IN_SECONDS": "86400"})
        await producer.send_in_transaction(undecided)
        for number in range(3):
            await producer.send(Message("Orders", b"now", keys=f"M{number}"))
        popped: list[ReceivedMessage] = []
        deadline = time.monotonic() + TIMEOUT_S
        while len(popped) < 3 and time.monotonic() < deadline:
            result = await broker_api.pop(
                producer.instance, "billing", "broker-a", Subscription("Orders"), invisible=3600.0, from_first=True
            )
            popped += result.messages
            await asyncio.sleep(0.2)
        await broker_api.acknowledge(producer.instance, "billing", popped[0])


def rows_of(store: Path) -> list[dict[str, Any]]:
    status, out, err = agree.command("rows", store, "--json")
    assert status == 0, err
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize("release", ["5.4.0", "5.5.1"])
def test_rows_beside_a_running_broker_are_those_that_it_leaves(tmp_path, release):
    binding()
    ports = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port(), "--small")
    settings = [word for line in SETTINGS for word in ("--set", line)]
    store = tmp_path / "cluster" / "store"
    with real_cluster.real(tmp_path / "cluster", *ports, *settings, release=release, clean_end=True) as addresses:
        asyncio.run(leave_open(addresses))
        deadline = time.monotonic() + TIMEOUT_S
        while len(rows_of(store)) != 5 and time.monotonic() < deadline:
            time.sleep(0.2)
        folders = [store / name for name in ("rocksdbstore", "kvStore")]
        before = [fingerprint(folder) for folder in folders]
        with watching(store / "x") as observed:
            beside = rows_of(store)
        assert observed == []
        assert [changes(old, fingerprint(folder)) for old, folder in zip(before, folders, strict=True)] == [[], []]
    assert [(row["subject"], row["state"], row["verdict"]) for row in beside] == [
        *[("timer", "waiting", "match")] * 2,
        ("transactions", "open", "match"),
        *[("pop", "popped", "match")] * 2,
    ]
    assert [row["isInFiles"] for row in beside] == [False] * 3 + [True] * 2, "5.4 and 5.5 flush every five minutes"
    unknown = {"isInFiles", "count"}
    assert [{key: row[key] for key in row.keys() - unknown} for row in rows_of(store)] == [
        {key: row[key] for key in row.keys() - unknown} for row in beside
    ]
    with open_store(store) as opened:
        *findings, summary = check(opened)
    assert [(item.id, item.severity) for item in findings] == [("TM06", "note")]
    assert "has not delivered any so far" in findings[0].message
    assert summary.complete
