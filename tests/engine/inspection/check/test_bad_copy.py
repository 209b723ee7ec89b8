"""A copy that went wrong is one finding: what is wrong in its files has no cause of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from broken_stores import BROKEN
from made_stores import MadeStore, healthy

from engine.inspection import recovery
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rules.findings import Finding, Summary, at_least


def checked(root: Path) -> tuple[list[Finding], Summary]:
    with open_store(root) as store:
        *found, summary = check(store)
    return found, summary


def grave(root: Path) -> list[str]:
    return [one.id for one in checked(root)[0] if at_least(one.severity, "warn")]


def test_queue_files_without_a_byte_are_one_finding(tmp_path):
    """The check ended with a division by zero: the most common length of the queues' files was 0."""
    made = healthy()
    root = made.write(tmp_path / "store")
    BROKEN["DK04"](root, made)
    found, summary = checked(root)
    assert grave(root) == ["DK04"]
    assert summary.incident["lostAlready"] is None
    assert [one.caused_by for one in found if one.id == "CQ01"] == ["DK04"] * 4
    with open_store(root) as store:
        assert not recovery.plan(store, "4.9").will_start


def test_a_single_empty_file_is_no_bad_copy(tmp_path):
    root = healthy().write(tmp_path / "store")
    (root / "consumequeue" / "Orders" / "0" / f"{400:020d}").write_bytes(b"")
    assert grave(root) == ["CQ01"]


@pytest.mark.parametrize("ending", [b"\r\n", b"\n"])
def test_lines_in_bodies_do_not_make_a_copy_in_text_mode(tmp_path, ending):
    made = MadeStore()
    for number in range(80):
        made.put(body=b"line" + ending + b"line %d" % number + ending)
    root = made.write(tmp_path / "store")
    sorted((root / "commitlog").iterdir())[1].unlink()
    assert "DK04" not in grave(root)


@pytest.mark.golden
def test_a_log_of_a_broker_in_text_mode(golden, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(golden("broker-orders"), root)
    for path in (root / "commitlog").iterdir():
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    found, _ = checked(root)
    assert grave(root) == ["DK04"]
    assert {one.caused_by for one in found if one.id in ("CL01", "CL07", "CF12")} == {"DK04"}
