"""Bytes compared with those of the store: over the borders of files, in patched stores, in long live copies."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest
from raw_units import raw_unit
from salvage_rounds import FILE_BYTES, write_store

from engine.codec import byte_compare
from engine.inspection.salvage import run_search
from engine.inspection.salvage.salvage_search import SalvageSearch
from engine.inspection.salvage.searched_files import open_images
from engine.inspection.salvage.store_comparison import StoreComparison, equal_bytes
from engine.inspection.snapshot import open_store
from engine.patching.patches import WriteBytes


@pytest.fixture(params=["compiled", "plain"])
def either_twin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "plain":
        monkeypatch.setattr(byte_compare, "twin", lambda: None)


def test_the_first_difference_of_two_arrays_is_found() -> None:
    first = np.arange(100, dtype=np.uint8)
    other = first.copy()
    assert equal_bytes(first, other) == 100
    other[63] = 0
    assert equal_bytes(first, other) == 63


@pytest.mark.usefixtures("either_twin")
def test_ranges_in_several_files_are_compared(tmp_path: Path) -> None:
    store = write_store(random.Random(1), tmp_path / "store", 3)
    data = np.frombuffer(store.log, np.uint8).copy()
    data[FILE_BYTES + 1000] ^= 1
    positions = np.array([0, 100, FILE_BYTES - 50, FILE_BYTES + 990, 2 * FILE_BYTES, 3 * FILE_BYTES - 4], np.int64)
    sizes = np.array([FILE_BYTES, 10, 40, 20, 500, 4], np.int64)
    with open_store(store.root) as snapshot:
        comparison = StoreComparison(snapshot.log)
        same = comparison.count_equal_ranges(data, positions, positions, sizes) == sizes
        comparison.close()
    assert same.tolist() == [True, True, True, False, True, True]


@pytest.mark.usefixtures("either_twin")
def test_a_patched_store_is_compared_as_it_would_be(tmp_path: Path) -> None:
    store = write_store(random.Random(1), tmp_path / "store", 2)
    data, positions, sizes = np.frombuffer(store.log, np.uint8), np.array([0, 500, 20_000]), np.array([400, 9, 9000])
    patch = WriteBytes(
        file=f"commitlog/{0:020d}", offset=505, old=store.log[505:506], new=bytes([store.log[505] ^ 1]), why="test"
    )
    with open_store(store.root, None, [patch]) as snapshot, open_images([store.files[0]]) as images:
        comparison = StoreComparison(snapshot.log)
        assert (comparison.count_equal_ranges(data, positions, positions, sizes) == sizes).tolist() == [
            True,
            False,
            True,
        ]
        descriptor = images[0].descriptor()
        for plain in (descriptor, -1):
            assert comparison.count_equal(images[0], plain, 0, 0, 20_000) == 505
            assert comparison.count_equal(images[0], plain, 600, 600, FILE_BYTES - 600) == FILE_BYTES - 600
        comparison.close()
        os.close(descriptor)


@pytest.mark.usefixtures("either_twin")
@pytest.mark.parametrize("damage", ["none", "a byte", "cut", "inserted"])
def test_long_live_copies_are_left_out_to_the_unit(
    tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a long live run the bytes are compared without being searched. Nothing else is left out for that."""
    monkeypatch.setattr(run_search, "_MIN_AHEAD_BYTES", 5000)
    monkeypatch.setattr(run_search, "_ROWS", 8)
    rng = random.Random(3)
    store = write_store(rng, tmp_path / "store", 3, crc_zero=0)
    data = bytearray(store.log)
    hidden = raw_unit(7 << 30, body=b"hidden" * 20) + raw_unit((7 << 30) + len(raw_unit(body=b"hidden" * 20)))
    offset = sorted(store.units)[len(store.units) // 2] if damage != "none" else 0
    if damage == "a byte":
        data[offset + 100] ^= 1
    elif damage == "cut":
        del data[offset:]
    elif damage == "inserted":
        data[offset:offset] = hidden
    (tmp_path / "image").write_bytes(data)
    with open_store(store.root) as snapshot, open_images([tmp_path / "image"]) as images:
        search = SalvageSearch(snapshot, images)
        search.run(lambda _: None)
        rows = list(search.rows())
    expected = {"none": len(store.units), "a byte": len(store.units) - 1, "inserted": len(store.units)}
    behind = sum(unit >= offset for unit in store.units)
    assert search.live_count == expected.get(damage, len(store.units) - behind)
    found = {row.physical_offset for row in rows if row.verdict in ("whole", "reassembled")}
    assert found <= ({7 << 30, (7 << 30) + len(hidden)} if damage == "inserted" else set())
    assert (7 << 30 in {row.physical_offset for row in rows}) == (damage == "inserted")
