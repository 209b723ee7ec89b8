"""Queue entries that exist only in a running broker's memory are derived from the log, as a start would do."""

from __future__ import annotations

import shutil
import subprocess
import sys

import agree
import made_rocksdb
import pytest

from engine.codec import rocksdb_queue_rows as rows
from engine.codec.message import DEFAULT_DELAY_LEVELS
from engine.inspection import open_store, rocksdb_queue
from engine.inspection.rocksdb_unflushed import find_unflushed

pytestmark = pytest.mark.golden
HOLD = (
    "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)\n"
    "print('held', flush=True); sys.stdin.read()"
)


@pytest.mark.parametrize("name", ["rocks-5.5.1", "rocks-separate-5.5.1", "clean-5.5.1"])
def test_entries_from_the_log_are_those_of_the_queues(golden, name):
    made_rocksdb.binding()
    with open_store(golden(name)) as store:
        queues = {
            (topic, number): queue for topic, by in store.queues.by_topic().items() for number, queue in by.items()
        }
        unflushed = find_unflushed(store.log, store.log.min_offset, DEFAULT_DELAY_LEVELS)
        assert unflushed.keys() == queues.keys()
        for key, entries in unflushed.items():
            log_rows = [(number, rows.decode_entry(value)) for number, value in entries.values(0, 1 << 62)]
            assert [(number, row.physical_offset, row.size, row.tags_code) for number, row in log_rows] == [
                (entry.queue_offset, entry.physical_offset, entry.size, entry.tags_code)
                for entry in queues[key].entries()
            ]
            assert entries.find(entries.last_offset) is not None
            assert entries.find(entries.last_offset + 1) is None


@pytest.fixture
def running(golden, tmp_path):
    """``running(entries)``: a store whose broker holds the lock and has flushed none of its rows, or those before
    ``entries`` of each queue. With ``is_running=False`` the broker has crashed.
    """
    made_rocksdb.binding()
    holders = []

    def make(flushed_count, *, is_running=True):
        root = shutil.copytree(golden("rocks-5.5.1"), tmp_path / "store")
        with open_store(root) as store:
            database = store.queues.rocksdb.database()
            entries = dict(database.rows(rows.ENTRY_FAMILY))
            end = min(
                (
                    rows.decode_entry(v).physical_offset
                    for k, v in entries.items()
                    if rows.queue_offset_of(k) >= flushed_count
                )
            )
        flushed = {key: value for key, value in entries.items() if rows.decode_entry(value).physical_offset < end}
        bounds = {}
        for key, value in flushed.items():
            row = rows.decode_entry(value)
            topic = key[5 : 5 + int.from_bytes(key[:4], "big")].decode()
            number, queue_id = rows.queue_offset_of(key), int.from_bytes(key[-13:-9], "big")
            bound = rows.BoundRow(topic, queue_id, "max", row.physical_offset, number)
            bounds[rows.bound_key(topic, queue_id, "max")] = rows.encode_bound(bound)
        bounds[rows.CHECKPOINT_KEY] = (end if flushed else 0).to_bytes(8, "big")
        made_rocksdb.make_database(root / "consumequeue", {"default": flushed, "offset": bounds})
        if not is_running:
            return root
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLD, root / "lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        holders.append(holder)
        assert holder.stdout.readline() == "held\n"
        return root

    yield make
    for holder in holders:
        holder.communicate("", timeout=30)


@pytest.mark.parametrize("flushed_count", [0, 3])
@pytest.mark.parametrize("aspect", ["queue", "get", "time"])
def test_a_running_broker_answers_the_same(running, golden_account, flushed_count, aspect):
    """A broker writes queue rows without a write-ahead log: the store seemed to have no topic at all."""
    comparison = agree.ASPECTS[aspect](running(flushed_count), golden_account("rocks-5.5.1", "expected.jsonl.xz"))
    assert comparison.compared
    assert not comparison.differences, str(comparison)


def test_entries_only_in_memory_are_reported(running):
    root = running(0)
    (info,) = agree.records_of("info", root)
    assert any("954,437 bytes of the log only in its memory" in note for note in info["notes"])
    (positions,) = agree.records_of("positions", root)
    assert positions["dispatched"]["offset"] == 0
    assert agree.records_of("where", root, "TopicA/0/140")[0]["verdict"] == "found"


def test_after_a_crash_the_next_start_dispatches_unflushed_entries(running):
    root = running(3, is_running=False)
    (info,) = agree.records_of("info", root)
    (positions,) = agree.records_of("positions", root)
    dispatched_offset = positions["dispatched"]["offset"]
    text = f"from offset {dispatched_offset:,} of the log on: the next start of RocketMQ 5."
    assert any(text in note for note in info["notes"])
    assert agree.records_of("where", root, "954150")[0]["verdict"] == "notYetDispatched"


def test_too_many_unflushed_entries_are_not_derived(running, monkeypatch):
    monkeypatch.setattr(rocksdb_queue, "MAX_UNFLUSHED_BYTES", 1000)
    code, _, err = agree.command("get", running(0), "TopicA", 0, 0)
    assert code == 3
    assert "954,437 bytes of the log only in its memory" in err
