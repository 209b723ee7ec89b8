"""RocksDB databases are opened through a private view: rows are read, nothing is written, damage is reported."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import golden_stores
import made_rocksdb
import pytest
from file_access_audit import watching

from engine.errors import CannotRead, DamagedDatabase, MissingExtra
from engine.mapped.reading import Reading
from engine.rocksdb import database as subject
from engine.rocksdb.database import open_rocksdb
from engine.rocksdb.private_copy import PREFIX

HEAD_BYTES = 7
"""CRC, length and type in front of a record of a write-ahead log."""
ROWS = {f"key-{number:05d}".encode(): f"value {number}".encode() * 9 for number in range(4000)}


@pytest.fixture
def database_folder(tmp_path):
    return made_rocksdb.make_database(tmp_path / "db", {"default": ROWS, "offset": {b"a": b"1"}})


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path_factory, monkeypatch):
    """Other tests at the same time make and remove folders of the same kind."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))


def leftovers() -> list[Path]:
    return sorted(Path(tempfile.gettempdir()).glob(PREFIX + "*"))


def test_rows_are_read_by_family_and_key(database_folder):
    with open_rocksdb(database_folder, Reading(), ("default", "offset")) as database:
        assert database.families == {"default", "offset"}
        assert database.get("default", b"key-00007") == b"value 7" * 9
        assert database.get("default", b"key-99999") is None
        assert list(database.rows("offset")) == [(b"a", b"1")]
        assert dict(database.rows("default")) == ROWS
        assert [key for key, _ in database.rows("default", b"key-00003", b"key-00006")] == [
            b"key-00003",
            b"key-00004",
            b"key-00005",
        ]
        assert database.values("default", b"key-00003", b"key-00005") == [ROWS[b"key-00003"], ROWS[b"key-00004"]]
        assert database.first_key("default", b"key-00003x", b"z") == b"key-00004"
        assert database.first_key("default", b"x", b"z") is None


def test_rows_of_a_write_ahead_log_are_read(tmp_path):
    folder = made_rocksdb.make_database(tmp_path / "db", {"default": ROWS}, flush=False)
    assert not list(folder.glob("*.sst"))
    with open_rocksdb(folder, Reading()) as database:
        assert dict(database.rows("default")) == ROWS


@pytest.mark.parametrize("form", ["none", "snappy", "zlib", "bz2", "lz4", "lz4hc", "zstd", "blob files"])
def test_every_form_of_table_files_is_read(form, tmp_path):
    rocks = made_rocksdb.binding()
    options = rocks.Options(raw_mode=True)
    options.create_if_missing(True)
    if form == "blob files":
        options.set_enable_blob_files(True)
        options.set_min_blob_size(10)
    else:
        options.set_compression_type(getattr(rocks.DBCompressionType, form)())
    database = rocks.Rdict(str(tmp_path / "db"), options)
    for key, value in ROWS.items():
        database[key] = value
    database.flush()
    database.close()
    with open_rocksdb(tmp_path / "db", Reading()) as database:
        assert dict(database.rows("default")) == ROWS


def test_reading_leaves_no_writes_links_or_files(database_folder):
    """A hard link would be visible in the inode of the store's file: its link count, and its change time."""
    fingerprint_before = golden_stores.fingerprint(database_folder)
    inodes = {path.name: (path.stat().st_ctime_ns, path.stat().st_nlink) for path in database_folder.iterdir()}
    leftovers_before = leftovers()
    with watching(database_folder) as accesses, open_rocksdb(database_folder, Reading()) as database:
        assert len(list(database.rows("default"))) == len(ROWS)
        assert len(leftovers()) == len(leftovers_before) + 1
    assert accesses == []
    assert golden_stores.changes(fingerprint_before, golden_stores.fingerprint(database_folder)) == []
    assert inodes == {path.name: (path.stat().st_ctime_ns, path.stat().st_nlink) for path in database_folder.iterdir()}
    assert leftovers() == leftovers_before


def test_a_database_that_a_writer_holds_is_read(tmp_path):
    """RocksDB locks its folder: a second opening for writing fails."""
    rocks = made_rocksdb.binding()
    options = rocks.Options(raw_mode=True)
    options.create_if_missing(True)
    writer = rocks.Rdict(str(tmp_path / "db"), options)
    writer[b"a"] = b"1"
    writer.flush()
    writer[b"b"] = b"2"
    with open_rocksdb(tmp_path / "db", Reading()) as database:
        assert dict(database.rows("default")) == {b"a": b"1", b"b": b"2"}
        assert not database.has_changed()
        writer[b"c"] = b"3"
        writer.flush()
        writer.compact_range(None, None)
        assert database.has_changed()
        assert dict(database.rows("default")) == {b"a": b"1", b"b": b"2"}, "the state when it was opened"
    writer.close()


def largest_table(folder: Path) -> Path:
    return max(folder.glob("*.sst"), key=lambda path: path.stat().st_size)


