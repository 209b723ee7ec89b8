"""The severity of undispatched units follows what the next start does with them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import incident_states as states
import pytest
from broken_stores import table
from handmade_stores import HandmadeStore

from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.inspection.where.evidence import where
from engine.rules.findings import Finding, Summary

pytestmark = pytest.mark.golden
HEALED = "Do not change consumer offsets: the next start of {} dispatches these messages again."


def gap_and_summary(root: Path) -> tuple[Finding, Summary]:
    with open_store(root) as store:
        *results, summary = check(store)
    return next(finding for finding in results if finding.id == "CQ10"), summary


def no_queues(root: Path) -> None:
    shutil.rmtree(root / "consumequeue")


def cut(physical: int) -> Callable[[Path], None]:
    return lambda root: states.cut_queues(root, physical)


def test_queues_that_the_next_start_builds_again_are_no_error(golden, tmp_path):
    """The first step was to build the queues before any start, although the start loses nothing."""
    for name, release in (("broker-orders", "RocketMQ 5.3.3"), ("broker-orders-4.9.7", "RocketMQ 4.9.8")):
        finding, summary = gap_and_summary(states.build(golden(name), tmp_path / name, no_queues))
        assert finding.severity == "warn"
        assert finding.next_step.endswith(HEALED[1:].format(release))
        assert [step["text"] for step in summary.incident["firstSteps"]][:1] == [HEALED.format(release)]
        assert [start["messages"] for start in summary.incident["lostByNextStart"].values()] == [0, 0]


def test_units_that_a_start_leaves_out_are_an_error(golden, tmp_path):
    finding, _ = gap_and_summary(states.build(golden("broker-orders"), tmp_path / "store", cut(2_443_400)))
    assert finding.severity == "error"
    assert finding.message.endswith("leaves 1 out for good")


def test_units_that_only_the_other_release_leaves_out_are_reported_for_it(golden, tmp_path):
    """The finding said that the next start dispatches all units, and also that one of 5.3 loses a message."""
    finding, summary = gap_and_summary(states.build(golden("broker-orders-4.9.7"), tmp_path / "store", cut(1_924_000)))
    lost = {release: start["messages"] for release, start in summary.incident["lostByNextStart"].items()}
    assert finding.severity == "error"
    assert finding.message.endswith("RocketMQ 4.9 dispatches them again when it starts, 5.3 leaves 1 out")
    assert lost == {"5.3": 1, "4.9": 0}


@pytest.mark.parametrize("is_declared", [True, False])
def test_two_topics_in_one_folder_of_a_file_system_that_ignores_case(is_declared, tmp_path):
    """A copy merged the folders of two topics. Without topics.json, check reported one as deleted with no action
    needed, and where advised to rename the folder, which belongs to the other topic.
    """
    handmade_store = HandmadeStore()
    for _ in range(12):
        handmade_store.put("Orders", 0)
        handmade_store.put("ORDERS", 0)
    root = handmade_store.write(tmp_path / "store")
    shutil.rmtree(root / "consumequeue" / "ORDERS")
    if is_declared:
        row = {"readQueueNums": 1, "writeQueueNums": 1, "perm": 6}
        table(root, "topics.json", json.dumps({"topicConfigTable": dict.fromkeys(("Orders", "ORDERS"), row)}))
    finding, _ = gap_and_summary(root)
    assert finding.severity == "error"
    assert "ORDERS and Orders differ only in case: a file system that ignores case" in finding.message
    assert "deleted" not in finding.message
    with open_store(root) as store:
        (result,) = where(store, "ORDERS/0/3")
    assert result.next_step.startswith("Two topics whose names differ in case lie in one folder")
