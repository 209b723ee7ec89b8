"""Conditions that Spark pushes down."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

from engine.pipeline import filters, workers_python

pytestmark = pytest.mark.spark


COMPARED = {
    EqualTo: np.equal,
    GreaterThan: np.greater,
    GreaterThanOrEqual: np.greater_equal,
    LessThan: np.less,
    LessThanOrEqual: np.less_equal,
}


@settings(max_examples=300)
@given(
    st.sampled_from(list(COMPARED)),
    st.integers(-(10**13), 10**13),
    st.integers(-1500, 1500),
    st.sampled_from([-12, 0, 5.5, 14]),
)
def test_a_condition_on_a_time_is_one_on_its_ms(kind, ms, micros, zone):
    """In every time zone, and between two ms."""
    present_datetime = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms, microseconds=micros)
    (condition,) = filters.conditions(
        [kind(("storeTime",), present_datetime.astimezone(timezone(timedelta(hours=zone))))]
    )
    near = np.arange(ms - 3, ms + 4)
    assert condition.column == "storeTimestamp"
    assert (filters._compare_column(near, condition) == COMPARED[kind](near * 1000, ms * 1000 + micros)).all()


def test_one_of_several_times():
    times = tuple(datetime(1970, 1, 1, 0, 0, 1, micro, tzinfo=UTC) for micro in (0, 1, 2000))
    (condition,) = filters.conditions([In(("bornTime",), times)])
    assert condition == filters.Condition("bornTimestamp", "among", (1000, 1002))


def check_workers_python_named(name):
    context = SimpleNamespace(pythonExec=name, pythonVer=f"{sys.version_info[0]}.{sys.version_info[1]}")
    workers_python.check_workers_python(SimpleNamespace(sparkContext=context))
