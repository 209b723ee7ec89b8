"""Tiered storage is read as the real broker read it that had copied the messages (``tests/golden/tiered-5.5.1``)."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import agree
import pytest
from tiered_stores import move_tiered_storage_out, options_for

from engine.inspection.get_message import get_message
from engine.inspection.positions import positions
from engine.inspection.snapshot import open_store
from engine.store.message_filter import TagFilter

pytestmark = pytest.mark.golden
STORE = "tiered-5.5.1"
STATUS = {"FOUND": {"FOUND"}, "NO_NEW_MSG": {"OFFSET_OVERFLOW_ONE"}}
"""What a client is told: the statuses of getMessage."""


@pytest.fixture
def outside(golden, tmp_path) -> Path:
    """The store, with tiered storage outside of it."""
    return move_tiered_storage_out(golden(STORE), tmp_path)


def test_every_pull_gets_the_messages_that_the_broker_gave(golden, golden_account):
    """The broker's answers end where its read-ahead cache ends, so ours may have more messages."""
    pulls = [line for line in golden_account(STORE, "truth.jsonl.xz") if line["kind"] == "pull"]
    assert len(pulls) > 30
    with open_store(golden(STORE)) as store:
        for pull in pulls:
            result = get_message(store, pull["topic"], pull["queueId"], pull["offset"], 32)
            ours = [(unit.queue_offset, unit.unique_key) for unit in result.units]
            theirs = [(offset, key) for offset, key, _ in pull["messages"]]
            assert result.status in STATUS[pull["status"]], pull
            assert (result.min_offset, result.max_offset) == (pull["min"], pull["max"]), pull
            assert ours[: len(theirs)] == theirs
            assert len(ours) == len(theirs) or len(ours) == 32


def test_each_message_is_found_by_its_key(golden, golden_account):
    """where said of most of them that there is no trace of them."""
    sends = [line for line in golden_account(STORE, "truth.jsonl.xz") if line["kind"] == "send"]
    with open_store(golden(STORE)) as store:
        assert store.tiered is not None
        for send in sends:
            (unit,) = store.tiered.by_key(send["key"], None)
            assert (unit.topic, unit.queue_id, unit.queue_offset) == (send["topic"], send["queueId"], send["offset"])
            assert [found.offset for found in store.tiered.by_key(send["msgId"], send["topic"])] == [unit.offset]
        assert list(store.tiered.by_key("K999", None)) == []


def test_a_filter_is_applied(golden):
    with open_store(golden(STORE)) as store:
        passes = get_message(store, "Orders", 0, 0, 32, TagFilter("B"))
        fails = get_message(store, "Orders", 0, 0, 32, TagFilter("A"))
    assert {unit.tags for unit in passes.units} == {"B"}
    assert (fails.status, fails.units, fails.next_begin_offset) == ("NO_MATCHED_MESSAGE", [], 120)


def test_info_and_space_count_it(golden):
    (info,) = agree.records_of("info", golden(STORE))
    assert [(queue["topic"], queue["minOffset"], queue["maxOffset"]) for queue in info["tiered"]["queues"]] == [
        *[("Orders", 0, 120)] * 4,
        *[("Payments", 0, 60)] * 4,
    ]
    files = [path for path in (golden(STORE) / "tiered").rglob("*") if path.is_file()]
    assert info["tiered"]["bytes"] == sum(path.stat().st_size for path in files)
    _, out, _ = agree.command("space", golden(STORE), "--quick")
    assert "tiered storage" in out


def test_files_elsewhere_are_read_if_the_configuration_names_them(outside):
    got, *_ = agree.records_of("get", outside, "Orders", 0, 0, *options_for(outside))
    assert got["status"] == "FOUND"


def test_positions_say_how_far_messages_were_copied(golden):
    (record,) = agree.records_of("positions", golden(STORE))
    assert record["tiered"]["offset"] == record["wrote"]["offset"]


def test_the_first_message_that_is_not_copied_is_a_position(golden, tmp_path):
    root = shutil.copytree(golden(STORE), tmp_path / "store", ignore=shutil.ignore_patterns("timerwheel"))
    table = root / "config" / "tieredStoreMetadata.json"
    content = json.loads(re.sub(r"(?<=[{,])\s*(\d+):", r'"\1":', table.read_text("utf-8")))
    segments = content["consumeQueueFileSegmentTable"]["broker-a/Payments/2"]
    segments[max(segments, key=int)]["size"] -= 20
    table.write_text(json.dumps(content))
    with open_store(root) as store:
        entry = store.queue("Payments", 2).entry(59)
        position = positions(store).tiered
    assert entry is not None
    assert position is not None
    assert (position.offset, position.source) == (
        entry.physical_offset,
        "first message that is not in tiered storage yet, in Payments/2",
    )
