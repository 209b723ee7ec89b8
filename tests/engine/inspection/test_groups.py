"""Permissions in the tables of groups and topics, and the progress of groups."""

from __future__ import annotations

import json

import pytest
from broken_stores import table
from handmade_stores import START, HandmadeStore, healthy

from engine.errors import StoreError
from engine.inspection import open_store
from engine.inspection.groups import Permissions, find_group_waits, group_progress, queue_progress, read_permissions


def test_groups_and_topics_without_permission(tmp_path):
    root = healthy().write(tmp_path / "store")
    groups = {"billing": {"groupName": "billing", "consumeEnable": False}, "audit": {"groupName": "audit"}}
    table(root, "subscriptionGroup.json", json.dumps({"subscriptionGroupTable": groups}))
    table(root, "topics.json", json.dumps({"topicConfigTable": {"Orders": {"perm": 2}, "Payments": {"perm": 4}}}))
    with open_store(root) as store:
        permissions = read_permissions(store)
    assert permissions == Permissions(frozenset({"billing"}), {"Orders": 2})
    assert permissions.why_barred("billing", "Payments").endswith("subscriptionGroup.json says consumeEnable=false")
    assert permissions.why_barred("audit", "Orders") == "Orders may not be read: topics.json says perm 2"
    assert permissions.why_barred("audit", "Payments") == ""


def test_without_tables_nothing_is_forbidden(tmp_path):
    with open_store(healthy().write(tmp_path / "store")) as store:
        assert read_permissions(store) == Permissions()


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    store = HandmadeStore()
    for _ in range(8):
        store.put("Orders")
    place = store.write(tmp_path_factory.mktemp("groups") / "store")
    (place / "config").mkdir()
    offsets = {"Orders@slow": {"0": 3}, "Orders@there": {"0": 8}, "Orders@wild": {"0": 99}, "Gone@slow": {"0": 4}}
    (place / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": offsets}))
    return place


def test_each_group_has_a_state_and_the_time_of_its_next_message(root):
    with open_store(root) as store:
        results = {(progress.group, progress.topic): progress for progress in group_progress(store)}
    assert {place: (progress.state, progress.offset, progress.behind) for place, progress in results.items()} == {
        ("slow", "Orders"): ("behind", 3, 5),
        ("there", "Orders"): ("caughtUp", 8, 0),
        ("wild", "Orders"): ("beyondMax", 99, 0),
        ("slow", "Gone"): ("gone", 4, 0),
    }
    assert results["slow", "Orders"].oldest_unread_timestamp == START + 40
    assert results["there", "Orders"].oldest_unread_timestamp is None


def test_one_queue_s_groups(root):
    with open_store(root) as store:
        assert {item.group for item in queue_progress(store, "Orders", 0)} == {"slow", "there", "wild"}
        assert list(queue_progress(store, "Orders", 1)) == []


def test_a_client_s_own_file(root, tmp_path):
    file = tmp_path / "group-b" / "offsets.json"
    file.parent.mkdir()
    file.write_text('{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"Orders"}:6}}')
    with open_store(root) as store:
        (item,) = group_progress(store, file)
        assert (item.group, item.behind, item.mode) == ("group-b", 2, "broadcast")
        with pytest.raises(StoreError, match="found nothing of this name"):
            list(group_progress(store, tmp_path / "none.json"))


def test_messages_in_retry_topics_and_popped_ones_wait(golden) -> None:
    """Groups were reported as "caught up" although their messages were in a retry topic or popped without an answer."""
    with open_store(golden("broker-pop-5.5.1")) as store:
        waits = find_group_waits(store)
        retry = store.topics()["%RETRY%billing_OrderEvents"][0]
        assert waits.retry == {("billing", "OrderEvents"): retry.max_offset - 17}
        assert set(waits.popped) <= {
            ("billing", "OrderEvents", 0),
            ("billing", "OrderEvents", 1),
            ("billing", "%RETRY%billing_OrderEvents", 0),
        }
        assert waits.popped.total() > 0


def test_a_group_that_retries_without_pop_has_one_topic_for_all(golden) -> None:
    with open_store(golden("broker-retries")) as store:
        waits = find_group_waits(store)
    assert {topic for _, topic in waits.retry} == {""}
    assert waits.retry.total() == 7
    assert not waits.popped


def test_no_messages_wait_without_retries(golden) -> None:
    with open_store(golden("broker-orders")) as store:
        waits = find_group_waits(store)
    assert not waits.retry
    assert not waits.popped
