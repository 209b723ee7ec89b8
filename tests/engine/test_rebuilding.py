"""Queues and index built again: the same as before, beside the store or exchanged for what is there."""

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


def test_beside_the_store_the_queues_are_those_that_were_there(root, tmp_path):
    calls = []
    with open_store(root) as store:
        done = rebuild_beside(store, tmp_path / "new", derived_config(store), calls.append)
    assert (done.units, done.entries, done.queues, done.damaged) == (50, 50, 6, 0)
    assert queues(tmp_path / "new") == queues(root)
    assert calls


def test_in_place_they_are_exchanged_and_nothing_else_is_left(root):
    before = queues(root)
    shutil.rmtree(root / "consumequeue" / "Paid" / "1")
    with open_store(root) as store:
        done = rebuild_in_place(store, derived_config(store), None)
    assert done.queues == 6
    assert queues(root) == before
    assert not (root / STAGING).exists()


def test_damage_and_units_of_elsewhere_have_no_entry(root):
    file = min((root / "commitlog").iterdir())
    data = bytearray(file.read_bytes())
    data[4:8] = b"xxxx"
    file.write_bytes(bytes(data))
    with open_store(root) as store:
        done = rebuild_in_place(store, derived_config(store), None)
    assert (done.units, done.damaged) == (49, 1)
    assert done.damaged_bytes > 0


@pytest.mark.parametrize("name", ["clean-5.5.1", "crash-5.4.0", "clean-5.3.3", "clean-4.9.8"])
def test_the_index_is_built_as_the_release_of_the_store_does(golden, tmp_path, name):
    """What we built of a store of 5.4 and later had no entries of tags, and a query by tags found nothing there."""
    with open_store(golden(name)) as store:
        done = rebuild_beside(store, tmp_path / "new", derived_config(store))
        assert done.index_entries == sum(reader.header.entries for reader in store.index_files())
        other = "5.3" if name.endswith(("5.5.1", "5.4.0")) else "5.5"
        as_other = rebuild_beside(store, tmp_path / "other", derived_config(store), release=other)
    assert (as_other.index_entries < done.index_entries) == (other == "5.3")
