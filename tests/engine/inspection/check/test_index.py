"""The index part of a check: headers, links, entries that lead elsewhere, and missing keys."""

from __future__ import annotations

import random
import shutil
import struct

import pytest
from handmade_stores import SLOTS, HandmadeStore
from planted_faults import patch

from engine.inspection import open_store
from engine.inspection.check.index import prove_file
from engine.inspection.findings import check
from engine.rules.findings import Finding

ENTRY = 40 + 4 * SLOTS


@pytest.fixture
def root(tmp_path):
    store = HandmadeStore()
    for number in range(80):
        store.put(keys=f"K{number}")
    return store.write(tmp_path / "s")


def index(root):
    return min((root / "index").iterdir())


def findings_of_rule(root, rule):
    with open_store(root) as store:
        return [finding for finding in check(store) if isinstance(finding, Finding) and finding.id == rule]


def test_a_wrong_count_of_slots(root):
    patch(index(root), 32, struct.pack(">i", 3))
    (item,) = findings_of_rule(root, "IX01")
    assert (item.file, item.offset) == (str(index(root)), 32)


@pytest.mark.parametrize(("link", "rule"), [(30, "IX03"), (5000, "IX02")])
def test_a_chain_that_loops_and_one_that_leaves_the_file(root, link, rule):
    patch(index(root), ENTRY + 20 * 30 + 16, struct.pack(">i", link))
    reported = findings_of_rule(root, rule)
    assert len(reported) == 1
    assert reported[0].file == str(index(root))


def test_a_file_that_grows_while_it_is_read_has_no_fault_and_hides_none(root):
    """The slots are newer than the header. Beside a writer, only the earlier length of the file is checked."""
    patch(index(root), 36, struct.pack(">i", 61))
    with open_store(root) as store:
        (reader, *_) = store.index_files()
        settled, live = prove_file(reader), prove_file(reader, live=True)
    assert settled.header_faults
    assert (live.header_faults, live.slots, live.links, live.entries) == ([], [], [], settled.entries)
    patch(index(root), 40, struct.pack(">i", 5000))
    with open_store(root) as store:
        assert prove_file(store.index_files()[0], live=True).slots


def test_an_entry_that_leads_to_another_unit(root):
    patch(index(root), ENTRY + 20 * 30 + 4, struct.pack(">q", 3))
    (finding,) = findings_of_rule(root, "IX06")
    assert finding.evidence["found"]["phyOffset"] == 3


def test_keys_that_are_in_no_file(root):
    last_file = max((root / "index").iterdir())
    with open_store(root) as store:
        entries = store.index_files()[-1].header.entries
    last_file.unlink()
    (finding,) = findings_of_rule(root, "IX05")
    assert finding.evidence["keys"] == entries


def test_a_truncated_file(root):
    index(root).write_bytes(index(root).read_bytes()[:200])
    assert [item.file for item in findings_of_rule(root, "IX08")] == [str(index(root))]


def with_tag_entries(first_number: int, stop: int) -> HandmadeStore:
    """Make a store whose units from ``first_number`` up to ``stop`` were dispatched by RocketMQ 5.4 or later."""
    store = HandmadeStore()
    for number in range(80):
        store.tag_entries = first_number <= number < stop
        store.put(("Orders", "Paid")[number % 2], keys=f"K{number}", tags=("a", "b || c", None)[number % 3])
    return store


@pytest.mark.parametrize(("first_number", "stop"), [(0, 80), (33, 80), (0, 33), (20, 50)])
def test_tag_entries_are_valid_present_or_absent(tmp_path, first_number, stop):
    """Since 5.4 each message with tags has one more index entry. The check reported every such store as having the
    index of another store, and its advice removed the entries.
    """
    root = with_tag_entries(first_number, stop).write(tmp_path / "s")
    with open_store(root) as store:
        assert [
            finding for finding in check(store) if isinstance(finding, Finding) and finding.id.startswith("IX")
        ] == []


def test_a_key_that_is_missing_is_named_in_an_index_with_tags(tmp_path):
    sample = with_tag_entries(0, 80)
    sample.units[70].keys.pop(1)
    (finding,) = findings_of_rule(sample.write(tmp_path / "s"), "IX05")
    assert (finding.evidence["keys"], finding.evidence["firstUnit"]) == (1, sample.units[70].offset)


def test_a_changed_tag_entry_is_named(tmp_path):
    root = with_tag_entries(0, 80).write(tmp_path / "s")
    entry = 3  # unique key, key, tags
    patch(index(root), ENTRY + 20 * entry, struct.pack(">i", 77))
    with open_store(root) as store:
        (finding,) = (item for item in check(store) if isinstance(item, Finding) and item.severity == "error")
    assert (finding.id, finding.evidence["entry"]) == ("IX06", entry)


def test_entries_that_a_later_release_may_add_are_a_note(tmp_path):
    """The check reported unknown entries as the index of another store. Such entries do no harm."""
    store = HandmadeStore()
    for number in range(80):
        store.put(keys=f"K{number}").keys.append(f"X#{number}")
    (finding,) = findings_of_rule(store.write(tmp_path / "s"), "IX06")
    assert (finding.severity, finding.evidence["entries"]) == ("note", 80)


@pytest.mark.golden
def test_an_overwritten_page_of_an_index_hides_no_other_keys(golden, tmp_path):
    """Random bytes in one file blocked all entries behind them: 5,938 keys were called missing. If they were in the
    four fullest files, all 16 files were called no index files.
    """
    root = tmp_path / "store"
    shutil.copytree(golden("broker-orders"), root, ignore=shutil.ignore_patterns("timerwheel"))
    for path in sorted((root / "index").iterdir())[:4]:
        with path.open("r+b") as file:
            file.seek(600)
            file.write(random.Random(path.name).randbytes(900))
    assert findings_of_rule(root, "IX05") == findings_of_rule(root, "IX08") == []
    ends = [finding.message.endswith("44 more entries lead nowhere") for finding in findings_of_rule(root, "IX06")]
    assert ends == [True] * 4
