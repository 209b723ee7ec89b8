"""The log part of a check: files, units, blanks, and bytes after the end."""

from __future__ import annotations

import struct

import pytest
from broken_stores import log, next_blank, zero_log_from
from handmade_stores import LOG_SIZE, HandmadeStore

from engine.inspection import open_store
from engine.inspection.findings import check
from engine.rules.findings import Finding


@pytest.fixture
def small_store():
    store = HandmadeStore()
    for number in range(80):
        store.put(keys=f"K{number}")
    return store


@pytest.fixture
def root(small_store, tmp_path):
    return small_store.write(tmp_path / "s")


def findings_of_rule(root, rule):
    with open_store(root) as store:
        return [finding for finding in check(store) if isinstance(finding, Finding) and finding.id == rule]


def test_damage_is_one_finding_from_the_broken_unit_to_the_next_real_one(small_store, root):
    unit = small_store.units[20]
    log(root, unit.offset + 4, b"xxxx")
    (finding,) = findings_of_rule(root, "CL01")
    assert (finding.offset, finding.evidence["bytes"]) == (unit.offset, unit.size)
    assert finding.file == str(root / "commitlog" / f"{unit.offset // LOG_SIZE * LOG_SIZE:020d}")


def test_a_blank_with_a_wrong_size(root):
    position = next_blank(root)
    log(root, position, struct.pack(">i", 9))
    (item,) = findings_of_rule(root, "CL02")
    assert item.offset == position


def test_a_missing_file_and_one_of_another_length(small_store, root):
    second_file = root / "commitlog" / f"{LOG_SIZE:020d}"
    content = second_file.read_bytes()
    second_file.unlink()
    assert [finding.offset for finding in findings_of_rule(root, "CL07")] == [LOG_SIZE]
    second_file.write_bytes(content[:-100])
    assert any("3,996" in finding.message for finding in findings_of_rule(root, "CL07"))


def test_bytes_after_the_end_are_reported_and_zeros_are_not(small_store, root):
    zero_log_from(root, small_store.units[70].offset)
    assert findings_of_rule(root, "CL06") == []
    log(root, small_store.units[70].offset, b"torn bytes")
    (item,) = findings_of_rule(root, "CL06")
    assert item.offset == small_store.units[70].offset


def test_queue_offsets_out_of_sequence(small_store, root):
    log(root, small_store.units[20].offset + 20, struct.pack(">q", 9_999))
    assert [item.offset for item in findings_of_rule(root, "CL09")] == [small_store.units[20].offset]


def test_a_foreign_file_in_the_log_folder(root):
    (root / "commitlog" / "readme.txt").write_text("mine")
    assert len(findings_of_rule(root, "DK01")) == 1
