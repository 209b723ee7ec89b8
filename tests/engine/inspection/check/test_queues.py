"""The check of all queues finds the same however many rows it gathers before it compares them."""

from __future__ import annotations

import handmade_stores
import pytest

from engine.inspection import open_store
from engine.inspection.check import queues as check_queues
from engine.inspection.check.queues import GatheredRows
from engine.inspection.findings import check


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
