"""The map of one file: its ranges add up to the file, and defects are at their offsets."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from handmade_stores import HandmadeStore

from engine.errors import StoreError
from engine.inspection import open_store
from engine.inspection.file_map import file_map


def written_store(tmp_path: Path) -> tuple[HandmadeStore, Path]:
    store = HandmadeStore()
    for number in range(60):
        store.put(topic=("Orders", "Paid")[number % 2], body=b"x" * number)
    return store, store.write(tmp_path / "store")


@pytest.mark.parametrize("cells", [1, 7, 400, 100_000])
def test_ranges_add_up_to_the_file(tmp_path, cells):
    sample, root = written_store(tmp_path)
    with open_store(root) as store:
        for file in store.log.files:
            actual_file_map = file_map(store, file.name, cells)
            assert (actual_file_map.start, actual_file_map.end) == (file.start_offset, file.end_offset)
            assert [cell.start for cell in actual_file_map.cells[1:]] == [
                cell.end for cell in actual_file_map.cells[:-1]
            ]
            for cell in actual_file_map.cells:
                total = sum(size for _, size in cell.topics) + cell.damaged + cell.blank + cell.zero
                assert total == cell.end - cell.start
                assert 0 <= cell.held <= cell.end - cell.start
            inside = [unit for unit in sample.units if file.start_offset <= unit.offset < file.end_offset]
            assert actual_file_map.units == len(inside)
            for topic in ("Orders", "Paid"):
                actual_total = sum(
                    size for cell in actual_file_map.cells for name, size in cell.topics if name == topic
                )
                assert actual_total == sum(unit.size for unit in inside if unit.topic == topic)
            assert actual_file_map.complete


def test_wrong_crcs_and_damage_are_at_their_offsets(tmp_path):
    sample, root = written_store(tmp_path)
    flipped, torn = sample.units[3], sample.units[6]
    path = min((root / "commitlog").iterdir())
    with path.open("r+b") as file:
        file.seek(flipped.offset + 8)
        file.write(struct.pack(">i", 1))
        file.seek(torn.offset + 4)
        file.write(b"\xff\xff\xff\xff")
    with open_store(root) as store:
        actual_file_map = file_map(store, path.name, 64)
    assert actual_file_map.bad == (flipped.offset,)
    assert actual_file_map.damage == ((torn.offset, torn.size),)
    assert [cell.start <= flipped.offset < cell.end for cell in actual_file_map.cells if cell.bad] == [True]
    assert sum(cell.damaged for cell in actual_file_map.cells) == torn.size


def test_a_hole_is_not_allocated(tmp_path):
    handmade_store = HandmadeStore(log_size=1 << 20)
    handmade_store.put()
    root = handmade_store.write(tmp_path / "store")
    path = next((root / "commitlog").iterdir())
    head = path.read_bytes()[: handmade_store.end]
    path.unlink()
    with path.open("wb") as file:
        file.write(head)
        file.truncate(1 << 20)
    with open_store(root) as store:
        actual_file_map = file_map(store, path.name, 16)
    assert actual_file_map.cells[0].held > 0
    assert actual_file_map.cells[-1].held == 0
    assert actual_file_map.cells[-1].zero == actual_file_map.cells[-1].end - actual_file_map.cells[-1].start


def test_a_map_can_be_stopped(tmp_path):
    _, root = written_store(tmp_path)
    with open_store(root) as store:
        name = store.log.files[0].name
        assert not file_map(store, name, cancelled=lambda: True).complete
        reports: list[int] = []
        file_map(store, name, progress=lambda done, _total: reports.append(done))
    assert reports == sorted(reports)


def test_a_missing_file_is_an_error(tmp_path):
    _, root = written_store(tmp_path)
    with open_store(root) as store, pytest.raises(StoreError, match="none called 77"):
        file_map(store, "77")
