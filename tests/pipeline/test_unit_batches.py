"""Blocks of units as batches: chosen columns only, and in pieces where bodies are large."""

from __future__ import annotations

from dataclasses import dataclass

from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage
from engine.inspection.block_scan import scan_log
from engine.inspection.snapshot import open_store
from engine.message_store import Message, MessageStore
from engine.pipeline import schema, unit_batches
from engine.pipeline.unit_batches import RowMaker, units_of


@dataclass(frozen=True)
class Place:
    store: str = "/store"
    broker: str | None = None
    name: str = "00000000000000000000"
    file_start: int = 0
    file_size: int = 1000


def test_bodies_are_cut_into_pieces_and_columns_are_those_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(unit_batches, "BATCH_BYTES", 4096)
    with MessageStore(tmp_path / "store") as store:
        for number in range(20):
            store.put_message(Message("Orders", bytes([number]) * 1000, tags="TagA"))
    topics = TopicTable()
    columns = schema.select_columns(schema.UNIT, ["queueOffset", "tags", "body"])
    with open_store(tmp_path / "store") as store:
        block = next(iter(scan_log(store.log, topics=topics)))
        batches = list(RowMaker(columns, Place(), topics).units(block, units_of(block)))
    assert len(batches) > 3
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert rows == [{"queueOffset": n, "tags": "TagA", "body": bytes([n]) * 1000} for n in range(20)]


def test_damage_between_two_files_names_none():
    maker = RowMaker(schema.select_columns(schema.UNIT, ["physicalOffset", "file"]), Place(), TopicTable())
    inside, behind = (maker.damage(Damage(offset, 10, "zeros")).to_pylist() for offset in (990, 1000))
    assert inside == [{"physicalOffset": 990, "file": "00000000000000000000"}]
    assert behind == [{"physicalOffset": 1000, "file": None}]
