"""Stores that a path or a pattern names, and the files of their logs."""

from __future__ import annotations

import shutil

import pytest
from handmade_stores import LOG_SIZE, HandmadeStore

from engine.errors import NotAStore, UsageError
from engine.pipeline.files import find_stores, log_files, seen_from_anywhere


@pytest.fixture
def fleet(tmp_path):
    store = HandmadeStore()
    for _ in range(60):
        store.put()
    for name in ("a-1", "a-2", "b-1"):
        store.write(tmp_path / name / "store")
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "brokers"),
    [
        ("*/store", ["a-1", "a-2", "b-1"]),
        ("a-?", ["a-1", "a-2"]),
        ("{a-1,b-1}/store", ["a-1", "b-1"]),
        ("[ab]-1", ["a-1", "b-1"]),
        ("a-[^2]", ["a-1"]),
    ],
)
def test_stores_of_a_pattern_are_called_by_what_it_matched(fleet, pattern, brokers):
    assert sorted(str(store.broker) for store in find_stores([f"{fleet}/{pattern}"])) == brokers


def test_a_store_the_folder_above_it_and_its_log_are_found(fleet):
    for path in (fleet / "a-1" / "store", fleet / "a-1"):
        (store,) = find_stores(str(path))
        assert (store.path, store.broker) == (str(fleet / "a-1" / "store"), None)
    (log,) = find_stores(str(fleet / "a-1" / "store" / "commitlog"))
    assert log.log_folders == (log.path,)
    assert find_stores(str(fleet / "a-1"), "mine")[0].broker == "mine"


def test_a_folder_that_is_called_like_a_pattern_is_itself(fleet):
    shutil.copytree(fleet / "a-1", fleet / "c[12]")
    (store,) = find_stores([f"{fleet}/c[12]/store"])
    assert store.path == f"{fleet}/c[12]/store"


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("empty", NotAStore, "found none"),
        ("none*", NotAStore, "found none"),
        ("hdfs://n/x", UsageError, "is not read"),
    ],
)
def test_a_path_without_a_store_is_an_error(fleet, path, error, message):
    with pytest.raises(error, match=message):
        find_stores(path if "://" in path else f"{fleet}/{path}")


def test_files_of_a_log_are_in_order_without_other_files(fleet, monkeypatch):
    log = fleet / "a-1" / "store" / "commitlog"
    (log / "notes.txt").write_text("mine")
    monkeypatch.chdir(fleet)
    (place,) = seen_from_anywhere(find_stores("a-1/store"))
    assert place.path == str(fleet / "a-1" / "store")
    files = log_files(place)
    assert [file.start for file in files] == [number * LOG_SIZE for number in range(len(files))]
    assert {file.end - file.start for file in files} == {LOG_SIZE}
