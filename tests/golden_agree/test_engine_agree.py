"""The engine that writes, opened on a copy of each golden store, gives RocketMQ's answers.

Messages by offset, by time and by key: the same questions that our command answers from files it only reads.
"""

from __future__ import annotations

import shutil

import golden_stores
import pytest
from agree import Comparison, sample

from engine.inspection.derived_config import derived_config
from engine.inspection.snapshot import open_store
from engine.message_store import MessageStore
from engine.store.message_filter import TagFilter

pytestmark = pytest.mark.golden

CRASHED = golden_stores.names("recovered.tar.xz")
DUMPED = golden_stores.names("expected.jsonl.xz")
QUESTIONS = 150


@pytest.fixture
def opened(golden, tmp_path):
    """``opened(name)``: open a copy of the store in the engine, or the recovered one if it had crashed."""
    stores = []

    def open_copy(name):
        source = golden(name, "recovered" if name in CRASHED else "store")
        shutil.copytree(source, tmp_path / "store")
        with open_store(source) as store:
            config = derived_config(store)
        stores.append(MessageStore(tmp_path / "store", config, release=golden_stores.release_of(name), services=False))
        return stores[-1]

    yield open_copy
    for store in stores:
        store.abandon()


@pytest.mark.full_form(keep=8)
@pytest.mark.parametrize("name", DUMPED)
def test_the_engine_answers_as_rocketmq_does(opened, golden_account, name):
    store = opened(name)
    lines = list(golden_account(name, "recovered.jsonl.xz" if name in CRASHED else "expected.jsonl.xz"))
    for ask in (gets, times, queries):
        tally = Comparison()
        ask(tally, store, lines)
        assert not tally.differences, f"{ask.__name__}: {tally}"
        assert tally.compared > 10 or ask is not gets


def gets(tally, store, lines):
    """Compare statuses, corrected offsets and messages."""
    for line in sample((line for line in lines if line["t"] == "get" and line.get("status")), QUESTIONS):
        expected = TagFilter(line["tag"]) if line["tag"] else None
        with store.get_message("g", line["topic"], line["queue"], line["offset"], line["max"], expected) as got:
            ours = (
                got.status,
                got.next_begin_offset,
                got.min_offset,
                got.max_offset,
                got.total_size,
                list(got.offsets),
            )
            assert [unit.offset for unit in got.units()] == list(got.offsets)
        java = (line["status"], line["next"], line["min"], line["maxOff"], line["bytes"], line["phys"])
        tally.same(
            ours == java, f"{line['topic']}/{line['queue']}@{line['offset']} {line['tag']}: java {java} ours {ours}"
        )


def times(tally, store, lines):
    """Compare offsets by store time; 4.9's use the times of the files, which the copy keeps."""
    for line in sample((line for line in lines if line["t"] == "byTime" and line["offset"] is not None), QUESTIONS):
        boundary = "upper" if line["boundary"] == "UPPER" else "lower"
        ours = store.offset_in_queue_by_time(line["topic"], line["queue"], line["ts"], boundary)
        tally.same(ours == line["offset"], f"{line}: ours {ours}")


def queries(tally, store, lines):
    """Compare the offsets from the index, with collisions, at most as many as asked for."""
    for line in sample((line for line in lines if line["t"] == "query"), QUESTIONS):
        begin, end = line["begin"], line["end"]
        with store.query_message(line["topic"], line["key"], line["max"], begin, end) as query_message:
            ours = sorted(query_message.offsets)
        tally.same(ours == sorted(line["phys"]), f"{line}: ours {ours}")
