"""Compacted topics: their messages are read as the consumers of real brokers got them."""

from __future__ import annotations

import shutil

import pytest
from broken_stores import compacted
from handmade_stores import healthy

from engine.config import MessageStoreConfig
from engine.inspection import open_store
from engine.inspection.compaction import newer_with_key
from engine.inspection.get_message import get_message

BROKERS = ["broker-compaction-5.3.3", "broker-compaction-5.5.1"]
STATUS_OF_CLIENTS = {"FOUND": "FOUND", "OFFSET_OVERFLOW_ONE": "NO_NEW_MSG"}


@pytest.mark.golden
@pytest.mark.parametrize("name", BROKERS)
def test_each_pull_gives_what_the_real_broker_gave(name, golden, golden_account):
    pulls = [line for line in golden_account(name, "truth.jsonl.xz") if line["kind"] == "pull"]
    with open_store(golden(name)) as store:
        for pull in pulls:
            offset, steps, messages = 0, [], []
            while not steps or steps[-1][2] != steps[-1][0]:
                result = get_message(store, pull["topic"], pull["queue"], offset)
                status = STATUS_OF_CLIENTS[result.status]
                bounds = [result.min_offset, result.max_offset]
                steps.append([offset, status, result.next_begin_offset, *bounds, result.count])
                messages += [[unit.queue_offset, unit.unique_key, " ".join(unit.keys)] for unit in result.units]
                offset = result.next_begin_offset
            assert steps == pull["steps"]
            assert messages == pull["messages"]
    assert {pull["topic"] for pull in pulls} == {"StockLevels", "Plain"}


@pytest.mark.golden
@pytest.mark.parametrize("name", BROKERS)
def test_the_rewritten_file_has_one_message_of_each_key_and_the_newest_has_all(name, golden):
    with open_store(golden(name)) as store:
        queue = store.compacted_queue("StockLevels", 0)
        assert queue is not None
        rewritten, newest = queue.files_of_entries()
        keys = [tuple(unit.keys) for entry in rewritten if (unit := queue.unit(entry.queue_offset)) is not None]
        assert len(keys) == len(set(keys)) == len(rewritten)
        assert [entry.queue_offset for entry in newest] == list(range(newest[0].queue_offset, 400))
        assert len(list(queue.units())) == len(list(queue.entries()))
        replaced = store.queue("StockLevels", 0).entry(3)
        unit = store.log.unit_at(replaced.physical_offset)
        newer = newer_with_key(queue, unit)
        assert newer is not None
        assert (newer.keys, newer.queue_offset > 3) == (unit.keys, True)


def test_a_broker_without_compaction_reads_the_consume_queue(tmp_path):
    made = healthy()
    root = made.write(tmp_path / "store")
    file = compacted(root, made)
    shutil.rmtree(file.parent)
    for config, status in ((None, "NO_MATCHED_LOGIC_QUEUE"), (MessageStoreConfig(enable_compaction=False), "FOUND")):
        with open_store(root, config) as store:
            assert get_message(store, "Orders", 0, 0).status == status


def test_offsets_behind_the_end_are_answered_as_a_broker_does(tmp_path):
    made = healthy()
    root = made.write(tmp_path / "store")
    compacted(root, made)
    with open_store(root) as store:
        end = store.compacted_queue("Orders", 0).max_offset
        answers = [get_message(store, "Orders", 0, offset) for offset in (end, end + 1)]
        assert [(answer.status, answer.next_begin_offset) for answer in answers] == [
            ("OFFSET_OVERFLOW_ONE", end),
            ("OFFSET_OVERFLOW_BADLY", 0),
        ]
        assert get_message(store, "Orders", 7, 0).status == "NO_MATCHED_LOGIC_QUEUE"
