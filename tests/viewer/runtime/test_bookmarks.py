"""Bookmarks: added, removed, restored, saved outside of the store. An unreadable file counts as no bookmarks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.errors import StoreError
from viewer.runtime import bookmarks
from viewer.runtime.bookmarks import Bookmark, Bookmarks, SavedBookmarks, file_of, from_records, read, records, write
from viewer.runtime.edit import Edit
from viewer.runtime.places import queue

LOG_MARK = Bookmark("log:1310900", "flipped", "error", "byte 79", 5)
QUEUE_MARK = Bookmark("queue:A/0/7", "entry", made=6)


@pytest.fixture
def marks(monkeypatch: pytest.MonkeyPatch, themed_app: object) -> Bookmarks:
    """Return the bookmarks of a missing store."""
    return Bookmarks(None)  # type: ignore[arg-type]


def test_a_place_has_one_bookmark(marks: Bookmarks) -> None:
    counts: list[int] = []
    marks.saveRequested.connect(lambda saved: counts.append(len(saved.marks)))
    marks.put(LOG_MARK)
    marks.put(QUEUE_MARK)
    marks.put(Bookmark("log:1310900", "renamed", made=99))
    assert [item.name for item in marks.list] == ["renamed", "entry"]
    assert marks.list[0].made == 5, "it keeps the time at which it was made"
    assert counts == [1, 2, 2]
    assert marks.list[1].goal == queue("A", 0, 7)
    assert marks.list[0].offset == 1_310_900
    assert Bookmark("no such place of any kind:", "x").goal is None


def test_every_edit_has_its_old_value_and_can_restore_it(marks: Bookmarks) -> None:
    emitted: list[Edit] = []
    marks.edited.connect(emitted.append)
    marks.put(LOG_MARK)
    marks.put(QUEUE_MARK)
    marks.remove(LOG_MARK.place)
    marks.remove("log:0")
    assert marks.list == (QUEUE_MARK,)
    assert [(edit.title, len(edit.old_value), len(edit.new_value)) for edit in emitted] == [
        ("bookmark flipped", 0, 1),
        ("bookmark entry", 1, 2),
        ("bookmark flipped", 2, 1),
    ]
    emitted[-1].put(emitted[-1].old_value)
    assert marks.list == (LOG_MARK, QUEUE_MARK)
    marks.set_notes("a")
    marks.set_notes("ab")
    assert [(edit.old_value, edit.new_value, edit.run) for edit in emitted[3:]] == [
        ("", "a", "notes"),
        ("a", "ab", "notes"),
    ]
    marks.set_notes("")


def test_merged_bookmarks_keep_existing_ones(marks: Bookmarks) -> None:
    marks.put(LOG_MARK)
    marks.put(QUEUE_MARK)
    marks.set_notes("mine")
    marks.merge(SavedBookmarks((Bookmark(LOG_MARK.place, "other"), Bookmark("positions", "ruler")), "theirs"))
    assert marks.notes == "mine\ntheirs"
    assert [item.name for item in marks.list] == ["flipped", "entry", "ruler"]


def test_bookmarks_are_saved_in_the_settings_folder(tmp_path: Path) -> None:
    store = tmp_path / "store"
    file = file_of(tmp_path / "config", store)
    assert read(file) == SavedBookmarks()
    write(file, store, SavedBookmarks())
    assert not file.exists(), "a store without bookmarks leaves no file"
    write(file, store, SavedBookmarks((LOG_MARK, QUEUE_MARK), "both"))
    assert read(file) == SavedBookmarks((LOG_MARK, QUEUE_MARK), "both")
    assert json.loads(file.read_text("utf-8"))["store"] == str(store)
    assert file != file_of(tmp_path / "config", tmp_path / "other")


@pytest.mark.parametrize("text", ["", "[]", '{"bookmarks": 7}', '{"bookmarks": [1, {"place": 3}, {"name": "x"}]}'])
def test_a_broken_file_has_no_bookmarks(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text, "utf-8")
    assert read(file) == SavedBookmarks()


def test_bookmarks_of_the_version_before_are_read_and_those_of_a_newer_one_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    write(file, tmp_path / "store", SavedBookmarks((LOG_MARK,), "notes"))
    document = json.loads(file.read_text("utf-8"))
    assert document.pop("version") == 1
    file.write_text(json.dumps(document), "utf-8")
    assert read(file) == SavedBookmarks((LOG_MARK,), "notes")
    for version in (2, "two"):
        file.write_text(json.dumps({**document, "version": version}), "utf-8")
        with pytest.raises(StoreError, match=f"found {version}: a newer Storescope has written it"):
            read(file)


def test_an_unknown_mark_becomes_a_dot() -> None:
    (results,) = from_records([{**records([LOG_MARK])[0], "kind": "purple", "more": 1}])
    assert results.kind == "note"
    assert bookmarks.KINDS[0] == "note"
