"""DLedger logs are recognised and measured."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.dledger import (
    HEADER_SIZE,
    DLedgerCheckpoint,
    EntryHeader,
    IndexRow,
    NamedFile,
    Vote,
    begins_with_unit,
    decode_blank,
    decode_checkpoint,
    decode_header,
    decode_index_row,
    decode_vote,
    dledger_log,
    encode_blank,
    encode_header,
    encode_index_row,
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
def test_plausible_headers_round_trip(body, index, term, position, channel, chain, crc):
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
def test_invalid_headers(raw):
    assert decode_header(raw) is None


def test_a_folder_is_recognised_by_its_name():
    actual_dledger_log = dledger_log("dledger-n0", FILES, encode_header(HEADER) + UNIT_HEAD)
    assert (actual_dledger_log.self_id, actual_dledger_log.data_files, actual_dledger_log.data_bytes) == (
        "n0",
        2,
        2 << 30,
    )
    assert (actual_dledger_log.index_files, actual_dledger_log.index_bytes, actual_dledger_log.other_bytes) == (
        1,
        160 << 20,
        10,
    )
    assert actual_dledger_log.first_entry == HEADER
    assert actual_dledger_log.wraps_messages
    assert actual_dledger_log.words == (
        "DLedger log of member n0: 2 data files with 2,147,483,648 bytes, 1 index file with 167,772,160 bytes, "
        "oldest entry 7 of term 3."
    )


def test_an_empty_folder_of_that_name_is_recognised_too():
    assert dledger_log("dledger-n0", []).words.startswith("DLedger log of member n0: 0 data files with 0 bytes")


def test_another_folder_is_recognised_by_its_first_entry():
    assert dledger_log("log", FILES, encode_header(HEADER) + UNIT_HEAD).self_id == ""
    assert dledger_log("log", FILES, bytes(56)) is None
    assert dledger_log("log", [], encode_header(HEADER) + UNIT_HEAD) is None
    assert dledger_log("commitlog", [NamedFile("00000000000000000000", 5)], UNIT_HEAD) is None


def test_a_plain_log_wraps_nothing():
    assert not wraps_message(UNIT_HEAD + bytes(100))
    assert wraps_message(encode_header(HEADER) + UNIT_HEAD)
    assert not wraps_message(encode_header(HEADER) + bytes(8))


def test_index_rows_and_blanks_both_ways():
    row = IndexRow(1, 4096, 171, 7, 3)
    assert decode_index_row(b"x" + encode_index_row(row), 1) == row
    assert decode_blank(encode_blank(4096)) == 4096
    assert decode_blank(encode_header(HEADER)) is None
    assert decode_blank(encode_blank(4096)[:-1]) is None


def test_the_checkpoint_and_the_vote_are_properties():
    """A number that is none is unknown, as the library would fail on it."""
    assert decode_checkpoint(b"#date\nendIndex=12\ncommittedIndex = 7\n") == DLedgerCheckpoint(12, 7)
    assert decode_checkpoint(b"endIndex=x\n") == DLedgerCheckpoint(None, None)
    assert decode_vote(b"voteLeader=n0\ncurrTerm=3\n") == Vote(3, "n0")
    assert decode_vote(b"") == Vote(None, "")


def test_a_message_is_known_by_its_size_and_magic_code():
    assert begins_with_unit(UNIT_HEAD)
    assert not begins_with_unit(UNIT_HEAD[:-1])
    assert not begins_with_unit(bytes(8))


@pytest.mark.golden
def test_real_stores_are_no_dledger_logs(golden):
    store = golden("clean-5.3.3")
    for folder in store.iterdir():
        if folder.is_dir():
            files = [NamedFile(str(p.relative_to(folder)), p.stat().st_size) for p in folder.rglob("*") if p.is_file()]
            first_bytes = min(p for p in folder.rglob("*") if p.is_file()).read_bytes()[:56]
            assert dledger_log(folder.name, files, first_bytes) is None
