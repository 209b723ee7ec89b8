"""What a path is: a store, one below it, a log by itself, a file; and what is said where it is none."""

from __future__ import annotations

import shutil

import pytest
from made_stores import LOG_SIZE, MadeStore

from engine.errors import NotAStore
from engine.inspection.opening import guess_base, recognise
from engine.mapped.reading import Reading


@pytest.fixture
def root(tmp_path):
    made = MadeStore()
    for _ in range(60):
        made.put()
    return made.write(tmp_path / "above" / "store")


def test_a_store_and_the_folder_above_it(root):
    assert (recognise(root).kind, recognise(root).path) == ("store", root)
    above = recognise(root.parent)
    assert (above.kind, above.path) == ("store", root)
    assert above.notes[0].startswith("The store was found below")


def test_a_log_by_itself_and_one_file_of_it(root):
    log = recognise(root / "commitlog")
    assert (log.kind, log.path) == ("commitlog", root / "commitlog")
    second = root / "commitlog" / f"{LOG_SIZE:020d}"
    assert (recognise(second).kind, recognise(second).start_offset) == ("file", LOG_SIZE)


def test_a_piece_without_its_name_knows_where_it_begins(root, tmp_path):
    piece = tmp_path / "tail.bin"
    piece.write_bytes((root / "commitlog" / f"{LOG_SIZE:020d}").read_bytes()[100:])
    assert guess_base(piece, Reading()) == LOG_SIZE + 100
    assert recognise(piece).start_offset == LOG_SIZE + 100
    wrong = tmp_path / f"{7 * LOG_SIZE:020d}"
    shutil.copy(root / "commitlog" / f"{LOG_SIZE:020d}", wrong)
    assert recognise(wrong).start_offset == LOG_SIZE
    assert "the units are believed" in recognise(wrong).notes[0]


def test_what_is_none_is_named_with_what_is_there(root, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("hello, no unit of a log")
    shutil.copytree(root, root.parent / "second")
    for path, words in (
        (tmp_path / "empty", "found an empty directory"),
        (tmp_path / "text", "found no message unit in it"),
        (tmp_path / "none", "found nothing of this name"),
        (root.parent, "found 2 below it: second, store"),
        (root / "consumequeue" / "Orders" / "0", "found queue files"),
    ):
        with pytest.raises(NotAStore, match=words):
            recognise(path)
