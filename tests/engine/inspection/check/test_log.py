"""The log's part of a check: files, units, blanks, and what stands behind the end."""

from __future__ import annotations

import struct

import pytest
from broken_stores import log, next_blank, zero_log_from
from handmade_stores import LOG_SIZE, HandmadeStore

from engine.inspection import open_store
from engine.inspection.findings import check
from engine.rules.findings import Finding


@pytest.fixture
def made():
    store = HandmadeStore()
    for number in range(80):
        store.put(keys=f"K{number}")
    return store


@pytest.fixture
def root(made, tmp_path):
    return made.write(tmp_path / "s")


def found(root, rule):
    with open_store(root) as store:
        return [finding for finding in check(store) if isinstance(finding, Finding) and finding.id == rule]


def test_damage_is_one_finding_from_the_broken_unit_to_the_next_real_one(made, root):
    unit = made.units[20]
    log(root, unit.offset + 4, b"xxxx")
    (finding,) = found(root, "CL01")
    assert (finding.offset, finding.evidence["bytes"]) == (unit.offset, unit.size)
    assert finding.file == str(root / "commitlog" / f"{unit.offset // LOG_SIZE * LOG_SIZE:020d}")


def test_a_blank_that_says_too_little(root):
    position = next_blank(root)
    log(root, position, struct.pack(">i", 9))
    (item,) = found(root, "CL02")
    assert item.offset == position


def test_a_file_that_is_gone_and_one_of_another_length(made, root):
    second = root / "commitlog" / f"{LOG_SIZE:020d}"
    content = second.read_bytes()
    second.unlink()
    assert [item.offset for item in found(root, "CL07")] == [LOG_SIZE]
    second.write_bytes(content[:-100])
    assert any("3,996" in one.message for one in found(root, "CL07"))


def test_bytes_behind_the_end_are_told_and_zeros_are_not(made, root):
    zero_log_from(root, made.units[70].offset)
    assert found(root, "CL06") == []
    log(root, made.units[70].offset, b"torn bytes")
    (item,) = found(root, "CL06")
    assert item.offset == made.units[70].offset


def test_queue_offsets_that_do_not_follow_each_other(made, root):
    log(root, made.units[20].offset + 20, struct.pack(">q", 9_999))
    assert [item.offset for item in found(root, "CL09")] == [made.units[20].offset]


def test_a_file_that_is_none_of_the_log(root):
    (root / "commitlog" / "readme.txt").write_text("mine")
    assert len(found(root, "DK01")) == 1
