"""The list of a store's files: the log's first, by kind, with their allocated bytes."""

from __future__ import annotations

import os

import pytest
from handmade_stores import LOG_SIZE, HandmadeStore

from engine.inspection import open_store
from engine.inspection.space.files import bytes_of, list_files, still_as_listed


@pytest.fixture
def root(tmp_path):
    store = HandmadeStore()
    for number in range(60):
        store.put(keys=f"K{number}")
    root = store.write(tmp_path / "s")
    (root / "notes.txt").write_text("mine")
    (root / "away").symlink_to(tmp_path)
    return root


def test_every_file_is_there_once_and_the_sum_is_that_of_the_disk(root):
    with open_store(root) as store:
        files = list_files(store)
    paths = [path for path in root.rglob("*") if path.is_file() or path.is_symlink()]
    assert sorted(file.path for file in files) == sorted(map(str, paths))
    assert bytes_of(files) == sum(path.lstat().st_size for path in paths)
    log = [file for file in files if file.kind == "commitlog"]
    assert files[: len(log)] == log
    assert {file.size for file in log} == {LOG_SIZE}
    assert {file.name for file in files if file.kind == "other"} == {"notes.txt", "away"}


def test_a_hole_is_not_allocated(root):
    sparse = root / "sparse"
    with sparse.open("wb") as file:
        os.truncate(file.fileno(), 1 << 20)
    with open_store(root) as store:
        (actual_file,) = [file for file in list_files(store) if file.name == "sparse"]
    assert (actual_file.size, actual_file.allocated) == (1 << 20, 0)


def test_files_that_grew_or_disappeared_meanwhile_are_counted(root):
    with open_store(root) as store:
        files = list_files(store)
        assert still_as_listed(store.reading, files) == 0
        (root / "notes.txt").write_text("longer than it was")
        (root / "checkpoint").unlink()
        assert still_as_listed(store.reading, files) == 2
