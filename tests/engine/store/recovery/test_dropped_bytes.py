"""Bytes after an end of the log, counted in stores with known units."""

from __future__ import annotations

import pytest
from handmade_stores import LOG_SIZE, healthy

from engine.mapped.read_only import DescriptorCache, FileSequence
from engine.store.recovery import dropped_bytes
from engine.store.recovery.dropped_bytes import DroppedBytes


@pytest.fixture
def healthy_store():
    return healthy(80)


@pytest.fixture
def files(healthy_store, tmp_path):
    cache = DescriptorCache()
    healthy_store.write(tmp_path)
    yield FileSequence((tmp_path / "commitlog",), cache).files
    cache.close()


@pytest.mark.parametrize("kept_units", [0, 1, 17, 40, 79, 80])
@pytest.mark.parametrize("chunk", [256, 1000, 8 << 20])
def test_every_unit_after_the_end_counts(kept_units, chunk, healthy_store, files, monkeypatch):
    monkeypatch.setattr(dropped_bytes, "CHUNK", chunk)
    end = healthy_store.units[kept_units].offset if kept_units < 80 else healthy_store.end
    dropped = DroppedBytes(files, end)
    assert dropped.units == 80 - kept_units
    assert dropped.data_end == healthy_store.end
    assert (dropped.bytes > 0) == (kept_units < 80)


def test_damage_in_between_is_skipped(healthy_store, files, tmp_path):
    unit = healthy_store.units[30]
    path = tmp_path / "commitlog" / f"{unit.offset // LOG_SIZE * LOG_SIZE:020d}"
    with path.open("r+b") as file:
        file.seek(unit.offset % LOG_SIZE + 4)
        file.write(b"xxxx")
    assert DroppedBytes(files, healthy_store.units[20].offset).units == 59
