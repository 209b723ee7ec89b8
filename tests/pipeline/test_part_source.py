"""Parts of queue and index files as rows: a missing part of a file is one row of its own."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest

from engine.errors import CannotRead
from engine.pipeline import schema
from engine.pipeline.part_source import batch_of, damage_batch, unread_row, whole

COLUMNS = {name: schema.CQ[name] for name in ("type", "reason", "topic", "queueOffset")}
PART = SimpleNamespace(path="/s/consumequeue/T/0/0", start=0, stop=60)


def batch(*offsets):
    return batch_of(COLUMNS, {"type": "entry", "topic": "T", "queueOffset": list(offsets)}, len(offsets))


def rows(batches):
    return [row for item in batches for row in item.to_pylist()]


def read(batches, **options):
    return rows(whole(PART, batches, COLUMNS, 20, {"topic": "T"}, **options))


def cut_off(error):
    yield batch(0)
    raise error


def test_values_that_are_the_same_stand_in_every_row_and_absent_ones_are_null():
    new_batch = batch(4, 5)
    assert new_batch.schema == schema.arrow_schema(COLUMNS)
    assert rows([new_batch]) == [
        {"type": "entry", "reason": None, "topic": "T", "queueOffset": 4},
        {"type": "entry", "reason": None, "topic": "T", "queueOffset": 5},
    ]
    assert batch_of(COLUMNS, {"queueOffset": pa.array([1], pa.int64())}, 1).column(3).to_pylist() == [1]


def test_a_part_that_is_whole_has_no_row_more():
    assert [row["queueOffset"] for row in read([batch(0, 1), batch(2)])] == [0, 1, 2]


def test_a_file_that_became_shorter_is_damage_behind_its_rows():
    results = read([batch(0)])
    assert [row["type"] for row in results] == ["entry", "damage"]
    assert results[1]["topic"] == "T"
    assert results[1]["reason"] == "the file was cut short while it was read: 40 bytes are missing"


def test_a_file_that_is_gone_in_the_middle_is_damage_behind_its_rows():
    results = read(cut_off(CannotRead("No such file", file=PART.path)))
    assert [row["type"] for row in results] == ["entry", "damage"]
    assert "No such file" in results[1]["reason"]


@pytest.mark.parametrize("batches", [lambda: [batch(0)], lambda: cut_off(CannotRead("gone", file=PART.path))])
def test_with_fail_fast_a_damaged_part_is_an_error(batches):
    with pytest.raises(CannotRead):
        read(batches(), fail=True)


def test_a_store_that_could_not_be_listed_is_a_row_too():
    reported = SimpleNamespace(store="/s", broker="b", error=CannotRead("Permission denied", file="/s"))
    columns = {name: schema.CQ[name] for name in ("type", "store", "broker", "reason")}
    (row,) = rows([unread_row(columns, reported)])
    assert (row["type"], row["store"], row["broker"]) == ("damage", "/s", "b")
    assert "Permission denied" in row["reason"]
    assert rows([damage_batch(columns, "why", {})])[0]["store"] is None
