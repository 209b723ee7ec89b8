"""What is searched: damage, the bytes behind a blank and behind the end, and images; and what the store has."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from planted_faults import patch
from salvage_rounds import FILE_BYTES, WrittenStore, write_store

from engine.inspection.salvage.searched_files import image_source, own_sources
from engine.inspection.salvage.store_units import walk_store
from engine.inspection.snapshot import open_store
from engine.mapped.image_file import ImageFile
from engine.mapped.reading import Reading


@pytest.fixture
def written(tmp_path: Path) -> WrittenStore:
    return write_store(random.Random(1), tmp_path / "store", 2)


def test_the_units_of_a_sound_store_are_live(written: WrittenStore) -> None:
    with open_store(written.root) as store:
        units = walk_store(store, lambda _: None)
    assert len(units.live) == 2
    offsets = np.array(sorted(written.units), np.int64)
    sizes = np.array([len(written.units[offset]) for offset in offsets.tolist()], np.int64)
    assert units.covers(offsets, offsets + sizes).all()
    assert not units.covers(np.array([units.end_offset]), np.array([units.end_offset + 9])).any()
    assert (units.overlaps(0, 1), units.overlaps(units.end_offset, units.end_offset + 1)) == (True, False)


def test_damage_and_the_bytes_behind_the_end_are_searched(written: WrittenStore) -> None:
    offsets = sorted(written.units)
    third, fourth = offsets[2], offsets[3]
    patch(written.files[0], third, bytes(40))
    with open_store(written.root) as store:
        units = walk_store(store, lambda _: None)
        first, second = own_sources(store, units)
    assert [(item.offset, item.size) for item in units.damage] == [(third, fourth - third)]
    assert first.ranges[0] == (third, fourth)
    assert second.ranges[-1] == (units.end_offset - FILE_BYTES, FILE_BYTES)


def test_all_of_an_image_is_searched(tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(b"x" * 5000)
    image = ImageFile(path, Reading(alone=True))
    source = image_source(image)
    assert (source.ranges, source.bytes_to_search, source.start_offset) == ([(0, 5000)], 5000, None)
    image.close()
