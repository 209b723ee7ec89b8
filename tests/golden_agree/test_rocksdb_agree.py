"""Queues in a RocksDB: our answers are RocketMQ's, as over a store with file queues."""

from __future__ import annotations

import agree
import pytest

pytest.importorskip("rocksdict")
pytestmark = pytest.mark.golden

STORES = ("rocks-5.5.1", "rocks-separate-5.5.1")
ASPECTS = ("units", "queue", "index", "trace", "get", "time")


@pytest.mark.parametrize("aspect", ASPECTS)
@pytest.mark.parametrize("name", STORES)
def test_answers_are_rocketmqs(golden, golden_account, unchanged, name, aspect):
    tally = agree.ASPECTS[aspect](unchanged(golden(name)), golden_account(name, "expected.jsonl.xz"))
    assert tally.compared
    assert not tally.differences, str(tally)


@pytest.mark.parametrize("name", STORES)
def test_bounds_of_all_queues_are_rocketmqs(golden, golden_account, name):
    expected = {
        (line["topic"], line["queue"]): (line["min"], line["max"])
        for line in golden_account(name, "expected.jsonl.xz")
        if line["t"] == "queue" and line["when"] == "loaded" and line["max"]
    }
    (info,) = agree.records_of("info", golden(name))
    ours = {
        (topic["topic"], queue["queueId"]): (queue["minOffset"], queue["maxOffset"])
        for topic in info["topics"]
        for queue in topic["queues"]
    }
    assert ours == expected


@pytest.mark.full_form(keep=2)
@pytest.mark.parametrize("name", ["rocksdb-orders-5.5.1", "rocksdb-tables-v2-5.5.1", "rocksdb-timer-index-5.5.1"])
def test_clients_were_told_the_same(golden, golden_account, unchanged, name):
    tally = agree.truth(unchanged(golden(name)), golden_account(name, "truth.jsonl.xz"))
    assert tally.compared > 20
    assert not tally.differences, str(tally)
