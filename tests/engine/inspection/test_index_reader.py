"""One index file: header, slots and entries, and what is said of a file that is none."""

from __future__ import annotations

import pytest
from made_stores import SLOTS, MadeStore, jhash

from engine.errors import CorruptUnit
from engine.inspection import open_store
from engine.inspection.index_reader import misnamed, stored_count
from engine.mapped.read_only import DescriptorCache


@pytest.fixture
def root(tmp_path):
    made = MadeStore()
    for number in range(6):
        made.put("Orders", keys=f"K{number}")
    return made.write(tmp_path / "store")


def test_entries_are_those_of_the_header_and_a_slot_leads_to_the_newest(root):
    with open_store(root) as store:
        (reader,) = store.index_files()
        count = reader.header.entries
        assert (reader.slots, reader.last_entry, stored_count(reader.file)) == (SLOTS, count, count)
        found = dict(reader.entries())
        assert list(found) == list(range(1, count + 1))
        wanted = abs(jhash("Orders#K5"))
        number = reader.slot(wanted % SLOTS)
        while found[number].key_hash != wanted:
            number = found[number].prev
        assert store.log.unit_at(found[number].phy_offset).keys == ["K5"]
        assert reader.entry(number) == found[number]


def test_numbers_that_a_file_does_not_hold_are_none(root):
    with open_store(root) as store:
        (reader,) = store.index_files()
        assert reader.entry(0) is None
        assert reader.entry(10**6) is None
        assert list(reader.entries(3, 5))[-1][0] == 4


def test_a_file_shorter_than_a_header_says_so(root):
    file = min((root / "index").iterdir())
    file.write_bytes(bytes(12))
    with open_store(root) as store:
        (reader,) = store.index_files()
        with pytest.raises(CorruptUnit, match="expected a header of 40 bytes, found 12"):
            _ = reader.header
        assert stored_count(reader.file) == 0
        with pytest.raises(CorruptUnit, match="not known"):
            _ = reader.slots


def test_a_file_whose_name_is_no_number_is_passed_over_and_named(root):
    file = min((root / "index").iterdir())
    size = file.stat().st_size
    file.rename(file.with_name("old.bak"))
    with open_store(root) as store:
        assert store.index_files() == []
        assert misnamed(root / "index", DescriptorCache(), size) == [str(file.with_name("old.bak"))]
