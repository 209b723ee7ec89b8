"""Sources and jobs over a fleet with stores whose queues are in a RocksDB, or whose files cannot be read."""

from __future__ import annotations

import json
import os
import shutil
import sys

import pytest

from engine.cli.main import main
from engine.errors import CannotRead, UsageError
from engine.pipeline import schema, undecoded
from engine.pipeline.commitlog_source import CommitLogSource
from engine.pipeline.files import find_stores
from engine.pipeline.filters import QueryLimits
from engine.pipeline.index_source import IndexSource, PlainIndexReader
from engine.pipeline.options import Options
from engine.pipeline.queue_source import PlainQueueReader, QueueSource

pytestmark = [pytest.mark.spark, pytest.mark.golden]


@pytest.fixture
def fleet(golden, tmp_path):
    """Return a function that makes a folder with copies of golden stores."""

    def make(*names):
        for name in names:
            shutil.copytree(golden(name), tmp_path / "fleet" / name / "store")
        return tmp_path / "fleet"

    return make


@pytest.fixture
def job(capsys):
    """Return a function that runs a pipeline job in this process and returns its exit code and its records by type."""

    def run(*words):
        capsys.readouterr()
        code = main(["pipeline", *map(str, words), "--json"])
        records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return code, {kind: [r for r in records if r["type"] == kind] for kind in {r["type"] for r in records}}

    return run


def rows(reader_type, columns, store, unreadable="row"):
    reader = reader_type(Options({"path": str(store), "unreadable": unreadable}, columns), list(columns))
    return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]


@pytest.mark.parametrize("name", ["rocks-5.5.1", "rocks-separate-5.5.1"])
def test_queues_in_a_rocksdb_are_a_row_of_damage(golden, name):
    """A store with queues in a RocksDB gave no row at all. A query for lost messages then named each of its
    messages.
    """
    (row,) = rows(PlainQueueReader, schema.CQ, golden(name))
    assert row["type"] == "damage"
    assert "in a RocksDB, which pipeline jobs do not read; the commands queue and check do" in row["reason"]
    assert row["store"] == str(golden(name))
    with pytest.raises(CannotRead, match="in a RocksDB"):
        rows(PlainQueueReader, schema.CQ, golden(name), "fail")


def test_queue_files_beside_a_rocksdb_are_read(golden):
    actual_rows = rows(PlainQueueReader, schema.CQ, golden("combine-5.5.1"))
    assert len(actual_rows) > 1000
    assert {row["type"] for row in actual_rows} == {"cq"}


def test_an_index_in_a_rocksdb_is_a_row_of_damage(golden, tmp_path):
    store = shutil.copytree(golden("rocksdb-timer-index-5.5.1"), tmp_path / "store")
    assert {row["type"] for row in rows(PlainIndexReader, schema.INDEX, store)} == {"indexEntry"}
    shutil.rmtree(store / "index")  # as with indexFileWriteEnable=false
    (row,) = rows(PlainIndexReader, schema.INDEX, store)
    assert (row["type"], "the index is in a RocksDB" in row["reason"]) == ("damage", True)


def test_the_rocksdb_of_every_store_since_5_4_holds_no_index(golden, tmp_path):
    store = shutil.copytree(golden("clean-5.5.1"), tmp_path / "store")
    shutil.rmtree(store / "index")
    (place,) = find_stores(str(store))
    assert undecoded.rocksdb_index(place) is None
    assert undecoded.rocksdb_queues(place) is None
    assert (
        list(PlainIndexReader(Options({"path": str(store)}, schema.INDEX), ()).parts_of(place, QueryLimits(), [])) == []
    )


def test_a_store_in_a_rocksdb_does_not_end_a_rebuild_of_the_others(fleet, job, tmp_path):
    """A store with queues in a RocksDB ended the job for all: nothing was built of the ten others."""
    stores = fleet("rocks-5.5.1", "lmq-5.3.3")
    code, records = job("rebuild", stores / "*" / "store", "--out", tmp_path / "new")
    assert code == 3
    (row,) = records["unreadable"]
    assert "consume queues are a RocksDB" in row["error"]
    assert [row["store"] for row in records["dispatched"]] == [str(stores / "lmq-5.3.3" / "store")]
    code, records = job("rebuild", stores / "rocks-5.5.1" / "store", "--out", tmp_path / "none")
    assert (code, records, (tmp_path / "none").exists()) == (3, {}, False)


