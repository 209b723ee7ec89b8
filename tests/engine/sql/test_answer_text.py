"""Rows as JSON, CSV and Parquet: values that have no place in JSON become text."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.sql.answer_text import plain_value, rows, unique_names, write_csv, write_json, write_parquet


class Made:
    """An answer of one batch."""

    def __init__(self, batch):
        self.schema = batch.schema
        self._batches = iter([batch])

    def __iter__(self):
        return self._batches


def answer():
    properties = pa.array([[("a", "1")], None], pa.map_(pa.string(), pa.string()))
    columns = [pa.array([1, None]), pa.array(["x", 'say "y"\n']), properties, pa.array([b"\0", None])]
    return Made(pa.RecordBatch.from_arrays(columns, names=["n", "text", "properties", "n"]))


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05+00:00"),
        (date(2026, 1, 2), "2026-01-02"),
        (time(1, 2), "01:02:00"),
        (timedelta(seconds=1.5), 1.5),
        (Decimal(12), 12),
        (Decimal("1.5"), 1.5),
        (float("nan"), "nan"),
        (b"ab", "YWI="),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ({"a": [Decimal(1), b""]}, {"a": [1, ""]}),
        ("text", "text"),
        (None, None),
    ],
)
def test_values_of_json(value, plain):
    assert plain_value(value) == plain


def test_a_name_that_stands_twice_gets_a_number():
    assert unique_names(["a", "b", "a", "a_2", "a"]) == ["a", "b", "a_2", "a_2_2", "a_3"]


def test_the_three_forms_have_the_same_rows():
    expected = [
        {"n": 1, "text": "x", "properties": {"a": "1"}, "n_2": "AA=="},
        {"n": None, "text": 'say "y"\n', "properties": None, "n_2": None},
    ]
    assert list(rows(answer())) == expected
    lines, table, file = io.StringIO(), io.StringIO(), io.BytesIO()
    assert write_json(answer(), lines) == write_csv(answer(), table) == write_parquet(answer(), file) == 2
    assert [json.loads(line) for line in lines.getvalue().splitlines()] == expected
    assert table.getvalue() == 'n,text,properties,n_2\n1,x,"{""a"": ""1""}",AA==\n,"say ""y""\n",,\n'
    assert list(rows(pq.read_table(file).to_batches())) == expected
