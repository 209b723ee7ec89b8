"""Groups and topics compared with the queues: offsets beyond, before and outside them (CF02, CF06–CF08, CQ14)."""

from __future__ import annotations

import json

import pytest
from handmade_stores import HandmadeStore

from engine.inspection import open_store
from engine.inspection.check import groups
from engine.inspection.findings import check
from engine.rules.findings import Finding


@pytest.fixture
def root(tmp_path):
    store = HandmadeStore()
    for number in range(60):
        store.put(("Orders", "Paid")[number % 2])
    root = store.write(tmp_path / "s")
    (root / "config").mkdir()
    return root


def table(root, name, value):
    (root / "config" / name).write_text(json.dumps(value))


def offsets(root, **queues):
    table(
        root, "consumerOffset.json", {"offsetTable": {key.replace("_at_", "@"): queue for key, queue in queues.items()}}
    )


def findings_of_rule(root, rule):
    with open_store(root) as store:
        return [finding for finding in check(store) if isinstance(finding, Finding) and finding.id == rule]


def test_an_offset_beyond_the_queue_is_a_finding_of_the_group(root):
    offsets(root, Orders_at_g={"0": 99}, Orders_at_fine={"0": 30})
    (item,) = findings_of_rule(root, "CF02")
    assert "g" in item.message
    assert "99" in item.message
    with open_store(root) as store:
        assert [each.id for each in groups.offset_findings(store, {}, [])] == ["CF02"]


def test_an_offset_of_an_unknown_topic(root):
    offsets(root, Gone_at_g={"0": 7})
    (item,) = findings_of_rule(root, "CF08")
    assert "Gone" in item.message


def test_messages_deleted_before_a_group_read_them(root):
    min((root / "commitlog").iterdir()).unlink()
    offsets(root, Orders_at_slow={"0": 0})
    (finding,) = findings_of_rule(root, "CF06")
    assert "slow" in str(finding.evidence) + finding.message


def test_an_unreadable_topic_and_one_without_queues(root):
    declared = {"topicName": "Orders", "perm": 6, "readQueueNums": 0, "writeQueueNums": 4}
    table(root, "topics.json", {"topicConfigTable": {"Orders": declared}})
    assert [finding.evidence.get("topic", "Orders") for finding in findings_of_rule(root, "CF07")][:1] == ["Orders"]
    assert any("Paid" in item.message for item in findings_of_rule(root, "CQ14"))


def test_a_healthy_store_has_no_findings(root):
    offsets(root, Orders_at_g={"0": 30}, Paid_at_g={"0": 3})
    for rule in ("CF02", "CF06", "CF08", "CF09"):
        assert findings_of_rule(root, rule) == []
