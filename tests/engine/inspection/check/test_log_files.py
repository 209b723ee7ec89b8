"""Files of the log: missing, of another length, under another name, or of another log."""

from __future__ import annotations

import pytest
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


def test_a_missing_file_and_one_of_another_length(small_store, root):
    second_file = root / "commitlog" / f"{LOG_SIZE:020d}"
    content = second_file.read_bytes()
    second_file.unlink()
    assert [finding.offset for finding in findings_of_rule(root, "CL07")] == [LOG_SIZE]
    second_file.write_bytes(content[:-100])
    assert any("3,996" in finding.message for finding in findings_of_rule(root, "CL07"))


@pytest.mark.parametrize(
    ("name", "kind"), [(f"{LOG_SIZE:020d}.bak", "misnamed"), (str(LOG_SIZE), "name")], ids=["ending", "digits"]
)
def test_a_renamed_file_is_reported_with_its_own_name(root, name, kind):
    own_name = f"{LOG_SIZE:020d}"
    (root / "commitlog" / own_name).rename(root / "commitlog" / name)
    (finding,) = [finding for finding in findings_of_rule(root, "CL07") if finding.kind == kind]
    assert finding.evidence["expected"] == own_name
