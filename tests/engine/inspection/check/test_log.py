"""The log part of a check: units and blanks."""

from __future__ import annotations

import struct

import pytest
from broken_stores import log, next_blank
from handmade_stores import HandmadeStore

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


def test_a_blank_with_a_wrong_size(root):
    position = next_blank(root)
    log(root, position, struct.pack(">i", 9))
    (item,) = findings_of_rule(root, "CL02")
    assert item.offset == position


def test_queue_offsets_out_of_sequence(small_store, root):
    log(root, small_store.units[20].offset + 20, struct.pack(">q", 9_999))
    assert [item.offset for item in findings_of_rule(root, "CL09")] == [small_store.units[20].offset]


def test_a_foreign_file_in_the_log_folder(root):
    (root / "commitlog" / "readme.txt").write_text("mine")
    assert len(findings_of_rule(root, "DK01")) == 1
