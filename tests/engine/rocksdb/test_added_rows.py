"""Rows come into a database by a new write-ahead log; its files stay as they are."""

import made_rocksdb

from engine.mapped.reading import Reading
from engine.rocksdb.added_rows import added_log
from engine.rocksdb.database import open_rocksdb


def test_a_new_log_replaces_adds_and_deletes_rows(tmp_path):
    rows = {"default": {b"a": b"1", b"b": b"2"}, "offset": {b"o": b"3"}}
    folder = made_rocksdb.make_database(tmp_path / "db", rows)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with open_rocksdb(folder, Reading()) as database:
        log = added_log(database, Reading(), {"default": [(b"a", b"9"), (b"b", None)], "offset": [(b"p", b"4")]})
    assert log is not None
    assert log.rows == 3
    assert int(log.name.removesuffix(".log")) > max(int(name.partition(".")[0]) for name in before if name[0].isdigit())
    (folder / log.name).write_bytes(log.content)
    assert made_rocksdb.read_rows(folder) == {"default": {b"a": b"9"}, "offset": {b"o": b"3", b"p": b"4"}}
    assert {name: (folder / name).read_bytes() for name in before} == before


def test_a_second_log_comes_behind_the_first(tmp_path):
    """Both are replayed, and the later one counts, also over rows that no table file has yet."""
    folder = made_rocksdb.make_database(tmp_path / "db", {"default": {b"a": b"1"}}, flush=False)
    for value in (b"2", b"3"):
        with open_rocksdb(folder, Reading()) as database:
            log = added_log(database, Reading(), {"default": [(b"a", value)]})
        assert log is not None
        (folder / log.name).write_bytes(log.content)
    assert made_rocksdb.read_rows(folder)["default"] == {b"a": b"3"}


def test_a_family_that_the_database_lacks_is_not_written(tmp_path):
    folder = made_rocksdb.make_database(tmp_path / "db", {"default": {}})
    with open_rocksdb(folder, Reading()) as database:
        assert added_log(database, Reading(), {"offset": [(b"a", b"1")]}) is None
