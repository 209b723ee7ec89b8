"""Rows of tables become what queues and log say; the rest of a table stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from broken_stores import BROKEN, declared, table
from handmade_stores import HandmadeStore, healthy

from engine.codec.json_dialect import parse
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.mapped.disk import RealDisk
from engine.patching.apply import apply_patches
from engine.patching.patches import PatchList
from engine.repair.repair import Repair
from engine.repair.table_rows import repair_delay_offsets, repair_offsets, repair_topics
from engine.rules import catalogue
from engine.rules.findings import Finding


def mended(root: Path, repair_table) -> Repair | None:
    """Apply the repair of a table; return it."""
    with open_store(root) as store:
        repair = repair_table(store, [item for item in check(store) if isinstance(item, Finding)])
    if repair is not None:
        apply_patches(root, PatchList(repair.patches), RealDisk())
    return repair


def content(root: Path, name: str) -> dict:
    value = parse((root / "config" / name).read_bytes()).value
    assert isinstance(value, dict)
    return value


def test_a_topic_that_the_table_lacks_is_declared_with_its_queues(tmp_path):
    root = healthy().write(tmp_path / "store")
    text = {"dataVersion": {"counter": 3, "timestamp": 9}, "topicConfigTable": {"Orders": {"perm": 6}}, "other": 1}
    table(root, "topics.json", json.dumps(text))
    repair = mended(root, repair_topics)
    after = content(root, "topics.json")
    assert after["topicConfigTable"]["Payments"]["readQueueNums"] == 2
    assert after["topicConfigTable"]["Payments"]["perm"] == 6
    assert after["topicConfigTable"]["Orders"] == {"perm": 6}
    assert (after["dataVersion"], after["other"]) == ({"counter": 4, "timestamp": 9}, 1)
    assert "deleted on purpose" in repair.costs


def test_a_lost_table_of_topics_gets_all_topics_that_have_queues(tmp_path):
    store = healthy()
    root = store.write(tmp_path / "store")
    BROKEN["CF01"](root, store)
    assert mended(root, repair_topics) is not None
    assert set(content(root, "topics.json")["topicConfigTable"]) == {"Orders", "Payments"}


def test_queues_that_all_groups_have_read_stay_hidden(tmp_path):
    store = healthy()
    root = store.write(tmp_path / "store")
    declared(root, "Orders", "Payments", readQueueNums=1, writeQueueNums=1)
    assert mended(root, repair_topics) is None
    offsets = {"Payments@g": {"0": 1, "1": 1}}
    table(root, "consumerOffset.json", json.dumps({"offsetTable": offsets}))
    assert mended(root, repair_topics) is not None
    rows = content(root, "topics.json")["topicConfigTable"]
    assert (rows["Payments"]["readQueueNums"], rows["Orders"]["readQueueNums"]) == (2, 1)


def test_rows_of_a_topic_that_is_gone_are_removed_everywhere(tmp_path):
    root = healthy().write(tmp_path / "store")
    rows = {
        "groupTopicMap": {"g": ["Gone", "Orders"], "h": ["Gone"]},
        "offsetTable": {"Gone@g": {"0": 7}, "Orders@g": {"0": 1}, "Gone@h": {"0": 2}},
    }
    table(root, "consumerOffset.json", json.dumps(rows))
    assert mended(root, repair_offsets) is not None
    after = content(root, "consumerOffset.json")
    assert after == {"groupTopicMap": {"g": ["Orders"]}, "offsetTable": {"Orders@g": {"0": 1}}}


def test_an_offset_beyond_the_end_becomes_the_end(tmp_path):
    store = healthy()
    root = store.write(tmp_path / "store")
    table(root, "consumerOffset.json", json.dumps({"offsetTable": {"Orders@g": {"0": 99999, "1": 2}}}))
    repair = mended(root, repair_offsets)
    rows = content(root, "consumerOffset.json")["offsetTable"]["Orders@g"]
    assert rows == {0: store.next_offsets["Orders", 0], "1": 2}
    assert "skips the messages in between" in repair.costs


def test_a_group_gets_all_of_a_queue_that_began_again(tmp_path):
    """A topic was deleted and created again: the offset is that of the old queue, and no message of the new one was
    read.
    """
    store = HandmadeStore()
    for _ in range(12):
        store.put("Orders", 0)
    store.next_offsets.clear()
    store.units = []
    for _ in range(5):
        store.put("Orders", 0)
    root = store.write(tmp_path / "store", index=False)
    table(root, "consumerOffset.json", json.dumps({"offsetTable": {"Orders@g": {"0": 12}}}))
    repair = mended(root, repair_offsets)
    assert content(root, "consumerOffset.json")["offsetTable"]["Orders@g"] == {0: 0}
    assert repair.costs == ""


def test_the_revive_of_pops_goes_on_behind_a_record_that_it_cannot_read(tmp_path):
    """The service fails at it again and again, and no popped message comes back (CF13)."""
    store = HandmadeStore()
    topic = "rmq_sys_REVIVE_LOG_c"
    store.put("Orders", 0)
    for body in (b"{}", b"{damaged", b'{"t":"Orders","c":"g","q":0,"so":0,"pt":1,"it":1,"n":1,"d":[0]}'):
        store.put(topic, 0, body=body, tags="ck")
    for _ in range(50):
        store.put("Orders", 0, step=60_000)
    root = store.write(tmp_path / "store", index=False)
    table(root, "consumerOffset.json", json.dumps({"offsetTable": {"Orders@g": {"0": 1}}}))
    repair = mended(root, repair_offsets)
    assert content(root, "consumerOffset.json")["offsetTable"][f"{topic}@CID_RMQ_SYS_REVIVE_GROUP"] == {0: 1}
    assert "1 record in front of it" in repair.costs


@pytest.mark.parametrize("rule", ["CF12", "CF14", "CL11"])
def test_offsets_stay_where_the_log_or_the_tables_may_be_the_wrong_ones(tmp_path, rule):
    store = healthy()
    root = store.write(tmp_path / "store")
    BROKEN[rule](root, store)
    if rule == "CL11":
        table(root, "consumerOffset.json", json.dumps({"offsetTable": {"Gone@g": {"0": 7}}}))
    assert mended(root, repair_offsets) is None


@pytest.mark.parametrize(("witness", "is_set"), [("CK02", True), ("CQ13", False), ("IX07", False)])
def test_offsets_are_set_once_no_queue_has_the_lost_end_of_the_log(tmp_path, witness, is_set):
    """The checkpoint alone knew of the lost messages after their entries were removed, and the offsets stayed. 5.5.1
    gave their numbers to new messages, and the group did not get these.
    """
    store = healthy()
    root = store.write(tmp_path / "store")
    BROKEN["CF02"](root, store)
    lost_end = catalogue.CL11.finding("the end is lost", None, store.end, {witness: {}})
    with open_store(root) as opened:
        findings = [*(item for item in check(opened) if isinstance(item, Finding)), lost_end]
        assert (repair_offsets(opened, findings) is not None) == is_set


@pytest.mark.parametrize("content_before", ['{"offsetTable":{3:12}}', "{}", ""])
def test_a_delay_level_goes_on_with_the_first_message_that_was_not_delivered(tmp_path, content_before):
    store = HandmadeStore()
    for number in range(9):
        more = {"REAL_TOPIC": "Orders", "DELAY": "3"}
        unit = store.put("SCHEDULE_TOPIC_XXXX", 2, more=more, unique=f"KEY{number}", step=60_000)
        unit.tags_code = unit.store_timestamp + 10_000
        if number < 5:
            store.put("Orders", 0, unique=f"KEY{number}", step=11_000)
    root = store.write(tmp_path / "store", index=False)
    table(root, "topics.json", '{"topicConfigTable":{"Orders":{}}}')
    table(root, "consumerOffset.json", '{"offsetTable":{"Orders@g":{0:1}}}')
    table(root, "consumerFilter.json", "{}")
    table(root, "delayOffset.json", content_before)
    assert mended(root, repair_delay_offsets) is not None
    assert content(root, "delayOffset.json")["offsetTable"] == {3: 5}
