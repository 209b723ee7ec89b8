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
    made = HandmadeStore()
    for number in range(80):
        made.put(keys=f"K{number}")
    return made


@pytest.fixture
def root(made, tmp_path):
    return made.write(tmp_path / "s")


def found(root, rule):
    with open_store(root) as store:
        return [one for one in check(store) if isinstance(one, Finding) and one.id == rule]


def test_damage_is_one_finding_from_the_broken_unit_to_the_next_real_one(made, root):
    unit = made.units[20]
    log(root, unit.offset + 4, b"xxxx")
    (one,) = found(root, "CL01")
    assert (one.offset, one.evidence["bytes"]) == (unit.offset, unit.size)
    assert one.file == str(root / "commitlog" / f"{unit.offset // LOG_SIZE * LOG_SIZE:020d}")


def test_a_blank_that_says_too_little(root):
    at = next_blank(root)
    log(root, at, struct.pack(">i", 9))
    (one,) = found(root, "CL02")
    assert one.offset == at


def test_a_file_that_is_gone_and_one_of_another_length(made, root):
    second = root / "commitlog" / f"{LOG_SIZE:020d}"
    kept = second.read_bytes()
    second.unlink()
    assert [one.offset for one in found(root, "CL07")] == [LOG_SIZE]
    second.write_bytes(kept[:-100])
    assert any("3,996" in one.message for one in found(root, "CL07"))


def test_bytes_behind_the_end_are_told_and_zeros_are_not(made, root):
    zero_log_from(root, made.units[70].offset)
    assert found(root, "CL06") == []
    log(root, made.units[70].offset, b"torn bytes")
    (one,) = found(root, "CL06")
    assert one.offset == made.units[70].offset


def test_queue_offsets_that_do_not_follow_each_other(made, root):
    log(root, made.units[20].offset + 20, struct.pack(">q", 9_999))
    assert [one.offset for one in found(root, "CL09")] == [made.units[20].offset]


def test_a_file_that_is_none_of_the_log(root):
    (root / "commitlog" / "readme.txt").write_text("mine")
    assert len(found(root, "DK01")) == 1
