"""Rows of queues and index files."""

from __future__ import annotations

import os
import shutil

import pytest
from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, LessThanOrEqual

from engine.pipeline import schema
from engine.pipeline.index_source import IndexReader
from engine.pipeline.options import Options
from engine.pipeline.queue_source import QueueReader

pytestmark = pytest.mark.spark


def all_rows(reader):
    return [row for partition in reader.partitions() for batch in reader.read(partition) for row in batch.to_pylist()]


def source_rows(kind, path, filters=(), **options):
    source, columns = {"cq": (QueueReader, schema.CQ), "index": (IndexReader, schema.INDEX)}[kind]
    reader = source(Options({"path": str(path), **options}, columns), list(columns))
    assert list(reader.pushFilters(list(filters))) == list(filters)
    return all_rows(reader)


MEETS = {
    "EqualTo": lambda value, expected: value == expected,
    "In": lambda value, expected: value in expected,
    "GreaterThan": lambda value, expected: value > expected,
    "GreaterThanOrEqual": lambda value, expected: value >= expected,
    "LessThanOrEqual": lambda value, expected: value <= expected,
}


def meets(row, filters):
    """Return True if Spark, which tests all conditions again, would keep a row."""
    return all(
        row[condition.attribute[0]] is not None
        and MEETS[type(condition).__name__](row[condition.attribute[0]], condition.value)
        for condition in filters
    )


@pytest.mark.parametrize("name", ["first-files-deleted-5.3.3", "crash-late-5.3.3", "multi-queue-ext-5.3.3"])
def test_filters_on_queues_and_index_leave_files_unread_and_lose_no_row(golden, name, capsys):
    entries, index = source_rows("cq", golden(name)), source_rows("index", golden(name))
    topic, middle = entries[len(entries) // 2]["topic"], index[len(index) // 2]
    for kind, everything, filters in (
        ("cq", entries, [EqualTo(("topic",), topic)]),
        ("cq", entries, [EqualTo(("topic",), topic), EqualTo(("queueId",), 0), GreaterThan(("queueOffset",), 7)]),
        ("cq", entries, [LessThanOrEqual(("queueOffset",), 3)]),
        ("cq", entries, [EqualTo(("topic",), "no such topic")]),
        ("index", index, [GreaterThan(("phyOffset",), middle["phyOffset"])]),
        ("index", index, [LessThanOrEqual(("phyOffset",), -1)]),
        ("index", index, [GreaterThanOrEqual(("storeTimestamp",), middle["storeTimestamp"])]),
        ("index", index, [LessThanOrEqual(("storeTimestamp",), index[0]["storeTimestamp"] - 3_600_000)]),
    ):
        assert kind == "cq" or source_rows(kind, golden(name), filters) == everything
        rows = source_rows(kind, golden(name), filters, headers="trust")
        assert [row for row in rows if meets(row, filters)] == [row for row in everything if meets(row, filters)]
        if kind == "cq" or filters[0].value < index[0][filters[0].attribute[0]]:
            assert len(rows) < len(everything)
            assert "bytes are left unread: nothing of the" in capsys.readouterr().err


def test_queue_and_index_files_that_go_while_they_are_read_are_damage(golden, tmp_path):
    path = shutil.copytree(golden("clean-5.3.3"), tmp_path / "store")
    for source, columns, folder, cut in (
        (QueueReader, schema.CQ, "consumequeue", 45),
        (IndexReader, schema.INDEX, "index", 2000),
    ):
        reader = source(Options({"path": str(path)}, columns), list(columns))
        full_rows = all_rows(reader)
        parts = reader.partitions()
        files = sorted(file for file in (path / folder).rglob("*") if file.is_file())
        os.truncate(files[0], cut)
        files[-1].unlink()
        rows = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
        damage = {row["file"]: row["reason"] for row in rows if row["type"] == "damage"}
        assert "No such file" in damage[files[-1].name] or "cut short" in damage[files[-1].name]
        assert any(row in full_rows for row in rows) or len(files) == 1
        assert len(rows) < len(full_rows)
