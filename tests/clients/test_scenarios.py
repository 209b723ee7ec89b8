"""Real Java clients through ``storescope serve`` are told what a real broker told them, and the store is whole.

``records/RELEASE-SCENARIO-SEED.jsonl.xz`` is what the clients were told by RocketMQ's own broker (``java/traffic``
without ``--namesrv``; for ``lmq``, whose queues no administrator can list, as it is asked from outside). In full form
the scenarios of other releases are compared with a real broker beside ours.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import real_cluster
from served_stores import served_to_clients

from engine.cli.main import main

pytestmark = [pytest.mark.peer, pytest.mark.timeout(900)]
LONGEST_TOPIC = 127
RECORDS = Path(__file__).parent / "records"
SMALL = (
    "mappedFileSizeCommitLog=1048576\nmappedFileSizeConsumeQueue=6000\nmaxHashSlotNum=100\nmaxIndexNum=400\n"
    "cleanFileForciblyEnable=false\n"
)
"""The file sizes that a scenario's own broker has; on a disk that is nearly full no file goes before its time."""
SCENARIOS = {
    "lmq": "enableLmq=true\nenableMultiDispatch=true\n",
    "orders": "",
    "pop": "",
    "retries": "timerRollWindowSlot=8\nrecallMessageEnable=true\n",
    "sqlfilter": "enableConsumeQueueExt=true\nenableCalcFilterBitMap=true\nenablePropertyFilter=true\n",
    "transactions": "transactionTimeOut=2000\ntransactionCheckInterval=4000\ntransactionCheckMax=3\n",
}
"""What each wants of the broker's configuration."""


def _of_time(differences: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Differences that only say how quick the machine was.

    A group whose name leaves no room for that of its retry topic keeps what fails in the client, which hands it out
    again every five seconds until the scenario ends: one side has a late delivery more, and so many more in its count.
    """
    held = [one for one in differences if len("%RETRY%" + one.get("group", "")) > LONGEST_TOPIC]
    again = [
        one for one in held
        if one["what"] == "received" and one["reconsumeTimes"] > 3 and "absent" in {str(one["a"]), str(one["b"])}
    ]  # fmt: skip
    counted = [one for one in held if one["what"] == "consumed" and abs(one["a"] - one["b"]) == len(again) > 0]
    return again + counted


def assert_same(theirs: Path, ours: Path) -> None:
    """What clients were told by both differs in nothing."""
    _, told = real_cluster.same(theirs, ours)
    lines = [json.loads(line) for line in told.splitlines()]
    assert lines[-1]["kind"] == "summary"
    differences = [one for one in lines if one["kind"] == "difference"]
    of_time = _of_time(differences)
    assert [one for one in differences if one not in of_time] == []


KEPT = sorted(one.name.removesuffix(".jsonl.xz") for one in RECORDS.iterdir())


@pytest.mark.parametrize("scenario", [one for one in KEPT if one.split("-")[1] in SCENARIOS])
def test_clients_are_told_what_a_real_broker_told_them(scenario: str, tmp_path: Path) -> None:
    """Sends of every kind, groups of every kind, admin questions: a record of RocketMQ's own broker says the same."""
    release, name, seed = scenario.split("-")
    like = "4.9" if release.startswith("4.9") else "5.3"
    with served_to_clients(tmp_path / "store", SMALL + SCENARIOS[name], "--like", like) as namesrv:
        told = real_cluster.traffic(name, int(seed), tmp_path / "told", namesrv, release)
    assert [one for one in told if one["kind"] == "failure"] == []
    assert_same(RECORDS / f"{scenario}.jsonl.xz", tmp_path / "told")
    assert main(["check", str(tmp_path / "store")]) == 0


@pytest.mark.clients_full
@pytest.mark.parametrize("seed", [3, 8])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_other_seeds_beside_a_real_broker(scenario: str, seed: int, tmp_path: Path) -> None:
    """The same with names and orders that no record has."""
    with served_to_clients(tmp_path / "store", SMALL + SCENARIOS[scenario]) as namesrv:
        real_cluster.traffic(scenario, seed, tmp_path / "ours", namesrv)
    options = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    with real_cluster.real(tmp_path / "real", *options, "--small", "--for", scenario) as said:
        real_cluster.traffic(scenario, seed, tmp_path / "theirs", said["namesrv"])
    assert_same(tmp_path / "theirs", tmp_path / "ours")
    assert main(["check", str(tmp_path / "store")]) == 0
