"""Tests of the helpers that guard the other tests."""

from __future__ import annotations

import os
import shutil
import time
import types

import golden_stores
import partners
import pytest
import suite_minutes
import suite_order


def test_every_golden_store_has_an_account():
    """The README of ``broker-tags-5.5.1`` contains all facts about it: 700 messages, 1,400 index entries."""
    accounts = ("expected.jsonl.xz", "truth.jsonl.xz")
    assert len(golden_stores.names()) >= 30
    for name in set(golden_stores.names()) - {"broker-tags-5.5.1"}:
        assert any((golden_stores.GOLDEN / name / file).exists() for file in accounts), name


def test_a_fingerprint_sees_each_kind_of_change(golden, tmp_path):
    store = tmp_path / "store"
    shutil.copytree(golden("propcrc-5.3.3"), store)
    fingerprint_before = golden_stores.fingerprint(store)
    assert golden_stores.changes(fingerprint_before, golden_stores.fingerprint(store)) == []

    (store / "lock.tmp").touch()
    (store / "lock.tmp").unlink()
    assert golden_stores.changes(fingerprint_before, golden_stores.fingerprint(store)) == [".: changed"]

    log = next((store / "commitlog").iterdir())
    times = log.stat()
    with log.open("r+b") as file:
        file.write(b"\x01")
    os.utime(log, ns=(times.st_atime_ns, times.st_mtime_ns))
    (store / "new").mkdir()
    (store / "checkpoint").unlink()
    changes = golden_stores.changes(fingerprint_before, golden_stores.fingerprint(store))
    assert {f"commitlog/{log.name}: changed", "new: appeared", "checkpoint: gone"} <= set(changes)


def test_a_file_that_was_read_before_is_read_again_when_it_has_changed(tmp_path, monkeypatch):
    """Size and time of change of the second writing equal those of the first; only the system's own time differs."""
    monkeypatch.setattr(golden_stores, "SETTLED_NS", -golden_stores.SETTLED_NS)
    file = tmp_path / "store" / "file"
    file.parent.mkdir()
    file.write_bytes(b"one")
    digests = {}
    fingerprint_before = golden_stores.fingerprint(file.parent, digests)
    assert golden_stores.fingerprint(file.parent, digests) == fingerprint_before
    assert len(digests) == 1
    times = file.stat()
    time.sleep(0.05)
    file.write_bytes(b"two")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert golden_stores.changes(fingerprint_before, golden_stores.fingerprint(file.parent, digests)) == [
        "file: changed"
    ]


def test_an_account_is_read_line_by_line(golden_account):
    kinds = {line["t"] for line in golden_account("propcrc-5.3.3", "expected.jsonl.xz")}
    assert {"msg", "cq", "state", "count"} <= kinds


@pytest.mark.parametrize(
    ("nodeid", "suite"),
    [
        ("tests/engine/codec/test_java.py::test_hash", "unit"),
        ("tests/viewer/test_panes.py::test_opens", "viewer"),
        ("tests/test_alone.py::test_x", "other"),
    ],
)
def test_a_suite_is_a_folder(nodeid, suite):
    assert suite_minutes.suite_of(nodeid) == suite


def test_files_that_wait_are_spread_over_the_time_of_those_that_compute():
    computing = [("a", 10.0), ("b", 1.0), ("c", 1.0), ("d", 8.0), ("e", 4.0)]
    order = suite_order.spread(
        ["1", "2", "3", "4"], computing, lambda file_and_time: file_and_time[1] if file_and_time[1:] else 0.0
    )
    assert [file_and_time[0] for file_and_time in order] == ["1", "a", "2", "b", "3", "c", "d", "4", "e"]
    assert suite_order.spread([], computing, lambda file_and_time: file_and_time[1]) == computing
    assert suite_order.spread(["1", "2"], [], lambda file_and_time: 0.0) == ["1", "2"]


def test_only_files_that_start_spark_in_their_own_process_are_one_piece_of_work():
    assert suite_order.starts_spark("tests/pipeline/test_sources_on_spark.py")
    assert not suite_order.starts_spark("tests/pipeline/test_trace.py")
    assert not suite_order.starts_spark("tests/cluster/test_jobs_on_a_cluster.py")


def test_the_short_form_keeps_as_many_cases_as_a_test_says():
    def item(nodeid, mark=None):
        return types.SimpleNamespace(nodeid=nodeid, get_closest_marker=lambda name: mark)

    keep_three = pytest.mark.full_form(keep=3).mark
    ten_cases = [item(f"test_a.py::test_of_ten[{case}]", keep_three) for case in range(10)]
    two_cases = [item(f"test_a.py::test_of_two[{case}]", keep_three) for case in range(2)]
    test_long = item("test_a.py::test_long", pytest.mark.full_form.mark)
    surplus = partners.surplus_cases([*ten_cases, *two_cases, test_long, item("test_a.py::test_short")])
    assert test_long in surplus
    kept_cases = [case for case in ten_cases if case not in surplus]
    assert len(kept_cases) == 3
    assert not set(map(id, two_cases)) & set(map(id, surplus))
    assert [case for case in ten_cases if case not in partners.surplus_cases(ten_cases[::-1])] == kept_cases, (
        "the same in any order"
    )


def test_the_branch_coverage_is_waited_for(tmp_path):
    folder = tmp_path / "coverage"
    folder.mkdir()
    assert suite_minutes.coverage_report(folder, 0.01) == ["branch coverage is not measured yet"]
    (folder / "report").write_text("one\ntwo\n")
    assert suite_minutes.coverage_report(folder) == ["one", "two"]
    assert not folder.exists()
