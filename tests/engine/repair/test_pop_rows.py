"""Rows of popped messages that no broker can read are deleted by a new write-ahead log; the others stay."""

from __future__ import annotations

import struct

import golden_stores
import made_rocksdb
from handmade_stores import healthy

from engine.cli.main import main
from engine.codec import rocksdb_pop_rows
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store

ODD = struct.pack(">q", 1 << 40) + b"g@Orders"
SOUND = b"group@Orders@0@5"


def test_the_odd_row_is_gone_and_the_others_stay(tmp_path):
    made_rocksdb.binding()
    root = healthy().write(tmp_path / "store")
    rows = {ODD: b"no json", struct.pack(">q", 1 << 50) + b"h@Orders": b"neither"}
    sound = {struct.pack(">q", 5) + SOUND: b"{}"}
    made_rocksdb.make_database(root / "kvStore", {rocksdb_pop_rows.FAMILY: rows | sound})
    with open_store(root) as store:
        unreadable = {row.key for row in store.rocksdb_rows.rows("pop") if row.state == "unreadable"}
    before = golden_stores.fingerprint(root)
    assert main(["repair", str(root), "--apply", "--yes", "--quiet"]) == 0
    remaining = made_rocksdb.read_rows(root / "kvStore")[rocksdb_pop_rows.FAMILY]
    assert unreadable >= rows.keys()
    assert remaining.keys() == (rows | sound).keys() - unreadable
    with open_store(root) as store:
        assert not [item for item in check(store) if getattr(item, "id", "") == "CF18" and item.severity == "error"]
    (backup,) = tmp_path.glob("store.kept-*")
    assert main(["repair", str(root), "--undo", str(backup), "--yes", "--quiet"]) == 0
    assert golden_stores.changes(before, golden_stores.fingerprint(root)) == []


def test_a_sound_store_gets_no_offer(tmp_path):
    root = healthy().write(tmp_path / "store")
    assert main(["repair", str(root), "--quiet"]) == 0
