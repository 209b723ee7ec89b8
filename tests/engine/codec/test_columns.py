"""Blocks of columns: both twins agree with the single-unit codec and read no byte outside their buffer.

A long range of units is scanned through one buffer: every unit appears once, whatever the source of the bytes.
"""

from __future__ import annotations

import logging
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from column_rows import row_of, rows_of
from golden_stores import names
from handmade_stores import HandmadeStore
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_units import raw_blank, raw_log, raw_unit

from engine.codec import columns
from engine.codec.columns import COLUMN_TYPES, BulkWalk, UnitColumns, next_unit, scan_block, scan_block_plain, twin
from engine.codec.index_builder import key_hashes
from engine.codec.message import Unit, decode
from engine.codec.topic_table import TopicTable
from engine.codec.unit_fields import FIELDS
from engine.codec.unit_flavours import FLAVOURS
from engine.codec.unit_scan import Stop, find_unit, walk

TWINS = [pytest.param(scan_block, id="compiled"), pytest.param(scan_block_plain, id="plain")]
VECTOR = bytes.fromhex(
    "0000007b daa320a7 77d18982 00000003 00000000 0000000000000005 00000000000004d2 00000000 0000018bcfe56800 c0a80102"
    "0000c350 0000018bcfe5687b 7f000001 00002a9f 00000000 0000000000000000 00000005 48656c6c6f 09 546f70696354657374"
    "0012 54414753 01 54616741 02 4b455953 01 6b31 02"
)
UNITS = [
    pytest.param({}, id="plain"),
    pytest.param({"version": 2, "topic": b"%RETRY%" + b"g" * 200}, id="V2, long topic"),
    pytest.param({"sys_flag": 0x10}, id="born host IPv6"),
    pytest.param({"sys_flag": 0x20}, id="store host IPv6"),
    pytest.param({"sys_flag": 0x30, "version": 2}, id="both hosts IPv6, V2"),
    *(pytest.param({"version": flavour.version}, id=f"flavour {flavour.word}") for flavour in FLAVOURS),
    pytest.param({"body": b""}, id="no body"),
    pytest.param({"body": b"", "body_crc": 7}, id="no body, yet a CRC: RocketMQ does not look"),
    pytest.param({"body": b"x" * 3}, id="body of 3 bytes"),
    pytest.param({"body": bytes(15)}, id="body of 15 bytes"),
    pytest.param({"body": random.Random(1).randbytes(5000)}, id="body of 5,000 bytes"),
    pytest.param({"body_crc": 7}, id="wrong CRC"),
    pytest.param({"body_crc": -0x77D18982}, id="CRC below zero"),
    pytest.param({"topic": b""}, id="no topic"),
    pytest.param({"topic": "Größe".encode()}, id="topic outside ASCII"),
    pytest.param({"topic": b"\xff\xfe"}, id="topic of malformed bytes"),
    pytest.param({"properties": b""}, id="no properties"),
    pytest.param({"properties": b"TAGS\x01TagA"}, id="no final separator"),
    pytest.param({"properties": b"TAGS\x01A\x02TAGS\x01B\x02"}, id="the later tag wins"),
    pytest.param({"properties": b"TAGS\x01A\x02TAGS\x01\x02"}, id="an empty tag is none"),
    pytest.param({"properties": b"\x02\x02TAGS\x01\x01\x02"}, id="a tag of one separator"),
    pytest.param({"properties": b"xTAGS\x01A\x02TAGSx\x01B\x02"}, id="names that only look like TAGS"),
    pytest.param({"properties": "TAGS\x01標籤😀\x02".encode()}, id="tag of three- and four-byte characters"),
    pytest.param({"properties": b"TAGS\x01a\xc3\x02"}, id="tag cut within a character"),
    pytest.param({"properties": b"TAGS\x01\xed\xa0\x80\xf4\x90\x80\x80\xc0\x80\x02"}, id="tag of surrogates"),
    pytest.param({"properties": b"K" * 100 + b"\x02TAGS\x01far"}, id="tag behind the first hundred bytes"),
    pytest.param({"properties": b"a\x01b\x02" * 5000 + b"TAGS\x01end\x02"}, id="many properties"),
    pytest.param({"topic": b"SCHEDULE_TOPIC_XXXX", "properties": b"DELAY\x013\x02TAGS\x01A\x02"}, id="delay level 3"),
    pytest.param({"topic": b"SCHEDULE_TOPIC_XXXX", "properties": b"DELAY\x0199\x02"}, id="delay level past the last"),
    pytest.param({"topic": b"SCHEDULE_TOPIC_XXXX", "properties": b"DELAY\x010\x02TAGS\x01A\x02"}, id="delay level 0"),
    pytest.param({"topic": b"SCHEDULE_TOPIC_XXXX", "properties": b"DELAY\x01-1\x02TAGS\x01A"}, id="delay below 0"),
    pytest.param({"topic": b"SCHEDULE_TOPIC_XXXX", "properties": b"DELAY\x01x\x02TAGS\x01A"}, id="delay of no number"),
    pytest.param({"topic": b"SCHEDULE_TOPIC_XXXX", "properties": b"DELAY\x0100000000012\x02"}, id="delay in 11 digits"),
    pytest.param({"topic": b"SCHEDULE_TOPIC_XXXX", "properties": b"TAGS\x01A\x02"}, id="no delay"),
    pytest.param({"topic": b"T", "properties": b"DELAY\x013\x02TAGS\x01A\x02"}, id="delay in another topic"),
    pytest.param({"queue_id": -1, "flag": -2, "queue_offset": -3, "born": -4, "stored": -5}, id="numbers below zero"),
    pytest.param({"reconsume": 7, "prepared": 1 << 40, "sys_flag": 0x8}, id="committed and retried"),
]


