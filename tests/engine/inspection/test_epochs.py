"""The masters' terms of a store in controller mode are shown."""

from __future__ import annotations

import agree
from handmade_stores import healthy

from engine.codec.epoch_file import Epoch, encode
from engine.inspection.epochs import read_epochs
from engine.inspection.snapshot import open_store


def test_info_and_positions_show_the_terms_of_masters(tmp_path):
    root = healthy(20).write(tmp_path / "store")
    (root / "epochFileCheckpoint").write_bytes(encode([Epoch(1, 0), Epoch(4, 2000)]))
    rows = [{"epoch": 1, "startOffset": 0}, {"epoch": 4, "startOffset": 2000}]
    assert agree.records_of("info", root)[0]["epochs"] == rows
    epochs = agree.records_of("positions", root)[0]["epochs"]
    assert {epoch: position["offset"] for epoch, position in epochs.items()} == {"1": 0, "4": 2000}


def test_a_broker_uses_the_backup_of_a_table_that_is_wrong(tmp_path):
    root = healthy(20).write(tmp_path / "store")
    assert read_of(root) is None
    (root / "epochFileCheckpoint").write_bytes(encode([Epoch(1, 0)]).replace(b"1-0", b"1-7"))
    assert read_of(root).epochs == ()
    (root / "epochFileCheckpoint.bak").write_bytes(encode([Epoch(1, 0)]))
    assert read_of(root).epochs == (Epoch(1, 0),)
    assert read_of(root).words == "1 from 0"


def read_of(root):
    with open_store(root) as store:
        return read_epochs(store)
