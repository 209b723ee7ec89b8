"""The private view of a RocksDB folder is consistent, even while a broker changes the folder."""

from __future__ import annotations

import tempfile
from pathlib import Path

import made_rocksdb
import pytest

from engine.errors import CannotRead
from engine.mapped.reading import Reading
from engine.rocksdb import private_copy
from engine.rocksdb.private_copy import make_private_copy


@pytest.fixture
def database_folder(tmp_path):
    return made_rocksdb.make_database(tmp_path / "db", {"default": {b"a": b"1"}})


def test_table_files_are_links_and_the_rest_is_copied(database_folder):
    copy = make_private_copy(database_folder, Reading())
    try:
        tables = [path for path in copy.path.iterdir() if path.suffix == ".sst"]
        assert tables
        assert all(path.is_symlink() and path.resolve().parent == database_folder for path in tables)
        assert not any(path.is_symlink() for path in copy.path.iterdir() if path not in tables)
    finally:
        copy.remove()
    assert not copy.path.exists()
    assert list(database_folder.glob("*.sst")), "the links are gone, not the files"


def change_while_copied(monkeypatch, database_folder: Path, times: int) -> list[int]:
    """Let the manifest grow after each copy of it, like a flush of the broker."""
    calls: list[int] = []
    check_tables = private_copy._check_tables

    def changing(folder, manifest, sizes, reading):
        calls.append(1)
        if len(calls) <= times:
            (name,) = database_folder.glob("MANIFEST-*")
            name.write_bytes(name.read_bytes() + bytes(1))
        check_tables(folder, manifest, sizes, reading)

    monkeypatch.setattr(private_copy, "_check_tables", changing)
    return calls


def test_a_view_is_made_again_when_the_manifest_changed_meanwhile(database_folder, monkeypatch):
    calls = change_while_copied(monkeypatch, database_folder, 2)
    reading = Reading()
    make_private_copy(database_folder, reading).remove()
    assert len(calls) == 3
    assert reading.unread == ()


def test_a_constantly_changing_database_is_an_error(database_folder, monkeypatch):
    change_while_copied(monkeypatch, database_folder, 99)
    with pytest.raises(CannotRead, match="faster than it can be copied"):
        make_private_copy(database_folder, Reading())


def test_a_table_file_that_a_compaction_deleted_is_no_damage(database_folder, monkeypatch):
    """A broker compacted the table files between the copy of the manifest and the listing of the table files."""
    calls: list[int] = []
    check_tables = private_copy._check_tables

    def compacting(folder, manifest, sizes, reading):
        calls.append(1)
        if len(calls) == 1:
            rocks = made_rocksdb.binding()
            broker = rocks.Rdict(str(database_folder), rocks.Options(raw_mode=True))
            broker[b"b"] = b"2"
            broker.flush()
            broker.compact_range(None, None)
            broker.close()
            sizes = {name: size for name, size in sizes.items() if not name.endswith(".sst")}
        check_tables(folder, manifest, sizes, reading)

    monkeypatch.setattr(private_copy, "_check_tables", compacting)
    reading = Reading()
    make_private_copy(database_folder, reading).remove()
    assert len(calls) == 2
    assert reading.unread == ()


def test_no_temporary_folder_is_made_in_the_store(database_folder, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(database_folder))
    with pytest.raises(CannotRead, match="set TMPDIR"):
        make_private_copy(database_folder, Reading())
