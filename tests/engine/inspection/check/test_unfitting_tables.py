"""Tables of another broker are one finding: each topic that they lack has no cause of its own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from broken_stores import BROKEN, table
from made_stores import healthy

from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rules.findings import Finding, at_least


def checked(root: Path) -> list[Finding]:
    with open_store(root) as store:
        *found, _ = check(store)
    return found


def grave(root: Path) -> list[str]:
    return [one.id for one in checked(root) if at_least(one.severity, "warn")]


def test_it_is_one_finding_with_what_they_lack_and_what_the_store_lacks(tmp_path):
    """Five topics were declared again by hand, one command each, over the offsets of another broker."""
    made = healthy()
    root = made.write(tmp_path / "store")
    BROKEN["CF14"](root, made)
    assert grave(root) == ["CF14"]
    (one,) = [one for one in checked(root) if one.id == "CF14"]
    assert (one.evidence["lacking"], one.evidence["withoutQueues"]) == (["Orders", "Payments"], ["Prices", "Stock"])
    assert {one.caused_by for one in checked(root) if one.id in ("CQ14", "CF08")} == {"CF14"}


def test_a_single_topic_that_is_missing_is_no_other_broker(tmp_path):
    root = healthy().write(tmp_path / "store")
    table(root, "topics.json", json.dumps({"topicConfigTable": {"Orders": {}}}))
    assert grave(root) == ["CQ14"]


def test_offsets_of_deleted_topics_are_no_other_broker(tmp_path):
    root = healthy().write(tmp_path / "store")
    table(root, "topics.json", json.dumps({"topicConfigTable": {"Orders": {}, "Payments": {}}}))
    offsets = {"Old@billing": {"0": 7}, "Older@billing": {"0": 8}, "Oldest@billing": {"0": 9}}
    table(root, "consumerOffset.json", json.dumps({"offsetTable": offsets}))
    assert set(grave(root)) == {"CF08"}


@pytest.mark.golden
@pytest.mark.parametrize("other", ["broker-retries", "broker-transactions-5.4.0"])
def test_tables_of_real_brokers_changed_for_one_another(golden, tmp_path, other):
    root = tmp_path / "store"
    shutil.copytree(golden("broker-orders"), root)
    shutil.rmtree(root / "config")
    shutil.copytree(golden(other) / "config", root / "config")
    assert grave(root) == ["CF14"]
