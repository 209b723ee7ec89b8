"""Queues and a commit log of different stores are one finding; the wrong entries are not reported separately."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from broken_stores import BROKEN
from handmade_stores import HandmadeStore, healthy
from planted_faults import patch

from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rules.findings import Finding, Summary, at_least


def checked(root: Path) -> tuple[list[Finding], Summary]:
    with open_store(root) as store:
        *results, summary = check(store)
    return results, summary


def grave(findings: list[Finding]) -> list[str]:
    return [finding.id for finding in findings if at_least(finding.severity, "warn")]


def test_the_log_of_another_store_is_one_finding_without_losses(tmp_path):
    """The finding was "an entry of a queue was never written", and its step rebuilt the queues from the wrong log."""
    store = healthy()
    root = store.write(tmp_path / "store")
    BROKEN["CL14"](root, store)
    results, summary = checked(root)
    assert grave(results) == ["CL14"]
    (finding,) = [item for item in results if item.id == "CL14"]
    assert finding.evidence["fits"] == "queues"
    assert finding.command is None
    assert summary.incident["lostAlready"] is None
    assert set(summary.incident["lostByNextStart"].values()) == {None}
    assert not [step for step in summary.incident["firstSteps"] if "dispatch" in (step["command"] or "")]


def test_without_an_index_neither_log_nor_queues_are_blamed(tmp_path):
    store = healthy()
    root = store.write(tmp_path / "store", index=False)
    BROKEN["CL14"](root, store)
    (finding,) = [item for item in checked(root)[0] if item.id == "CL14"]
    assert finding.evidence["fits"] == "unknown"
    assert "which of the two belongs to this store" in finding.next_step


def test_single_entries_that_point_elsewhere_stay_findings_of_their_own(tmp_path):
    store = healthy()
    root = store.write(tmp_path / "store")
    for number in (2, 5, 9):
        patch(root / "consumequeue" / "Orders" / "0" / f"{0:020d}", 20 * number, (77).to_bytes(8, "big"))
    assert "CL14" not in grave(checked(root)[0])


def test_a_short_queue_is_no_evidence(tmp_path):
    store = HandmadeStore()
    for number in range(6):
        store.put("Orders", number % 2)
    root = store.write(tmp_path / "store")
    for number in range(2):
        patch(root / "consumequeue" / "Orders" / str(number) / f"{0:020d}", 0, bytes(7) + b"\7" + bytes(52))
    assert "CL14" not in grave(checked(root)[0])


def test_queues_of_another_store_beside_this_stores_queues(tmp_path):
    root = healthy().write(tmp_path / "store")
    other_store = HandmadeStore()
    for number in range(40):
        other_store.put("Stock", number % 2, body=b"x" * (17 + number))
    other_store.write(tmp_path / "other")
    shutil.move(tmp_path / "other" / "consumequeue" / "Stock", root / "consumequeue" / "Stock")
    findings, summary = checked(root)
    (finding,) = [item for item in findings if item.id == "CL14"]
    assert finding.evidence["queues"] == ["Stock/0", "Stock/1"]
    assert grave(findings) == ["CL14"]
    assert summary.incident["lostAlready"]["messages"] == 0


@pytest.mark.full_form(keep=2)
@pytest.mark.golden
@pytest.mark.parametrize(
    "other_name", ["multi-queue-ext-5.3.3", "broker-orders-5.5.1", "broker-retries", "clean-5.5.1"]
)
def test_logs_of_real_brokers_changed_for_one_another(golden, tmp_path, other_name):
    root = tmp_path / "store"
    shutil.copytree(golden("broker-orders"), root)
    shutil.rmtree(root / "commitlog")
    shutil.copytree(golden(other_name) / "commitlog", root / "commitlog")
    findings, _ = checked(root)
    assert grave(findings) == ["CL14"]
