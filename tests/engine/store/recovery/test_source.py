"""What recovery is handed of a folder."""

from __future__ import annotations

from engine.mapped.reading import Reading
from engine.store.recovery.source import Entry, list_folder


def test_a_folder_s_files_and_folders_by_name(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "a").write_bytes(b"12345")
    (first, second) = list_folder(tmp_path)
    assert first == Entry(str(tmp_path / "a"), "a", 5, False)
    assert (second.name, second.folder) == ("b", True)


def test_one_that_is_not_there_and_one_that_is_no_folder_are_empty(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    door = Reading()
    assert list(list_folder(tmp_path / "none", door)) == list(list_folder(tmp_path / "file", door)) == []
    assert not door.unread
