"""Bytes and files that a user changes by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade_stores import HandmadeStore, healthy

from engine.codec.filler import is_stand_in
from engine.codec.message import Unit
from engine.errors import UsageError
from engine.inspection.findings import check
from engine.inspection.recovery import plan
from engine.inspection.snapshot import open_store
from engine.repair.byte_edits import cut_log, edit_log_bytes, edit_queue_entry, move_file, remove_file, remove_message
from engine.rules.findings import Finding, at_least


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return healthy().write(tmp_path / "store")


def units_of(store) -> list[Unit]:
    return [item for item in store.log.walk() if isinstance(item, Unit)]


def body_of(store, unit: Unit) -> int:
    return unit.offset + store.log.read(unit.offset, unit.size).index(unit.body)


def test_a_changed_body_has_a_right_crc_if_that_is_wanted(root) -> None:
    with open_store(root) as store:
        unit = units_of(store)[1]
        at = body_of(store, unit)
        plain = edit_log_bytes(store, at, b"#")
        mended = edit_log_bytes(store, at, b"#", unit_offset=unit.offset)
    for patches, crc in ((plain, "bad"), (mended, "ok")):
        with open_store(root, None, patches) as store:
            changed = store.log.unit_at(unit.offset)
            assert (changed.body[:1], changed.crc) == (b"#", crc)


def test_bytes_outside_of_the_log_or_the_message_are_refused(root) -> None:
    with open_store(root) as store:
        unit = units_of(store)[1]
        for offset, new, unit_offset in ((1 << 40, b"x", None), (unit.offset, b"", None), (0, b"x", unit.offset)):
            with pytest.raises(UsageError):
                edit_log_bytes(store, offset, new, unit_offset=unit_offset)
        with pytest.raises(UsageError, match="no message any more"):
            edit_log_bytes(store, unit.offset + 4, bytes(4), unit_offset=unit.offset)


def test_an_entry_leads_to_another_message(root) -> None:
    with open_store(root) as store:
        first, second = units_of(store)[:2]
        queue = store.queues.find(first.topic, first.queue_id)
        patches = edit_queue_entry(store, first.topic, first.queue_id, first.queue_offset, second.offset)
        with pytest.raises(UsageError):
            edit_queue_entry(store, first.topic, first.queue_id, first.queue_offset, second.offset + 1)
        assert queue.entry(first.queue_offset).physical_offset == first.offset
    with open_store(root, None, patches) as store:
        entry = store.queues.find(first.topic, first.queue_id).entry(first.queue_offset)
        assert (entry.physical_offset, entry.size) == (second.offset, second.size)


def test_the_log_is_cut_at_a_message(tmp_path) -> None:
    made = HandmadeStore()
    for _ in range(12):
        made.put("Orders")
    root = made.write(tmp_path / "store")
    with open_store(root) as store:
        units = units_of(store)
        patches = cut_log(store, units[5].offset)
        with pytest.raises(UsageError):
            cut_log(store, units[5].offset + 1)
    with open_store(root, None, patches) as store:
        assert units_of(store) == units[:5]
        assert plan(store, "5.3").end_offset == units[5].offset


def test_files_are_removed_and_moved(root) -> None:
    with open_store(root) as store:
        gone = remove_file(store, "checkpoint")
        moved = move_file(store, "checkpoint", "old/checkpoint")
        for name in ("nowhere", "../store/checkpoint"):
            with pytest.raises(UsageError):
                remove_file(store, name)
        with pytest.raises(UsageError):
            move_file(store, "checkpoint", "commitlog/00000000000000000000")
    for patch in (gone, moved):
        with open_store(root, None, [patch]) as store:
            assert store.small_file(store.paths.checkpoint) is None
            assert any(item.id.startswith("CK") for item in check(store) if isinstance(item, Finding))


def test_a_message_that_is_removed_leaves_an_empty_one_in_its_place(tmp_path):
    """An emptied entry would let a broker skip the messages behind it: the entry stays, and its message is empty."""
    made = healthy()
    root = made.write(tmp_path / "store")
    unit = next(unit for unit in made.units if unit.queue_offset == 3)
    with open_store(root) as store:
        patches = remove_message(store, unit.offset)
    assert any("is lost" in patch.costs for patch in patches)
    with open_store(root, patches=patches) as store:
        item = store.log.unit_at(unit.offset)
        queue = store.queues.find(unit.topic, unit.queue_id)
        assert isinstance(item, Unit)
        assert queue is not None
        entry = queue.entry(unit.queue_offset)
        assert is_stand_in(item.sys_flag, item.body, item.properties_raw)
        assert (item.topic, item.queue_id, item.queue_offset, item.size) == (
            unit.topic,
            unit.queue_id,
            unit.queue_offset,
            unit.size,
        )
        assert entry is not None
        assert (entry.physical_offset, entry.size, entry.tags_code) == (unit.offset, unit.size, 0)
        found = [item for item in check(store) if isinstance(item, Finding) and at_least(item.severity, "warn")]
    assert not found


def test_only_a_message_of_a_queue_is_removed(tmp_path):
    root = healthy().write(tmp_path / "store")
    with open_store(root) as store, pytest.raises(UsageError, match="no message of a queue begins at 1"):
        remove_message(store, 1)


@pytest.mark.golden
@pytest.mark.parametrize(("name", "topic"), [("rocks-5.5.1", "TopicB"), ("broker-lmq", "OrderEvents")])
def test_its_rows_and_light_entries_follow(golden, name, topic):
    pytest.importorskip("rocksdict")
    with open_store(golden(name)) as store:
        queue = store.queues.by_topic()[topic][0]
        entry = next(entry for entry in queue.entries(10) if entry.tags_code)
        patches = remove_message(store, entry.physical_offset)
    with open_store(golden(name), patches=patches) as store:
        row = store.queues.by_topic()[topic][0].entry(entry.queue_offset)
        assert row is not None
        assert (row.physical_offset, row.size, row.tags_code) == (entry.physical_offset, entry.size, 0)
        found = [item for item in check(store) if isinstance(item, Finding) and at_least(item.severity, "warn")]
    assert not found
