"""The Cluster view of a real cluster with Java clients shows the same as RocketMQ's own admin tool, and only reads.

``bash packaging/test.sh tests/clients/test_cluster_view.py --clients-full``
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from pathlib import Path

import pytest
import real_cluster
from java_members import JavaMember

from engine.client.messages import Message
from engine.client.producer import Producer, ProducerConfig
from engine.cluster import reader as reading
from engine.cluster.reader import ClusterReader
from engine.cluster.state import ClusterState
from engine.remoting.connection import Connection, Handler, Limits, connect
from engine.remoting.frame import Command
from viewer.cluster.cluster_model import ClusterModel, Reading
from viewer.cluster.words import broker_origin

pytestmark = [pytest.mark.peer, pytest.mark.clients_full, pytest.mark.timeout(600)]
READS = {106, 28, 21, 43, 201, 202, 203, 307, 328}
"""Codes that a cluster is asked by; none of them changes anything (docs/protocol/name-server.md#cluster,
docs/protocol/broker.md#admin).
"""
GROUP, MIN_SHOWN_LAG, TOPIC, MESSAGES = "java-readers", "late", "Orders", 40


class RequestCodeTap:
    """A tap that collects the codes of our requests."""

    def __init__(self) -> None:
        self.codes: set[int] = set()

    def sent(self, _connection: Connection, command: Command, _frame: bytes, *, later: bool) -> None:
        if not command.is_answer:
            self.codes.add(command.code)

    def opened(self, _connection: Connection) -> None:
        pass

    def received(self, _connection: Connection, _command: Command, _frame: bytes) -> None:
        pass

    def broke(self, _connection: Connection, reason: str, _data: bytes) -> None:
        raise AssertionError(reason)

    def closed(self, _connection: Connection) -> None:
        pass


def mqadmin_lines(release: str, namesrv: str, *commands: str) -> list[list[list[str]]]:
    """Return the lines of each mqadmin command, split at blanks."""
    out = real_cluster.mqadmin(namesrv, "".join(f"{command}\n" for command in commands), release)
    return [[line.split() for line in part.splitlines()[1:]] for part in out.split("### ")[1:]]


async def send(release: str, namesrv: str, broker: str, messages: int) -> None:
    """Send messages, each to the next queue, and let a group that is not connected any more read the first of each."""
    async with Producer("senders", namesrv, ProducerConfig(release=release[:3])) as producer:
        for number in range(messages):
            await producer.send(Message(TOPIC, b"%d" % number))
    host, _, port = broker.rpartition(":")
    connection = await connect(host, int(port))
    declared = json.dumps({"groupName": MIN_SHOWN_LAG, "consumeEnable": True, "retryQueueNums": 1, "retryMaxTimes": 16})
    assert (await connection.ask(Command(200, {}, body=declared.encode(), version=395))).code == 0
    repeated = {
        "topic": f"%RETRY%{MIN_SHOWN_LAG}",
        "defaultTopic": "TBW102",
        "readQueueNums": "1",
        "writeQueueNums": "1",
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
    }
    assert (await connection.ask(Command(17, repeated, version=395))).code == 0  # the tool looks for it first
    for queue_id in range(4):
        fields = {"consumerGroup": MIN_SHOWN_LAG, "topic": TOPIC, "queueId": str(queue_id), "commitOffset": "1"}
        assert (await connection.ask(Command(15, fields, version=395))).code == 0
    connection.close()
    await connection.closed.wait()


async def until_shared(namesrv: str, seconds: float = 120) -> ClusterState:
    """Wait until two members own all queues and have read everything; return the state of the cluster."""
    end = time.monotonic() + seconds
    async with ClusterReader([namesrv]) as reader:
        while True:
            state = await reader.read()
            group = state.groups.get(GROUP)
            queues = [queue for queue in state.queues if queue.topic == TOPIC]
            if group is not None and len(group.clients) == 2 and queues and not state.refusals:
                owners = {group.owners(queue) for queue in queues}
                lag = state.behind(GROUP)
                if len(owners) == 2 and all(map(len, owners)) and not sum(lag.get(item, 1) for item in queues):
                    return state
            assert time.monotonic() < end, f"timed out: {state}"
            await asyncio.sleep(0.5)


@pytest.mark.parametrize("release", ["5.3.3", "4.9.7"])
def test_it_shows_what_the_admin_tool_says(release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tap = RequestCodeTap()

    def tapped(host: str, port: int, handler: Handler) -> object:
        return connect(host, port, handler, Limits(tap=tap))

    ports = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    with real_cluster.real(tmp_path / "real", *ports, "--small", release=release) as position:
        namesrv, broker = position["namesrv"], position["broker"]
        asyncio.run(send(release, namesrv, broker, MESSAGES))
        members = [JavaMember(release, namesrv, GROUP, TOPIC, tmp_path / f"home{n}") for n in range(2)]
        try:
            monkeypatch.setattr(reading, "connect", tapped)
            state = asyncio.run(until_shared(namesrv))
            mqadmin_results = mqadmin_lines(
                release,
                namesrv,
                "clusterList",
                f"topicStatus -t {TOPIC}",
                f"consumerProgress -g {MIN_SHOWN_LAG}",
                f"consumerConnection -g {GROUP}",
            )
        finally:
            for member in members:
                member.stop()
    model = ClusterModel()
    model.begin((namesrv,))
    model.take(Reading(state))
    clusters, topic, progress, connections = mqadmin_results
    (row,) = model.unfiltered.brokers
    assert row.master is not None
    (listed,) = [line for line in clusters if "broker-a" in line]
    assert [row.master.cluster, row.name, str(row.master.broker_id), row.master.address] == listed[:4]
    assert listed[4].startswith(row.master.release)
    assert broker_origin(row.master).startswith("real, "), (
        "nobody can ask a broker of RocketMQ's own for its held pulls"
    )
    topic_row = model.find_topic(TOPIC)
    assert topic_row is not None
    ends = {
        (item.queue.broker, str(item.queue.queue_id), str(item.ends.min_offset), str(item.ends.max_offset))
        for item in topic_row.queues
    }
    assert ends == {tuple(line[:4]) for line in topic if line[:1] == ["broker-a"]}
    lags = {
        (queue.broker, str(queue.queue_id), str(state.offsets(MIN_SHOWN_LAG)[queue]), str(lag))
        for queue, lag in state.behind(MIN_SHOWN_LAG).items()
    }
    rows = [line for line in progress if line[:2] == [TOPIC, "broker-a"]]
    assert rows, progress
    assert lags == {(line[1], line[2], line[4], next(word for word in line[5:] if word.isdigit())) for line in rows}
    assert sum(state.behind(MIN_SHOWN_LAG).values()) == MESSAGES - 4
    total = re.search(r"Diff Total: (\d+)", " ".join(" ".join(line) for line in progress))
    assert total is not None
    assert int(total[1]) == MESSAGES - 4
    group = model.find_group(GROUP)
    assert group is not None
    clients = {(client.client.client_id, client.client.address, client.client.language) for client in group.clients}
    assert clients == {tuple(line[:3]) for line in connections if len(line) >= 3 and "@" in line[0]}
    assert (group.group.model, group.lag) == ("CLUSTERING", 0)
    assert {len(client.owned or ()) for client in group.clients} == {2}
    assert [" ".join(line) for line in connections if "MessageModel:" in line] == ["MessageModel: CLUSTERING"]
    assert tap.codes == READS, "nothing but questions went out"
