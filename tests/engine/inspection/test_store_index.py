"""The index files of a store: their list, sizes, and files that do not belong to it."""

from __future__ import annotations

import shutil

import pytest
from handmade_stores import SLOTS, healthy

from engine.config import from_mapping
from engine.inspection import open_store


@pytest.fixture
def root(tmp_path):
    return healthy(6).write(tmp_path / "store")


def test_a_file_whose_name_is_no_number_is_skipped_and_named(root):
    file = min((root / "index").iterdir())
    size = file.stat().st_size
    file.rename(file.with_name("old.bak"))
    with open_store(root) as store:
        assert store.index_files() == []
        assert store.index.misnamed_files(size) == [str(file.with_name("old.bak"))]


def test_a_damaged_first_file_has_the_sizes_of_its_neighbour(root):
    file = min((root / "index").iterdir())
    shutil.copy(file, file.with_name("20300101000000000"))
    size = file.stat().st_size
    file.write_bytes(bytes(size))
    with open_store(root) as store:
        assert [reader.slots for reader in store.index_files()] == [SLOTS, SLOTS]


def test_configured_sizes_count_before_those_of_the_files(root):
    with open_store(root) as store:
        geometry = store.index_files()[0].geometry
    sizes = {"maxHashSlotNum": str(geometry.slots), "maxIndexNum": str(geometry.entries)}
    with open_store(root, from_mapping(sizes)[0]) as store:
        assert [reader.geometry_source for reader in store.index_files()] == ["the configuration says so"]


def test_a_file_that_appears_is_a_change(root):
    file = min((root / "index").iterdir())
    with open_store(root) as store:
        assert len(store.index_files()) == 1
        assert not store.refresh()
        shutil.copy(file, file.with_name("20300101000000000"))
        assert store.refresh()
        assert len(store.index_files()) == 2
