"""Ranges of the log that are no valid part of it: each is one finding that says what it looks like."""

from __future__ import annotations

import pytest
from broken_stores import log, zero_log_from
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


def test_bytes_after_the_end_are_reported_and_zeros_are_not(small_store, root):
    zero_log_from(root, small_store.units[70].offset)
    assert findings_of_rule(root, "CL06") == []
    log(root, small_store.units[70].offset, b"torn bytes")
    (item,) = findings_of_rule(root, "CL06")
    assert item.offset == small_store.units[70].offset


def test_a_log_of_another_program_is_named_as_such(root):
    for file in (root / "commitlog").iterdir():
        size = file.stat().st_size
        file.write_bytes((b"\0\0\0\x50" + bytes(range(1, 256)) * size)[:size])
    kinds = {finding.kind for finding in findings_of_rule(root, "CL01")}
    assert kinds == {"foreign"}