def overwrite(path: Path, offset: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[offset : offset + len(data)] = data
    path.write_bytes(content)


def remove_table(folder: Path) -> str:
    table = largest_table(folder)
    table.unlink()
    return f"{table.name}: expected a table file of"


def cut_table(folder: Path) -> str:
    table = largest_table(folder)
    table.write_bytes(table.read_bytes()[:-100])
    return f"{table.name}: expected a table file of"


def break_footer(folder: Path) -> str:
    table = largest_table(folder)
    overwrite(table, table.stat().st_size - 8, b"12345678")
    return "RocksDB cannot read it: .*" + table.name


def remove_current(folder: Path) -> str:
    (folder / "CURRENT").unlink()
    return "CURRENT: expected the name of a manifest, found no file"


def garble_current(folder: Path) -> str:
    (folder / "CURRENT").write_bytes(b"nonsense")
    return "CURRENT: expected the name of a manifest, found other bytes"


def remove_manifest(folder: Path) -> str:
    for path in folder.glob("MANIFEST-*"):
        path.unlink()
    return "expected this manifest, which CURRENT names"


def garble_manifest(folder: Path) -> str:
    for path in folder.glob("MANIFEST-*"):
        path.write_bytes(b"\x55" * 300)
    return "RocksDB cannot read it: "


DAMAGES = [remove_table, cut_table, break_footer, remove_current, garble_current, remove_manifest, garble_manifest]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_reported_with_its_file(damage, database_folder):
    words = damage(database_folder)
    reading = Reading()
    leftovers_before = leftovers()
    with pytest.raises(DamagedDatabase, match=words), open_rocksdb(database_folder, reading) as database:
        list(database.rows("default"))
    assert reading.unread, "nothing may be concluded"
    assert PREFIX not in reading.unread[0].words
    assert leftovers() == leftovers_before


def test_a_damaged_block_ends_no_list_silently(database_folder):
    """The binding's own iterators ended at a damaged block as if the rows ended there."""
    table = largest_table(database_folder)
    overwrite(table, table.stat().st_size // 3, b"\xff" * 64)
    with open_rocksdb(database_folder, Reading()) as database:
        with pytest.raises(DamagedDatabase, match="checksum mismatch"):
            list(database.rows("default"))
        with pytest.raises(DamagedDatabase, match="checksum mismatch"):
            database.values("default", b"key", b"kez")


def test_a_torn_end_of_the_write_ahead_log_is_accepted(tmp_path):
    folder = made_rocksdb.make_database(tmp_path / "db", {"default": ROWS}, flush=False)
    log = max(folder.glob("*.log"), key=lambda path: path.stat().st_size)
    log.write_bytes(log.read_bytes()[:-5])
    with open_rocksdb(folder, Reading()) as database:
        assert len(list(database.rows("default"))) == len(ROWS) - 1


def test_damage_inside_the_write_ahead_log_is_reported(tmp_path):
    folder = made_rocksdb.make_database(tmp_path / "db", {"default": ROWS}, flush=False)
    log = max(folder.glob("*.log"), key=lambda path: path.stat().st_size)
    overwrite(log, log.stat().st_size // 2, b"\xff" * 64)
    with pytest.raises(DamagedDatabase, match="RocksDB cannot read it"):
        open_rocksdb(folder, Reading())


def test_an_outdated_manifest_is_reported(tmp_path):
    """RocksDB opens such a database without an error: the writes between an old manifest and a new log were missing."""
    folder = made_rocksdb.make_database(tmp_path / "db", {"default": {b"a": b"1"}})
    newer = made_rocksdb.make_database(tmp_path / "newer", {"default": ROWS}, flush=False)
    log = bytearray(max(newer.glob("*.log"), key=lambda path: path.stat().st_size).read_bytes())
    log[HEAD_BYTES : HEAD_BYTES + 8] = (1000).to_bytes(8, "little")  # its first write gets the number 1,000
    for path in folder.glob("*.log"):
        path.unlink()
    (folder / "000900.log").write_bytes(log)
    with pytest.raises(DamagedDatabase, match="manifest and write-ahead log are of different times"):
        open_rocksdb(folder, Reading())


def test_a_missing_column_family_is_reported(database_folder):
    with pytest.raises(DamagedDatabase, match="expected a RocksDB with the column family timer, found default, offset"):
        open_rocksdb(database_folder, Reading(), ("default", "timer"))


def test_a_file_without_read_rights_is_named(database_folder, monkeypatch):
    table = largest_table(database_folder)
    reading = Reading()

    def refuse(path: str) -> int:
        if path == str(table):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    real = reading._disk.open
    monkeypatch.setattr(reading, "_disk", type("Disk", (type(reading._disk),), {"open": staticmethod(refuse)})())
    with pytest.raises(CannotRead, match="Permission denied"):
        open_rocksdb(database_folder, reading)
    assert [item.file for item in reading.unread] == [str(table)]


def test_without_the_extra_one_sentence_names_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rocksdict", None)
    assert not subject.is_available()
    with pytest.raises(MissingExtra, match=r"pip install 'storescope\[rocksdb\]'"):
        open_rocksdb(tmp_path, Reading())
