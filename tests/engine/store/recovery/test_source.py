"""What recovery is handed of a folder.

What a start reads of the tables below ``config/``.
"""

from __future__ import annotations

from engine.mapped.reading import Reading
from engine.store.recovery.source import Entry, GroupOffset, Tables, list_folder


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


LIGHT = b'{"lmqOffsetTable":{"%LMQ%t1@%LMQ%g1":5,"bad":1,"%LMQ%t@g":true},"offsetTable":{"t@g":{0:7}}}'


def test_light_groups_have_offsets_of_their_own():
    tables = Tables({"lmqConsumerOffset.json": LIGHT}.get, "config")
    assert list(tables.group_offsets()) == [GroupOffset("g", "t", 0, 7), GroupOffset("%LMQ%g1", "%LMQ%t1", 0, 5)]
