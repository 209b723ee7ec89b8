"""A write-ahead log that is made here is what RocksDB writes: its own reader takes every row."""

import random

import made_rocksdb
import pytest

from engine.codec import rocksdb
from engine.codec.rocksdb_log import RowChange, encode_log


def test_a_log_begins_with_its_first_write():
    assert rocksdb.first_sequence(encode_log([RowChange(0, b"k", b"v")], 4711)) == 4711


@pytest.mark.parametrize("size", [0, 100, 32_700, 32_760, 32_761, 40_000, 100_000])
def test_rocksdb_reads_rows_of_any_size(tmp_path, size):
    """Values end right in front of, at, and behind the end of a block of 32 KiB."""
    folder = made_rocksdb.make_database(tmp_path / "db", {"default": {b"a": b"1"}, "offset": {}})
    changes = [RowChange(0, b"key%d" % number, bytes([number]) * size) for number in range(5)]
    (folder / "000900.log").write_bytes(encode_log([*changes, RowChange(1, b"o", b"")], 2))
    rows = made_rocksdb.read_rows(folder)
    assert rows["default"] == {b"a": b"1", **{row.key: row.value for row in changes}}
    assert rows["offset"] == {b"o": b""}


def test_rocksdb_reads_many_batches_and_deleted_rows(tmp_path):
    rng = random.Random(1)
    folder = made_rocksdb.make_database(tmp_path / "db", {"default": {b"a": b"1", b"b": b"2"}})
    rows = {rng.randbytes(rng.randrange(1, 300)): rng.randbytes(rng.randrange(900)) for _ in range(3000)}
    changes = [RowChange(0, key, value) for key, value in rows.items()]
    (folder / "000900.log").write_bytes(encode_log([*changes, RowChange(0, b"a", None)], 3))
    assert made_rocksdb.read_rows(folder)["default"] == {b"b": b"2", **rows}
