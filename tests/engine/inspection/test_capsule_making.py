"""What is kept of a store in a capsule, and what is not."""

from __future__ import annotations

import pytest
from handmade_stores import healthy
from planted_faults import patch

from engine.errors import UsageError
from engine.inspection import capsule_making
from engine.inspection.capsule_making import check_target, make_capsule
from engine.inspection.snapshot import open_store

NOW = 1_700_000_000_000


def test_damage_is_kept_up_to_a_limit_and_left_out_beyond_it(tmp_path, monkeypatch):
    handmade = healthy()
    root = handmade.write(tmp_path / "store")
    unit = handmade.units[20]
    patch(root / "commitlog" / f"{0:020d}", unit.offset + 4, b"xxxx")
    capsule = tmp_path / "x.capsule"
    with open_store(root) as store:
        assert make_capsule(store, capsule, NOW).damage_bytes >= unit.size
    with open_store(root) as store, open_store(capsule) as of_capsule:
        assert of_capsule.log.read(unit.offset, unit.size) == store.log.read(unit.offset, unit.size)
    monkeypatch.setattr(capsule_making, "DAMAGE_MAX_BYTES", 10)
    with open_store(root) as store:
        assert make_capsule(store, capsule, NOW).left_out_bytes >= unit.size
    with open_store(capsule) as of_capsule:
        list(of_capsule.units())
        assert {item.error for item in of_capsule.unread} == {"left out of the capsule"}


def test_entries_that_a_broker_changes_meanwhile_do_not_change_the_links(tmp_path, monkeypatch):
    """Links follow from the hashes that were read first: an entry of another hash would lead elsewhere."""
    root = healthy().write(tmp_path / "store")
    index = min((root / "index").iterdir())
    before = index.read_bytes()
    with open_store(root) as store:
        entry_start = 40 + 4 * store.index_files()[0].slots + 20 * 5
    links_of = capsule_making.index_columns.links_of

    def links_of_a_changing_file(hashes, slot_count):
        index.write_bytes(before[:entry_start] + bytes(4) + before[entry_start + 4 :])
        return links_of(hashes, slot_count)

    monkeypatch.setattr(capsule_making.index_columns, "links_of", links_of_a_changing_file)
    with open_store(root) as store:
        make_capsule(store, tmp_path / "x.capsule", NOW)
    monkeypatch.undo()
    assert index.read_bytes() != before
    with open_store(tmp_path / "x.capsule") as store:
        reader = store.index_files()[0]
        assert reader.file.read(0, reader.size) == before


def test_a_part_of_a_store_is_refused(tmp_path):
    root = healthy().write(tmp_path / "store")
    with open_store(root / "commitlog") as store, pytest.raises(UsageError, match="found a part of one"):
        check_target(store, tmp_path / "x.capsule", overwrite=False)


def test_bodies_are_not_in_the_file(tmp_path):
    root = healthy().write(tmp_path / "store")
    with open_store(root) as store:
        make_capsule(store, tmp_path / "x.capsule", NOW)
        body = max((getattr(item, "body", b"") for item in store.units()), key=len)
    with open_store(tmp_path / "x.capsule") as store:
        disk = store.capsule
        assert disk is not None
        stored = [disk._capsule.unpacked(block) for blocks in disk._capsule.blocks for block in blocks if block.stored]
    assert body
    assert all(body not in data for data in stored)
    assert body not in (tmp_path / "x.capsule").read_bytes()
