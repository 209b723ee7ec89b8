"""CK06: the epoch table of controller mode."""

from __future__ import annotations

import pytest
from handmade_stores import healthy

from engine.codec.epoch_file import Epoch, encode
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rules.findings import Finding

GOOD = encode([Epoch(1, 0), Epoch(2, 500)])


@pytest.mark.parametrize(
    ("data", "backup", "expected"),
    [
        (GOOD, None, []),
        (GOOD.replace(b"2-500", b"2-501"), GOOD, ["warn"]),
        (GOOD.replace(b"2-500", b"2-501"), None, ["error"]),
        (b"x\n", GOOD, ["error"]),
        (encode([Epoch(3, 0), Epoch(2, 500)]), None, ["error"]),
        (encode([Epoch(1, 500), Epoch(2, 500)]), None, ["error"]),
        (encode([Epoch(1, 0), Epoch(2, 1 << 40)]), None, ["warn"]),
    ],
)
def test_a_table_that_is_wrong_is_found(tmp_path, data, backup, expected):
    root = healthy(20).write(tmp_path / "store")
    (root / "epochFileCheckpoint").write_bytes(data)
    if backup is not None:
        (root / "epochFileCheckpoint.bak").write_bytes(backup)
    with open_store(root) as store:
        found = [item for item in check(store) if isinstance(item, Finding)]
    assert {item.id for item in found} <= {"CK06"}
    assert [item.severity for item in found] == expected
