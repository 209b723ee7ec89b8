"""What a store's queues lead to, and what a real Java client is handed by a real broker on the store."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import real_cluster
from other_clients import OtherClient

from engine.codec.message import Unit
from engine.inspection.snapshot import open_store

TOPICS = {
    "broker-orders-4.9.7": ("OrderEvents", "PaymentEvents", "AuditTrail"),
    "broker-orders": ("OrderEvents", "PaymentEvents", "AuditTrail"),
    "broker-transactions-5.4.0": ("CartUpdates", "StockLevels"),
    "broker-orders-5.5.1": ("OrderEvents", "PaymentEvents", "AuditTrail"),
    "master-slave-5.5.1": ("Orders",),
}
"""Topics of golden stores that a client may read."""
Place = tuple[str, int, int]
"""Topic, queue and queue offset."""


def served(store: Path, topics: tuple[str, ...]) -> dict[Place, Unit]:
    """Return the messages of the topics that the queues of a store lead to, by topic, queue and queue offset."""
    messages: dict[Place, Unit] = {}
    with open_store(store) as opened:
        for topic in topics:
            for queue in opened.queues.by_topic().get(topic, {}).values():
                for entry in queue.entries(queue.min_offset, queue.max_offset):
                    unit = opened.log.unit_at(entry.physical_offset, crc=False)
                    assert isinstance(unit, Unit), (topic, queue.queue_id, entry)
                    messages[topic, queue.queue_id, entry.queue_offset] = unit
    return messages


def consume(
    monkeypatch: pytest.MonkeyPatch, place: Path, release: str, expected: Counter[Place]
) -> list[dict[str, Any]]:
    """Start the real broker on the store in ``place``, and return what a Java client is handed of the topics."""
    monkeypatch.setenv("CLIENT_RELEASE", release)
    ports = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    with real_cluster.real(place, *ports, "--small", release=release) as status:
        client = OtherClient("java", status["namesrv"], place / "client")
        try:
            topics = {topic: {"type": "TAG", "expression": "*"} for topic, _, _ in expected}
            words = {"do": "consumer", "group": "readsAllAgain", "topics": topics}
            if client.try_command(id="reader", **words)[1] is not None:  # on a busy machine a first request may fail
                client.run(id="reader once more", **words)
            client.wait_until(lambda lines: received(lines) >= expected, "not every message came")
            return [line for line in client.lines if line["event"] == "received"]
        finally:
            client.end()


def received(lines: list[dict[str, Any]]) -> Counter[Place]:
    """Return how often the message at each place came."""
    return Counter(
        (line["topic"], line["queueId"], line["queueOffset"]) for line in lines if line["event"] == "received"
    )
