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

from engine.config import read_config
from engine.inspection import open_store
from engine.inspection.findings import check
from engine.inspection.get_message import get_message
from engine.inspection.snapshot import StoreSnapshot
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
    "Log in several folders": "several-log-folders-5.5.1",
    "Without mapped files": "without-mmap-5.5.1",
    "Snapshots of the timer wheel": "wheel-snapshots-5.5.1",
    "Tiered storage": "tiered-5.5.1",
    "Static topics": "static-topic-5.5.1",
    "Priority topics": "lite-priority-5.5.1",
    "Lite topics": "lite-priority-5.5.1",
}


@functools.cache
def table() -> dict[str, dict[str, str]]:
    """Cells of the page by mode and column."""
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    columns = rows[0]
    return {re.sub(r" \(.*", "", row[0]): dict(zip(columns, row, strict=True)) for row in rows[1:]}


TOPICS = {"Priority topics": "Jobs", "Lite topics": "%LMQ%$Chat$room-1"}
"""Topic whose messages are read; of other modes the first one of a user."""


def options_of(mode: str, root: Path, folder: Path) -> list[str]:
    """Return the options of a command that reads a store of this mode."""
    if mode != "Log in several folders":
        return []
    file = folder / "broker.conf"
    sizes = "mappedFileSizeCommitLog=65536\nmappedFileSizeConsumeQueue=6000\nmaxHashSlotNum=100\nmaxIndexNum=400\n"
    folders = f"{root / 'commitlog'},{root / 'disks' / '2'}"
    file.write_text(f"storePathRootDir={root}\nstorePathCommitLog={folders}\n{sizes}")
    return ["--config", str(file)]


def opened(mode: str, root: Path, folder: Path) -> StoreSnapshot:
    options = options_of(mode, root, folder)
    return open_store(root, read_config(options[1]) if options else None)


def test_every_mode_of_the_page_has_a_store():
    assert list(table()) == list(STORES)


@pytest.fixture(params=STORES)
def mode(request) -> str:
    made_rocksdb.binding()
    return request.param


def test_read(mode, golden: golden_stores.GoldenStores, tmp_path):
    with opened(mode, golden(STORES[mode]), tmp_path) as store:
        topic, queue = next(
            (topic, queue)
            for topic, queues in store.queues.by_topic().items()
            for queue in queues.values()
            if topic == TOPICS.get(mode, topic)
            and (mode in TOPICS or not (is_system_topic(topic) or topic.startswith("%")))
            and queue.max_offset > queue.min_offset
        )
        newest = get_message(store, topic, queue.queue_id, queue.max_offset - 1, 1)
        oldest = get_message(store, topic, queue.queue_id, max(newest.min_offset, 0), 1)
        for unit in (*newest.units, *oldest.units):
            assert topic in {unit.topic, unit.properties.get("INNER_MULTI_DISPATCH")}
        assert len(newest.units) == len(oldest.units) == 1
        is_read = not store.unread and store.why_unknown("log") is None and store.why_unknown("queues") is None
    assert table()[mode]["Read"] == ("yes" if is_read else "no")


def test_shown(mode, golden: golden_stores.GoldenStores, tmp_path):
    with opened(mode, golden(STORES[mode]), tmp_path) as store:
        topics = survey(store).topics
    assert table()[mode]["Shown"] == ("yes" if topics and all(topic.known for topic in topics) else "no")
    assert TOPICS.get(mode, topics[0].name) in {topic.name for topic in topics}


def test_checked(mode, golden: golden_stores.GoldenStores, tmp_path):
    with opened(mode, golden(STORES[mode]), tmp_path) as store:
        *findings, summary = check(store)
    assert all(isinstance(finding, Finding) and finding.severity != "error" for finding in findings)
    assert table()[mode]["Checked"] == ("yes" if summary.complete else "no")


def test_recovered(mode, golden: golden_stores.GoldenStores, tmp_path):
    root = shutil.copytree(golden(STORES[mode]), tmp_path / "store", ignore=shutil.ignore_patterns("timerwheel"))
    options = options_of(mode, root, tmp_path)
    plan_status, _, _ = agree.command("recover", str(root), "--plan", *options)
    status, _, error = agree.command("recover", str(root), "--apply", "--yes", *options)
    assert (plan_status, status) in {(0, 0), (0, 3)}
    assert ("nothing" in error) == (status == 3)
    assert table()[mode]["Recovered"] == ("plan" if status else "done")


def test_written(mode, golden: golden_stores.GoldenStores, tmp_path):
    root = shutil.copytree(golden(STORES[mode]), tmp_path / "store", ignore=shutil.ignore_patterns("timerwheel"))
    options = options_of(mode, root, tmp_path)
    status, _, error = agree.command("put", str(root), "--topic", "Orders", "--body", "tea", "--yes", *options)
    assert ("nothing is written into this store" in error) == (status == 3)
    assert table()[mode]["Written"] == {0: "yes", 3: "refused"}[status]
