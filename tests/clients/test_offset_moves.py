"""What a plan says about a group's messages is what comes with RocketMQ's own brokers: to a reader of ours in seeded
rounds, and to a Java consumer that is connected while its offsets are moved.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections import Counter
from pathlib import Path

import pytest
import real_cluster
from offset_rounds import OffsetRounds
from other_clients import OtherClient

from engine.cli.main import main
from engine.client.admin import Admin
from engine.client.instance import ClientInstance
from engine.client.messages import Message
from engine.client.producer import Producer
from engine.client.routes import MessageQueue

pytestmark = [pytest.mark.peer, pytest.mark.clients_full, pytest.mark.timeout(600)]
ROUNDS = int(os.environ.get("STORESCOPE_OFFSET_ROUNDS", "12"))


async def send(namesrv: str, topic: str, per_queue: int) -> None:
    async with Producer("senders", namesrv) as producer:
        for number in range(per_queue * 4):
            message = Message(topic, b"%d" % number, keys=f"k{number}")
            await producer.send(message, queue=MessageQueue(topic, "broker-a", number % 4))


async def run_rounds(namesrv: str, seed: int) -> OffsetRounds:
    async with Admin(namesrv) as admin:
        for topic in ("Orders", "Online"):
            await admin.create_topic(topic, 4)
    await send(namesrv, "Orders", 40)
    instance = ClientInstance(namesrv)
    try:
        rounds = OffsetRounds(instance, "Orders", random.Random(seed))
        await rounds.begin()
        for _ in range(ROUNDS):
            await rounds.round()
        return rounds
    finally:
        await instance.kill()


@pytest.mark.parametrize("release", ["5.5.0", "4.9.7"])
def test_predictions_hold_with_real_brokers(monkeypatch, tmp_path: Path, capsys, release: str) -> None:
    ports = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    monkeypatch.setenv("CLIENT_RELEASE", release)
    with real_cluster.real(tmp_path / "cluster", *ports, "--small", release=release) as status:
        namesrv = status["namesrv"]
        rounds = asyncio.run(run_rounds(namesrv, seed=7))
        with capsys.disabled():
            print(release, rounds.rounds, "rounds", rounds.predictions, "predictions", flush=True)
        assert rounds.predictions > 3 * ROUNDS
        asyncio.run(send(namesrv, "Online", 10))
        client = OtherClient("java", namesrv, tmp_path / "client")
        try:
            client.run(
                do="consumer", id="reader", group="billing", topics={"Online": {"type": "TAG", "expression": "*"}}
            )
            client.wait_until(lambda lines: received(lines).total() == 40, "not every message came")
            group = ("-n", namesrv, "-g", "billing", "-t", "Online", "--json", "--undo-file", str(tmp_path / "undo"))
            command = ["resetOffsetByTime", *group, "-s", "0", "--yes"]
            wait_for_commits(command, capsys)
            before = len(client.lines)
            code = main(command)
            records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
            assert (code, records[-1]["again"], records[-1]["never"]) == (0, 40, 0), records
            assert len(records[-1]["members"]) == 1
            asyncio.run(send(namesrv, "Online", 1))  # 5.x answers a held pull when a message comes
            client.wait_until(lambda lines: received(lines[before:]).total() >= 44, "not every message came again")
            again = received(client.lines[before:])
        finally:
            client.end()
        predicted = Counter(
            (row["queueId"], offset)
            for row in records[:-1]
            for offset in range(row["againFrom"], row["againFrom"] + row["again"])
        )
        assert again == predicted + Counter((queue_id, 10) for queue_id in range(4))
        capsys.readouterr()
        assert main(["restore-offsets", str(tmp_path / "undo"), "--plan", "--json"]) == 0


def wait_for_commits(command: list[str], capsys) -> None:
    """Wait until the consumer has committed all that it consumed."""
    for _ in range(100):
        main([*command[:-1], "--plan"])
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()][:-1]
        if [row["oldOffset"] for row in rows] == [10] * 4:
            return
        asyncio.run(asyncio.sleep(0.1))
    raise AssertionError(rows)


def received(lines: list) -> Counter:
    """Return how often each (queue, queue offset) came."""
    return Counter((line["queueId"], line["queueOffset"]) for line in lines if line["event"] == "received")
