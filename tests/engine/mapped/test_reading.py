"""The single entry point for reading: a missing file is absent, and a read error is recorded before it is raised.

The data ranges and holes of a file.
"""

from __future__ import annotations

import errno
import os

import pytest
from failing_reads import FailingDisk

from engine.errors import CannotRead, CorruptUnit
from engine.mapped import reading
from engine.mapped.reading import Reading, Unread, gather_unread, read_through


def test_an_unlisted_file_is_absent_and_a_listed_one_is_missed(tmp_path):
    door = Reading()
    assert (door.entries(tmp_path / "x"), door.status(tmp_path / "x"), door.exists(tmp_path / "x")) == ([], None, False)
    assert door.open(tmp_path / "x", listed=False) == -1
    assert door.unread == ()
    with pytest.raises(CannotRead):
        door.open(tmp_path / "x")
    (item,) = door.unread
    assert (item.file, item.action) == (str(tmp_path / "x"), "open")
    assert item.words == f"{tmp_path / 'x'}: cannot be read: {item.error}"


def test_a_link_to_nothing_is_not_absent(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "unmounted")
    door = Reading()
    with pytest.raises(CannotRead):
        door.status(tmp_path / "link")
    assert [item.action for item in door.unread] == ["look"]


def test_a_folder_where_a_file_belongs_is_no_unread_file(tmp_path):
    door = Reading()
    with pytest.raises(CorruptUnit, match="expected a regular file, found a folder"):
        door.open(tmp_path, listed=False)
    assert door.unread == ()


def test_another_file_under_the_same_name_is_detected(tmp_path):
    file = tmp_path / "log"
    file.write_bytes(b"one")
    was = file.stat()
    file.rename(tmp_path / "kept")
    file.write_bytes(b"two")
    door = Reading()
    with pytest.raises(CannotRead, match="another file has taken its name"):
        door.open(file, identity=(was.st_dev, was.st_ino))
    assert door.has_vanished(door.unread[0])


def test_a_failing_disk_is_recorded_by_reader_and_collector(tmp_path):
    (tmp_path / "f").write_bytes(b"12345678")
    with gather_unread() as gathered, read_through(FailingDisk(tmp_path, "read", 0)):
        door, alone = Reading(), Reading(alone=True)
    assert not door.is_plain(str(tmp_path))
    for item in (door, alone):
        descriptor = item.open(tmp_path / "f")
        with pytest.raises(CannotRead):
            item.read(str(tmp_path / "f"), descriptor, 8, 0, 8)
        os.close(descriptor)
        assert [results.action for results in item.unread] == ["read"]
    assert list(gathered) == list(door.unread)
    with pytest.raises(CannotRead, match="queues are not known"):
        door.refuse("queues are not known")
    door.drop_unread(door.unread)
    assert (door.unread, list(gathered)) == ((), [])
    door.refuse("nothing is missed")


def test_the_record_follows_the_contract():
    unread = Unread("/s/checkpoint", "Input/output error", "list")
    assert unread.record() == {
        "type": "unreadable",
        "file": "/s/checkpoint",
        "error": "Input/output error",
        "action": "list",
    }
    assert unread.reason == "cannot be listed: Input/output error"


MIB = 1 << 20


def test_data_lies_inside_the_spans_and_a_hole_is_in_none(tmp_path):
    with (tmp_path / "file").open("w+b") as file:
        os.ftruncate(file.fileno(), 8 * MIB)
        os.pwrite(file.fileno(), b"x" * 4096, 4 * MIB)
        os.fsync(file.fileno())
        data_extents = reading.data_extents(file.fileno(), 0, 8 * MIB)
        assert any(start <= 4 * MIB and stop >= 4 * MIB + 4096 for start, stop in data_extents)
        assert all(0 <= start < stop <= 8 * MIB for start, stop in data_extents)
        assert reading.data_extents(file.fileno(), 8 * MIB, 8 * MIB) == []


def test_without_hole_information_everything_counts_as_data(tmp_path, monkeypatch):
    def refused(*_call: object) -> int:
        raise OSError(errno.EINVAL, "no such thing here")

    monkeypatch.setattr(reading.os, "lseek", refused)
    assert reading.data_extents(0, 10, 500) == [(10, 500)]
