"""Index rows in a RocksDB against the log: a broker's own are right, and each kind of fault is found."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from made_rocksdb import binding, make_database

from engine.codec import rocksdb_index_rows as codec
from engine.inspection.check.rocksdb_index_rows import findings
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rocksdb.database import open_rocksdb

pytestmark = pytest.mark.golden
NAME = "rocksdb-timer-index-5.5.1"


@pytest.fixture
def rows(golden):
    """Rows of all families of the store, for a copy of them."""
    binding()
    with open_store(golden(NAME)) as store, open_rocksdb(store.path / "rocksdbstore", store.reading) as database:
        return {name: dict(database.rows(name)) for name in database.families}


def copy_with(golden, tmp_path: Path, rows: dict[str, dict[bytes, bytes]]) -> Path:
    path = Path(shutil.copytree(golden(NAME), tmp_path / "store"))
    make_database(path / "rocksdbstore", rows)
    return path


def index_keys(rows) -> list[bytes]:
    return [key for key in rows[codec.FAMILY] if codec.decode_key(key) is not None]


def test_the_rows_of_a_broker_fit(golden):
    binding()
    with open_store(golden(NAME)) as store:
        assert list(findings(store)) == []
        rows = list(store.rocksdb_rows.rows("index"))
        assert {row.verdict for row in rows} == {"match"}
        assert {row.key_text[:2] == "T#" for row in rows} == {True, False}
        assert len({row.physical_offset for row in rows}) > 300


@pytest.mark.parametrize("with_files", [True, False])
def test_a_store_with_such_an_index_is_checked_completely(golden, tmp_path, with_files):
    """DK02 said that index entries in a RocksDB are not looked at, and the check was incomplete."""
    binding()
    path = Path(shutil.copytree(golden(NAME), tmp_path / "store"))
    if not with_files:
        shutil.rmtree(path / "index")
    shutil.rmtree(path / "consumequeue_rocksdb", ignore_errors=True)
    with open_store(path) as store:
        *items, summary = check(store)
        assert store.why_unknown("index") is None
    index_ids = {item.id for item in items if item.id.startswith("IX")}
    assert index_ids == set()
    assert not any("index" in item.message for item in items)
    assert summary.complete or any(item.id == "DK02" for item in items)


def test_a_row_that_leads_to_another_message_is_found(golden, tmp_path, rows):
    key = index_keys(rows)[-1]
    other = next(other for other in index_keys(rows) if other[-8:] != key[-8:])
    rows[codec.FAMILY][key[:-8] + other[-8:]] = rows[codec.FAMILY][key]
    with open_store(copy_with(golden, tmp_path, rows)) as store:
        (finding,) = findings(store)
    row = codec.decode_key(key)
    assert (finding.id, finding.severity, finding.evidence["rows"]) == ("IX12", "warn", 1)
    assert f"{row.topic}#{row.text} leads to" in finding.message


def test_a_key_without_its_row_is_found(golden, tmp_path, rows):
    keys = index_keys(rows)
    gone = keys[len(keys) // 2]
    del rows[codec.FAMILY][gone]
    with open_store(copy_with(golden, tmp_path, rows)) as store:
        (finding,) = findings(store)
    assert (finding.id, finding.evidence["keys"]) == ("IX12", 1)
    assert finding.evidence["firstUnit"] == codec.decode_key(gone).physical_offset


def test_messages_from_before_the_index_was_turned_on_need_no_rows(golden, tmp_path, rows):
    offsets = sorted({codec.decode_key(key).physical_offset for key in index_keys(rows)})
    middle = offsets[len(offsets) // 2]
    early = [key for key in index_keys(rows) if codec.decode_key(key).physical_offset < middle]
    for key in early:
        del rows[codec.FAMILY][key]
    with open_store(copy_with(golden, tmp_path, rows)) as store:
        assert list(findings(store)) == []
