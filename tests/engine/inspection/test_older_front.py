"""Files that retention had deleted and an older copy brought back are distinguished from a gap by the queues."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from handmade_stores import healthy
from report_states import middle_file_gone_after_retention, older_files_in_front, retention_deletes

from engine.inspection.findings import check
from engine.inspection.older_front import older_front
from engine.inspection.snapshot import open_store
from engine.inspection.where.evidence import where


def grave(root: Path) -> list[str]:
    with open_store(root) as store:
        return [f"{finding.id} {finding.severity}" for finding in list(check(store))[:-1] if finding.caused_by is None]


def test_queues_that_begin_after_the_files_identify_them(tmp_path):
    """Five errors and 345 lost messages were reported although a start loses nothing."""
    older_files_in_front(tmp_path)
    with open_store(tmp_path / "store") as store:
        older = older_front(store)
        assert older is not None
        assert [file.name for file in older.files] == [f"{0:020d}", f"{4096:020d}"]
        assert (older.begin, older.end, older.start) == (0, 8192, 20480)
        assert [older.holds(offset) for offset in (-1, 0, 20479, 20480)] == [False, True, True, False]
    assert grave(tmp_path / "store") == ["CL07 warn"]


def test_an_offset_in_the_gap_is_expired(tmp_path):
    older_files_in_front(tmp_path)
    with open_store(tmp_path / "store") as store:
        queue = store.topics()["Orders"][0]
        in_gap = next(entry for entry in queue.entries() if 8192 <= entry.physical_offset < 20480)
        (result,) = where(store, f"Orders/0/{in_gap.queue_offset}")
    assert (result.verdict, "retention deletes" in result.next_step) == ("expired", True)


def test_a_lost_file_after_the_first_of_a_log_is_a_gap(tmp_path):
    middle_file_gone_after_retention(tmp_path)
    with open_store(tmp_path / "store") as store:
        assert older_front(store) is None


@pytest.mark.parametrize("deleted", [0, 5])
def test_a_log_without_a_gap_has_no_such_files(tmp_path, deleted):
    root = healthy(240).write(tmp_path / "store")
    retention_deletes(root, deleted)
    with open_store(root) as store:
        assert older_front(store) is None
    assert grave(root) == []


def test_queues_that_begin_at_0_are_no_evidence(tmp_path):
    """Their first file covers more than the log, as in a small store, so the gap may be a loss."""
    new_store = healthy(240)
    new_store.queue_size = 20 * 1000
    root = new_store.write(tmp_path / "store")
    for path in sorted((root / "commitlog").iterdir())[2:5]:
        path.unlink()
    with open_store(root) as store:
        assert older_front(store) is None
    assert "CL07 error" in grave(root)


def test_without_queues_there_is_no_evidence(tmp_path):
    older_files_in_front(tmp_path)
    shutil.rmtree(tmp_path / "store" / "consumequeue")
    with open_store(tmp_path / "store") as store:
        assert older_front(store) is None
