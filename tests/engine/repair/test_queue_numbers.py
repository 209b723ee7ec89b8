"""Missing queue offsets tell which messages were in a part of the log that cannot be read."""

from __future__ import annotations

from handmade_stores import LOG_SIZE, HandmadeStore
from planted_faults import patch

from engine.inspection.snapshot import open_store
from engine.repair.queue_numbers import QueuePlace, has_message, has_plain_queues, numbers_around


def test_the_queue_offsets_between_two_messages_are_those_of_the_lost_ones(tmp_path):
    store = HandmadeStore()
    for number in range(60):
        store.put("Orders", number % 3)
    root = store.write(tmp_path / "store")
    spans = [(store.units[10].offset, store.units[15].offset), (store.units[40].offset, store.units[41].offset)]
    for start, end in spans:
        patch(root / "commitlog" / f"{start // LOG_SIZE * LOG_SIZE:020d}", start % LOG_SIZE, bytes(end - start))
    with open_store(root) as opened:
        first, second = numbers_around(opened, spans)
        assert {QueuePlace(unit.topic, unit.queue_id, unit.queue_offset) for unit in store.units[10:15]} == set(
            first.missing()
        )
        unit = store.units[40]
        assert list(second.missing()) == [QueuePlace(unit.topic, unit.queue_id, unit.queue_offset)]
        assert not has_message(opened, QueuePlace(unit.topic, unit.queue_id, unit.queue_offset))
        assert has_message(opened, QueuePlace("Orders", 0, 0))


def test_behind_the_last_message_of_a_queue_nothing_is_missing(tmp_path):
    store = HandmadeStore()
    for _ in range(5):
        store.put("Orders", 0)
    root = store.write(tmp_path / "store")
    with open_store(root) as opened:
        (around,) = numbers_around(opened, [(store.units[-1].offset + store.units[-1].size, 1 << 40)])
        assert list(around.missing()) == []
        assert has_plain_queues(opened, "Orders")
        assert not has_plain_queues(opened, "%LMQ%a")
