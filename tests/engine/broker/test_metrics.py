"""Figures for Prometheus: the names and labels of RocketMQ's own exporter, and what they say."""

from __future__ import annotations

import asyncio
import re
import socket
import urllib.request
from pathlib import Path

import pytest

from engine.broker.config import BrokerConfig
from engine.broker.metrics import MetricsServer
from engine.broker.serving import serving_store
from engine.broker.stats import RpcLatency
from engine.errors import CannotRead
from engine.remoting.connection import connect
from engine.remoting.frame import Command
from engine.remoting.tap import FrameTap

THEIRS = Path(__file__).with_name("metrics-of-5.3.3.txt")
"""What a broker of 5.3.3 with ``metricsExporterType=PROM`` exposed in two scenarios: a name and its labels a line."""
_LINE = re.compile(r"(\w+)\{(.*)\} (\S+)")
Seen = dict[str, dict[frozenset[tuple[str, str]], float]]


def a_send(topic: str, text: str, body: bytes = b"12345") -> Command:
    fields = {
        "a": "senders", "b": topic, "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1700000000000", "h": "0",
        "i": text, "j": "0", "k": "false", "m": "false",
    }  # fmt: skip
    return Command(310, fields, body=body)


def a_pull(group: str, topic: str) -> Command:
    fields = {
        "consumerGroup": group, "topic": topic, "queueId": "0", "queueOffset": "0", "maxMsgNums": "2", "sysFlag": "4",
        "commitOffset": "0", "suspendTimeoutMillis": "0", "subscription": "*", "subVersion": "0",
    }  # fmt: skip
    return Command(11, fields)


def read(address: str) -> Seen:
    found: Seen = {}
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    for line in text.splitlines():
        told = _LINE.fullmatch(line)
        if told:
            labels = frozenset(re.findall(r'(\w+)="([^"]*)"', told[2]))
            found.setdefault(told[1], {})[labels] = float(told[3])
    return found


def one(seen: Seen, name: str, **labels: str) -> float:
    (value,) = [value for row, value in seen[name].items() if set(labels.items()) <= row]
    return value


def heartbeat() -> Command:
    body = (
        b'{"clientID":"me@1","consumerDataSet":[{"groupName":"readers","consumeType":"CONSUME_PASSIVELY","messageModel":'
        b'"CLUSTERING","consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET","subscriptionDataSet":[],"unitMode":false}],'
        b'"producerDataSet":[{"groupName":"senders"}]}'
    )
    return Command(34, body=body)


async def asked(tmp_path: Path) -> Seen:
    rpc = RpcLatency()
    tap = FrameTap("broker", rpc.take)
    async with serving_store(tmp_path / "store", BrokerConfig(broker_name="b-1"), port=0, tap=tap) as server:
        server.broker.stats.rpc = rpc
        with MetricsServer(server.broker, "127.0.0.1", 0) as metrics:
            host, _, port = server.address.rpartition(":")
            connection = await connect(host, int(port))
            await connection.ask(heartbeat())
            for text in ("KEYS\x01k\x02", "", "DELAY\x013\x02", "__SHARDINGKEY\x01a\x02", "TRAN_MSG\x01true\x02"):
                assert (await connection.ask(a_send("Orders", text))).code == 0
            assert await asyncio.to_thread(server.broker.store.wait_dispatched, 30_000)
            assert (await connection.ask(a_pull("readers", "Orders"))).code == 0
            server.broker.store.tables.commit_consumer_offset("readers", "Orders", 0, 1)
            seen = await asyncio.to_thread(read, metrics.address)
            connection.close()
        with pytest.raises(OSError):  # noqa: PT011  whatever nobody answers with
            await asyncio.to_thread(read, metrics.address)
        return seen


def test_names_and_labels_are_those_of_rocketmqs_exporter(tmp_path: Path) -> None:
    seen = asyncio.run(asked(tmp_path))
    theirs = {words[0]: set(words[1:]) for words in map(str.split, THEIRS.read_text().splitlines())}
    assert len(seen) >= 15
    for name, rows in seen.items():
        if name.endswith("_created"):
            continue
        for row in rows:
            assert {label for label, _ in row} == theirs[name], name


def test_what_came_in_went_out_and_waits(tmp_path: Path) -> None:
    seen = asyncio.run(asked(tmp_path))
    kinds = {"normal": 2, "delay": 1, "fifo": 1, "transaction": 1}
    for kind, count in kinds.items():
        assert one(seen, "rocketmq_messages_in_total", topic="Orders", message_type=kind) == count
        assert one(seen, "rocketmq_throughput_in_total", topic="Orders", message_type=kind) > 90 * count
    assert one(seen, "rocketmq_messages_out_total", topic="Orders", consumer_group="readers") == 2
    assert one(seen, "rocketmq_throughput_out_total", topic="Orders", consumer_group="readers") > 180
    assert one(seen, "rocketmq_consumer_lag_messages", topic="Orders", consumer_group="readers") == 2
    assert one(seen, "rocketmq_consumer_lag_latency_milliseconds", topic="Orders", consumer_group="readers") >= 0
    assert one(seen, "rocketmq_producer_connections", language="java", version="v5_3_3") == 1
    assert one(seen, "rocketmq_consumer_connections", consumer_group="readers", consume_mode="push") == 1
    assert one(seen, "rocketmq_broker_permission", node_id="b-1", node_type="broker", cluster="DefaultCluster") == 6
    assert one(seen, "rocketmq_storage_dispatch_behind_bytes") == 0
    sends = {"request_code": "send_message_v2", "response_code": "success", "is_long_polling": "false"}
    assert one(seen, "rocketmq_rpc_latency_milliseconds_count", **sends, result="success") == 5
    assert one(seen, "rocketmq_rpc_latency_milliseconds_bucket", **sends, le="+Inf") == 5
    ends = {dict(row)["le"] for row in seen["rocketmq_rpc_latency_milliseconds_bucket"]}
    assert ends == {"1.0", "3.0", "5.0", "7.0", "10.0", "100.0", "1000.0", "2000.0", "3000.0", "+Inf"}


def test_a_port_that_is_taken_is_one_line(tmp_path: Path) -> None:
    async def taken() -> None:
        async with serving_store(tmp_path / "store", port=0) as server:
            with socket.create_server(("127.0.0.1", 0)) as other:
                port = other.getsockname()[1]
                with pytest.raises(CannotRead, match=f"cannot listen on 127.0.0.1:{port}"):
                    MetricsServer(server.broker, "127.0.0.1", port).__enter__()

    asyncio.run(taken())
