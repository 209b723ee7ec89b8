"""Tables in config/ that no broker can load come from a replica, byte for byte, and never from another broker."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.mapped.disk import RealDisk
from engine.patching.apply import apply_patches
from engine.patching.patches import PatchList
from engine.repair.repair_plan import RepairPlan, plan_repairs

pytestmark = pytest.mark.golden
NAME = "replica-tables"


def plan(root: Path, *sources: Path) -> RepairPlan:
    return plan_repairs(root, None, "5.5", sources=sources)


def halve(root: Path, name: str) -> None:
    for path in (root / "config" / name, root / "config" / f"{name}.bak"):
        if path.exists():
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


DAMAGES: list[tuple[Callable[[Path], object], str, set[str]]] = [
    (
        lambda root: shutil.rmtree(root / "config"),
        "CF03",
        {"topics.json", "subscriptionGroup.json", "delayOffset.json"},
    ),
    (lambda root: halve(root, "consumerOffset.json"), "CF01", {"consumerOffset.json"}),
]


@pytest.mark.parametrize(("damage", "rule", "names"), DAMAGES, ids=["all", "offsets"])
def test_tables_that_no_broker_can_load_come_from_a_replica(
    golden: Any, tmp_path: Path, damage: Callable[[Path], object], rule: str, names: set[str]
) -> None:
    replica = golden("broker-retries-5.5.1")
    root = Path(shutil.copytree(replica, tmp_path / "store"))
    damage(root)
    assert NAME not in [repair.name for repair in plan(root).repairs]
    answer = plan(root, replica)
    assert rule in {finding.id for finding in answer.current.findings}
    assert {finding.id for finding in answer.mended.findings} == set()
    repair = next(repair for repair in answer.repairs if repair.name == NAME)
    assert names <= {Path(patch.file).name for patch in repair.patches}
    assert "was changed after" in repair.costs
    apply_patches(root, PatchList(answer.patches), RealDisk())
    for patch in repair.patches:
        assert (root / patch.file).read_bytes() == (replica / patch.file).read_bytes()


def test_tables_of_another_broker_make_room_for_those_of_a_replica(golden: Any, tmp_path: Path) -> None:
    replica = golden("broker-retries-5.5.1")
    root = Path(shutil.copytree(replica, tmp_path / "store"))
    shutil.rmtree(root / "config")
    shutil.copytree(golden("broker-orders-5.5.1") / "config", root / "config")
    answer = plan(root, replica)
    assert "CF14" in {finding.id for finding in answer.current.findings}
    assert [repair.name for repair in answer.repairs] == [NAME]
    assert answer.mended.findings == ()


def test_mappings_of_static_topics_come_from_a_replica(golden: Any, tmp_path: Path) -> None:
    """Ranges that contradict each other came back from a .bak only: --from REPLICA left them as they were."""
    replica = golden("static-topic-5.5.1")
    root = Path(shutil.copytree(replica, tmp_path / "store"))
    table = root / "config" / "topicQueueMapping.json"
    table.with_name(f"{table.name}.bak").unlink(missing_ok=True)
    mappings = json.loads(re.sub(r"([{,]\s*)(\d+):", r'\1"\2":', table.read_text()))  # fastjson's keys have no quotes
    hosted = mappings["topicQueueMappingInfoMap"]["Ledger"]["hostedQueues"]
    number = min(hosted)
    hosted["7"] = hosted[number]
    table.write_text(json.dumps(mappings))
    assert plan(root).repairs == ()
    answer = plan(root, replica)
    assert {finding.id for finding in answer.current.findings} == {"CF19"}
    assert answer.mended.findings == ()
    apply_patches(root, PatchList(answer.patches), RealDisk())
    assert table.read_bytes() == (replica / "config" / table.name).read_bytes()


def test_a_static_topic_gets_the_queues_of_its_mapping(golden: Any, tmp_path: Path) -> None:
    """A broker refuses sends and pulls of a logical queue whose queue the topic does not have, and repair changed
    nothing. Now topics.json has the queues that a real 5.5.1 gave the topic.
    """
    original = golden("static-topic-5.5.1")
    root = Path(shutil.copytree(original, tmp_path / "store"))
    table = root / "config" / "topics.json"
    topics = json.loads(table.read_bytes())
    topics["topicConfigTable"]["Ledger"] |= {"readQueueNums": 1, "writeQueueNums": 1}
    table.write_text(json.dumps(topics))
    answer = plan(root)
    assert "CF19" in {finding.id for finding in answer.current.findings}
    assert answer.mended.findings == ()
    apply_patches(root, PatchList(answer.patches), RealDisk())
    before = json.loads((original / "config" / table.name).read_bytes())
    assert json.loads(table.read_bytes())["topicConfigTable"] == before["topicConfigTable"]


def test_no_table_comes_from_another_broker(golden: Any, tmp_path: Path) -> None:
    root = Path(shutil.copytree(golden("broker-retries-5.5.1"), tmp_path / "store"))
    halve(root, "consumerOffset.json")
    assert plan(root, golden("broker-orders-5.5.1")).repairs == ()
