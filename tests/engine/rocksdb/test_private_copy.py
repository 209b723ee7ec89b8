"""The private view of a RocksDB folder: of one moment, also while a broker changes the folder."""

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
def made(tmp_path):
    return made_rocksdb.make_database(tmp_path / "db", {"default": {b"a": b"1"}})


def test_table_files_are_links_and_the_rest_is_copied(made):
    copy = make_private_copy(made, Reading())
    try:
        tables = [path for path in copy.path.iterdir() if path.suffix == ".sst"]
        assert tables
        assert all(path.is_symlink() and path.resolve().parent == made for path in tables)
        assert not any(path.is_symlink() for path in copy.path.iterdir() if path not in tables)
    finally:
        copy.remove()
    assert not copy.path.exists()
    assert list(made.glob("*.sst")), "the links are gone, not the files"


def change_while_copied(monkeypatch, made: Path, times: int) -> list[int]:
    """Let the manifest grow each time a copy was made of it, as a flush of the broker does."""
    calls: list[int] = []
    real = private_copy._check_tables

    def changing(folder, manifest, sizes, reading):
        calls.append(1)
        if len(calls) <= times:
            (name,) = made.glob("MANIFEST-*")
            name.write_bytes(name.read_bytes() + bytes(1))
        real(folder, manifest, sizes, reading)

    monkeypatch.setattr(private_copy, "_check_tables", changing)
    return calls


def test_a_view_is_made_again_when_the_manifest_changed_meanwhile(made, monkeypatch):
    calls = change_while_copied(monkeypatch, made, 2)
    reading = Reading()
    make_private_copy(made, reading).remove()
    assert len(calls) == 3
    assert reading.unread == ()


def test_a_database_that_never_rests_is_said(made, monkeypatch):
    change_while_copied(monkeypatch, made, 99)
    with pytest.raises(CannotRead, match="faster than it can be copied"):
        make_private_copy(made, Reading())


def test_a_table_file_that_a_compaction_deleted_is_no_damage(made, monkeypatch):
    """Between the copy of the manifest and the look at the table files a broker had compacted them."""
    calls: list[int] = []
    real = private_copy._check_tables

    def compacting(folder, manifest, sizes, reading):
        calls.append(1)
        if len(calls) == 1:
            rocks = made_rocksdb.binding()
            broker = rocks.Rdict(str(made), rocks.Options(raw_mode=True))
            broker[b"b"] = b"2"
            broker.flush()
            broker.compact_range(None, None)
            broker.close()
            sizes = {name: size for name, size in sizes.items() if not name.endswith(".sst")}
        real(folder, manifest, sizes, reading)

    monkeypatch.setattr(private_copy, "_check_tables", compacting)
    reading = Reading()
    make_private_copy(made, reading).remove()
    assert len(calls) == 2
    assert reading.unread == ()


def test_no_temporary_folder_is_made_in_the_store(made, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    with pytest.raises(CannotRead, match="set TMPDIR"):
        make_private_copy(made, Reading())
