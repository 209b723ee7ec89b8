"""Prometheus metrics: the names and labels of RocketMQ's own exporter, and the values."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import urllib.request
from pathlib import Path

import pytest

from engine.broker.broker import Broker
from engine.broker.config import BrokerConfig
from engine.broker.metrics import MetricsServer, iter_group_progress, unread
from engine.broker.pop_revive import revive
from engine.broker.serving import serving_store
from engine.broker.stats import RpcLatency
from engine.errors import CannotRead
from engine.remoting.connection import Connection, connect
from engine.remoting.frame import Command
from engine.remoting.tap import FrameTap

THEIRS = Path(__file__).with_name("metrics-of-5.3.3.txt")
"""What a broker of 5.3.3 with ``metricsExporterType=PROM`` exposed in four scenarios: a name and its labels a line;
those with a question mark stand in some rows only.
"""
NOT_YET = {
    f"rocketmq_pop_buffer_scan_time_consume_milliseconds_{end}": "no checkpoint waits in a buffer here to be looked for"
    for end in ("bucket", "count", "sum")
}
"""Names of RocketMQ's that are missing here, and why."""
NOT_KEPT = {
    f"rocketmq_consumer_group_create_execution_time_milliseconds_{end}": "nobody declared a group in the scenarios"
    for end in ("bucket", "count", "sum")
}
_LINE = re.compile(r"(\w+)\{(.*)\} (\S+)")
Samples = dict[str, dict[frozenset[tuple[str, str]], float]]


def a_send(topic: str, text: str, body: bytes = b"12345") -> Command:
    fields = {
        "a": "senders",
        "b": topic,
        "c": "TBW102",
        "d": "4",
        "e": "0",
        "f": "0",
        "g": "1700000000000",
        "h": "0",
        "i": text,
        "j": "0",
        "k": "false",
        "m": "false",
    }
    return Command(310, fields, body=body)


def a_pull(group: str, topic: str) -> Command:
    fields = {
        "consumerGroup": group,
        "topic": topic,
        "queueId": "0",
        "queueOffset": "0",
        "maxMsgNums": "2",
        "sysFlag": "4",
        "commitOffset": "0",
        "suspendTimeoutMillis": "0",
        "subscription": "*",
        "subVersion": "0",
    }
    return Command(11, fields)


def read(address: str) -> Samples:
    results: Samples = {}
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match:
            labels = frozenset(re.findall(r'(\w+)="([^"]*)"', match[2]))
            results.setdefault(match[1], {})[labels] = float(match[3])
    return results


def sample_value(samples: Samples, name: str, **labels: str) -> float:
    (value,) = [value for row, value in samples[name].items() if set(labels.items()) <= row]
    return value


def heartbeat() -> Command:
    group = {
        "groupName": "readers",
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "unitMode": False,
        "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
        "subscriptionDataSet": [{"topic": "Orders", "subString": "*", "subVersion": 1}],
    }
    reported = {"clientID": "me@1", "consumerDataSet": [group], "producerDataSet": [{"groupName": "senders"}]}
    return Command(34, body=json.dumps(reported).encode())


async def scraped_metrics(tmp_path: Path) -> Samples:
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
            await cause_rare_metrics(server.broker, connection)
            assert await asyncio.to_thread(server.broker.store.wait_dispatched, 30_000)
            observed = await asyncio.to_thread(read, metrics.address)
            connection.close()
        with pytest.raises(OSError):  # noqa: PT011  whatever nobody answers with
            await asyncio.to_thread(read, metrics.address)
        return observed


