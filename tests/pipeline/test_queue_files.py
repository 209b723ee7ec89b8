"""Consume queues in a plan: their files, and their ends as a broker would keep them."""

from __future__ import annotations

import pytest
from broken_stores import zero_log_from
from handmade_stores import HandmadeStore

from engine.inspection import open_store
from engine.pipeline.files import find_stores
from engine.pipeline.queue_files import list_queues, newest_entry, queues_with_ends, raw_end


@pytest.fixture
def small_store():
    store = HandmadeStore()
    for number in range(60):
        store.put(("Orders", "Paid")[number % 3 == 0], number % 2)
    return store


def place(root):
    (store,) = find_stores([str(root)])
    return store


def test_every_queue_with_its_files_in_order(small_store, tmp_path):
    root = small_store.write(tmp_path / "s")
    (root / "consumequeue" / "notes.txt").write_text("mine")
    queues = list(list_queues(place(root)))
    assert sorted((queue.topic, queue.queue_id) for queue in queues) == [
        ("Orders", 0),
        ("Orders", 1),
        ("Paid", 0),
        ("Paid", 1),
    ]
    assert all(file.start == 400 * number for queue in queues for number, file in enumerate(queue.files))


def test_ends_are_those_of_the_engine_s_own_reader(small_store, tmp_path):
    root = small_store.write(tmp_path / "s")
    zero_log_from(root, small_store.units[50].offset)
    unread = []
    results = {
        (queue.topic, queue.queue_id): queue for queue in queues_with_ends(place(root), lambda _queue: True, unread)
    }
    assert unread == []
    with open_store(root) as store:
        for (topic, queue_id), queue in results.items():
            reader = store.queue(topic, queue_id)
            assert (queue.end, raw_end(queue), newest_entry(queue)) == (
                reader.valid_end,
                reader.raw_end,
                reader.newest(),
            )


def test_only_wanted_queues_are_bounded(small_store, tmp_path):
    actual_queues_with_ends = queues_with_ends(
        place(small_store.write(tmp_path / "s")), lambda queue: queue.topic == "Paid", []
    )
    assert {queue.topic for queue in actual_queues_with_ends} == {"Paid"}
