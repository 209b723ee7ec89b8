"""DLedger logs are recognised and sized.

RocksDB folders are recognised and sized.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.foreign import (
    HEADER_SIZE,
    EntryHeader,
    NamedFile,
    decode_header,
    dledger_log,
    encode_header,
    rocks_folder,
    wraps_message,
)

HEADER = EntryHeader(1, 48 + 123, 7, 3, 0, 0, 0, 9, 123)
WIRE = "00000001000000ab0000000000000007000000000000000300000000000000000000000000000000000000090000007b"
UNIT_HEAD = bytes.fromhex("0000007bdaa320a7")
FILES = [
    NamedFile("data/00000000000000000000", 1 << 30),
    NamedFile("data/00000000001073741824", 1 << 30),
    NamedFile("index/00000000000000000000", 160 << 20),
    NamedFile("quorum_ack", 10),
]


def test_a_header_both_ways():
    assert encode_header(HEADER).hex() == WIRE
    assert decode_header(bytes.fromhex(WIRE)) == HEADER


_I32, _I64 = (st.integers(0, (1 << bits - 1) - 1) for bits in (32, 64))


@given(st.integers(0, 1 << 30), _I64, _I64, _I64, _I32, _I32, _I32)
def test_plausible_headers_come_back(body, index, term, position, channel, chain, crc):
    header = EntryHeader(1, HEADER_SIZE + body, index, term, position, channel, chain, crc, body)
    assert decode_header(b"x" + encode_header(header), 1) == header


@given(st.binary(max_size=80))
def test_any_bytes_give_a_header_or_none(raw):
    header = decode_header(raw)
    assert header is None or header.plausible
    assert wraps_message(raw) in {True, False}


@pytest.mark.parametrize(
    "raw", [b"", bytes(47), bytes(48), b"\xff" * 48, encode_header(HEADER)[:4] + bytes(44), UNIT_HEAD + bytes(60)]
)
def test_what_is_no_header(raw):
    assert decode_header(raw) is None


def test_a_folder_is_known_by_its_name():
    found = dledger_log("dledger-n0", FILES, encode_header(HEADER) + UNIT_HEAD)
    assert (found.self_id, found.data_files, found.data_bytes) == ("n0", 2, 2 << 30)
    assert (found.index_files, found.index_bytes, found.other_bytes) == (1, 160 << 20, 10)
    assert found.first_entry == HEADER
    assert found.wraps_messages
    assert found.words == (
        "DLedger log of member n0: 2 data files with 2,147,483,648 bytes, 1 index files with 167,772,160 bytes, "
        "oldest entry 7 of term 3. The entries of DLedger are not decoded: messages inside them are not listed."
    )


def test_an_empty_folder_of_that_name_is_known_too():
    assert dledger_log("dledger-n0", []).words.startswith("DLedger log of member n0: 0 data files with 0 bytes")


def test_another_folder_is_known_by_its_first_entry():
    assert dledger_log("log", FILES, encode_header(HEADER) + UNIT_HEAD).self_id == ""
    assert dledger_log("log", FILES, bytes(56)) is None
    assert dledger_log("log", [], encode_header(HEADER) + UNIT_HEAD) is None
    assert dledger_log("commitlog", [NamedFile("00000000000000000000", 5)], UNIT_HEAD) is None


def test_a_plain_log_wraps_nothing():
    assert not wraps_message(UNIT_HEAD + bytes(100))
    assert wraps_message(encode_header(HEADER) + UNIT_HEAD)
    assert not wraps_message(encode_header(HEADER) + bytes(8))


@pytest.mark.golden
def test_real_stores_are_no_dledger_logs(golden):
    store = golden("clean-5.3.3")
    for folder in store.iterdir():
        if folder.is_dir():
            files = [NamedFile(str(p.relative_to(folder)), p.stat().st_size) for p in folder.rglob("*") if p.is_file()]
            first = min(p for p in folder.rglob("*") if p.is_file()).read_bytes()[:56]
            assert dledger_log(folder.name, files, first) is None


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