def scanned(scan, data, base=0, position=0, capacity=64, **options):
    out, topics = UnitColumns(capacity), TopicTable()
    return scan(data, len(data), base, position, out, topics, **options), out, topics


def test_the_compiled_twin_is_there():
    assert twin() is not None, "numba is part of what a developer installs"


@pytest.mark.parametrize("scan", TWINS)
@pytest.mark.parametrize("fields", UNITS)
def test_a_row_matches_the_single_unit_codec(scan, fields):
    data = raw_unit(1234, **fields)
    result, out, topics = scanned(scan, data, base=1234)
    assert (result.next_position, result.units, result.stopped) == (len(data), 1, "end")
    assert rows_of(out, topics) == [row_of(decode(data, 0, 1234))]


@pytest.mark.parametrize("scan", TWINS)
def test_the_check_vector_of_the_format_notes(scan):
    _, out, topics = scanned(scan, VECTOR, base=1234)
    assert rows_of(out, topics) == [row_of(decode(VECTOR, 0, 1234))]
    assert (out.tags_code[0], out.queue_offset[0], out.crc[0]) == (0x27A807, 5, columns.OK)


@pytest.mark.parametrize("scan", TWINS)
def test_without_crc_and_tags_the_other_columns_are_the_same(scan):
    data = raw_log(*(case.values[0] for case in UNITS))
    _, full, _ = scanned(scan, data)
    _, less, _ = scanned(scan, data, crc=False, with_tags=False)
    left_out = {"topic_id", "crc", *(field.attribute for field in FIELDS if field.with_tags)}
    for name, _ in COLUMN_TYPES:
        if name not in left_out:
            assert np.array_equal(full[name], less[name]), name
    assert set(less["crc"]) == {columns.UNCHECKED}


