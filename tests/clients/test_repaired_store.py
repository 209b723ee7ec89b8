"""A damaged store is mended by ``repair``; RocketMQ's own broker starts on it, and its Java client reads a topic from
the first message on: it gets every message that was not touched, once, and in place of the lost ones nothing (5.x) or
an empty message that says so (4.9).
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
import real_cluster
import repair_rounds
from other_clients import OtherClient

from engine.cli.main import main
from engine.codec.filler import LOST

pytestmark = [pytest.mark.peer, pytest.mark.clients_full, pytest.mark.timeout(400)]

TOPIC = {"broker-orders-4.9.7": "OrderEvents", "broker-orders-5.5.1": "OrderEvents"}


@pytest.mark.parametrize(
    ("name", "release", "damage"),
    [
        ("broker-orders-4.9.7", "4.9.7", "zeros"),
        ("broker-orders-4.9.7", "4.9.7", "cut"),
        ("broker-orders-5.5.1", "5.5.0", "zeros"),
        ("broker-orders-5.5.1", "5.5.0", "cut"),
        ("broker-orders-5.5.1", "5.5.0", "lost, and all queues"),
    ],
)
def test_a_consumer_gets_every_message_that_was_not_touched(
    golden, monkeypatch, tmp_path: Path, name: str, release: str, damage: str
) -> None:
    place = tmp_path / "cluster"
    damaged = Path(shutil.copytree(golden(name), tmp_path / "damaged"))
    before = repair_rounds.units_of(damaged)
    of_topic = [unit for unit in before.values() if unit.topic == TOPIC[name]]
    first = of_topic[len(of_topic) // 3]
    if damage == "zeros":
        hits = [repair_rounds.overwrite_with_zeros(damaged, first.offset - 10, 4096)]
    else:
        hits = repair_rounds.damage_files(random.Random(1), damaged, damage)
    (damaged / "abort").touch()
    assert main(["repair", str(damaged), "--to", str(place / "store"), "--quiet"]) == 0
    after = repair_rounds.units_of(place / "store")
    assert repair_rounds.wrongs(before, after, hits) == []
    lost = [unit for unit in after.values() if repair_rounds.stands_in(unit) and unit.topic == TOPIC[name]]
    whole = [unit for unit in after.values() if unit.topic == TOPIC[name] and not repair_rounds.stands_in(unit)]
    assert lost
    ports = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    monkeypatch.setenv("CLIENT_RELEASE", release)
    with real_cluster.real(place, *ports, "--small", release=release) as status:
        client = OtherClient("java", status["namesrv"], tmp_path / "client")
        try:
            topics = {TOPIC[name]: {"type": "TAG", "expression": "*"}}
            client.run(do="consumer", id="reader", group="readsAllAgain", topics=topics)
            expected = Counter((unit.queue_id, unit.queue_offset) for unit in whole)
            client.wait_until(lambda lines: received(lines) >= expected, "not every message came")
            handed = [line for line in client.lines if line["event"] == "received"]
        finally:
            client.end()
    in_place_of_lost = [line for line in handed if LOST in line["properties"]]
    assert received(handed) - expected == (
        Counter((unit.queue_id, unit.queue_offset) for unit in lost) if release == "4.9.7" else Counter()
    )
    assert len(in_place_of_lost) == (len(lost) if release == "4.9.7" else 0)


def received(lines: list) -> Counter:
    """Return how often each (queue, queue offset) came."""
    return Counter((line["queueId"], line["queueOffset"]) for line in lines if line["event"] == "received")
