"""The real RocketMQ opens a lab store after a simulated power failure: it recovers to the same end as ours, and reads
the same from our recovered store.
"""

from __future__ import annotations

from pathlib import Path

import agree
import peer
import put_traffic
import pytest

from engine.config import from_mapping
from engine.lab.lab_store import LabStore
from engine.lab.power_cut import cut_power, finish_report, timed_open

pytestmark = [pytest.mark.peer, pytest.mark.crash, pytest.mark.timeout(900)]
KEEP = dict.fromkeys(peer.EVERY_RELEASE, 0.5) | {"4.9.8": 0.8}


def bounds(account: list[dict], when: str) -> dict[tuple[str, int], tuple[int, int]]:
    """Return minimum and maximum of each queue from Java's account."""
    rows = [row for row in account if row["t"] == "queue" and row["when"] == when]
    return {(row["topic"], row["queue"]): (row["min"], row["max"]) for row in rows}


@pytest.mark.parametrize("release", peer.RELEASES)
def test_java_recovers_and_reads_a_store_after_a_power_cut_as_ours_does(tmp_path: Path, release: str) -> None:
    plan = {**dict(peer.plans(3, release))["clean"], "count": 400, "pauseEvery": 0}
    config, _ = from_mapping({"timerWheelEnable": False, "flushDiskType": "ASYNC_FLUSH", **plan["config"]})
    lab = LabStore.create(tmp_path / "lab", config, release=release[:3])  # type: ignore[arg-type]
    put_traffic.put(lab.store, put_traffic.messages(3, plan, 300))
    lab.store.flush()
    put_traffic.put(lab.store, put_traffic.messages("3 more", plan, 300))
    report = cut_power(lab, None, [], 3, keep=KEEP.get(release, 0.5))
    java = peer.Peer(release, tmp_path)
    account = java.dump(plan, tmp_path / "lab/store")
    assert next(row for row in account if row["t"] == "load")["ok"]
    started = next(row for row in account if row["t"] == "state" and row["when"] == "started")
    assert report.plan.end_offset == started["maxPhy"]
    planned = {(queue.topic, queue.queue_id): (queue.min_offset, queue.max_offset) for queue in report.plan.queues}
    theirs = bounds(account, "started")
    assert {key: planned.get(key, (0, 0)) for key in theirs} == theirs
    repeated, elapsed = timed_open(tmp_path / "lab")
    report = finish_report(repeated, report, elapsed)
    assert report.as_planned, [figure for figure in report.figures if not figure.equal]
    repeated.close()
    account = java.dump(plan, tmp_path / "lab/store")
    for aspect, compare in agree.ASPECTS.items():
        tally = compare(tmp_path / "lab/store", account)
        assert not tally.differences, f"{aspect}: {tally}"
    assert agree.units(tmp_path / "lab/store", account).compared > 100