TAILS = [
    pytest.param(b"", "end", id="nothing"),
    pytest.param(bytes(3), "zero", id="three zero bytes"),
    pytest.param(b"\x01" + bytes(3), "cut", id="four bytes"),
    pytest.param(bytes(500), "zero", id="zero bytes"),
    pytest.param(raw_blank(4096), "blank", id="blank"),
    pytest.param(raw_blank(4096) + b"junk" * 50, "blank", id="blank and old bytes"),
    pytest.param(raw_unit()[:40], "cut", id="a unit's first 40 bytes"),
    pytest.param(raw_unit()[:-1], "cut", id="a unit without its last byte"),
    pytest.param(b"x" * 200, "damage", id="no magic number"),
    pytest.param(raw_unit()[:84] + b"\xff\xff\xff\xff" + raw_unit()[88:], "damage", id="body length -1"),
    pytest.param(raw_unit()[:84] + b"\x7f\xff\xff\xff" + raw_unit()[88:], "damage", id="body length 2^31-1"),
    pytest.param(raw_unit()[:93] + b"\x80" + raw_unit()[94:], "damage", id="topic length -128"),
    pytest.param(raw_unit()[:93] + b"\x7f" + raw_unit()[94:], "damage", id="topic longer than the unit"),
    pytest.param(raw_unit()[:103] + b"\xff\xff" + raw_unit()[105:], "damage", id="properties length -1"),
    pytest.param(raw_unit()[:103] + b"\x00\x11" + raw_unit()[105:], "damage", id="lengths that do not add up"),
    pytest.param(b"\x00\x00\x00\x5a" + raw_unit()[4:], "damage", id="total below the smallest unit"),
    pytest.param(b"\xff\xff\xff\xff" + raw_unit()[4:], "damage", id="total below zero"),
    pytest.param(b"\x7f\xff\xff\xff" + raw_unit()[4:], "damage", id="total of 2 GiB"),
]


@pytest.mark.parametrize("scan", TWINS)
@pytest.mark.parametrize(("tail", "why"), TAILS)
def test_a_walk_stops_with_a_reason(scan, tail, why):
    head = raw_log({}, {"body": b"second"})
    result, out, _ = scanned(scan, head + tail)
    assert (result.stopped, result.next_position) == (why, len(head))
    assert result.units == out.count == 2 + (why == "blank")
    expected = [item for item in walk(head + tail, 0) if isinstance(item, Stop)]
    if why != "blank":
        assert result.reason == expected[0].reason


@pytest.mark.parametrize("scan", TWINS)
def test_a_scan_continues_after_a_full_block(scan):
    data = raw_log(*[{"body": bytes([n])} for n in range(10)]) + raw_blank(99)
    out, topics, position, observed = UnitColumns(3), TopicTable(), 0, []
    while True:
        result = scan(data, len(data), 0, position, out, topics)
        observed += rows_of(out, topics)
        position = result.next_position
        if result.stopped != "full":
            break
    assert [row_of(item) if isinstance(item, Unit) else item for item in walk(data, 0)][:-1] == observed


@pytest.mark.full_form(keep=20)
@pytest.mark.parametrize("name", names())
def test_golden_logs_match_the_single_unit_codec(golden, name):
    for path in sorted(golden(name).rglob("commitlog/*")):
        data = path.read_bytes()
        base = int(path.name)
        units = [item for item in walk(data, base) if isinstance(item, Unit)]
        for scan in (scan_block, scan_block_plain):
            result, out, topics = scanned(scan, data, base, capacity=len(units) + 2)
            assert rows_of(out, topics)[: len(units)] == [row_of(unit) for unit in units]
            assert result.units - len(units) == (result.stopped == "blank")


