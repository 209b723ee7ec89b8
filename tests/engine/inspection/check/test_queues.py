"""Entries of all queues against the log, in as little room as there is."""

from __future__ import annotations

import made_stores
import pytest

from engine.inspection.check import queues as check_queues
from engine.inspection.check.queues import GatheredRows
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store


def found(path):
    with open_store(path) as store:
        return [item.record() for item in check(store)]


@pytest.mark.golden
@pytest.mark.parametrize("room", [1, 700])
@pytest.mark.parametrize(
    "name", ["crash-flip-5.3.3", "first-files-deleted-5.3.3", "batchcq-5.3.3", "broker-lmq", "queues-gone-5.3.3"]
)
def test_a_small_room_finds_the_same(golden, monkeypatch, name, room):
    expected = found(golden(name))
    monkeypatch.setattr(check_queues, "GatheredRows", lambda rows=room: GatheredRows(rows))
    assert found(golden(name)) == expected


@pytest.mark.parametrize("room", [1, 7, 1000])
def test_gaps_and_doubles_are_found_whichever_way_rows_come_together(tmp_path, monkeypatch, room):
    made = made_stores.healthy(50)
    made.put(queue_offset=99)
    made.put(queue_offset=3)
    made.put(queue_id=9)
    root = made.write(tmp_path)
    expected = found(root)
    assert len(expected) > 1
    monkeypatch.setattr(check_queues, "GatheredRows", lambda rows=room: GatheredRows(rows))
    assert found(root) == expected


def test_a_full_room_has_none_left():
    rows = GatheredRows(3)
    assert rows.has_room(3)
    rows.rows = 2
    assert rows.has_room(1)
    assert not rows.has_room(2)
