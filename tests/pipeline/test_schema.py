"""Columns of the formats, their comments and types."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from engine.errors import UsageError
from engine.pipeline import schema, workers_python
from engine.pipeline.files import find_stores

pytestmark = pytest.mark.spark


def store(folder):
    (folder / "commitlog").mkdir(parents=True)
    return folder


def store_places(*paths):
    return [(place.path, place.broker) for place in find_stores([str(path) for path in paths])]


def fields(*arguments):
    return StructType([StructField(name, kind, nullable) for name, kind, nullable in arguments])


def test_a_schema_that_cannot_be_is_refused():
    """``queueId long`` failed in a task."""
    for request, reported in (
        (("queueId", LongType(), True), "queueId is int, the given schema says bigint"),
        (("colour", StringType(), True), "colour is not a column; the columns are type, physicalOffset"),
        (("topic", StringType(), False), "topic is null in some rows, the given schema says NOT NULL"),
    ):
        with pytest.raises(UsageError, match=reported):
            schema.user_columns(schema.UNIT, fields(request))
    our_fields = fields(("queueId", IntegerType(), True), ("type", StringType(), True), ("store", StringType(), False))
    assert schema.user_columns(schema.UNIT, our_fields) == {
        "queueId": "int",
        "type": "string",
        "store": "string NOT NULL",
    }


@pytest.mark.parametrize("columns", [schema.UNIT, schema.CQ, schema.INDEX])
def test_every_column_has_a_comment(columns):
    assert columns.keys() <= schema.COMMENTS.keys()
    assert all(kind.endswith(" NOT NULL") == (name in ("type", "store")) for name, kind in columns.items())


MS = st.integers(-(10**15), 10**15)


@given(st.lists(MS, min_size=1))
def test_times_that_pandas_cannot_hold_are_null(ms):
    import pandas as pd

    time_array = schema.time_array(np.array(ms, np.int64))
    earliest, latest = pd.Timestamp("1678-01-01", tz="UTC"), pd.Timestamp("2262-01-01", tz="UTC")
    expected = [
        pd.Timestamp(item, unit="ms", tz="UTC") if earliest.value <= item * 10**6 < latest.value else None
        for item in ms
    ]
    assert [None if value is pd.NaT else value for value in time_array.to_pandas()] == expected


def check_workers_python_named(name):
    context = SimpleNamespace(pythonExec=name, pythonVer=f"{sys.version_info[0]}.{sys.version_info[1]}")
    workers_python.check_workers_python(SimpleNamespace(sparkContext=context))
