"""Index rows in a RocksDB become what the log says, by a new write-ahead log; the others stay."""

from __future__ import annotations

import shutil
from pathlib import Path

import golden_stores
import pytest
from made_rocksdb import binding, make_database, read_rows

from engine.codec import rocksdb_index_rows as codec
from engine.inspection.check.rocksdb_index_rows import findings
from engine.inspection.snapshot import open_store
from engine.mapped.disk import RealDisk
from engine.patching.apply import apply_patches
from engine.patching.patches import PatchList
from engine.repair.index_rows import repair_index_rows
from engine.rocksdb.database import open_rocksdb

NAME = "rocksdb-timer-index-5.5.1"
Families = dict[str, dict[bytes, bytes]]


@pytest.fixture(scope="module")
def families(golden: golden_stores.GoldenStores) -> Families:
    """Return the rows that a broker wrote."""
    binding()
    with open_store(golden(NAME)) as store, open_rocksdb(store.path / "rocksdbstore", store.reading) as database:
        return {name: dict(database.rows(name)) for name in database.families}


def test_lost_and_wrong_rows_are_written_again(
    golden: golden_stores.GoldenStores, families: Families, tmp_path: Path
) -> None:
    """A broker finds messages by such rows only, and makes none again for messages that it has indexed once."""
    root = Path(shutil.copytree(golden(NAME), tmp_path / "store"))
    keys = [key for key in families[codec.FAMILY] if codec.decode_key(key) is not None]
    lost, wrong = keys[len(keys) // 2], keys[-1]
    rows = dict(families[codec.FAMILY])
    del rows[lost]
    rows[wrong[:-8] + lost[-8:]] = rows.pop(wrong)
    make_database(root / "rocksdbstore", {**families, codec.FAMILY: rows})
    with open_store(root) as store:
        repair = repair_index_rows(store, list(findings(store)))
    assert repair is not None
    apply_patches(root, PatchList(repair.patches), RealDisk())
    assert read_rows(root / "rocksdbstore")[codec.FAMILY] == families[codec.FAMILY]
    with open_store(root) as store:
        assert list(findings(store)) == []


def test_nothing_is_written_without_a_finding(golden: golden_stores.GoldenStores) -> None:
    with open_store(golden(NAME)) as store:
        assert repair_index_rows(store, []) is None
