"""Missing queue offsets tell which messages were in a part of the log that cannot be read."""

from __future__ import annotations

from handmade_stores import LOG_SIZE, HandmadeStore
from planted_faults import patch

from engine.codec.consume_queue import PREFILLED_SIZE, CqUnit, encode
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


def test_a_queue_without_a_message_in_front_began_at_zero_or_behind_its_deleted_messages(tmp_path):
    """The first messages of a queue stood in a lost file. The queue was built from the third one on, and a real 5.5.1
    gave that one queue offset 0.
    """
    store = HandmadeStore()
    for number in range(60):
        store.put("Orders", number % 3 if number < 20 else 5)
    root = store.write(tmp_path / "store")
    gap = (store.units[20].offset, store.units[25].offset)
    patch(root / "commitlog" / f"{gap[0] // LOG_SIZE * LOG_SIZE:020d}", gap[0] % LOG_SIZE, bytes(gap[1] - gap[0]))
    queue = root / "consumequeue" / "Orders" / "5" / f"{0:020d}"
    with open_store(root) as opened:  # its entries point into the gap
        (around,) = numbers_around(opened, [gap])
        assert list(around.missing()) == [QueuePlace("Orders", 5, number) for number in range(5)]
    patch(queue, 0, bytes(5 * 20))
    with open_store(root) as opened:
        (around,) = numbers_around(opened, [gap])
        assert list(around.missing()) == [QueuePlace("Orders", 5, number) for number in range(5)]
    patch(queue, 0, encode(CqUnit(0, PREFILLED_SIZE, 0)) * 3)
    with open_store(root) as opened:
        (around,) = numbers_around(opened, [gap])
        assert list(around.missing()) == [QueuePlace("Orders", 5, number) for number in (3, 4)]


def test_shifted_entries_lead_to_other_messages(tmp_path):
    """The last entry of a shifted queue led to the message before. So a message lost behind it got no placeholder, and
    a consumer got the one before it twice.
    """
    store = HandmadeStore()
    for _ in range(10):
        store.put("Orders", 0)
    root = store.write(tmp_path / "store")
    queue = root / "consumequeue" / "Orders" / "0" / f"{0:020d}"
    data = queue.read_bytes()
    with open_store(root) as opened:
        assert has_message(opened, QueuePlace("Orders", 0, 9))
    queue.write_bytes((data[:80] + data[60:200] + bytes(len(data)))[: len(data)])
    with open_store(root) as opened:
        assert has_message(opened, QueuePlace("Orders", 0, 3))
        assert not has_message(opened, QueuePlace("Orders", 0, 10))
