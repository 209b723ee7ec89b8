"""Ext units of consume queues."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.consume_queue import decode as decode_entry
from engine.codec.consume_queue import ext_offset, is_ext_address
from engine.codec.cq_ext import CqExtStop, CqExtUnit, decode, encode, walk

CASES = [
    pytest.param(
        CqExtUnit(0, 20, 2598919, 1700000000123, b""),
        "0014000000000027a8070000018bcfe5687b0000",
        id="no bit map",
    ),
    pytest.param(
        CqExtUnit(0, 34, -1, 1, bytes.fromhex("4088") + bytes(12)),
        "0022ffffffffffffffff0000000000000001000e4088" + "00" * 12,
        id="fourteen bytes of bits",
    ),
]


@pytest.mark.parametrize(("unit", "wire"), CASES)
def test_writes(unit, wire):
    assert encode(unit).hex() == wire


@pytest.mark.parametrize(("unit", "wire"), CASES)
def test_reads(unit, wire):
    assert decode(bytes.fromhex(wire), 0, 0) == unit


_I64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.lists(st.tuples(_I64, _I64, st.binary(max_size=60)), max_size=6), st.integers(0, 1 << 40))
def test_a_file_round_trips(written, base):
    raw = b"".join(encode(CqExtUnit(0, 0, tags, time, bits)) for tags, time, bits in written)
    *rows, stop = walk(raw + b"\xff\xff" + bytes(9), base)
    assert [(unit.tags_code, unit.store_timestamp, unit.bit_map) for unit in rows] == written
    assert (stop.offset, stop.kind) == (base + len(raw), "mark")
    for unit in rows:
        assert ext_offset(unit.address) == unit.offset
        assert is_ext_address(unit.address)
        assert decode(raw, unit.offset - base, base) == unit


STOPS = [
    (b"", "end", "end of the bytes"),
    (b"\0", "end", "end of the bytes"),
    (bytes(40), "zero", "zero bytes: nothing was written here"),
    (b"\xff\xff", "mark", "end mark: the next unit is in the next file"),
    (b"\x00\x13" + bytes(40), "damage", "a unit's length is 19, expected 20 to 42"),
    (b"\xff\xfe" + bytes(40), "damage", "a unit's length is -2, expected 20 to 42"),
    (b"\x7f\xff" + bytes(40), "damage", "a unit's length is 32,767, expected 20 to 42"),
    (b"\x00\x14" + bytes(16) + b"\x00\x05", "damage", "the bit map's length is 5, 0 bytes are left in the unit"),
]


@pytest.mark.parametrize(("raw", "kind", "reason"), STOPS)
def test_stops_have_a_reason(raw, kind, reason):
    assert list(walk(raw, 1000)) == [CqExtStop(1000, kind, reason)]


@given(st.binary(max_size=400))
def test_any_bytes_give_units_and_one_stop(raw):
    *rows, stop = walk(raw, 7)
    assert isinstance(stop, CqExtStop)
    end = 7
    for unit in rows:
        assert unit.offset == end
        end = unit.end
    assert stop.offset == end


@pytest.mark.golden
def test_agrees_with_what_rocketmq_read(golden, golden_account):
    store = golden("multi-queue-ext-5.3.3")
    reports = {}
    for row in golden_account("multi-queue-ext-5.3.3", "expected.jsonl.xz"):
        if row["t"] == "cq" and row.get("ext"):
            reports[row["topic"], row["queue"], row["n"]] = (row["tags"], row["ext"])
    assert reports
    files = {}
    for topic, queue, _ in reports:
        folder = store / "consumequeue_ext" / topic / str(queue)
        files[topic, queue] = b"".join(path.read_bytes() for path in sorted(folder.iterdir()))
    for (topic, queue, _), (address, ext) in reports.items():
        unit = decode(files[topic, queue], ext_offset(address), 0)
        assert isinstance(unit, CqExtUnit)
        assert (unit.size, unit.tags_code, unit.store_timestamp) == (ext["size"], ext["tags"], ext["storeTs"])
        assert unit.bit_map.hex() == ext["bitmap"]


@pytest.mark.golden
def test_every_address_of_a_real_broker_leads_to_a_unit(golden):
    store = golden("broker-sqlfilter")
    lengths = set()
    for path in (store / "consumequeue_ext").glob("*/*/00000000000000000000"):
        entries = (store / "consumequeue").joinpath(*path.parts[-3:]).read_bytes()
        raw = path.read_bytes()
        for position in range(0, len(entries) - 19, 20):
            entry = decode_entry(entries, position)
            if entry.state == "entry" and ext_offset(entry.tags_code) < len(raw):
                assert is_ext_address(entry.tags_code)
                unit = decode(raw, ext_offset(entry.tags_code), 0)
                assert isinstance(unit, CqExtUnit)
                lengths.add(unit.size)
    assert lengths == {20, 34}
