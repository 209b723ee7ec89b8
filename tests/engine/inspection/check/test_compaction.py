"""Compacted queues: healthy ones are a remark, damage and lost files are errors with the place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from planted_faults import patch

from engine.inspection import open_store
from engine.inspection.findings import check
from engine.rules.findings import Finding


def findings(root: Path) -> list[Finding]:
    with open_store(root) as store:
        return [item for item in check(store) if isinstance(item, Finding)]


@pytest.fixture
def store(golden, tmp_path) -> Path:
    root = tmp_path / "store"
    shutil.copytree(golden("broker-compaction-5.5.1"), root, ignore=shutil.ignore_patterns("timerwheel"))
    return root


def part(root: Path, name: str, number: int = 0) -> Path:
    return sorted((root / "compaction" / name / "StockLevels" / "0").iterdir())[number]


@pytest.mark.golden
@pytest.mark.parametrize("name", ["broker-compaction-5.3.3", "broker-compaction-5.5.1"])
def test_a_healthy_store_has_only_a_remark(name, golden):
    (remark,) = findings(golden(name))
    assert (remark.id, remark.severity) == ("CM01", "chat")
    assert "compaction/compactionLog holds compacted messages of 2 queues in 1,104,000 bytes" in remark.message


@pytest.mark.golden
@pytest.mark.parametrize(
    ("file", "position", "data", "offset", "words"),
    [
        (("compactionLog", 0), 1503, bytes(8), 1503, "zero bytes in front of the next unit"),
        (("compactionLog", 1), 1283 + 100, b"\xff\xff", 277_283, "the body is not what was stored"),
        (("compactionCq", 0), 46 * 3 + 28, (5).to_bytes(8, "big"), 3_887, "entry 5 leads to message"),
        (("compactionCq", 1), 46 * 3, (7).to_bytes(8, "big"), 7, "leads to no intact message"),
    ],
)
def test_damage_is_an_error_at_its_place(store, file, position, data, offset, words):
    """A real 5.5.1 gave such bytes to the client, which could not read the answer and stayed there."""
    patch(part(store, *file), position, data)
    (damage,) = [finding for finding in findings(store) if finding.id == "CM02"]
    assert damage.severity == "error"
    assert words in damage.message
    assert damage.evidence["queue"] == "StockLevels/0"
    if file[0] == "compactionLog":
        assert damage.evidence["offsets"] == [offset]


@pytest.mark.golden
@pytest.mark.parametrize("lost", ["compaction", "compaction/compactionCq/StockLevels/0"])
def test_lost_files_leave_the_queue_empty_for_consumers(store, lost):
    """A real 5.5.1 answered NO_NEW_MSG at offset 0, and built nothing again."""
    shutil.rmtree(store / lost)
    missing = [finding for finding in findings(store) if finding.id == "CM03"]
    assert [finding.evidence["queue"] for finding in missing][:1] == ["StockLevels/0"]
    assert len(missing) == (2 if lost == "compaction" else 1)
    assert (missing[0].severity, missing[0].evidence["found"], missing[0].evidence["expected"]) == ("error", 0, 400)
