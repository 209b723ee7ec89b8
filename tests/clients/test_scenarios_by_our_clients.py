"""Our clients run the scenarios of Java's clients, and get the same answers and messages as those from a real broker.

``records/RELEASE-SCENARIO-SEED.jsonl.xz`` holds the record of Java's clients with RocketMQ's own broker; lines that
need admin tools are left out on both sides.
"""

from __future__ import annotations

import asyncio
import json
import lzma
from pathlib import Path

import pytest
import real_cluster
from our_traffic import OurTraffic, is_compared
from served_broker import served

from engine.broker.config import BrokerConfig
from engine.config import parse_properties

pytestmark = [pytest.mark.timeout(900)]
RECORDS = Path(__file__).parent / "records"
SMALL = "mappedFileSizeCommitLog=1048576\nmappedFileSizeConsumeQueue=6000\nmaxHashSlotNum=100\nmaxIndexNum=400\n"
"""The file sizes that a scenario's own broker has: where a queue's file ends, a filtered pull does."""
SWITCHES = {
    "orders": BrokerConfig(),
    "retries": BrokerConfig(recall_message=True),
    "transactions": BrokerConfig(transaction_timeout_ms=2000, transaction_check_interval_ms=4000, transaction_checks=3),
}


def java_s(release: str, scenario: str, folder: Path) -> Path:
    """Return the record of Java's clients, without requests that ours do not send."""
    folder.mkdir(parents=True)
    path = folder / "truth.jsonl"
    with lzma.open(RECORDS / f"{release}-{scenario}-2.jsonl.xz", "rt", encoding="utf-8") as file:
        path.write_text("".join(line for line in file if is_compared(json.loads(line))), "utf-8")
    return path


def assert_same(theirs: Path, ours: Path) -> None:
    _, reported = real_cluster.same(theirs, ours)
    lines = [json.loads(line) for line in reported.splitlines()]
    assert lines[-1]["kind"] == "summary"
    assert [record for record in lines if record["kind"] == "difference"] == []


async def drive(traffic: OurTraffic) -> None:
    async with asyncio.timeout(800):  # sends alone take minutes where the machine has much else to do
        await traffic.run()


@pytest.mark.clients_full
@pytest.mark.parametrize("scenario", ["retries", "transactions", "orders"])
def test_beside_our_broker(scenario: str, tmp_path: Path) -> None:
    """With the broker in the same process."""

    async def what() -> None:
        store, _ = parse_properties(SMALL + ("timerRollWindowSlot=8\n" if scenario == "retries" else ""))
        async with served(tmp_path / "store", SWITCHES[scenario], store, release="5.3") as beside:
            traffic = OurTraffic(beside.namesrv, beside.server.address, scenario, 2, "5.3.3", tmp_path)
            await drive(traffic)
            traffic.write(tmp_path / "ours")

    asyncio.run(what())
    assert_same(java_s("5.3.3", scenario, tmp_path / "theirs"), tmp_path / "ours")


@pytest.mark.clients_full
@pytest.mark.peer
@pytest.mark.parametrize(
    ("release", "scenario"),
    [
        ("5.3.3", "orders"),
        ("4.9.7", "orders"),
        ("5.3.3", "retries"),
        ("4.9.7", "retries"),
        ("5.3.3", "transactions"),
    ],
)
def test_beside_a_real_broker(release: str, scenario: str, tmp_path: Path) -> None:
    """With RocketMQ's own broker of either release."""
    ports = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    with real_cluster.real(
        tmp_path / "real", *ports, "--small", "--for", scenario, "--seed", 2, release=release, clean_end=True
    ) as output:
        traffic = OurTraffic(output["namesrv"], output["broker"], scenario, 2, release, tmp_path)
        asyncio.run(drive(traffic))
    assert_same(java_s(release, scenario, tmp_path / "theirs"), traffic.write(tmp_path / "ours"))
