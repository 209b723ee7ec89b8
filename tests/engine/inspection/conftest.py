"""Golden stores that are opened once per module, and copies of them to spoil."""

from __future__ import annotations

import shutil

import pytest

from engine.inspection import open_store


@pytest.fixture(scope="module")
def opened(golden):
    """``opened(name, archive)``: the store, opened once, with its log end where a recovery would set it."""
    stores = {}

    def opened(name, archive="store"):
        if (name, archive) not in stores:
            store = stores[name, archive] = open_store(golden(name, archive))
            store.commit_log.settle_end()
        return stores[name, archive]

    yield opened
    for store in stores.values():
        store.close()


@pytest.fixture
def spoiled(golden, tmp_path):
    """``spoiled(name)``: a copy of a golden store to spoil, and a function that opens it."""

    def spoiled(name):
        return shutil.copytree(golden(name), tmp_path / "store")

    return spoiled
