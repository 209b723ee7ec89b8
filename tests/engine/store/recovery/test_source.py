"""The folder listing that recovery uses.

The tables below ``config/`` that a start reads.
"""

from __future__ import annotations

from engine.mapped.reading import Reading
from engine.store.recovery.source import Entry, GroupOffset, Tables, list_folder


def test_a_folder_s_files_and_folders_by_name(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "a").write_bytes(b"12345")
    (file_entry, folder_entry) = list_folder(tmp_path)
    assert file_entry == Entry(str(tmp_path / "a"), "a", 5, False)
    assert (folder_entry.name, folder_entry.folder) == ("b", True)


def test_a_missing_folder_and_a_file_are_empty_listings(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    door = Reading()
    assert list(list_folder(tmp_path / "none", door)) == list(list_folder(tmp_path / "file", door)) == []
    assert not door.unread


LIGHT = b'{"lmqOffsetTable":{"%LMQ%t1@%LMQ%g1":5,"bad":1,"%LMQ%t@g":true},"offsetTable":{"t@g":{0:7}}}'


def test_light_groups_have_offsets_of_their_own():
    tables = Tables({"lmqConsumerOffset.json": LIGHT}.get, "config")
    assert list(tables.group_offsets()) == [GroupOffset("g", "t", 0, 7), GroupOffset("%LMQ%g1", "%LMQ%t1", 0, 5)]
