"""The plain walk that ours is measured against."""

from __future__ import annotations

import shutil

import pytest

from engine.bench import data as bench_data
from engine.bench import yardstick
from engine.bench.yardstick import find_yardstick
from engine.codec.columns import UnitColumns
from engine.inspection.block_scan import scan_log
from engine.inspection.snapshot import open_store

SIZE = 2 << 20


@pytest.fixture(scope="module")
def folder_of_yardstick(tmp_path_factory):
    return tmp_path_factory.mktemp("bench")


def test_the_yardstick_walks_the_same_units(folder_of_yardstick):
    results = find_yardstick(folder_of_yardstick)
    if shutil.which("cc") is None:
        assert results is None
        return
    assert results is not None
    with open_store(bench_data.log_store(folder_of_yardstick, "200", SIZE)) as store:
        blocks = [block for block in scan_log(store.log) if isinstance(block, UnitColumns)]
        path = store.log.files[0].path
        ours = sum(int((block["kind"] == 0).sum()) for block in blocks)
    complete = results.map(path)
    assert [complete.walk(True), complete.walk(False), results.read_walk(path, True)] == [ours] * 3
    results.columns.count = 100
    assert set(results.columns["crc"]) == {1}


def test_a_missing_comparison_is_reported_with_its_reason(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    assert yardstick.why_unavailable() == "there is no C compiler (cc) here"
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert yardstick.why_unavailable() is None
    monkeypatch.setattr(yardstick, "SOURCE", tmp_path / "scan.c")
    assert yardstick.why_unavailable() == "there is no scan.c here, which lies in a checkout only"
