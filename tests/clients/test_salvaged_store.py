"""Messages come back from a replica or the image of a disk, and RocketMQ's own broker starts on the result: its Java
client gets every one of them, once.
"""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest
import real_cluster
import repair_rounds
from consumed_stores import TOPICS, consume, received, served

from engine.cli.main import main
from engine.inspection.snapshot import open_store

pytestmark = [pytest.mark.peer, pytest.mark.clients_full, pytest.mark.timeout(400)]
STORES = [("broker-orders-4.9.7", "4.9.7"), ("broker-orders-5.5.1", "5.5.0")]
LOST_START, LOST_BYTES = 200_000, 200_000


def lose_a_part(store: Path) -> repair_rounds.Hit:
    """Overwrite 200 KB of the first file of the log with zeros."""
    return repair_rounds.overwrite_with_zeros(store, LOST_START, LOST_BYTES)


@pytest.mark.parametrize(("name", "release"), STORES)
def test_a_consumer_gets_salvaged_messages(golden, monkeypatch, tmp_path: Path, name: str, release: str) -> None:
    """From the image of a disk into a new store; ``repair`` declares its topics, for it has no tables."""
    damaged, place, image = tmp_path / "damaged", tmp_path / "cluster", tmp_path / "disk.img"
    shutil.copytree(golden(name), damaged)
    rng = random.Random(1)
    file = min((damaged / "commitlog").iterdir())
    image.write_bytes(rng.randbytes(5000) + file.read_bytes() + rng.randbytes(9000))
    before = served(damaged, TOPICS[name])
    lose_a_part(damaged)
    readable = repair_rounds.units_of(damaged)
    assert main(["salvage", str(damaged), "--image", str(image), "--to", str(place / "store"), "--quiet"]) == 0
    assert main(["repair", str(place / "store"), "--apply", "--yes", "--no-backup", "--quiet"]) == 0
    lost = [unit for unit in before.values() if unit.offset not in readable]
    salvaged = served(place / "store", TOPICS[name])
    assert Counter(unit.body for unit in salvaged.values()) == Counter(unit.body for unit in lost)
    assert len(lost) > 100
    assert received(consume(monkeypatch, place, release, Counter(salvaged.keys()))) == Counter(salvaged.keys())


@pytest.mark.parametrize(("name", "release"), STORES)
def test_a_consumer_gets_messages_from_a_replica(golden, monkeypatch, tmp_path: Path, name: str, release: str) -> None:
    damaged, place = tmp_path / "damaged", tmp_path / "cluster"
    shutil.copytree(golden(name), damaged)
    before = served(damaged, TOPICS[name])
    lose_a_part(damaged)
    words = ["repair", str(damaged), "--from", str(golden(name)), "--to", str(place / "store"), "--quiet"]
    assert main(words) == 0
    assert served(place / "store", TOPICS[name]) == before
    assert received(consume(monkeypatch, place, release, Counter(before.keys()))) == Counter(before.keys())


@pytest.mark.parametrize("release", ["5.3.3", "5.5.0"])
def test_a_killed_master_gets_its_messages_back_from_its_slave(monkeypatch, tmp_path: Path, release: str) -> None:
    """Master and slave are killed under load; the master's log is damaged where the slave has it."""
    namesrv_port, port = real_cluster.free_port(), real_cluster.free_port()
    master, slave = tmp_path / "master", tmp_path / "slave"
    namesrv = f"127.0.0.1:{namesrv_port}"
    with real_cluster.real(master, "--namesrv-port", namesrv_port, "--port", port, "--small", release=release):
        slave_words = ("--port", real_cluster.free_port(), "--namesrv", namesrv, "--slave-of", "broker-a", "--small")
        with real_cluster.real(slave, *slave_words, release=release):
            real_cluster.traffic("orders", 4, tmp_path / "truth", namesrv, release=release)
            wait_for_length(slave / "store", length(master / "store") - 20_000)
    assert main(["diff", str(master / "store"), str(slave / "store"), "--quiet"]) in (0, 1)
    damaged, place = tmp_path / "damaged", tmp_path / "cluster"
    shutil.copytree(master / "store", damaged)
    topics = TOPICS["broker-orders"]
    before = served(damaged, topics)
    hit = lose_a_part(damaged)
    words = ["repair", str(damaged), "--from", str(slave / "store"), "--to", str(place / "store"), "--quiet"]
    assert main(words) == 0
    assert sum(hit.touches(unit) for unit in before.values()) > 100
    assert served(place / "store", topics) == before
    assert main(["diff", str(master / "store"), str(place / "store"), "--quiet"]) in (0, 1)
    assert received(consume(monkeypatch, place, release, Counter(before.keys()))) == Counter(before.keys())


def length(store: Path) -> int:
    """Return the end of the log."""
    with open_store(store) as opened:
        return opened.log.max_offset


def wait_for_length(store: Path, wanted: int) -> None:
    """Wait until a slave's log reaches ``wanted``."""
    until = time.monotonic() + 60
    while length(store) < wanted:
        assert time.monotonic() < until, f"the slave has {length(store):,} of {wanted:,} bytes"
        time.sleep(0.5)
