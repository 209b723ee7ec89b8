"""The session file: written and read back, other files refused, and found again after it moved with its store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.errors import StoreError
from viewer.runtime.bookmarks import Bookmark
from viewer.shell.session_file import Session, from_text, read, to_text, write

COMPLETE_SESSION = Session(
    "/data/store",
    "log:1310900",
    ("log", "queue:A/0/7"),
    (Bookmark("log:5", "五", "warn", "why", 9),),
    "seen\ntwice",
    'topic = "A"',
    (1280, 720),
    {"log.0": b"\x00\xff", "side": b""},
    1_795_261_264_536,
)


def test_a_written_session_is_read_back() -> None:
    assert from_text(to_text(COMPLETE_SESSION), "x") == COMPLETE_SESSION
    assert json.loads(to_text(COMPLETE_SESSION))["bookmarks"][0]["name"] == "五", "a person can read it"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "expected a session file"),
        ("[1]", "found other JSON"),
        ('{"format": "storescope-session", "store": 7}', "found other JSON"),
        ('{"format": "storescope-session", "store": "/s", "version": 99}', "found 99"),
        ('{"format": "storescope-session", "store": "/s"}', "found None"),
    ],
)
def test_another_file_is_refused_with_its_content(text: str, words: str) -> None:
    with pytest.raises(StoreError, match=words):
        from_text(text, "x.storescope")


def test_unreadable_parts_count_as_absent() -> None:
    record = json.loads(to_text(COMPLETE_SESSION)) | {
        "bookmarks": 3,
        "places": [1, "log"],
        "saved": "now",
        "filter": None,
    }
    record["window"] = {"size": [0, -1], "splitters": {"a": "***", "b": 3}}
    results = from_text(json.dumps(record), "x")
    assert (results.bookmarks, results.places, results.saved, results.filter) == ((), ("log",), 0, "")
    assert (results.size, results.layout) == ((0, 0), {})


def test_a_store_that_moved_with_its_session_is_found(tmp_path: Path) -> None:
    file = tmp_path / "x.storescope"
    write(file, Session("/nowhere/broker-a/store"))
    with pytest.raises(StoreError, match="is not here"):
        read(file)
    (tmp_path / "broker-a" / "store").mkdir(parents=True)
    assert read(file).store == str(tmp_path / "broker-a" / "store")
    assert [item.name for item in tmp_path.iterdir() if item.name.endswith(".part")] == []
