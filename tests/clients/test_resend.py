"""Dead letters of a real broker's store are sent to a running real broker: RocketMQ's Java client consumes each once,
with its message id, and with the tags, keys and bodies that their producer gave them.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest
import real_cluster
from engine_units import units_of
from other_clients import OtherClient

from engine.cli.main import main
from engine.client.admin import Admin
from engine.codec.compression import unpack

pytestmark = [pytest.mark.peer, pytest.mark.clients_full, pytest.mark.timeout(400)]


@pytest.mark.parametrize(
    ("name", "where", "release"),
    [
        ("broker-retries-5.5.1", 'topic startswith "%DLQ%"', "5.5.0"),
        ("broker-retries-4.9.7", 'topic startswith "%DLQ%" or topic startswith "%RETRY%"', "4.9.7"),
        ("broker-pop-5.5.1", 'topic startswith "%RETRY%"', "5.5.0"),
        ("broker-transactions-4.9.7", 'topic = "RMQ_SYS_TRANS_HALF_TOPIC"', "5.5.0"),
        ("broker-orders-5.5.1", "sysFlag & 1 != 0", "5.5.0"),
    ],
)
def test_a_java_consumer_gets_each_message_once(
    golden, monkeypatch, tmp_path: Path, capsys, name: str, where: str, release: str
) -> None:
    journal = tmp_path / "sent.jsonl"
    ports = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    monkeypatch.setenv("CLIENT_RELEASE", release)
    with real_cluster.real(tmp_path / "cluster", *ports, "--small", release=release) as status:
        command = ["resend", str(golden(name)), "--where", where, "--to", status["broker"], "--journal", str(journal)]
        assert main([*command, "--plan", "--json"]) == 1  # the new broker does not have the topics
        plan = json.loads(capsys.readouterr().out)
        topics = {row.split(" has no topic ")[1].split()[0] for row in plan["cannotBeSent"] if " has no topic " in row}
        client = OtherClient("java", status["namesrv"], tmp_path / "client")
        try:
            asyncio.run(create(status["namesrv"], topics))
            subscriptions = {topic: {"type": "TAG", "expression": "*"} for topic in topics}
            client.run(do="consumer", id="reader", group="readsAgain", topics=subscriptions)
            main([*command, "--yes", "--json"])
            records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
            sent = {row["msgId"]: row for row in records if row.get("result") == "sent"}
            assert records[-1]["sent"] == len(sent) > 5
            assert (records[-1]["refused"], records[-1]["unknown"], records[-1]["remaining"]) == (0, 0, 0)
            client.wait_until(lambda lines: len(received(lines)) >= len(sent), "not every message came")
            assert main([*command, "--plan", "--json"]) in {0, 1}
            assert json.loads(capsys.readouterr().out)["toSend"] == 0
            handed = [line for line in client.lines if line["event"] == "received"]
        finally:
            client.end()
    assert received(handed) == Counter(sent.keys())
    originals = {unit.offset: unit for unit in units_of(golden(name))}
    stored = {unit.unique_key: unit for unit in units_of(tmp_path / "cluster") if unit.unique_key in sent}
    assert stored.keys() == sent.keys()
    for line in handed:
        row = sent[line["msgId"]]
        original, unit = originals[row["physicalOffset"]], stored[line["msgId"]]
        assert (unit.topic, unit.queue_id, unit.queue_offset) == (row["topic"], row["queueId"], row["queueOffset"])
        assert unit.offset_msg_id == row["offsetMsgId"]
        assert (unit.body, unit.tags, unit.keys, unit.flag) == (
            original.body,
            original.tags,
            original.keys,
            original.flag,
        )
        assert unpack(unit.body, unit.sys_flag).data == unpack(original.body, original.sys_flag).data
        assert "".join(line["keys"]) == original.properties.get("KEYS", "")
        assert line["body"].encode() == unpack(original.body, original.sys_flag).data


async def create(namesrv: str, topics: set[str]) -> None:
    async with Admin(namesrv) as admin:
        for topic in topics:
            await admin.create_topic(topic, 4)


def received(lines: list) -> Counter:
    """Return how often each message id came."""
    return Counter(line["msgId"] for line in lines if line["event"] == "received")
