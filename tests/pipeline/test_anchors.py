"""Places of a log from which a walk can begin."""

from __future__ import annotations

import dataclasses

import pytest
from full_files import SIZE, full_file

from engine.pipeline import anchors, splits
from engine.pipeline.files import StorePlace
from engine.pipeline.splits import plan


@pytest.fixture(autouse=True)
def _anchors_are_near(monkeypatch):
    """Make anchors close: the files here are small, and an anchor must be found, not the beginning of the file."""
    monkeypatch.setattr(splits, "NEAR_BYTES", 700)


def place_of(folder):
    return StorePlace(str(folder), None, (str(folder),))


def write(folder, *files, size=SIZE):
    folder.mkdir(exist_ok=True)
    for number, data in enumerate(files):
        (folder / f"{number * size:020d}").write_bytes(bytes(data).ljust(size, b"\0"))
    return folder


def test_an_anchor_is_found_without_reading_the_whole_file(tmp_path, monkeypatch):
    size = 4 << 20
    folder = write(tmp_path / "log", full_file(0, 3, size), size=size)
    (full_split,) = plan([place_of(folder)]).splits
    positions = []
    monkeypatch.setattr(splits, "LOOK_BACK_BYTES", 1 << 16)
    read = anchors._is_hidden

    def noted(split, file, position, look_back):
        positions.append(position)
        return read(split, file, position, look_back)

    monkeypatch.setattr(anchors, "_is_hidden", noted)
    splits.first_in(dataclasses.replace(full_split, start=3 << 20, exact=False), 1 << 16)
    assert len(positions) == 1
    assert (3 << 20) - splits.NEAR_BYTES <= positions[0] < 3 << 20
