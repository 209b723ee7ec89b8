"""Each cell of the table of store modes is tried on a store that a real broker wrote in that mode."""

from __future__ import annotations

import functools
import re
import shutil
from pathlib import Path

import agree
import golden_stores
import made_rocksdb
import pytest

from engine.inspection import open_store
from engine.inspection.findings import check
from engine.inspection.get_message import get_message
from engine.rules.findings import Finding
from engine.system_names import is_system_topic
from viewer.runtime.survey import survey

pytestmark = pytest.mark.golden
PAGE = Path(__file__).parents[2] / "resources" / "docs" / "reference" / "store-modes.md"
STORES = {
    "Queues and index in files": "clean-5.3.3",
    "Transient pool": "transient-5.3.3",
    "Several queues and ext files": "multi-queue-ext-5.3.3",
    "Batch queues": "batchcq-5.3.3",
    "Light queues": "lmq-5.3.3",
    "Controller mode": "controller-5.5.0",
    "DLedger log": "broker-dledger-5.5.1",
    "DLedger group of several members": "dledger-old-leader-5.5.1",
    "Compacted topics": "broker-compaction-5.5.1",
    "Queues in a RocksDB": "rocks-5.5.1",
    "Tables in a RocksDB": "rocksdb-tables-v2-5.5.1",
    "Timers and index in a RocksDB": "rocksdb-timer-index-5.5.1",
    "Timers, transactions and pops in a RocksDB": "rocksdb-rows-5.5.1",
    "Queues in files and in a RocksDB": "combine-5.5.1",
}


@functools.cache
def table() -> dict[str, dict[str, str]]:
    """Cells of the page by mode and column."""
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    columns = rows[0]
    return {re.sub(r" \(.*", "", row[0]): dict(zip(columns, row, strict=True)) for row in rows[1:]}


def test_every_mode_of_the_page_has_a_store():
    assert list(table()) == list(STORES)


@pytest.fixture(params=STORES)
def mode(request) -> str:
    made_rocksdb.binding()
    return request.param


def test_read(mode, golden: golden_stores.GoldenStores):
    with open_store(golden(STORES[mode])) as store:
        topics = store.queues_by_topic()
        topic, queue = next(
            (topic, queue)
            for topic, queues in topics.items()
            for queue in queues.values()
            if not is_system_topic(topic) and not topic.startswith("%") and queue.max_offset > queue.min_offset
        )
        (unit,) = get_message(store, topic, queue.queue_id, queue.max_offset - 1, 1).units
        assert unit.topic == topic
        is_read = not store.unread and store.why_unknown("log") is None and store.why_unknown("queues") is None
    assert table()[mode]["Read"] == ("yes" if is_read else "no")


def test_shown(mode, golden: golden_stores.GoldenStores):
    with open_store(golden(STORES[mode])) as store:
        topics = survey(store).topics
    assert table()[mode]["Shown"] == ("yes" if topics and all(topic.known for topic in topics) else "no")


def test_checked(mode, golden: golden_stores.GoldenStores):
    with open_store(golden(STORES[mode])) as store:
        *findings, summary = check(store)
    assert all(isinstance(finding, Finding) and finding.severity != "error" for finding in findings)
    assert table()[mode]["Checked"] == ("yes" if summary.complete else "no")


def test_recovered(mode, golden: golden_stores.GoldenStores, tmp_path):
    root = shutil.copytree(golden(STORES[mode]), tmp_path / "store", ignore=shutil.ignore_patterns("timerwheel"))
    plan_status, _, _ = agree.command("recover", str(root), "--plan")
    status, _, error = agree.command("recover", str(root), "--apply", "--yes")
    assert (plan_status, status) in {(0, 0), (0, 3)}
    assert ("nothing" in error) == (status == 3)
    assert table()[mode]["Recovered"] == ("plan" if status else "done")


def test_written(mode, golden: golden_stores.GoldenStores, tmp_path):
    root = shutil.copytree(golden(STORES[mode]), tmp_path / "store", ignore=shutil.ignore_patterns("timerwheel"))
    status, _, error = agree.command("put", str(root), "--topic", "Orders", "--body", "tea", "--yes")
    assert ("nothing is written into this store" in error) == (status == 3)
    assert table()[mode]["Written"] == {0: "yes", 3: "refused"}[status]
