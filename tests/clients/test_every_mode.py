"""Stores that a real broker wrote in each storage mode: what we say of them is what that broker says, and the plan of
the next start is what that start then has.

``bash packaging/test.sh tests/clients/test_every_mode.py --clients-full``
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path

import agree
import pytest
import real_cluster

from engine.client.messages import Message
from engine.client.producer import Producer, ProducerConfig
from engine.remoting.codes import RequestCode
from engine.remoting.connection import Connection, connect
from engine.remoting.frame import Command

pytestmark = [pytest.mark.peer, pytest.mark.clients_full, pytest.mark.timeout(600)]
MODES: dict[str, dict[str, str]] = {
    "default": {},
    "rocksdb": {"storeType": "defaultRocksDB"},
    "rocksdb-v2": {"storeType": "defaultRocksDB", "configManagerVersion": "v2"},
    "both": {"rocksdbCQDoubleWriteEnable": "true", "combineCQUseRocksdbForLmq": "true"},
    "both-reads-rocksdb": {
        "rocksdbCQDoubleWriteEnable": "true",
        "combineCQUseRocksdbForLmq": "true",
        "combineCQPreferCQType": "defaultRocksDB",
    },
    "dledger": {"enableDLegerCommitLog": "true", "dLegerGroup": "broker-a", "dLegerSelfId": "n0"},
    "controller": {"enableControllerMode": "true"},
    "compaction": {"enableCompaction": "true"},
    "tiered": {
        "messageStorePlugIn": "org.apache.rocketmq.tieredstore.TieredMessageStore",
        "tieredBackendServiceProvider": "org.apache.rocketmq.tieredstore.provider.PosixFileSegment",
        "tieredStorageLevel": "FORCE",
    },
    "rocksdb-index": {
        "indexRocksDBEnable": "true",
        "timerRocksDBEnable": "true",
        "transRocksDBEnable": "true",
    },
    "no-mmap": {"writeWithoutMmap": "true"},
    "timer-snapshots": {"timerWheelSnapshotFlush": "true"},
}
MESSAGES = 150
TOPICS = ("Orders", "Later")
Bounds = dict[tuple[str, int], tuple[int, int]]
MAY_BE_REPORTED = {"note", "chat"}


class _Mode:
    """A broker of one release in one mode, started again and again on its folder."""

    def __init__(self, folder: Path, mode: str, release: str) -> None:
        self.folder, self.mode, self.release = folder, mode, release
        self.settings = dict(MODES[mode])
        if mode == "dledger":
            self.settings["dLegerPeers"] = f"n0-127.0.0.1:{real_cluster.free_port()}"
        if mode == "tiered":
            self.settings["tieredStoreFilePath"] = str(folder / "store" / "tiered")

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @contextlib.contextmanager
    def started(self, *, clean_end: bool) -> Iterator[str]:
        names_port, port = real_cluster.free_port(), real_cluster.free_port()
        names: list[object] = ["--namesrv-port", names_port]
        settings = dict(self.settings)
        if self.mode == "controller":
            controller = real_cluster.free_port()
            names += ["--controller-port", controller]
            settings["controllerAddr"] = f"127.0.0.1:{controller}"
        options: list[object] = ["--namesrv", f"127.0.0.1:{names_port}", "--port", port, "--small"]
        for key, value in settings.items():
            options += ["--set", f"{key}={value}"]
        with (
            real_cluster.real(self.folder / "names", *names, release=self.release),
            real_cluster.real(self.folder, *options, release=self.release, clean_end=clean_end) as line,
        ):
            yield f"127.0.0.1:{names_port}|{line['broker']}"

    def config(self) -> Path:
        path = self.folder / "ours.conf"
        lines = {**self.settings, "mappedFileSizeCommitLog": "1048576", "maxHashSlotNum": "100", "maxIndexNum": "400"}
        path.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        return path


async def _ask(connection: Connection, code: RequestCode, **fields: object) -> Command:
    return await connection.ask(Command(code, {name: str(value) for name, value in fields.items()}, version=395), 30)


async def _when_ready(address: str) -> Connection:
    """Connect to the broker when it answers as a leader does."""
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + 60
    while True:
        try:
            connection = await connect(host, int(port), lambda *_: None)
            answer = await _ask(connection, RequestCode.GET_BROKER_RUNTIME_INFO)
            if answer.code == 0 and json.loads(bytes(answer.body))["table"].get("brokerActive", "true") == "true":
                return connection
            connection.close()
        except OSError:
            pass
        assert time.monotonic() < deadline
        await asyncio.sleep(1)


async def _send(names: str, broker: str, release: str, mode: str) -> None:
    connection = await _when_ready(broker)
    for topic in TOPICS:
        attributes = "+cleanup.policy=COMPACTION" if mode == "compaction" and topic == "Later" else ""
        answer = await _ask(
            connection,
            RequestCode.UPDATE_AND_CREATE_TOPIC,
            topic=topic,
            defaultTopic="TBW102",
            readQueueNums=2,
            writeQueueNums=2,
            perm=6,
            topicFilterType="SINGLE_TAG",
            topicSysFlag=0,
            order="false",
            attributes=attributes,
        )
        assert answer.code == 0, answer.remark
    await asyncio.sleep(2)
    async with Producer("senders", names, ProducerConfig(release=release[:3])) as producer:
        for number in range(MESSAGES):
            topic = TOPICS[number % 2]
            await producer.send(Message(topic, b"%d " % number * 20, tags=f"t{number % 3}", keys=f"K{number}"))
    body = json.dumps({"groupName": "readers", "consumeEnable": True}).encode()
    answer = await connection.ask(Command(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body=body), 30)
    assert answer.code == 0, answer.remark
    for queue_id in range(2):
        group = {"consumerGroup": "readers", "topic": "Orders", "queueId": queue_id}
        answer = await _ask(connection, RequestCode.UPDATE_CONSUMER_OFFSET, **group, commitOffset=5)
        assert answer.code == 0, answer.remark
    connection.close()


async def _bounds(broker: str) -> Bounds:
    connection = await _when_ready(broker)
    await asyncio.sleep(2)  # dispatch
    bounds: Bounds = {}
    for topic in TOPICS:
        for queue_id in range(2):
            answers = [
                await _ask(connection, code, topic=topic, queueId=queue_id)
                for code in (RequestCode.GET_MIN_OFFSET, RequestCode.GET_MAX_OFFSET)
            ]
            bounds[topic, queue_id] = (int(answers[0].fields["offset"]), int(answers[1].fields["offset"]))
    connection.close()
    return bounds


def _ours(mode: _Mode, *words: object) -> list[agree.Line]:
    return agree.records_of(words[0], mode.store, *words[1:], "--config", mode.config())


@pytest.mark.parametrize("clean", [True, False], ids=["closed", "killed"])
@pytest.mark.parametrize("name", MODES)
@pytest.mark.parametrize("release", ["5.4.0"])
def test_a_store_of_each_mode_is_read_as_its_broker_reads_it(
    tmp_path: Path, name: str, release: str, clean: bool
) -> None:
    mode = _Mode(tmp_path, name, release)
    with mode.started(clean_end=clean) as addresses:
        names, broker = addresses.split("|")
        asyncio.run(_send(names, broker, release, name))
        theirs = asyncio.run(_bounds(broker))
        if name in ("tiered", "compaction"):
            time.sleep(15)
    assert sum(end for _, end in theirs.values()) == MESSAGES
    assert name != "tiered" or (mode.store / "config" / "tieredStoreMetadata.json").exists()

    found = [record for record in _ours(mode, "check") if record["type"] == "finding"]
    graver = [record["id"] for record in found if record["severity"] not in MAY_BE_REPORTED]
    if clean:
        assert graver == []
    else:  # it was not closed, and what it had only in memory is dispatched by the next start
        assert "AB01" in graver
        assert set(graver) <= {"AB01", "CQ10", "RP01"}
    for key in ("K0", "K77", "K149"):
        (result,) = [record for record in _ours(mode, "where", key) if record["type"] == "whereResult"]
        verdicts = {"found", "consumed", "notConsumed"} | (set() if clean else {"notYetDispatched"})
        assert result["verdict"] in verdicts, (key, result["verdict"])
    progress = {
        (record["topic"], record["queueId"]): record["offset"]
        for record in _ours(mode, "groups")
        if record["type"] == "groupProgress" and record["group"] == "readers"
    }
    assert progress == ({("Orders", 0): 5, ("Orders", 1): 5} if clean or progress else {})
    (plan,) = _ours(mode, "recover", "--plan", "--release", release[:3])
    assert plan["willStart"]
    planned = {
        (queue["topic"], queue["queueId"]): (queue["minOffset"], queue["maxOffset"])
        for queue in plan["queues"]
        if queue["topic"] in TOPICS
    }
    if clean:
        listed = {
            (topic, number): [entry["queueOffset"] for entry in _ours(mode, "queue", topic, number)]
            for topic, number in theirs
        }
        assert {queue: (min(offsets), max(offsets) + 1) for queue, offsets in listed.items()} == theirs
    with mode.started(clean_end=False) as addresses:
        after = asyncio.run(_bounds(addresses.split("|")[1]))
    assert planned == after
    if clean:
        assert after == theirs
