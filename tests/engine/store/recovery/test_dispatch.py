"""Dispatch during recovery: queues, light queues, batch queues, and units that are already dispatched
(docs/formats/writing.md#dispatch).
"""

from __future__ import annotations

from engine.rules.unit_check import Request, Rules
from engine.store.recovery.dispatch import QueueTable


def table(*, light=True, batch=frozenset()):
    return QueueTable((), 400, 460, batch, Rules(), light=light)


def dispatch_request(physical, number, *, topic="T", sys_flag=0, properties=None, batch_size=1):
    return Request(topic, 0, physical, 100, 0, 1, number, sys_flag, properties or {}, number, batch_size)


def test_units_are_appended_to_a_new_queue():
    queues = table()
    for number in range(3):
        queues.take(100 * number, dispatch_request(100 * number, number))
    queue = queues.queue("T", 0)
    assert (queue.data.end, queue.max_physic, queues.max_physic) == (60, 300, 300)
    assert (queues.dispatched, queues.first_dispatched) == (3, 0)
    queues.take(100, dispatch_request(100, 1))  # already dispatched
    assert queue.data.end == 60


def test_half_messages_and_invalid_folder_names_get_no_entry():
    queues = table()
    queues.take(0, dispatch_request(0, 0, sys_flag=0x4))
    queues.take(100, dispatch_request(100, 0, topic=".."))
    assert list(queues) == []
    assert queues.dispatched == 2


def test_only_units_after_an_offset_are_dispatched():
    queues = table()
    queues.dispatch_after = 100
    for number in range(3):
        queues.take(100 * number, dispatch_request(100 * number, number))
    assert (queues.dispatched, queues.first_dispatched) == (1, 200)


def test_light_queues_get_an_entry_each_where_they_are_kept():
    two_light_queues = {"INNER_MULTI_DISPATCH": "%LMQ%a,%LMQ%b", "INNER_MULTI_QUEUE_OFFSET": "0,7"}
    queues = table()
    queues.take(0, dispatch_request(0, 0, properties=two_light_queues))
    assert sorted(queue.topic for queue in queues) == ["%LMQ%a", "%LMQ%b", "T"]
    assert queues.queue("%LMQ%b", 0).data.end == 160
    uneven = {**two_light_queues, "INNER_MULTI_QUEUE_OFFSET": "0"}
    for light, properties in ((True, uneven), (False, two_light_queues)):
        queues = table(light=light)
        queues.take(0, dispatch_request(0, 0, properties=properties))
        assert [queue.topic for queue in queues] == ["T"]


def test_a_batch_topic_has_entries_of_46_bytes():
    queues = table(batch=frozenset({"B"}))
    queues.take(0, dispatch_request(0, 0, topic="B", batch_size=4))
    assert (queues.queue("B", 0).kind, queues.queue("B", 0).data.end) == ("batch", 46)
