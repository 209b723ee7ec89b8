"""RocketMQ's gRPC client sends to lite topics and consumes them through RocketMQ's own proxy of 5.5: the same from our
broker as from a real one.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest
import real_cluster

from engine.broker.config import BrokerConfig
from engine.broker.serving import serving_store
from engine.config import MessageStoreConfig
from engine.namesrv.server import ListeningNameServer
from engine.remoting.connection import connect
from engine.remoting.frame import Command

pytestmark = [pytest.mark.peer, pytest.mark.clients_full, pytest.mark.timeout(900)]
RELEASE = "5.5.1"
TOPIC = {
    "topic": "Chat",
    "defaultTopic": "TBW102",
    "readQueueNums": "1",
    "writeQueueNums": "1",
    "perm": "6",
    "topicFilterType": "SINGLE_TAG",
    "topicSysFlag": "0",
    "order": "false",
    "attributes": "+message.type=LITE,+lite.topic.expiration=30",
}
EXPECTED = [
    *(f"subscribed first {lite} {lite}-{number} 1" for lite in ("room-1", "room-2") for number in range(3)),
    "later first room-1 room-1-3 1",
    "failed first room-2 fail 1",
    "failed first room-2 fail 2",
    *(f"late late room-3 room-3-{number} 1" for number in range(4)),
]


async def declare(broker: str) -> None:
    host, _, port = broker.rpartition(":")
    connection = await connect(host, int(port))
    assert (await connection.ask(Command(17, TOPIC))).code == 0
    for name in ("chatters", "late-readers"):
        row = {"groupName": name, "retryQueueNums": 1, "attributes": {"+lite.bind.topic": "Chat"}}
        assert (await connection.ask(Command(200, body=json.dumps(row).encode()))).code == 0
    connection.close()


def printed(namesrv: str, cluster: str) -> list[str]:
    """Return what the client received, step by step."""
    words = ["bash", str(real_cluster.JAVA / "grpc" / "run"), namesrv, cluster, "Lite"]
    done = subprocess.run(
        words, env=real_cluster.environment(), capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr[-6000:]
    return done.stdout.splitlines()


def test_our_broker_serves_lite_topics_to_a_grpc_client(tmp_path: Path) -> None:
    async def scenario() -> list[str]:
        store_config = MessageStoreConfig(enable_lmq=True, enable_multi_dispatch=True)
        config = BrokerConfig()
        async with ListeningNameServer(port=0) as names:
            serving = serving_store(
                tmp_path / "store", config, store_config, name_servers=[names.address], port=0, release="5.5"
            )
            async with serving as server:
                await declare(server.address)
                return await asyncio.to_thread(printed, names.address, config.cluster)

    assert asyncio.run(scenario()) == EXPECTED


def test_a_real_broker_serves_them_in_the_same_way(tmp_path: Path) -> None:
    port, names_port = real_cluster.free_port(), real_cluster.free_port()
    settings = ("--set", "enableLmq=true", "--set", "enableMultiDispatch=true")
    options = ("--namesrv-port", names_port, "--port", port, "--small", *settings)
    with real_cluster.real(tmp_path / "a", *options, release=RELEASE) as real:
        asyncio.run(declare(real["broker"]))
        assert printed(real["namesrv"], "PeerCluster") == EXPECTED