def mutated(data: bytes, rng: random.Random) -> bytes:
    """A few bytes, bits or length fields of ``data`` changed, or its end cut off."""
    hurt = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        position = rng.randrange(len(hurt))
        kind = rng.randrange(5)
        if kind == 0:
            hurt[position] ^= 1 << rng.randrange(8)
        elif kind == 1:
            hurt[position] = rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
        elif kind == 2:
            hurt[position : position + 4] = rng.choice(
                (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\0", b"\0\0\x01\0")
            )
        elif kind == 3:
            del hurt[rng.randrange(1, len(hurt)) :]
        else:
            hurt[position : position + 2] = rng.choice((b"\x80\x00", b"\x7f\xff", b"\x02\x02", b"\xf0\x9f"))
    return bytes(hurt)


def assert_twins_agree(data, base=0, capacity=64, position=0):
    compiled_result, output, topics = scanned(scan_block, data, base, position, capacity)
    plain_result, plain_output, names_too = scanned(scan_block_plain, data, base, position, capacity)
    assert compiled_result == plain_result
    for name, _ in COLUMN_TYPES:
        assert np.array_equal(output[name], plain_output[name]), name
    assert topics.names == names_too.names
    keys = key_hashes(output, topics)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STORESCOPE_PLAIN", "1")
        plain_keys = key_hashes(plain_output, names_too)
        plain_next = next_unit(data, len(data), base, position, base + len(data))
    assert [column.tolist() for column in keys] == [column.tolist() for column in plain_keys]
    assert next_unit(data, len(data), base, position, base + len(data)) == plain_next
    assert plain_next == find_unit(data, base, position, base + len(data))


@pytest.mark.parametrize("seed", range(300))
def test_the_twins_agree_on_damaged_bytes(seed):
    rng = random.Random(seed)
    cases = [case.values[0] for case in UNITS if len(case.values[0].get("properties", b"")) < 1000]
    data = raw_log(*rng.sample(cases, 6), base=1 << 40)
    for _ in range(4):
        assert_twins_agree(mutated(data, rng), 1 << 40)


@settings(max_examples=150)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "body": st.binary(max_size=300),
                "topic": st.binary(max_size=100),
                "properties": st.binary(max_size=200)
                | st.lists(
                    st.tuples(st.sampled_from(["TAGS", "KEYS", "UNIQ_KEY", "DELAY", "x"]), st.text(max_size=40))
                ).map(lambda pairs: "".join(f"{k}\x01{v}\x02" for k, v in pairs).encode(errors="replace")),
                "sys_flag": st.integers(0, 0xFF),
            }
        ),
        min_size=1,
        max_size=5,
    ),
    st.integers(0, 60),
    st.integers(1, 6),
)
def test_the_twins_agree_on_any_unit(units, cut, capacity):
    data = raw_log(*units)
    assert_twins_agree(data[: len(data) - cut], capacity=capacity)