class _Unreadable:
    """The system's calls; opening one file fails."""

    def __init__(self, file, monkeypatch):
        real = os.open

        def opening(path, *words, **named):
            if str(path) == str(file):
                raise PermissionError(13, "Permission denied", str(path))
            return real(path, *words, **named)

        monkeypatch.setattr(os, "open", opening)


@pytest.mark.parametrize("words", [("verify",), ("trace", "--key", "nowhere"), ("stats",)])
def test_one_unreadable_file_does_not_end_a_job_for_the_other_stores(fleet, job, monkeypatch, words):
    """A log file without rights ended verify and trace for the whole fleet: no line about any other store."""
    stores = fleet("clean-5.3.3", "lmq-5.3.3")
    unreadable = sorted((stores / "clean-5.3.3" / "store" / "commitlog").iterdir())[1]
    _Unreadable(unreadable, monkeypatch)
    code, records = job(*words, stores / "*" / "store")
    assert code == 3
    assert {row["file"] for row in records["unreadable"]} == {str(unreadable)}
    (summary,) = records["jobSummary"]
    assert summary["stores"] == 2
    if words[0] == "verify":
        complete = {row["store"].split("/")[-2]: row["complete"] for row in records["summary"]}
        assert complete == {"clean-5.3.3": False, "lmq-5.3.3": True}
    if words[0] == "trace":
        (result,) = records["whereResult"]
        assert result["verdict"] == "unknown"
        assert result["nextStep"] == "Make the store readable, then ask again."


def test_an_export_names_the_stores_that_are_incomplete(fleet, job, tmp_path, monkeypatch):
    """The manifest of an export did not mention an unreadable file: a later reader of the folder could not see that
    units are missing.
    """
    stores = fleet("clean-5.3.3", "lmq-5.3.3")
    unreadable = sorted((stores / "clean-5.3.3" / "store" / "commitlog").iterdir())[1]
    _Unreadable(unreadable, monkeypatch)
    code, records = job("export", stores / "*" / "store", "--out", tmp_path / "rows")
    assert code == 3
    (summary,) = records["jobSummary"]
    assert (summary["damaged"], summary["unreadBytes"]) == (0, unreadable.stat().st_size)
    about = json.loads((tmp_path / "rows" / "_storescope.json").read_text())
    (entry,) = about["incomplete"]
    assert entry["store"] == str(stores / "clean-5.3.3" / "store")
    assert entry["unreadable"] == [{"file": str(unreadable), "error": "cannot be read: Permission denied"}]


def test_two_dledger_logs_in_a_store_are_unreadable_and_the_others_are_answered(fleet, job):
    """Only a broker's configuration says which of them has its messages."""
    stores = fleet("lmq-5.3.3", "clean-5.3.3")
    for member in ("n0", "n1"):
        data = stores / "clean-5.3.3" / "store" / f"dledger-{member}" / "data"
        data.mkdir(parents=True)
        (data / f"{0:020}").write_bytes(bytes(64))
    code, records = job("stats", stores / "*" / "store")
    assert code == 3
    (row,) = records["unreadable"]
    assert "DLedger" in row["error"]
    (summary,) = records["jobSummary"]
    assert (summary["stores"], summary["units"] > 0) == (1, True)


@pytest.mark.parametrize("source", [CommitLogSource, QueueSource, IndexSource])
def test_a_source_that_is_written_to_refuses_in_a_sentence(golden, source):
    """Spark's own answer was 938 characters of "writer is not implemented"."""
    with pytest.raises(UsageError, match="this format is read only: 'storescope pipeline import'"):
        source({"path": str(golden("lmq-5.3.3"))}).writer(None, overwrite=False)


def test_a_key_in_a_store_with_rocksdb_queues_is_not_called_undispatched(golden, job, monkeypatch):
    """Each of its messages was "notYetDispatched", and the next start was said to dispatch it."""
    monkeypatch.setitem(sys.modules, "rocksdict", None)  # without the extra that reads such queues
    code, records = job("trace", golden("rocks-5.5.1"), "--key", "K72")
    assert code == 3
    assert {row["verdict"] for row in records["whereResult"]} == {"unknown"}
    assert "The log holds it; its queue is in a part" in records["whereResult"][0]["nextStep"]
    assert "in a RocksDB" in json.dumps(records["whereResult"][0]["evidence"])
