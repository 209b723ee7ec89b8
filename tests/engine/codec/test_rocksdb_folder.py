"""Folders that RocksDB keeps for a broker: recognised and measured, not decoded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.dledger import (
    NamedFile,
)
from engine.codec.rocksdb_folder import rocks_folder

FILES_of_rocksdb = [
    NamedFile("CURRENT", 16),
    NamedFile("MANIFEST-000005", 400),
    NamedFile("000008.sst", 1000),
    NamedFile("000009.sst", 2000),
    NamedFile("000010.log", 300),
    NamedFile("OPTIONS-000007", 50),
    NamedFile("LOG", 70),
    NamedFile("IDENTITY", 36),
]


def test_queues_in_rocksdb_are_named_with_their_sizes():
    found = rocks_folder("consumequeue", FILES_of_rocksdb, b"MANIFEST-000005\n")
    assert (found.tables, found.table_bytes, found.write_ahead_logs, found.write_ahead_bytes) == (2, 3000, 1, 300)
    assert (found.manifest, found.is_valid, found.other_bytes) == ("MANIFEST-000005", True, 572)


CASES = [
    (["CURRENT", "MANIFEST-000001"], b"MANIFEST-000001\n", True),
    (["CURRENT", "MANIFEST-000001"], None, True),
    (["CURRENT", "MANIFEST-000001"], b"MANIFEST-000002\n", False),
    (["CURRENT", "MANIFEST-000001"], b"garbage", False),
    (["MANIFEST-000001", "000002.sst"], None, False),
    (["CURRENT", "000002.sst"], b"MANIFEST-000001\n", False),
]


@pytest.mark.parametrize(("names", "current", "sound"), CASES)
def test_soundness(names, current, sound):
    found = rocks_folder("kvStore", [NamedFile(name, 1) for name in names], current)
    assert found.is_valid is sound


@pytest.mark.parametrize(
    "names", [[], ["CURRENT"], ["000001.sst"], ["00000000000000000000"], ["LOG", "LOCK"], ["TopicA", "TopicB"]]
)
def test_what_is_no_rocksdb(names):
    assert rocks_folder("consumequeue", [NamedFile(name, 1) for name in names]) is None


@given(st.lists(st.text(max_size=12)), st.none() | st.binary(max_size=30))
def test_any_names_give_an_answer(names, current):
    rocks_folder("x", [NamedFile(name, 1) for name in names], current)
    found = rocks_folder("x", [*FILES_of_rocksdb, *(NamedFile(name, 1) for name in names)], current)
    assert found is not None


@pytest.mark.golden
def test_file_queues_of_real_stores_are_no_rocksdb(golden):
    for folder in ("consumequeue", "config", "index"):
        files = [NamedFile(path.name, path.stat().st_size) for path in (golden("broker-pop") / folder).iterdir()]
        assert rocks_folder(folder, files) is None
