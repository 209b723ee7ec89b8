"""Columns of a queue's entries."""

from __future__ import annotations

import pytest

from engine.inspection import open_store
from viewer.queues.columns import queue_kind, state_of
from viewer.queues.rows import PROBLEMS, QueueSource


def queues_of(store):
    return [queue for queues in store.topics().values() for queue in queues.values()]


@pytest.mark.golden
def test_groups_stand_at_the_entry_they_read_next(golden) -> None:
    with open_store(golden("clean-5.3.3")) as store:
        queue = next(q for q in queues_of(store) if q.max_offset > 10)
        key = (queue.topic, queue.queue_id)
        source = QueueSource(store.log, [queue], {key: {7: ("billing", "ledger")}})
        row = source.row(source.place_of(*key, 7))
        assert row.groups == ("billing", "ledger")
        assert "billing · ledger" in queue_kind(lambda offset: offset).as_text(row)


def test_a_hundred_million_entries_open_at_once(tmp_path) -> None:
    """One queue of 100 M entries is 2 GB of files: rows are numbers, and only those on the screen are read."""
    commit = tmp_path / "commitlog"
    commit.mkdir()
    (commit / f"{0:020d}").write_bytes(bytes(4096))
    folder = tmp_path / "consumequeue" / "T" / "0"
    folder.mkdir(parents=True)
    count = 100_000_000
    with (folder / f"{0:020d}").open("wb") as file:
        file.truncate(count * 20)
        file.seek((count - 1) * 20)
        file.write((5).to_bytes(8, "big") + (100).to_bytes(4, "big") + bytes(8))
    with open_store(tmp_path) as store:
        source = QueueSource(store.log, queues_of(store))
        assert source.total == count + 1
        page = source.read(count - 1, 3, 5)
        assert [row.number for row in page.rows] == list(range(count - 4, count + 1))
        assert state_of(page.rows[3]) == "missing"
        assert state_of(page.rows[3]) in PROBLEMS
        assert page.last
