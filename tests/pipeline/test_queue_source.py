"""Queues and index of golden stores as rows."""

from __future__ import annotations

import pytest
from golden_stores import third_of_names
from spark_rows import assert_same

from engine.inspection import records
from engine.inspection.snapshot import open_store
from engine.pipeline import schema
from engine.pipeline.index_source import IndexReader
from engine.pipeline.options import Options
from engine.pipeline.queue_source import QueueReader

pytestmark = pytest.mark.spark


def all_rows(reader):
    return [row for partition in reader.partitions() for batch in reader.read(partition) for row in batch.to_pylist()]


@pytest.mark.full_form(keep=6)
@pytest.mark.parametrize("name", third_of_names(2))
def test_queues_and_index_of_golden_stores_field_for_field(golden, name):
    path = golden(name)
    with open_store(path) as store:
        entries = [
            {**records.cq(entry), "topic": topic, "queueId": number}
            for topic, queues in store.topics().items()
            for number, queue in queues.items()
            for entry in queue.entries()
        ]
        index = [
            records.index_entry(reader.name, number, reader.slots, reader.header, entry)
            for reader in store.index_files()
            for number, entry in reader.entries()
        ]

    def place(row):
        return row["topic"], row["queueId"], row["queueOffset"]

    rows = source_rows("cq", path)
    assert_same(sorted(rows, key=place), sorted(entries, key=place), {"store", "broker", "file"})
    rows = source_rows("index", path)
    assert_same(rows, index, {"store", "broker"})


def source_rows(kind, path, filters=(), **options):
    source, columns = {"cq": (QueueReader, schema.CQ), "index": (IndexReader, schema.INDEX)}[kind]
    reader = source(Options({"path": str(path), **options}, columns), list(columns))
    assert list(reader.pushFilters(list(filters))) == list(filters)
    return all_rows(reader)