async def cause_rare_metrics(broker: Broker, connection: Connection) -> None:
    """Cause the events whose metrics exist only after they have happened."""
    topic = {"topic": "Other", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6", "defaultTopic": "TBW102"}
    assert (await connection.ask(Command(17, topic))).code == 0
    assert (await connection.ask(Command(17, {**topic, "topic": "TBW102"}))).code != 0
    assert (await connection.ask(Command(200, body=b'{"groupName":"poppers"}'))).code == 0
    for word in (8, 12):
        half = await connection.ask(a_send("Orders", "TRAN_MSG\x01true\x02PGROUP\x01senders\x02"))
        end = {
            "producerGroup": "senders",
            "tranStateTableOffset": half.fields["queueOffset"],
            "msgId": "",
            "commitLogOffset": str(int(half.fields["msgId"][-16:], 16)),
            "commitOrRollback": str(word),
            "fromTransactionCheck": "false",
        }
        assert (await connection.ask(Command(37, end))).code == 0
    letter = a_send("%RETRY%readers", "")
    letter.fields |= {"a": "readers", "j": "17"}
    assert (await connection.ask(letter)).code == 0
    for delay in (1, 100_000):
        assert (await connection.ask(a_send("Orders", f"TIMER_DELAY_MS\x01{delay}\x02"))).code == 0
    while not broker.stats.timers_out or broker.stats.timers_in["Orders"] < 2:
        broker.store.services.dispatch_now()
        await asyncio.sleep(0.01)
    pop = {
        "consumerGroup": "poppers",
        "topic": "Orders",
        "queueId": "0",
        "maxMsgNums": "3",
        "invisibleTime": "60000",
        "pollTime": "0",
        "bornTime": str(broker.now()),
        "initMode": "0",
    }
    popped = await connection.ask(Command(200050, pop))
    assert popped.code == 0
    fields = popped.fields
    handle = f"0 {fields['popTime']} 60000 {fields['reviveQid']} 0 b-1 0 0"
    ack = {"consumerGroup": "poppers", "topic": "Orders", "queueId": "0", "offset": "0", "extraInfo": handle}
    assert (await connection.ask(Command(200051, ack))).code == 0
    revive(broker)
    broker.stats.revive_out["poppers", "Orders", 1, "CK"] += 1
    broker.stats.revived["poppers", "Orders", "PUT_OK"] += 1


def test_names_and_labels_are_those_of_rocketmqs_exporter(tmp_path: Path) -> None:
    observed = asyncio.run(scraped_metrics(tmp_path))
    theirs = {words[0]: words[1:] for words in map(str.split, THEIRS.read_text().splitlines())}
    assert set(theirs) - set(observed) == set(NOT_YET)
    assert set(observed) - set(theirs) == set(NOT_KEPT)
    for name, labels in theirs.items():
        always = {label for label in labels if not label.endswith("?")}
        for row in observed.get(name, ()):
            names = {label for label, _ in row}
            assert always <= names <= {label.removesuffix("?") for label in labels}, name


def test_waiting_messages_and_decisions_are_counted(tmp_path: Path) -> None:
    observed = asyncio.run(scraped_metrics(tmp_path))
    assert sample_value(observed, "rocketmq_half_messages", topic="Orders") == 1
    assert sample_value(observed, "rocketmq_commit_messages_total", topic="Orders") == 1
    assert sample_value(observed, "rocketmq_rollback_messages_total", topic="Orders") == 1
    assert sample_value(observed, "rocketmq_finish_message_latency_milliseconds_count", topic="Orders") == 1
    assert (
        sample_value(observed, "rocketmq_message_size_bucket", topic="Orders", message_type="normal", le="1024.0") == 2
    )
    assert (
        sample_value(observed, "rocketmq_send_to_dlq_messages_total", topic="%RETRY%readers", consumer_group="readers")
        == 1
    )
    for kind, count in (("success", 1), ("failure", 1)):
        name = "rocketmq_topic_create_execution_time_milliseconds_count"
        assert sample_value(observed, name, invocation_status=kind) == count
    # timers: one was already late and has left the wheel, one is far away
    assert sample_value(observed, "rocketmq_timer_enqueue_total", topic="Orders") == 2
    assert sample_value(observed, "rocketmq_timer_dequeue_total", topic="Orders") == 1
    assert sample_value(observed, "rocketmq_timer_message_snapshot", timer_bound_s="300") >= 1
    assert sample_value(observed, "rocketmq_timing_messages", topic="Orders") == 1
    # pops: three messages were handed out, one is acknowledged
    assert sample_value(observed, "rocketmq_messages_out_total", consumer_group="poppers", is_retry="false") == 3
    assert (
        sample_value(observed, "rocketmq_consumer_inflight_messages", consumer_group="poppers", is_retry="false") == 2
    )
    assert (
        sample_value(observed, "rocketmq_pop_revive_in_message_total", revive_message_type="ACK", put_status="PUT_OK")
        == 1
    )
    # pulls: two were handed out, one of them is read
    assert sample_value(observed, "rocketmq_consumer_inflight_messages", consumer_group="readers") == 1


def test_a_groups_lag_counts_only_messages_of_its_subscription(tmp_path: Path) -> None:
    async def reckoned() -> None:
        async with serving_store(tmp_path / "store", port=0) as server:
            broker = server.broker
            host, _, port = server.address.rpartition(":")
            connection = await connect(host, int(port))
            for number in range(8):
                assert (await connection.ask(a_send("Orders", f"TAGS\x01{'ab'[number % 4 == 0]}\x02"))).code == 0
            assert await asyncio.to_thread(broker.store.wait_dispatched, 30_000)
            body = heartbeat().body.replace(b'"*"', b'"b", "codeSet": [98]')
            assert (await connection.ask(Command(34, body=body))).code == 0
            broker.store.tables.commit_consumer_offset("readers", "Orders", 0, 1)
            (row,) = iter_group_progress(broker)
            assert (row.group, row.topic, row.lag, row.consumes) == ("readers", "Orders", 1, True)
            assert unread(broker, "others", "Orders", 0, 1, 8) == 7
            broker.pulled = {("readers", "Orders", 0): 3, ("readers", "Other", 0): 1, ("others", "Orders", 0): 1}
            assert [row.in_flight for row in iter_group_progress(broker)] == [0]  # neither group subscribes to them
            assert (await connection.ask(Command(207, {"groupName": "readers"}))).code == 0
            assert broker.pulled == {("others", "Orders", 0): 1}
            assert (await connection.ask(Command(215, {"topic": "Orders"}))).code == 0
            assert broker.pulled == {}
            connection.close()

    asyncio.run(reckoned())


def test_timer_messages_are_counted_in_out_and_waiting(tmp_path: Path) -> None:
    observed = asyncio.run(scraped_metrics(tmp_path))
    kinds = {"normal": 2, "delay": 1, "fifo": 1, "transaction": 3}
    stored = {"delay": "SCHEDULE_TOPIC_XXXX", "transaction": "RMQ_SYS_TRANS_HALF_TOPIC"}
    for kind, count in kinds.items():
        topic = stored.get(kind, "Orders")
        assert sample_value(observed, "rocketmq_messages_in_total", topic=topic, message_type=kind) == count
        assert sample_value(observed, "rocketmq_throughput_in_total", topic=topic, message_type=kind) > 90 * count
    assert sample_value(observed, "rocketmq_messages_out_total", topic="Orders", consumer_group="readers") == 2
    assert sample_value(observed, "rocketmq_throughput_out_total", topic="Orders", consumer_group="readers") > 180
    assert sample_value(observed, "rocketmq_consumer_lag_messages", topic="Orders", consumer_group="readers") == 4
    assert (
        sample_value(observed, "rocketmq_consumer_lag_latency_milliseconds", topic="Orders", consumer_group="readers")
        >= 0
    )
    assert sample_value(observed, "rocketmq_producer_connections", language="java", version="v5_3_3") == 1
    assert sample_value(observed, "rocketmq_consumer_connections", consumer_group="readers", consume_mode="push") == 1
    assert (
        sample_value(
            observed, "rocketmq_broker_permission", node_id="b-1", node_type="broker", cluster="DefaultCluster"
        )
        == 6
    )
    assert sample_value(observed, "rocketmq_storage_dispatch_behind_bytes") >= 0
    sends = {"request_code": "send_message_v2", "response_code": "success", "is_long_polling": "false"}
    assert sample_value(observed, "rocketmq_rpc_latency_milliseconds_count", **sends, result="success") == 10
    assert sample_value(observed, "rocketmq_rpc_latency_milliseconds_bucket", **sends, le="+Inf") == 10
    ends = {dict(row)["le"] for row in observed["rocketmq_rpc_latency_milliseconds_bucket"]}
    assert ends == {"1.0", "3.0", "5.0", "7.0", "10.0", "100.0", "1000.0", "2000.0", "3000.0", "+Inf"}


def test_an_occupied_port_is_a_one_line_error(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving_store(tmp_path / "store", port=0) as server:
            with socket.create_server(("127.0.0.1", 0)) as occupied:
                port = occupied.getsockname()[1]
                with pytest.raises(CannotRead, match=f"cannot listen on 127.0.0.1:{port}"):
                    MetricsServer(server.broker, "127.0.0.1", port).__enter__()

    asyncio.run(scenario())
