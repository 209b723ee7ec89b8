"""The check of all queues finds the same however many rows it gathers before it compares them."""

from __future__ import annotations

from itertools import product

import handmade_stores
import pytest

from engine.inspection import open_store
from engine.inspection.check import queues as check_queues
from engine.inspection.check.queues import GatheredRows
from engine.inspection.findings import check
from engine.mapped.disk import RealDisk
from engine.patching.apply import apply_patches
from engine.patching.patches import PatchList
from engine.repair.queue_entries import repair_queues
from engine.rules.findings import Finding


def check_records(path):
    with open_store(path) as store:
        return [item.record() for item in check(store)]


@pytest.mark.golden
@pytest.mark.parametrize("room", [1, 700])
@pytest.mark.parametrize(
    "name", ["crash-flip-5.3.3", "first-files-deleted-5.3.3", "batchcq-5.3.3", "broker-lmq", "queues-gone-5.3.3"]
)
def test_a_small_buffer_finds_the_same(golden, monkeypatch, name, room):
    expected = check_records(golden(name))
    monkeypatch.setattr(check_queues, "GatheredRows", lambda rows=room: GatheredRows(rows))
    assert check_records(golden(name)) == expected


@pytest.mark.parametrize("room", [1, 7, 1000])
def test_gaps_and_duplicates_are_found_with_any_buffer_size(tmp_path, monkeypatch, room):
    store = handmade_stores.healthy(50)
    store.put(queue_offset=99)
    store.put(queue_offset=3)
    store.put(queue_id=9)
    root = store.write(tmp_path)
    expected = check_records(root)
    assert len(expected) > 1
    monkeypatch.setattr(check_queues, "GatheredRows", lambda rows=room: GatheredRows(rows))
    assert check_records(root) == expected


def test_a_full_buffer_has_no_room():
    rows = GatheredRows(3)
    assert rows.has_room(3)
    rows.rows = 2
    assert rows.has_room(1)
    assert not rows.has_room(2)


@pytest.mark.parametrize("count", [3, 4])
def test_any_wrong_order_of_the_entries_of_a_short_queue_is_named_and_mended(tmp_path, count):
    """Entry 1 of two was there twice and the last entry was behind them. The check took the last message for the wrong
    one, found that its number fits, and said nothing; a consumer got one message twice.
    """
    store = handmade_stores.healthy(20)
    for _ in range(3):
        store.put("Short")
    root = store.write(tmp_path / "store")
    file = next((root / "consumequeue" / "Short" / "0").iterdir())
    original = file.read_bytes()
    unnamed, unmended = [], []
    for order in product(range(3), repeat=count):
        entries = b"".join(original[number * 20 : number * 20 + 20] for number in order)
        file.write_bytes(entries.ljust(len(original), b"\0"))
        if file.read_bytes() == original:
            continue
        with open_store(root) as opened:
            findings = [item for item in check(opened) if isinstance(item, Finding) and item.severity == "error"]
            repair = repair_queues(opened, findings)
        if not any(finding.evidence.get("queue") == "Short/0" for finding in findings):
            unnamed.append(order)
            continue
        if repair is not None:
            apply_patches(root, PatchList(repair.patches), RealDisk())
        if file.read_bytes() != original:
            unmended.append(order)
    assert not unnamed
    assert not unmended
