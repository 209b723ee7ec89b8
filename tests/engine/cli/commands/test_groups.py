"""``groups``: the offset of each consumer group in each queue."""

from __future__ import annotations

import shutil

import agree
import pytest

from engine.cli.main import main


def test_a_store_without_groups_has_no_row(storescope):
    assert storescope("groups") == []


def test_a_groups_lag_is_the_end_of_the_queue_minus_its_offset(golden):
    rows = [record for record in agree.records_of("groups", golden("broker-orders")) if record["mode"] == "cluster"]
    assert {"behind", "caughtUp"} <= {row["state"] for row in rows}
    for row in rows:
        if row["state"] in {"behind", "caughtUp"}:
            assert row["behind"] == row["maxOffset"] - row["offset"], row
            assert (row["oldestUnreadTimestamp"] is None) == (row["behind"] == 0), row


def test_waiting_messages_are_counted_beside_the_state(golden):
    """Groups were listed as caught up although their messages waited in retry topics, or had been popped and not
    acknowledged.
    """
    for store, group, topic, waiting in (
        ("broker-pop", "billing", "OrderEvents", 5),
        ("broker-retries", "billing", "OrderEvents", 0),
    ):
        rows = [
            row for row in agree.records_of("groups", golden(store)) if (row["group"], row["topic"]) == (group, topic)
        ]
        assert {(row["state"], row["waiting"]) for row in rows} == {("caughtUp", waiting)}
    long = [row for row in agree.records_of("groups", golden("broker-retries")) if row["topic"] == "PaymentEvents"]
    assert {(row["state"], row["waiting"]) for row in long} == {("caughtUp", 7)}


@pytest.mark.golden
def test_offsets_of_lite_topics_name_topic_and_lite_topic(golden):
    """They were listed under the names of their light queues, and lite topics without an offset not at all."""
    root = golden("lite-priority-5.5.1")
    *rows, group = agree.records_of("groups", root)
    assert [(row["liteTopic"], row["behind"]) for row in rows] == [("room-1", 0), ("room-2", 5)]
    assert (group["type"], group["withoutOffset"]) == ("liteGroup", ["room-3"])
    _, text, _ = agree.command("groups", str(root))
    assert "chatters  Chat   room-2 " in text
    assert "-- chatters reads lite topics of Chat (lite.bind.topic=Chat, lite.sub.client.quota=50)" in text
    assert text.endswith("it has no offset of room-3\n")


@pytest.mark.golden
def test_a_missing_table_of_offsets_is_named(golden, tmp_path, capsys):
    """``groups`` said only that no group has an offset, beside a ``check`` that called the table lost."""
    root = shutil.copytree(golden("broker-orders"), tmp_path / "store", ignore=shutil.ignore_patterns("timerwheel"))
    for path in (root / "config").glob("consumerOffset.json*"):
        path.unlink()
    assert main(["groups", str(root)]) == 0
    assert "it has no consumerOffset.json and no .bak of it" in capsys.readouterr().out
