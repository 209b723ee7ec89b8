"""Defects that the fuzz campaign found, one test each."""

from __future__ import annotations

import shutil
import struct

import agree
import handmade_stores
import pytest

from engine.codec.message import Unit
from engine.inspection import byte_scan
from engine.inspection.byte_scan import units_with
from engine.inspection.snapshot import open_store
from engine.inspection.where.evidence import where


@pytest.mark.timeout(60)
def test_a_log_file_that_ends_beyond_64_bits_is_left_out(tmp_path):
    """A copy was named 2^63 - 1: its second unit had a negative offset, and the walk never ended."""
    root = handmade_stores.healthy().write(tmp_path)
    first_file = root / "commitlog" / f"{0:020d}"
    shutil.copy(first_file, root / "commitlog" / f"{(1 << 63) - 1:020d}")
    with open_store(root) as store:
        assert store.log.end_offset < 1 << 40
        assert any("64 bits" in oddity.description for oddity in store.log.sequence.oddities)
    status, _, err = agree.command("check", root)
    assert (status, err) in {(0, ""), (1, "")}


def test_an_entry_into_the_bytes_of_anothers_unit_is_no_message(tmp_path):
    """The bytes were returned with the unit around them, but no unit was decoded at that offset: KeyError."""
    store = handmade_stores.healthy()
    root = store.write(tmp_path)
    queue = root / "consumequeue" / "Orders" / "0" / f"{0:020d}"
    unit = next(unit for unit in store.units if (unit.topic, unit.queue_id) == ("Orders", 0))
    data = bytearray(queue.read_bytes())
    struct.pack_into(">qiq", data, 20, unit.offset + 7, 20, 0)
    queue.write_bytes(data)
    got = [record for record in agree.records_of("get", root, "Orders", 0, 0, "--max", 2) if record["type"] == "unit"]
    assert [record["physicalOffset"] for record in got] == [unit.offset]


def test_a_text_in_every_unit_is_searched_in_one_walk(tmp_path, monkeypatch):
    """The search began again 64 KiB before each hit: `where STORE 0` took minutes."""
    new_store = handmade_stores.healthy(60)
    root = new_store.write(tmp_path)
    with open_store(root) as store:
        aligned = []
        align = store.log.align
        monkeypatch.setattr(store.log, "align", lambda offset: aligned.append(offset) or align(offset))
        results = list(units_with(store.log, b"all", word=True))
        assert [unit.offset for unit in results] == [unit.offset for unit in new_store.units]
        assert all(isinstance(unit, Unit) for unit in results)
        assert len(aligned) < 5


def test_a_text_in_every_unit_that_is_no_key_is_searched_once(tmp_path, monkeypatch):
    """The search aligned the log at every hit to find out that no hit was in unreadable bytes."""
    root = handmade_stores.healthy(60).write(tmp_path)
    with open_store(root) as store:
        calls = []
        for name in ("align", "walk"):
            method = getattr(store.log, name)
            monkeypatch.setattr(
                store.log,
                name,
                lambda *arguments, method=method, **named: calls.append(arguments) or method(*arguments, **named),
            )
        (result,) = where(store, "U000")
        assert result.verdict == "unknown"  # every key begins with this text
        assert len(calls) < 12


def test_the_messages_of_a_shared_key_are_found_in_one_pass(tmp_path, monkeypatch):
    """Each message was searched separately in the whole log."""
    handmade_store = handmade_stores.HandmadeStore()
    for number in range(90):
        handmade_store.put(keys="same", tags="TagA")
        if number % 3 == 0:
            twin = handmade_store.put(topic="Retries")  # the same message once more, under another topic
            handmade_store.log = handmade_store.log.replace(
                b"UNIQ_KEY\x01%s" % twin.keys[0].encode(), b"UNIQ_KEY\x01U%05d" % (len(handmade_store.units) - 2)
            )
    root = handmade_store.write(tmp_path)
    passes = []
    sought = byte_scan.places_of
    monkeypatch.setattr(byte_scan, "places_of", lambda *a, **named: passes.append(a) or sought(*a, **named))
    with open_store(root) as store:
        at_once = list(where(store, "same"))
        assert len(passes) == 2
        monkeypatch.setattr("engine.inspection.where.evidence.MAX_SINGLE_SEARCHES", 1000)
        assert list(where(store, "same")) == at_once
        assert len(passes) == 2 + 1 + 90
        assert len(at_once) == 90
