"""What is kept of a store in a capsule, and what is not."""

from __future__ import annotations

import pytest
from dledger_damage import as_dledger
from handmade_stores import HandmadeStore, healthy
from planted_faults import patch

from engine.bench.data import log_store
from engine.capsule.capsule_disk import CapsuleDisk
from engine.capsule.container import BlockKind
from engine.cli.main import main
from engine.codec.message import Unit
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


def test_a_pop_checkpoint_that_waits_in_the_timer_is_not_left_out(tmp_path):
    """`waiting` and `groups` read it. Without its body, a capsule listed no message that comes again."""
    handmade = HandmadeStore()
    body, revive_topic = b'{"as":0,"bn":"broker-a"}' * 4, {"REAL_TOPIC": "rmq_sys_REVIVE_LOG_DefaultCluster"}
    for topic in ("rmq_sys_wheel_timer", "SCHEDULE_TOPIC_XXXX"):
        handmade.put(topic, body=body, more=revive_topic)
        handmade.put(topic, body=body, more={"REAL_TOPIC": "Orders"})
    with open_store(handmade.write(tmp_path / "store")) as store:
        make_capsule(store, tmp_path / "x.capsule", NOW)
    with open_store(tmp_path / "x.capsule") as store:
        assert [unit.body == body for unit in store.units() if isinstance(unit, Unit)] == [True, False] * 2


def test_a_dledger_log_is_written_by_columns(tmp_path):
    """Headers were bytes beside the units, and the rows of a large index were taken for damage and left out."""
    root = log_store(tmp_path, "1k", 4 << 20)
    assert main(["dispatch", str(root), "--yes", "--no-backup"]) == 0
    as_dledger(root)
    with open_store(root) as store:
        summary = make_capsule(store, tmp_path / "x.capsule", NOW)
    assert (summary.damage_bytes, summary.left_out_bytes) == (0, 0)
    assert summary.capsule_bytes < 0.015 * (4 << 20)
    disk = CapsuleDisk(tmp_path / "x.capsule")
    number = next(n for n, entry in enumerate(disk.directory.files) if entry.path == f"dledger-n0/index/{0:020d}")
    rows = (root / "dledger-n0" / "index" / f"{0:020d}").read_bytes()[: 1 << 20]
    assert disk.file_bytes(number, 1 << 20, 0) == rows
    disk.close()


def test_entries_of_units_that_went_away_meanwhile_are_stored(tmp_path, monkeypatch):
    """Queues and index are written before the log. Entries must not follow from units that retention then deletes."""
    root = healthy().write(tmp_path / "store")
    oldest = min((root / "commitlog").iterdir())
    queues = {path: path.read_bytes() for path in root.glob("consumequeue/*/*/*")}
    rounds: list[str] = []
    write_file = capsule_making._Making._write_file

    def without_the_oldest(making, writer, number, entry):
        if entry.path.startswith("commitlog/") and not rounds:
            rounds.append(entry.path)
            oldest.write_bytes(bytes(oldest.stat().st_size))
        write_file(making, writer, number, entry)

    monkeypatch.setattr(capsule_making._Making, "_write_file", without_the_oldest)
    with open_store(root) as store:
        make_capsule(store, tmp_path / "x.capsule", NOW)
    disk = CapsuleDisk(tmp_path / "x.capsule")
    kinds = {block.kind for blocks in disk._capsule.blocks for block in blocks}
    assert not kinds & {BlockKind.QUEUE_FROM_UNITS, BlockKind.INDEX_FROM_UNITS}
    for number, entry in enumerate(disk.directory.files):
        if root / entry.path in queues:
            assert disk.file_bytes(number, entry.size, 0) == queues[root / entry.path]
    disk.close()


def test_units_that_come_meanwhile_change_no_entry(tmp_path, monkeypatch):
    handmade = healthy()
    root = handmade.write(tmp_path / "store")
    newest = max((root / "commitlog").iterdir())
    after = newest.read_bytes()
    last = handmade.units[-1]
    patch(newest, last.offset % handmade.log_size, bytes(last.size))
    write_file = capsule_making._Making._write_file

    def with_one_more(making, writer, number, entry):
        if entry.path.startswith("commitlog/"):
            newest.write_bytes(after)
        write_file(making, writer, number, entry)

    monkeypatch.setattr(capsule_making._Making, "_write_file", with_one_more)
    with open_store(root) as store:
        make_capsule(store, tmp_path / "x.capsule", NOW)
    disk = CapsuleDisk(tmp_path / "x.capsule")
    assert BlockKind.QUEUE_FROM_UNITS in {block.kind for blocks in disk._capsule.blocks for block in blocks}
    for number, entry in enumerate(disk.directory.files):
        if entry.path.startswith(("consumequeue/", "index/")) and (root / entry.path).is_file():
            assert disk.file_bytes(number, entry.size, 0) == (root / entry.path).read_bytes()
    disk.close()


def test_the_geometry_of_a_large_index_needs_no_units(tmp_path, monkeypatch):
    """Every command that opens a capsule decoded the units of all index files to read one slot of each."""
    root = log_store(tmp_path, "1k", 16 << 20)
    assert main(["dispatch", str(root), "--yes", "--no-backup"]) == 0
    monkeypatch.setattr(capsule_making, "_MIN_TAILS", 10)
    with open_store(root) as store:
        make_capsule(store, tmp_path / "x.capsule", NOW)
        expected = [reader.file.read(0, reader.size) for reader in store.index_files()]
    monkeypatch.setattr(CapsuleDisk, "_block_facts", lambda *_: pytest.fail("units were decoded"))
    with open_store(tmp_path / "x.capsule") as store:
        geometries = [reader.geometry for reader in store.index_files()]
    assert all(geometries)
    monkeypatch.undo()
    with open_store(tmp_path / "x.capsule") as store:
        assert [reader.file.read(0, reader.size) for reader in store.index_files()] == expected
