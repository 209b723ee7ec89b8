"""What a check says of a DLedger log: nothing of a healthy one, and the entry, index or term that is wrong."""

from __future__ import annotations

import pytest
from dledger_damage import DAMAGE, copy_store, entries, write

from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rules.findings import Finding, at_least

pytestmark = pytest.mark.golden


def graver(root):
    with open_store(root) as store:
        items = list(check(store))
    assert items[-1].complete
    return {(item.id, item.offset) for item in items if isinstance(item, Finding) and at_least(item.severity, "warn")}


def test_a_healthy_dledger_log_has_no_findings(golden):
    assert graver(golden("broker-dledger-5.5.1")) == set()


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("clean", set()),
        ("crash", {("AB01", None), ("RP01", 2_573_961)}),
        ("torn-header", {("CL01", 2_599_943), ("DL03", None)}),
        ("torn-body", {("CL06", 2_599_943)}),
        ("gap", {("DL01", 2_181_997), ("DL03", None)}),
        ("term", {("DL01", 2_183_047), ("DL02", 2352 * 32), ("DL03", None)}),
        ("indexrow", {("DL02", 2352 * 32)}),
        ("noindex", {("DL02", 0)}),
        ("midbody", {("CL01", 2_181_997)}),
        ("secondfile-gone", {("CL07", 1 << 20)}),
    ],
)
def test_each_damage_of_a_dledger_log_is_found_where_it_is(golden, tmp_path, case, expected):
    root = copy_store(golden("dledger-crash-5.5.1"), tmp_path / "store")
    DAMAGE[case](root)
    findings = graver(root)
    assert expected <= findings
    if case == "clean":
        assert findings == set()


def test_a_term_older_than_the_newest_entry_is_found(golden, tmp_path):
    root = copy_store(golden("dledger-crash-5.5.1"), tmp_path / "store")
    write(root, entries(root)[-1].position + 16, (3).to_bytes(8, "big"))
    with open_store(root) as store:
        (finding,) = (item for item in check(store, only={"DL04"}) if isinstance(item, Finding))
    assert finding.message == "Currterm says 0, and the newest entry is of term 3"