def test_nothing_is_read_outside_the_bytes():
    """Each case is tested next to a protected memory page, once after it and once before it."""
    script = Path(__file__).parents[2] / "support" / "guarded_scan.py"
    done = subprocess.run(
        [sys.executable, str(script), "400"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"ended with {done.returncode}: {done.stderr[-2000:]}"
    assert done.stdout.strip() == "400 cases"


@pytest.mark.parametrize("scan", TWINS)
def test_positions_outside_the_buffer_are_refused(scan):
    data = raw_unit()
    for n, position in ((len(data) + 1, 0), (len(data), len(data) + 1), (len(data), -1)):
        with pytest.raises(ValueError, match="expected 0 <= at <= n"):
            scan(data, n, 0, position, UnitColumns(4), TopicTable())


def test_a_copy_survives_the_next_block():
    data = raw_log({"queue_id": 1}, {"queue_id": 2})
    out, topics = UnitColumns(8), TopicTable()
    scan_block(data, len(data), 0, 0, out, topics)
    saved = out.copy()
    scan_block(raw_unit(queue_id=9), 123, 0, 0, out, topics)
    assert saved.queue_id.tolist() == [1, 2]
    assert len(out) == 1


def test_without_numba_and_saved_code_plain_python_answers_and_warns_once(tmp_path):
    tmp_path.chmod(0o700)
    code = (
        "import os, sys, logging\n"
        "os.environ['NUMBA_CACHE_DIR'] = sys.argv[2]\n"
        "logging.basicConfig(format='%(message)s')\n"
        "sys.modules['numba'] = None\n"
        "from engine.codec.columns import UnitColumns, scan_block\n"
        "from engine.codec.columns import TopicTable\n"
        "data = bytes.fromhex(sys.argv[1])\n"
        "out = UnitColumns(4)\n"
        "print([scan_block(data, len(data), 0, 0, out, TopicTable()).units for _ in range(3)], out.tags_code[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, VECTOR.hex(), str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["[1,", "1,", "1]", "2598919"]
    assert len(done.stderr.splitlines()) == 1
    assert "plain Python is used" in done.stderr


def test_the_environment_can_forbid_compiled_walks(monkeypatch, caplog):
    monkeypatch.setenv("STORESCOPE_PLAIN", "1")
    with caplog.at_level(logging.WARNING):
        assert twin() is None
    assert not caplog.records


def test_plain_python_answers_until_compiled_code_is_verified() -> None:
    doubts = [True]
    with columns.without_twins_while(lambda: doubts[0]):
        assert columns.twin() is None
        doubts[0] = False
        assert columns.twin() is columns._try_twin()
        doubts[0] = True
    assert columns.twin() is columns._try_twin()


class BorrowedBytes:
    """Bytes in memory, or those of an open file."""

    def __init__(self, data, descriptor=-1):
        self.data, self.descriptor = data, descriptor

    def read_into(self, view, position):
        piece = self.data[position : position + len(view)]
        view[: len(piece)] = piece
        return len(piece)


@pytest.fixture
def small_store():
    store = HandmadeStore(log_size=1 << 16)
    for number in range(300):
        store.put(body=b"x" * (number % 40))
    return store


def walked(source, rows=64, position=0, stop=None):
    walk = BulkWalk(rows=rows)
    return [int(item) for block in walk.iter_blocks(source, 0, position, stop) for item in block.offset[: block.count]]


@pytest.mark.parametrize("rows", [1, 7, 8192])
def test_every_unit_comes_once_in_blocks_of_any_size(small_store, rows):
    assert walked(BorrowedBytes(bytes(small_store.log)), rows) == [unit.offset for unit in small_store.units]


def test_a_file_is_read_by_its_descriptor(small_store, tmp_path):
    file = tmp_path / "log"
    file.write_bytes(bytes(small_store.log).ljust(1 << 16, b"\0"))
    descriptor = os.open(file, os.O_RDONLY)
    try:
        assert walked(BorrowedBytes(file.read_bytes(), descriptor)) == [unit.offset for unit in small_store.units]
    finally:
        os.close(descriptor)


def test_a_walk_begins_at_a_unit_and_ends_before_an_offset(small_store):
    first_unit, end_unit = small_store.units[40], small_store.units[90]
    assert walked(BorrowedBytes(bytes(small_store.log)), 16, first_unit.offset, end_unit.offset) == [
        u.offset for u in small_store.units[40:90]
    ]


def test_a_walk_ends_at_invalid_bytes(small_store, monkeypatch):
    data = bytearray(small_store.log)
    data[small_store.units[50].offset : small_store.units[50].offset + 8] = bytes(8)
    assert walked(BorrowedBytes(bytes(data))) == [unit.offset for unit in small_store.units[:50]]
    assert walked(BorrowedBytes(bytes(data)), position=small_store.units[50].offset) == []
    monkeypatch.setattr(columns, "twin", lambda: None)
    assert walked(BorrowedBytes(bytes(data))) == [unit.offset for unit in small_store.units[:50]]


@pytest.mark.parametrize(("name", "value"), [("byteorder", "big"), ("maxsize", (1 << 31) - 1)])
def test_a_machine_of_another_kind_uses_plain_python(monkeypatch, name, value) -> None:
    """On such a machine the compiled twins would read every word in the wrong byte order."""
    monkeypatch.setattr(sys, name, value)
    assert columns._try_twin.__wrapped__() is None
