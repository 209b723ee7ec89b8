"""Index files as rows, the chain of a slot with its keys, and the findings of a file."""

from __future__ import annotations

import struct

import pytest
from handmade_stores import SLOTS, HandmadeStore, jhash
from planted_faults import patch

from engine.inspection import open_store
from engine.rules import catalogue
from viewer.index import facts
from viewer.index.facts import chain_rows, file_rows, slot_load, slot_of_entry, with_health


@pytest.fixture
def root(tmp_path):
    store = HandmadeStore()
    for number in range(12):
        store.put("Orders", keys=f"K{number}", step=1000)
    return store.write(tmp_path / "s")


def test_files_are_listed_newest_first_and_one_without_a_header_has_a_reason(root):
    with open_store(root) as store:
        (row,) = file_rows(store)
        assert (row.slots, row.trouble, row.used) == (SLOTS, "", store.index_files()[0].header.entries)
    min((root / "index").iterdir()).write_bytes(b"short")
    with open_store(root) as store:
        (row,) = file_rows(store)
    assert (row.begin_timestamp, row.used) == (None, None)
    assert "expected a header" in row.trouble


def test_a_slot_s_chain_has_the_key_of_each_unit(root):
    slot = abs(jhash("Orders#K5")) % SLOTS
    with open_store(root) as store:
        name = store.index_files()[0].name
        rows = chain_rows(store, name, slot)
        assert "Orders#K5" in {row.key for row in rows}
        assert {row.verdict for row in rows} == {"ok"}
        assert [row.entry for row in rows] == sorted((row.entry for row in rows), reverse=True)
        assert {slot_of_entry(store, name, row.entry) for row in rows} == {slot}
        assert (chain_rows(store, "none", slot), slot_of_entry(store, name, 10**6)) == ([], None)


def test_a_chain_ends_at_a_loop_and_at_the_most_rows(root, monkeypatch):
    slot = abs(jhash("Orders#K5")) % SLOTS
    with open_store(root) as store:
        reader = store.index_files()[0]
        number, position = reader.slot(slot), reader.geometry.entry_position(reader.slot(slot)) + 16
        patch(min((root / "index").iterdir()), position, struct.pack(">i", number))
        assert [row.verdict for row in chain_rows(store, reader.name, slot)] == ["ok", "loop"]
        monkeypatch.setattr(facts, "MAX_CHAIN_ENTRIES", 0)
        assert [row.verdict for row in chain_rows(store, reader.name, slot)] == ["cut"]


def test_the_load_of_all_slots_is_counted(root):
    with open_store(root) as store:
        reader = store.index_files()[0]
        load = slot_load(store, reader.name, SLOTS, lambda: False, lambda *_: None)
        assert load.used == reader.header.hash_slot_count


def test_findings_are_the_health_of_their_file(root):
    with open_store(root) as store:
        rows = file_rows(store)
    results = catalogue.IX03.finding("Round", str(root / "index" / rows[0].name), 0, {})
    (row,) = with_health(rows, [results])
    assert (row.health, row.messages) == ("loop", ("Round",))
    assert with_health(rows, [])[0].health == ""
