"""The end of the data in a preallocated file."""

from __future__ import annotations

import os
from pathlib import Path

import golden_stores
import pytest
from undo_cases import store_to_recover, undone

from engine import system
from engine.cli.main import main
from engine.errors import CannotRead
from engine.mapped import sparse
from engine.mapped.read_only import DescriptorCache, ReadOnlyFile
from engine.mapped.sparse import last_byte

SIZE = 3 << 20
CASES = [
    pytest.param({}, 0, 0, id="nothing but a hole"),
    pytest.param({0: b"a"}, 0, 1, id="first byte"),
    pytest.param({SIZE - 1: b"z"}, 0, SIZE, id="last byte"),
    pytest.param({5000: b"abc\0\0", 2 << 20: bytes(9000)}, 0, 5003, id="zeros written behind the data"),
    pytest.param({5000: b"abc"}, 6000, 6000, id="data in front of the position"),
    pytest.param({5000: b"abc"}, 5001, 5003, id="from the middle of the data"),
]


@pytest.fixture
def cache():
    cache = DescriptorCache()
    yield cache
    cache.close()


@pytest.mark.parametrize(("written", "position", "expected"), CASES)
def test_the_last_nonzero_byte(written, position, expected, tmp_path, cache):
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(SIZE)
        for start, data in written.items():
            file.seek(start)
            file.write(data)
    assert last_byte(ReadOnlyFile(str(path), 0, SIZE, cache), position) == expected


def test_a_missing_file_is_not_an_empty_one(tmp_path, cache):
    with pytest.raises(CannotRead, match="gone"):
        last_byte(ReadOnlyFile(str(tmp_path / "gone"), 0, SIZE, cache), 7)


def test_a_file_that_has_shrunk(tmp_path, cache):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10_000)
    file = ReadOnlyFile(str(path), 0, 10_000, cache)
    os.truncate(path, 100)
    assert last_byte(file) == 100


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return store_to_recover(tmp_path / "store")


def test_shared_blocks_are_not_copied(store, monkeypatch):
    files_before = golden_stores.fingerprint(store)
    shared = []

    def clone(reading: int, writing: int) -> bool:
        shared.append(os.copy_file_range(reading, writing, os.fstat(reading).st_size, 0, 0))
        return True

    monkeypatch.setattr(sparse, "_MIN_CLONED_BYTES", 1)
    monkeypatch.setattr(system, "clone_blocks", clone)
    assert main(["recover", str(store), "--apply", "--yes", "--release", "5.3"]) == 0
    assert len(shared) > 3
    undone(store, files_before)
