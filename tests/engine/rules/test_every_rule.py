"""Every rule has a store that violates it and one that does not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from broken_stores import BROKEN, CONFIG, log
from handmade_stores import ENTRIES, HandmadeStore, healthy

from engine.config import MessageStoreConfig
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rules.catalogue import RULES
from engine.rules.findings import SNAPSHOT_FIRST, at_least


def findings_by_rule(root: Path, config: MessageStoreConfig | None = None) -> dict[str, list]:
    with open_store(root, config) as store:
        *findings, summary = check(store)
    assert summary.complete or any(finding.id == "DK02" for finding in findings)
    observed: dict[str, list] = {}
    for finding in findings:
        observed.setdefault(finding.id, []).append(finding)
    return observed


@pytest.fixture
def healthy_store():
    return healthy()


@pytest.fixture
def root(tmp_path, healthy_store):
    return healthy_store.write(tmp_path / "store")


def test_a_healthy_store_gives_no_finding(root):
    assert findings_by_rule(root) == {}


@pytest.mark.parametrize("rule", sorted(RULES))
def test_the_rule_is_violated_on_the_broken_store(rule, root, healthy_store):
    BROKEN[rule](root, healthy_store)
    observed = findings_by_rule(root, CONFIG.get(rule))
    assert rule in observed, {id_: [f.message for f in findings] for id_, findings in observed.items()}
    for findings in observed.values():
        for finding in findings:
            assert finding.record()["type"] == "finding"
            assert finding.next_step.startswith(SNAPSHOT_FIRST) == at_least(finding.severity, "warn")


def test_rocksdb_queues_are_not_taken_for_missing_ones(root):
    shutil.rmtree(root / "consumequeue")
    (root / "consumequeue").mkdir()
    (root / "consumequeue" / "CURRENT").write_text("MANIFEST-000004\n")
    (root / "consumequeue" / "MANIFEST-000004").write_bytes(b"m")
    assert set(findings_by_rule(root)) == {"DK02"}
    with open_store(root) as store:
        assert not list(check(store))[-1].complete


def test_every_rule_has_a_broken_store():
    assert set(BROKEN) == set(RULES)
    assert ENTRIES > 58


def test_only_the_named_rules_are_reported(root, healthy_store):
    BROKEN["CL03"](root, healthy_store)
    (root / "abort").touch()
    with open_store(root) as store:
        findings = list(check(store, only={"AB01"}))
    assert [f.id for f in findings[:-1]] == ["AB01"]
    assert findings[-1].counts == {"chat": 0, "note": 0, "warn": 1, "error": 0}


CONFS = [
    pytest.param({"mapped_file_size_commit_log": 8192}, "mappedFileSizeCommitLog", "error", id="log"),
    pytest.param({"mapped_file_size_consume_queue": 20}, "mappedFileSizeConsumeQueue", "error", id="entries for bytes"),
    pytest.param({"max_hash_slot_num": 7, "max_index_num": 60}, "maxHashSlotNum maxIndexNum", "error", id="index"),
    pytest.param({"max_hash_slot_num": 7}, "maxHashSlotNum", "note", id="half of the index"),
    pytest.param({"store_path_root_dir": "/elsewhere"}, "storePathRootDir", "note", id="root"),
    pytest.param({"store_path_commit_log": "/elsewhere"}, "storePathCommitLog", "warn", id="log folder"),
]


@pytest.mark.parametrize(("values", "keys", "severity"), CONFS)
def test_a_wrong_configuration_is_the_only_error(root, values, keys, severity):
    observed = findings_by_rule(root, MessageStoreConfig(**values, given=frozenset(keys.split())))
    assert [f.severity for f in observed.pop("CF05") if f.evidence["keys"][0] in keys.split()] == [severity]
    assert not any(at_least(f.severity, "warn") for findings in observed.values() for f in findings)


def test_entry_counts_used_as_byte_sizes_are_named(root):
    texts = frozenset({"mappedFileSizeConsumeQueue"})
    observed = findings_by_rule(root, MessageStoreConfig(mapped_file_size_consume_queue=20, given=texts))
    assert any("20 entries of 20 bytes were meant" in f.message for f in observed["CF05"])


class StopAtOnce:
    def is_set(self):
        return True


def test_a_stopped_check_is_incomplete(root):
    with open_store(root) as store:
        *_, summary = check(store, cancel=StopAtOnce())
    assert not summary.complete


def test_progress_reaches_the_end(root):
    observed: list[tuple[int, int]] = []
    with open_store(root) as store:
        list(check(store, progress=lambda done, complete: observed.append((done, complete))))
    assert observed[-1][0] == observed[-1][1] > 0


def test_a_damaged_unit_lists_the_entries_that_lead_into_it(root, healthy_store):
    BROKEN["CL01"](root, healthy_store)
    (finding,) = findings_by_rule(root)["CL01"]
    unit = healthy_store.units[20]
    assert finding.offset == unit.offset
    assert finding.evidence["queueEntries"] == 1
    assert finding.evidence["indexEntries"] == len(unit.keys)
    assert finding.evidence["firstQueueEntry"] == f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}"


def test_a_wrong_crc_names_the_flipped_bit(root, healthy_store):
    offset = healthy_store.units[20].offset + 90
    log(root, offset, bytes([healthy_store.log[offset] ^ 0x04]))
    (finding,) = findings_by_rule(root)["CL03"]
    assert finding.evidence["bytePositions"] == [offset]
    assert "bit 2 of byte 2 of the body" in finding.message


def test_a_topic_that_was_deleted_and_made_again_is_healthy(tmp_path):
    store = HandmadeStore()
    for _ in range(12):
        store.put("Orders", 0)
    store.next_offsets.clear()
    old, store.units = store.units, []
    for _ in range(5):
        store.put("Orders", 0)
    root = store.write(tmp_path, index=False)
    assert len(old) == 12
    assert set(findings_by_rule(root)) <= {"CQ08", "IX10"}
