"""Paths, options and schemas of a user: understood, or refused in a sentence that names the valid ones."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.cli.pipeline_jobs import error_line
from engine.errors import NotAStore, UsageError
from engine.pipeline import options, schema
from engine.pipeline.files import find_stores
from engine.pipeline.options import Following, LogOptions, Options

pytestmark = pytest.mark.spark


def store(folder):
    (folder / "commitlog").mkdir(parents=True)
    return folder


def store_places(*paths):
    return [(place.path, place.broker) for place in find_stores([str(path) for path in paths])]


def test_an_option_that_is_none_is_refused_with_those_that_are():
    """``bdy=true`` was ignored, and the column was missing."""
    with pytest.raises(
        UsageError, match="bdy is not an option of this format; the options are path, broker, columns, splitBytes"
    ):
        LogOptions({"path": "x", "bdy": "true"})
    with pytest.raises(
        UsageError,
        match=r"crc is not an option of this format; the options are path, broker, columns, splitBytes, unreadable, "
        r"headers$",
    ):
        Options({"path": "x", "crc": "true"}, schema.CQ)
    arguments = dict.fromkeys(options.KNOWN, "x")
    LogOptions(
        {
            **arguments,
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
    [
        ("7", 7),
        ("1_000", 1000),
        ("64k", 64 << 10),
        ("128m", 128 << 20),
        ("128 MB", 128 << 20),
        ("1g", 1 << 30),
        ("2GiB", 2 << 30),
        ("512b", 512),
        ("1t", 1 << 40),
    ],
)
def test_sizes_are_written_as_spark_writes_them(text, size):
    assert LogOptions({"path": "x", "splitBytes": text}).split_bytes == size


@pytest.mark.parametrize("text", ["0", "-1", "m", "1x", "1.5g", "", "0k"])
def test_a_wrong_size_is_refused(text):
    with pytest.raises(
        UsageError, match="splitBytes: expected a number from 1 on, or a size like 64k, 128m, 1g, found"
    ):
        LogOptions({"path": "x", "splitBytes": text})


def test_several_paths(tmp_path):
    store_a, store_b = store(tmp_path / "a"), store(tmp_path / "b")
    several = Options({"paths": json.dumps([str(store_a), f"file:{store_b}"])}, schema.CQ)
    assert [place.path for place in several.stores()] == [str(store_a), str(store_b)]
    by_sql = Options({"location": f"file:{store_a}"}, schema.CQ)
    assert [place.path for place in by_sql.stores()] == [str(store_a)]
    with pytest.raises(UsageError, match="name the store"):
        Options({}, schema.CQ).stores()


def test_paths_as_uris(tmp_path):
    """Spark itself writes the path of a table as ``file:/PATH``: such a path "found none"."""
    path = store(tmp_path / "a b")
    assert store_places(f"file:{path}") == store_places(f"file://{path}") == store_places(path) == [(str(path), None)]
    assert store_places(f"file:{tmp_path}/*") == [(str(path), "a b")]


def test_braces_stand_for_each_of_their_words(tmp_path):
    for name in ("a1", "a2", "b1", "deep/x"):
        store(tmp_path / name / "store")
    assert store_places(f"{tmp_path}/{{a1,b*}}/store") == [
        (f"{tmp_path}/a1/store", "a1"),
        (f"{tmp_path}/b1/store", "b1"),
    ]
    assert [broker for _, broker in store_places(f"{tmp_path}/a{{1,2}}")] == ["a1", "a2"]
    assert [path for path, _ in store_places(f"{tmp_path}/{{deep/x,b1}}")] == [
        f"{tmp_path}/deep/x/store",
        f"{tmp_path}/b1/store",
    ]
    assert [broker for _, broker in store_places(f"{tmp_path}/[^b]{{1,2}}")] == ["a1", "a2"]
    with pytest.raises(NotAStore, match="found none"):
        store_places(f"{tmp_path}/{{c,d}}")


@pytest.mark.parametrize("name", ["a [1] b", "{x,y}", "[ab]", "a{"])
def test_a_folder_that_is_called_like_a_pattern_is_itself(tmp_path, name):
    """``a [1] b`` was only a pattern for ``a 1 b``, and found none."""
    path = store(tmp_path / name)
    store(tmp_path / "a 1 b")
    store(tmp_path / "x")
    assert store_places(path) == [(str(path), None)]
    (path / "broker").mkdir()
    inner = store(path / "broker" / "store")
    assert store_places(f"{path}/*/store") == [(str(inner), "broker")]


def test_the_documentation_names_the_options_that_exist():
    page = (Path(__file__).resolve().parents[2] / "resources/docs/reference/spark.md").read_text("utf-8")
    table = page.partition("| Option | Format | Meaning |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE))))
    assert named | {"path"} == {*options.KNOWN, *options.KNOWN_OF_LOGS}


ASKED = SimpleNamespace(number=lambda _name, _least: 4096, yes=lambda _name, default: default)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, Following()),
        ({"startingOffsets": "latest"}, Following(latest=True)),
        ({"startingTimestamp": "1700000000000"}, Following(since=1_700_000_000_000)),
        ({"startingTimestamp": "2023-11-14T22:13:20Z"}, Following(since=1_700_000_000_000)),
        ({"startingTimestamp": "2023-11-14T22:13:20"}, Following(since=1_700_000_000_000)),
        ({"startingTimestamp": "2023-11-15T00:13:20+02:00"}, Following(since=1_700_000_000_000)),
        ({"maxBytesPerTrigger": "4096"}, Following(limit_bytes=4096)),
    ],
)
def test_options_of_a_stream_are_understood(options, expected):
    assert Following.of(options, ASKED) == expected


@pytest.mark.parametrize(
    "options",
    [
        {"startingOffsets": "middle"},
        {"startingTimestamp": "yesterday"},
        {"startingOffsets": "latest", "startingTimestamp": "5"},
    ],
)
def test_impossible_options_of_a_stream_are_refused(options):
    with pytest.raises(UsageError):
        Following.of(options, ASKED)


PROGRAM = 'Cannot run program "/opt/env/bin/python": error=13, Permission denied'


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param(
            "An error occurred while calling o64.collectToPython.\n"
            ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, "
            f"most recent failure: Lost task 0.3 in stage 0.0 (TID 3): java.io.IOException: {PROGRAM}\n"
            "\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)\n"
            f"Caused by: java.io.IOException: {PROGRAM}\n"
            "\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)\n"
            "Caused by: java.io.IOException: error=13, Permission denied\n"
            "\t... 19 more",
            PROGRAM,
            id="a Python that cannot be run",
        ),
        pytest.param(
            "Job aborted: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). Consider",
            "a Python worker was killed again and again, most often because memory ran out: give the job fewer cores "
            "(--master 'local[2]') or more memory",
            id="a worker that was killed",
        ),
        pytest.param(
            "An error occurred.\n: java.io.IOException: Job aborted.\nCaused by: java.io.IOException: No room",
            "No room",
            id="a cause that stands alone",
        ),
        pytest.param(
            "Caused by: a.RuntimeException: java.io.IOException: broken\nCaused by: java.io.IOException: broken",
            "broken",
            id="the same words around it",
        ),
        pytest.param(
            "Traceback (most recent call last):\nengine.errors.CannotRead: /a: cannot be read: Permission denied\n"
            "Caused by: java.io.IOException: Broken pipe",
            "/a: cannot be read: Permission denied",
            id="what the Python worker said",
        ),
    ],
)
def test_the_line_names_the_cause_and_its_program(text, line):
    """A Python that cannot be run was "error=13, Permission denied", without the program's name."""
    assert error_line(Exception(text)) == line
