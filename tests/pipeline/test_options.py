"""What a user writes, paths, options, a schema: understood, or refused in a sentence that names what is there."""

import json
import re
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from engine.errors import NotAStore, UsageError
from engine.pipeline import filters, options, schema, workers
from engine.pipeline.files import find_stores
from engine.pipeline.java import CannotStart
from engine.pipeline.options import LogOptions, Options

pytestmark = pytest.mark.spark


def store(folder):
    (folder / "commitlog").mkdir(parents=True)
    return folder


def found(*paths):
    return [(place.path, place.broker) for place in find_stores([str(path) for path in paths])]


def test_an_option_that_is_none_is_refused_with_those_that_are():
    """``bdy=true`` was taken for nothing, and the column was not there."""
    with pytest.raises(
        UsageError, match="bdy is no option of this format; there are path, broker, columns, splitBytes"
    ):
        LogOptions({"path": "x", "bdy": "true"})
    with pytest.raises(
        UsageError,
        match=r"crc is no option of this format; there are path, broker, columns, splitBytes, unreadable, headers$",
    ):
        Options({"path": "x", "crc": "true"}, schema.CQ)
    given = dict.fromkeys(options.KNOWN, "x")
    LogOptions(
        {
            **given,
            "columns": "topic",
            "splitBytes": "1m",
            "unreadable": "row",
            "headers": "off",
            "provider": "rocketmq-commitlog",
            "option.path": "x",
            "location": "x",
        }
    )


@pytest.mark.parametrize(
    ("text", "size"),
    [("7", 7), ("1_000", 1000), ("64k", 64 << 10), ("128m", 128 << 20), ("128 MB", 128 << 20), ("1g", 1 << 30),
     ("2GiB", 2 << 30), ("512b", 512), ("1t", 1 << 40)],
)  # fmt: skip
def test_sizes_are_written_as_spark_writes_them(text, size):
    assert LogOptions({"path": "x", "splitBytes": text}).split_bytes == size


