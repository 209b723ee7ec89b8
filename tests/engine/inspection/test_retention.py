"""The next deletions by retention: files, groups that still read in them, delay levels, disks."""

from __future__ import annotations

import json
import os
import shutil
import time

import made_rocksdb
import pytest
from handmade_stores import HandmadeStore

from engine.config import from_mapping
from engine.inspection import open_store
from engine.inspection.retention import retention
from engine.rules.retention_rules import HOUR_MS

ROOM = (0.1, 0.1)


def _store(tmp_path, hours_old=(100, 80, 1)):
    store = HandmadeStore()
    for number in range(90):
        store.put(queue_id=number % 2, body=b"x" * 20)
    root = store.write(tmp_path / "store")
    now = round(time.time() * 1000)
    for path, age in zip(sorted((root / "commitlog").iterdir()), hours_old, strict=False):
        when = (now - age * HOUR_MS) / 1000
        os.utime(path, (when, when))
    return store, root, now


def test_each_file_has_its_verdict(tmp_path):
    _, root, now = _store(tmp_path)
    with open_store(root) as store:
        results = retention(store, now, ROOM)
    assert len(results.files) >= 3
    assert {file.expiry.held_by for file in results.files[:2]} <= {"hour", "goes"}
    assert results.files[-1].expiry.held_by == "newest"
    assert results.files[0] in results.next_files
    assert results.next_time is not None
    assert not results.configured


def test_groups_that_still_read_in_a_file_are_named(tmp_path):
    sample, root, now = _store(tmp_path)
    (root / "config").mkdir()
    table = {"offsetTable": {"Orders@slow": {"0": 1}, "Orders@done": {"0": 45, "1": 45}}}
    (root / "config" / "consumerOffset.json").write_text(json.dumps(table))
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": {"Orders": {}}}))
    with open_store(root) as store:
        results = retention(store, now, ROOM)
    unit = next(item for item in sample.units if item.queue_id == 0 and item.queue_offset == 1)
    assert [(reader.name, reader.offset) for reader in results.readers] == [("slow", unit.offset)]
    assert results.files[0].readers == ("slow",)


def test_a_group_below_the_minimum_is_reported(golden, spoiled):
    root = spoiled("first-files-deleted-5.3.3")
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "consumerOffset.json").write_text('{"offsetTable":{"TopicA@late":{"0":1}}}')
    with open_store(root) as store:
        results = retention(store, used=ROOM)
    assert [(reader.name, reader.below) for reader in results.readers] == [("late", 1)]


def test_full_disks_and_a_configuration_change_the_rule(tmp_path):
    _, root, now = _store(tmp_path)
    config = from_mapping({"fileReservedTime": 1000, "deleteWhen": "01;13"})[0]
    with open_store(root, config) as store:
        calm, full = retention(store, now, ROOM), retention(store, now, (0.91, 0.1))
    assert calm.configured
    assert calm.hours == (1, 13)
    assert calm.files[0].expiry.held_by == "age"
    assert full.rule.refused
    assert [file.expiry.held_by for file in full.files[:-1]] == ["goes"] * (len(full.files) - 1)


def test_a_store_without_files_has_nothing_to_lose(tmp_path):
    (tmp_path / "store" / "commitlog").mkdir(parents=True)
    (tmp_path / "store" / "consumequeue").mkdir()
    with open_store(tmp_path / "store") as store:
        results = retention(store)
    assert results.files == ()
    assert results.next_time is None
    assert results.next_files == ()


@pytest.mark.golden
def test_queues_in_a_rocksdb_that_cannot_be_read_are_not_called_undecoded(golden, tmp_path):
    """Groups and retention said that the RocksDB is not decoded here."""
    made_rocksdb.binding()
    root = shutil.copytree(golden("rocksdb-orders-5.5.1"), tmp_path / "store")
    (root / "consumequeue" / "CURRENT").unlink()
    with open_store(root) as store:
        results = retention(store, 0, ROOM)
        assert "expected the name of a manifest, found no file" in str(results.readers_unknown)
        assert not [item for item in store.unread if "not decoded" in item.words]
