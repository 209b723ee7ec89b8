"""How far groups came: offsets of the tables held against the queues (spec 14.2).

getMessage asked of files: the broker's statuses and offsets, and the units that it would send (spec 9.1).
"""

from __future__ import annotations

import json

import pytest
from made_stores import START, MadeStore

from engine.errors import StoreError
from engine.inspection import open_store
from engine.inspection.groups import get_message, group_progress, offset_by_time, queue_progress, store_time


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    made = MadeStore()
    for _ in range(8):
        made.put("Orders")
    place = made.write(tmp_path_factory.mktemp("groups") / "store")
    (place / "config").mkdir()
    offsets = {"Orders@slow": {"0": 3}, "Orders@there": {"0": 8}, "Orders@wild": {"0": 99}, "Gone@slow": {"0": 4}}
    (place / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": offsets}))
    return place


def test_each_group_has_a_state_and_the_time_of_what_it_reads_next(root):
    with open_store(root) as store:
        found = {(one.group, one.topic): one for one in group_progress(store)}
    assert {place: (one.state, one.offset, one.behind) for place, one in found.items()} == {
        ("slow", "Orders"): ("behind", 3, 5),
        ("there", "Orders"): ("caughtUp", 8, 0),
        ("wild", "Orders"): ("beyondMax", 99, 0),
        ("slow", "Gone"): ("gone", 4, 0),
    }
    assert found["slow", "Orders"].oldest_unread_timestamp == START + 40
    assert found["there", "Orders"].oldest_unread_timestamp is None


def test_one_queue_s_groups(root):
    with open_store(root) as store:
        assert {one.group for one in queue_progress(store, "Orders", 0)} == {"slow", "there", "wild"}
        assert list(queue_progress(store, "Orders", 1)) == []


def test_a_client_s_own_file(root, tmp_path):
    file = tmp_path / "group-b" / "offsets.json"
    file.parent.mkdir()
    file.write_text('{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"Orders"}:6}}')
    with open_store(root) as store:
        (one,) = group_progress(store, file)
        assert (one.group, one.behind, one.mode) == ("group-b", 2, "broadcast")
        with pytest.raises(StoreError, match="found nothing of this name"):
            list(group_progress(store, tmp_path / "none.json"))


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    made = MadeStore()
    for number in range(12):
        made.put("Orders", body=b"%d" % number)
    with open_store(made.write(tmp_path_factory.mktemp("get") / "store")) as store:
        yield store


def test_messages_from_an_offset_on(opened):
    found = get_message(opened, "Orders", 0, 3, 4)
    assert (found.status, found.next_begin_offset, found.min_offset, found.max_offset) == ("FOUND", 7, 0, 12)
    assert [unit.body for unit in found.units] == [b"3", b"4", b"5", b"6"]
    assert found.count == 4


@pytest.mark.parametrize(
    ("topic", "offset", "status", "following"),
    [
        ("Orders", 12, "OFFSET_OVERFLOW_ONE", 12),
        ("Orders", 50, "OFFSET_OVERFLOW_BADLY", 12),
        ("Nobody", 0, "NO_MESSAGE_IN_QUEUE", 0),
    ],
)
def test_what_is_asked_for_beyond_a_queue_is_told_as_a_broker_tells_it(opened, topic, offset, status, following):
    found = get_message(opened, topic, 0, offset)
    assert (found.status, found.next_begin_offset, found.units) == (status, following, [])


def test_offsets_by_time_take_the_first_at_or_behind_and_the_last_at_or_before(opened):
    times = [START + 10 * number for number in range(1, 13)]
    assert offset_by_time(opened, "Orders", 0, times[4]) == 4
    assert offset_by_time(opened, "Orders", 0, times[4] + 1) == 5
    assert offset_by_time(opened, "Orders", 0, times[4] + 1, "upper") == 4
    assert store_time(opened, opened.queue("Orders", 0).entry(7)) == times[7]