@pytest.mark.parametrize("text", ["0", "-1", "m", "1x", "1.5g", "", "0k"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(
        UsageError, match="splitBytes: expected a number from 1 on, or a size like 64k, 128m, 1g, found"
    ):
        LogOptions({"path": "x", "splitBytes": text})


def test_several_paths(tmp_path):
    first, second = store(tmp_path / "a"), store(tmp_path / "b")
    several = Options({"paths": json.dumps([str(first), f"file:{second}"])}, schema.CQ)
    assert [place.path for place in several.stores()] == [str(first), str(second)]
    by_sql = Options({"location": f"file:{first}"}, schema.CQ)
    assert [place.path for place in by_sql.stores()] == [str(first)]
    with pytest.raises(UsageError, match="name the store"):
        Options({}, schema.CQ).stores()


def test_paths_as_uris(tmp_path):
    """``file:/PATH`` is how Spark itself writes the path of a table: it "found none"."""
    path = store(tmp_path / "a b")
    assert found(f"file:{path}") == found(f"file://{path}") == found(path) == [(str(path), None)]
    assert found(f"file:{tmp_path}/*") == [(str(path), "a b")]


def test_braces_stand_for_each_of_their_words(tmp_path):
    for name in ("a1", "a2", "b1", "deep/x"):
        store(tmp_path / name / "store")
    assert found(f"{tmp_path}/{{a1,b*}}/store") == [
        (f"{tmp_path}/a1/store", "a1"), (f"{tmp_path}/b1/store", "b1"),
    ]  # fmt: skip
    assert [broker for _, broker in found(f"{tmp_path}/a{{1,2}}")] == ["a1", "a2"]
    assert [path for path, _ in found(f"{tmp_path}/{{deep/x,b1}}")] == [
        f"{tmp_path}/deep/x/store", f"{tmp_path}/b1/store",
    ]  # fmt: skip
    assert [broker for _, broker in found(f"{tmp_path}/[^b]{{1,2}}")] == ["a1", "a2"]
    with pytest.raises(NotAStore, match="found none"):
        found(f"{tmp_path}/{{c,d}}")


@pytest.mark.parametrize("name", ["a [1] b", "{x,y}", "[ab]", "a{"])
def test_a_folder_that_is_called_like_a_pattern_is_itself(tmp_path, name):
    """``a [1] b`` was only a pattern for ``a 1 b``, and found none."""
    path = store(tmp_path / name)
    store(tmp_path / "a 1 b")
    store(tmp_path / "x")
    assert found(path) == [(str(path), None)]
    (path / "broker").mkdir()
    inner = store(path / "broker" / "store")
    assert found(f"{path}/*/store") == [(str(inner), "broker")]


@pytest.mark.parametrize("path", ["hdfs://name/x", "hdfs:/x", "viewfs://x/y", "https://x/y"])
def test_a_storage_that_nothing_reads_is_told_in_a_sentence(path):
    """It was "Unable to load libjvm", behind 1,000 characters of stack."""
    with pytest.raises(UsageError, match=r"is not read here: give the path of a disk that all machines see"):
        Options({"path": path}, schema.CQ)
    with pytest.raises(UsageError, match="is not read here"):
        find_stores(path)


def fields(*given):
    return StructType([StructField(name, kind, nullable) for name, kind, nullable in given])


def test_a_schema_that_cannot_be_is_refused():
    """``queueId long`` failed in a task."""
    for asked, told in (
        (("queueId", LongType(), True), "queueId is int, the schema that was given says bigint"),
        (("colour", StringType(), True), "colour is no column; there are type, physicalOffset"),
        (("topic", StringType(), False), "topic is null in some rows, the schema that was given says NOT NULL"),
    ):
        with pytest.raises(UsageError, match=told):
            schema.given(schema.UNIT, fields(asked))
    mine = fields(("queueId", IntegerType(), True), ("type", StringType(), True), ("store", StringType(), False))
    assert schema.given(schema.UNIT, mine) == {"queueId": "int", "type": "string", "store": "string NOT NULL"}


@pytest.mark.parametrize("columns", [schema.UNIT, schema.CQ, schema.INDEX])
def test_every_column_has_a_comment(columns):
    assert columns.keys() <= schema.COMMENTS.keys()
    assert all(kind.endswith(" NOT NULL") == (name in ("type", "store")) for name, kind in columns.items())


MS = st.integers(-(10**15), 10**15)
COMPARED = {
    EqualTo: np.equal, GreaterThan: np.greater, GreaterThanOrEqual: np.greater_equal, LessThan: np.less,
    LessThanOrEqual: np.less_equal,
}  # fmt: skip


@settings(max_examples=300)
@given(
    st.sampled_from(list(COMPARED)),
    st.integers(-(10**13), 10**13),
    st.integers(-1500, 1500),
    st.sampled_from([-12, 0, 5.5, 14]),
)
def test_a_condition_on_a_time_is_one_on_its_ms(kind, ms, micros, zone):
    """Whichever zone the time is told in, and between two ms."""
    there = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms, microseconds=micros)
    (one,) = filters.conditions([kind(("storeTime",), there.astimezone(timezone(timedelta(hours=zone))))])
    near = np.arange(ms - 3, ms + 4)
    assert one.column == "storeTimestamp"
    assert (filters._compared(near, one) == COMPARED[kind](near * 1000, ms * 1000 + micros)).all()


def test_one_of_several_times():
    times = tuple(datetime(1970, 1, 1, 0, 0, 1, micro, tzinfo=UTC) for micro in (0, 1, 2000))
    (one,) = filters.conditions([In(("bornTime",), times)])
    assert one == filters.Condition("bornTimestamp", "among", (1000, 1002))


@given(st.lists(MS, min_size=1))
def test_times_that_pandas_cannot_hold_are_null(ms):
    import pandas as pd

    found = schema.time_array(np.array(ms, np.int64))
    first, last = pd.Timestamp("1678-01-01", tz="UTC"), pd.Timestamp("2262-01-01", tz="UTC")
    expected = [
        pd.Timestamp(one, unit="ms", tz="UTC") if first.value <= one * 10**6 < last.value else None for one in ms
    ]
    assert [None if value is pd.NaT else value for value in found.to_pandas()] == expected


def python(tmp_path, lines):
    path = tmp_path / "python3"
    path.write_text("#!/bin/sh\n" + lines)
    path.chmod(0o755)
    return str(path)


def told(name):
    context = SimpleNamespace(pythonExec=name, pythonVer=f"{sys.version_info[0]}.{sys.version_info[1]}")
    workers.must_serve(SimpleNamespace(sparkContext=context))


def test_workers_of_another_python_are_told(tmp_path):
    """The first ``load`` died in a worker: ``ModuleNotFoundError: No module named 'engine'``."""
    remedy = f"set PYSPARK_PYTHON={sys.executable} before the session begins"
    told(sys.executable)
    for name, why in (
        (str(tmp_path / "none"), "and there is none that runs"),
        (python(tmp_path, "exit 1"), "which does not run"),
    ):
        with pytest.raises(CannotStart, match=f"{name}.*{why}: {remedy}"):
            told(name)
    with pytest.raises(CannotStart, match=f"a Python 3.9, and this is 3.*: {remedy}"):
        told(python(tmp_path, "echo 3.9; echo"))
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    with pytest.raises(CannotStart, match=f"which does not have engine.pipeline, numpy: {remedy}"):
        told(python(tmp_path, f"echo {here}; echo engine.pipeline, numpy"))
    told(python(tmp_path, f'exec "{sys.executable}" "$@"'))


def test_the_readme_names_the_options_that_there_are():
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text("utf-8")
    table = readme.partition("| option | of | means |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE))))
    assert named | {"path"} == {*options.KNOWN, *options.KNOWN_OF_LOGS}
