"""getMessage on files: the broker's statuses and offsets, and the units that it would send
(docs/formats/reading.md#get-message).
"""

from __future__ import annotations

import pytest
from handmade_stores import START, HandmadeStore

from engine.inspection import open_store
from engine.inspection.get_message import get_message, offset_by_time, store_time


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    handmade_store = HandmadeStore()
    for number in range(12):
        handmade_store.put("Orders", body=b"%d" % number)
    with open_store(handmade_store.write(tmp_path_factory.mktemp("get") / "store")) as store:
        yield store


def test_messages_from_an_offset_on(opened):
    message = get_message(opened, "Orders", 0, 3, 4)
    assert (message.status, message.next_begin_offset, message.min_offset, message.max_offset) == ("FOUND", 7, 0, 12)
    assert [unit.body for unit in message.units] == [b"3", b"4", b"5", b"6"]
    assert message.count == 4


@pytest.mark.parametrize(
    ("topic", "offset", "status", "following"),
    [
        ("Orders", 12, "OFFSET_OVERFLOW_ONE", 12),
        ("Orders", 50, "OFFSET_OVERFLOW_BADLY", 12),
        ("Nobody", 0, "NO_MESSAGE_IN_QUEUE", 0),
    ],
)
def test_requests_beyond_a_queue_are_answered_as_by_a_broker(opened, topic, offset, status, following):
    message = get_message(opened, topic, 0, offset)
    assert (message.status, message.next_begin_offset, message.units) == (status, following, [])


def test_offsets_by_time_are_the_first_at_or_after_and_the_last_at_or_before(opened):
    times = [START + 10 * number for number in range(1, 13)]
    assert offset_by_time(opened, "Orders", 0, times[4]) == 4
    assert offset_by_time(opened, "Orders", 0, times[4] + 1) == 5
    assert offset_by_time(opened, "Orders", 0, times[4] + 1, "upper") == 4
    assert store_time(opened, opened.queue("Orders", 0).entry(7)) == times[7]
