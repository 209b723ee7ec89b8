"""The masters' terms of a store in controller mode are shown."""

from __future__ import annotations

import re

import agree
import golden_stores
import pytest
from handmade_stores import healthy

from engine.codec.epoch_file import Epoch, encode
from engine.codec.message import Unit
from engine.inspection.epochs import read_epochs
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rules.findings import Finding


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


@pytest.mark.golden
def test_terms_of_a_real_group_are_those_that_mqadmin_lists(golden):
    text = (golden_stores.GOLDEN / "controller-5.5.0" / "brokerEpoch.txt").read_text(encoding="utf-8")
    listed = [(int(epoch), int(start)) for epoch, start in re.findall(r"epoch=(\d+), startOffset=(\d+)", text)]
    root = golden("controller-5.5.0")
    table = read_of(root)
    assert [(row.epoch, row.start_offset) for row in table.epochs] == listed
    with open_store(root) as store:
        assert f"endOffset={store.log.max_offset}" in text.splitlines()[-1]
        findings = [item for item in check(store) if isinstance(item, Finding) and item.id == "CK06"]
        units = [store.log.unit_at(start) for _, start in listed]
    assert findings == []
    assert all(isinstance(unit, Unit) for unit in units)
