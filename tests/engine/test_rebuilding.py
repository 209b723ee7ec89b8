"""Rebuilding queues and index: the same as before, beside the store or exchanged in place."""

from __future__ import annotations

import shutil

import pytest
from handmade_stores import HandmadeStore

from engine.inspection import open_store
from engine.inspection.derived_config import derived_config
from engine.rebuilding import STAGING, rebuild_beside, rebuild_in_place


@pytest.fixture
def root(tmp_path):
    store = HandmadeStore()
    for number in range(50):
        store.put(("Orders", "Paid")[number % 2], number % 3, tags=f"T{number % 4}", keys=f"K{number}")
    return store.write(tmp_path / "store")


def queues(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes().rstrip(b"\0")
        for path in (root / "consumequeue").rglob("*")
        if path.is_file()
    }


def test_queues_rebuilt_beside_the_store_equal_the_old_ones(root, tmp_path):
    calls = []
    with open_store(root) as store:
        done = rebuild_beside(store, tmp_path / "new", derived_config(store), calls.append)
    assert (done.units, done.entries, done.queues, done.damaged) == (50, 50, 6, 0)
    assert queues(tmp_path / "new") == queues(root)
    assert calls


def test_queues_rebuilt_in_place_leave_no_other_files(root):
    queues_before = queues(root)
    shutil.rmtree(root / "consumequeue" / "Paid" / "1")
    with open_store(root) as store:
        result = rebuild_in_place(store, derived_config(store), None)
    assert result.queues == 6
    assert queues(root) == queues_before
    assert not (root / STAGING).exists()


def test_damage_and_stale_units_have_no_entry(root):
    file = min((root / "commitlog").iterdir())
    data = bytearray(file.read_bytes())
    data[4:8] = b"xxxx"
    file.write_bytes(bytes(data))
    with open_store(root) as store:
        done = rebuild_in_place(store, derived_config(store), None)
    assert (done.units, done.damaged) == (49, 1)
    assert done.damaged_bytes > 0


@pytest.mark.parametrize("name", ["clean-5.5.1", "crash-5.4.0", "clean-5.3.3", "clean-4.9.8"])
def test_the_index_is_built_for_the_stores_release(golden, tmp_path, name):
    """An index that we rebuilt for a store of 5.4 or later had no tag entries, so a query by tag found nothing."""
    with open_store(golden(name)) as store:
        result = rebuild_beside(store, tmp_path / "new", derived_config(store))
        assert result.index_entries == sum(reader.header.entries for reader in store.index_files())
        other_release = "5.3" if name.endswith(("5.5.1", "5.4.0")) else "5.5"
        other_result = rebuild_beside(store, tmp_path / "other", derived_config(store), release=other_release)
    assert (other_result.index_entries < result.index_entries) == (other_release == "5.3")
