"""Lite topics: when a broker deletes each, and who has not read it (``tests/golden/lite-priority-5.5.1``)."""

from __future__ import annotations

import agree
import pytest

from engine.inspection.lite_topics import MIN_INACTIVE_MS, lite_groups, lite_topics
from engine.inspection.snapshot import open_store

pytestmark = pytest.mark.golden
STORE = "lite-priority-5.5.1"


def test_lite_topics_have_the_bounds_and_times_that_the_broker_gave(golden, golden_account):
    lines = golden_account(STORE, "truth.jsonl.xz")
    answers = {line["code"]: line["body"] for line in lines if line["kind"] == "answer"}
    with open_store(golden(STORE)) as store:
        chat = {lite.name: lite for lite in lite_topics(store, "Chat")}
        (news,) = lite_topics(store, "News")
        (group,) = lite_groups(store, "Chat")
    assert len(chat) == answers[200075]["liteTopicCount"] == 3
    room, offset = chat["room-1"], answers[200076]["topicOffset"]
    assert (room.min_offset, room.max_offset) == (offset["minOffset"], offset["maxOffset"])
    assert room.last_timestamp == offset["lastUpdateTimestamp"]
    assert dict(chat["room-2"].unread) == {"chatters": answers[200078]["totalLagCount"]}
    assert room.unread == ()
    assert room.expires_at == room.last_timestamp + answers[200074]["topicMeta"]["Chat"] * 60_000
    assert not room.is_expired(room.expires_at)
    assert room.is_expired(room.expires_at + 1)
    assert news.expires_at is None
    assert answers[200074]["topicMeta"]["News"] == -1
    assert group.attributes == (("lite.bind.topic", "Chat"), ("lite.sub.client.quota", "50"))


def test_no_lite_topic_is_deleted_sooner_than_15_minutes_after_its_last_message(golden, monkeypatch):
    monkeypatch.setattr("engine.inspection.lite_topics.expiration_minutes", lambda _: {"Chat": 1})
    with open_store(golden(STORE)) as store:
        lite = next(lite_topics(store, "Chat"))
    assert lite.expires_at == lite.last_timestamp + MIN_INACTIVE_MS


def test_topic_status_lists_the_lite_topics_of_a_topic(golden):
    records = agree.records_of("topicStatus", "-s", golden(STORE), "-t", "Chat")
    names = [record["liteTopic"] for record in records if record["type"] == "liteTopic"]
    assert names == ["room-1", "room-2", "room-3"]
    _, out, _ = agree.command("topicStatus", "-s", golden(STORE), "-t", "Chat")
    assert "chatters (5)" in out
    assert "-- group chatters: lite.bind.topic=Chat, lite.sub.client.quota=50" in out
