"""How far groups came: offsets of the tables held against the queues (docs/formats/config-tables.md#tables)."""

from __future__ import annotations

import json

import pytest
from made_stores import START, MadeStore

from engine.errors import StoreError
from engine.inspection import open_store
from engine.inspection.groups import group_progress, queue_progress


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
