"""The parts of queue and index files: every byte belongs to one part, and the shares add up."""

from __future__ import annotations

import pytest
from broken_stores import zero_log_from
from handmade_stores import LOG_SIZE, HandmadeStore
from hypothesis import given
from hypothesis import strategies as st

from engine.inspection import open_store
from engine.inspection.space.files import list_files
from engine.inspection.space.queues import index_parts, log_rows, queue_parts, share_out, spread


@given(st.integers(0, 10**9), st.lists(st.integers(0, 10**6), min_size=1, max_size=9))
def test_shares_add_up_to_the_whole(total, weights):
    shares = spread(total, weights)
    assert (sum(shares), len(shares), min(shares) >= 0) == (total, len(weights), True)
    parts = [(str(number), size) for number, size in enumerate(weights)]
    assert sum(share_out(total, parts).values()) == total


def test_allocated_bytes_are_assigned_to_the_written_part_first():
    assert share_out(100, [("entries", 80), ("unused", 320)]) == {"entries": 80, "unused": 20}
    assert share_out(500, [("entries", 80), ("unused", 320)]) == {"entries": 80, "unused": 420}


@pytest.fixture
def small_store():
    store = HandmadeStore()
    for number in range(50):
        store.put("Orders", keys=f"K{number}")
    return store


def test_entries_and_free_space_are_all_bytes_of_the_files(small_store, tmp_path):
    with open_store(small_store.write(tmp_path / "s")) as store:
        files = list_files(store)
        parts = [*queue_parts(store, files), *index_parts(store, files)]
    for kind in ("consumequeue", "index"):
        assert sum(part.bytes for part in parts if part.kind == kind) == sum(f.size for f in files if f.kind == kind)
        assert sum(part.allocated for part in parts if part.kind == kind) == sum(
            f.allocated for f in files if f.kind == kind
        )
    entries = next(part for part in parts if (part.kind, part.part) == ("consumequeue", "entries"))
    assert (entries.bytes, entries.messages, entries.topic, entries.queue_id) == (1000, 50, "Orders", 0)


def test_entries_after_the_log_are_stale_and_those_before_it_below_the_minimum(small_store, tmp_path):
    root = small_store.write(tmp_path / "s")
    zero_log_from(root, small_store.units[45].offset)
    min((root / "commitlog").iterdir()).unlink()
    total = sum(unit.offset < LOG_SIZE for unit in small_store.units)
    with open_store(root) as store:
        parts = {queue_part.part: queue_part.bytes for queue_part in queue_parts(store, list_files(store))}
    assert parts["stale"] == 5 * 20
    assert parts.get("belowMin", 0) + parts["entries"] == 45 * 20
    assert parts.get("belowMin", 0) in {0, total * 20}


def test_the_log_by_its_queues_adds_up_to_its_files(small_store, tmp_path):
    with open_store(small_store.write(tmp_path / "s")) as store:
        files = list_files(store)
        rows, sampled = log_rows(store, files)
    assert not sampled
    assert sum(row.bytes for row in rows) == sum(file.size for file in files if file.kind == "commitlog")
    assert sum(row.messages or 0 for row in rows) == 50
