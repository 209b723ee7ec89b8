"""Copy and digest a span of a file, skipping holes and zeros."""

from __future__ import annotations

import os
from pathlib import Path

import golden_stores
import pytest
from undone_stores import made, undone

from engine.cli.main import main
from engine.mapped import span_copy


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return made(tmp_path / "store")


def test_where_blocks_can_be_shared_nothing_is_copied(store, monkeypatch):
    before = golden_stores.fingerprint(store)
    shared = []

    def clone(reading: int, writing: int) -> bool:
        shared.append(os.copy_file_range(reading, writing, os.fstat(reading).st_size, 0, 0))
        return True

    monkeypatch.setattr(span_copy, "_MIN_CLONED_BYTES", 1)
    monkeypatch.setattr(span_copy, "_clone", clone)
    assert main(["recover", str(store), "--apply", "--yes", "--release", "5.3"]) == 0
    assert len(shared) > 3
    undone(store, before)
