"""Every file of a store: the log's first, by kind, with the bytes that the disk gave it.

The page cache of a store: file by file for the log, in all for queues and index.
"""

from __future__ import annotations

import os

import pytest
from made_stores import LOG_SIZE, MadeStore

from engine.errors import CannotRead
from engine.inspection import open_store
from engine.inspection.space import files as page_cache
from engine.inspection.space.files import bytes_of, list_files, still_as_listed
from engine.mapped.memory import ResidencyUnknown


@pytest.fixture
def root(tmp_path):
    made = MadeStore()
    for number in range(60):
        made.put(keys=f"K{number}")
    root = made.write(tmp_path / "s")
    (root / "notes.txt").write_text("mine")
    (root / "away").symlink_to(tmp_path)
    return root


def test_every_file_is_there_once_and_the_sum_is_that_of_the_disk(root):
    with open_store(root) as store:
        files = list_files(store)
    there = [path for path in root.rglob("*") if path.is_file() or path.is_symlink()]
    assert sorted(file.path for file in files) == sorted(map(str, there))
    assert bytes_of(files) == sum(path.lstat().st_size for path in there)
    log = [file for file in files if file.kind == "commitlog"]
    assert files[: len(log)] == log
    assert {file.size for file in log} == {LOG_SIZE}
    assert {file.name for file in files if file.kind == "other"} == {"notes.txt", "away"}


def test_a_hole_is_not_allocated(root):
    sparse = root / "sparse"
    with sparse.open("wb") as file:
        os.truncate(file.fileno(), 1 << 20)
    with open_store(root) as store:
        (found,) = [file for file in list_files(store) if file.name == "sparse"]
    assert (found.size, found.allocated) == (1 << 20, 0)


def test_files_that_grew_or_went_meanwhile_are_counted(root):
    with open_store(root) as store:
        files = list_files(store)
        assert still_as_listed(store.reading, files) == 0
        (root / "notes.txt").write_text("longer than it was")
        (root / "checkpoint").unlink()
        assert still_as_listed(store.reading, files) == 2


def _root(tmp_path):
    made = MadeStore()
    for number in range(60):
        made.put(queue_id=number % 2, keys=f"k{number}")
    return made.write(tmp_path / "store")


def test_every_file_of_the_log_is_asked_about(tmp_path):
    with open_store(_root(tmp_path)) as store:
        found = page_cache.page_cache(store)
        sizes = [(file.name, file.size) for file in store.log.files]
    assert [(file.name, file.size) for file in found.files] == sizes
    assert [kind.kind for kind in found.kinds] == ["commitlog", "consumequeue", "index"]
    assert 0 < found.resident <= found.size
    assert all(0 <= share <= 1 for file in found.files for share in file.shares)


def test_a_file_that_went_is_left_out(tmp_path):
    root = _root(tmp_path)
    with open_store(root) as store:
        files = len(store.log.files)
        min((root / "commitlog").iterdir()).unlink()
        assert len(page_cache.page_cache(store).files) == files - 1


def test_what_the_system_does_not_tell_is_a_reason(tmp_path, monkeypatch):
    def refuse(_path, _reading):
        raise ResidencyUnknown("this system has no mincore")

    monkeypatch.setattr(page_cache, "page_map", refuse)
    with open_store(_root(tmp_path)) as store:
        found = page_cache.page_cache(store)
    assert found.files == ()
    assert "no mincore" in found.why


def test_a_log_that_cannot_be_asked_about_is_not_told_as_one_of_no_bytes(tmp_path, monkeypatch):
    """Space said "CommitLog 0 B / 0 B" of a log without read rights."""
    asked = page_cache.page_map

    def refuse(path, reading):
        if "commitlog" in str(path):
            raise CannotRead(f"{path}: cannot be read: Permission denied")
        return asked(path, reading)

    monkeypatch.setattr(page_cache, "page_map", refuse)
    with open_store(_root(tmp_path)) as store:
        assert [kind.kind for kind in page_cache.page_cache(store).kinds] == ["consumequeue", "index"]
