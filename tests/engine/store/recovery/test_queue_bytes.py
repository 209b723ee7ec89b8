"""A consume queue as recovery will leave it: the bytes on disk, overlaid with the entries that dispatch will append."""

from __future__ import annotations

import pytest
from handmade_stores import HandmadeStore

from engine.codec.consume_queue import PREFILLED_SIZE
from engine.inspection import open_store as inspection_open_store
from engine.store.recovery.queue_bytes import QueueBytes


@pytest.fixture
def opened(tmp_path):
    handmade_store = HandmadeStore()
    for _ in range(25):
        handmade_store.put("Orders")
    with inspection_open_store(handmade_store.write(tmp_path / "s")) as store:
        yield QueueBytes.of("simple", 400, store.queue("Orders", 0).sequence), handmade_store.units


def test_every_file_counts_as_full_at_first_and_its_units_as_far_as_they_are_valid(opened):
    data, units = opened
    assert ([file.start for file in data.files], data.end, data.unit_size) == ([0, 400], 800, 20)
    assert data.valid_prefix(data.files[0]) == (400, units[19].offset, units[19].size)
    assert data.valid_prefix(data.files[1]) == (100, units[24].offset, units[24].size)


def test_units_after_the_logs_end_are_dropped_except_the_first_of_a_file(opened):
    data, units = opened
    for is_known in (False, True):  # the second result comes from the cache
        assert data.prefix_before(data.files[1], units[22].offset) == (40, units[21].offset, units[21].size), is_known
        data.valid_prefix(data.files[1])
    assert data.prefix_before(data.files[1], 0) == (20, units[20].offset, units[20].size)
    assert data.prefix_before(data.files[0], units[5].offset)[0] == 100


def test_appended_entries_overlay_the_file(opened):
    """A unit with a wrong offset gave that offset to every entry appended with it. A start by 5.4 or later then seemed
    to cut the whole queue, but it drops one entry.
    """
    data, units = opened
    file = data.files[1]
    file.wrote = 100
    data.append(9_000, 9_000, 50, 26)
    data.append(1, 9_050, 60, 27)  # its PHYSICALOFFSET is wrong
    assert (data.end, data.appended, data.odd) == (540, [(500, 540)], {520: 1})
    rows = next(data.rows(file, 80, 160))
    assert rows.physical.tolist() == [units[24].offset, 9_050, 1, 0]
    assert rows.valid.tolist() == [True, True, True, False]
    assert data.head(file, 120) == (1, 60)


def test_a_queue_that_begins_above_0_is_filled_up():
    data = QueueBytes("simple", 400, [])
    assert data.end == 0
    file = data.create_file(400)
    data.prefill(460)
    rows = next(data.rows(file, 0, 80))
    assert (file.first_created, data.end) == (True, 460)
    assert rows.size.tolist() == [PREFILLED_SIZE] * 3 + [0]
