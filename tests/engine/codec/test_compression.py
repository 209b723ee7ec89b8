"""Compressed bodies: all kinds, bombs, damage, missing packages."""

import sys
import zlib

import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from engine.codec import message
from engine.codec.compression import find_packed_stream, kind_of, unpack
from engine.codec.unit_scan import walk

PACK = {
    0x001: zlib.compress,
    0x101: lz4.frame.compress,
    0x201: zstandard.ZstdCompressor().compress,
    0x301: zlib.compress,
}
KINDS = [pytest.param(flag, id=f"{flag:#x}") for flag in PACK]


@pytest.mark.parametrize("flag", KINDS)
@given(body=st.binary(max_size=4000))
def test_every_kind_round_trips(flag, body):
    assert unpack(PACK[flag](body), flag) == (body, None)


@pytest.mark.parametrize("flag", KINDS)
def test_a_bomb_is_truncated_and_reported(flag):
    data, note = unpack(PACK[flag](bytes(40 << 20)), flag, cap=1 << 20)
    assert data == bytes(1 << 20)
    assert note == "cut after 1,048,576 bytes; the body is longer"


@pytest.mark.parametrize("flag", KINDS)
def test_a_body_of_exactly_the_cap_is_complete(flag):
    assert unpack(PACK[flag](bytes(5000)), flag, cap=5000) == (bytes(5000), None)


@pytest.mark.parametrize("flag", KINDS)
def test_a_truncated_body_reports_its_unpacked_part(flag):
    complete = PACK[flag](bytes(range(256)) * 400)
    data, note = unpack(complete[: len(complete) - 6], flag)
    assert note is not None
    assert "damaged after" in note
    assert (bytes(range(256)) * 400).startswith(data)


@pytest.mark.parametrize("flag", KINDS)
@given(body=st.binary(max_size=300))
def test_any_bytes_give_a_value(flag, body):
    data, note = unpack(body, flag, cap=10_000)
    assert isinstance(data, bytes)
    assert note is None or note


@pytest.mark.parametrize("flag", KINDS)
@given(position=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_flipped_bits_give_a_value(flag, position, bit):
    packed = bytearray(PACK[flag](bytes(range(256)) * 8))
    packed[position % len(packed)] ^= 1 << bit
    data, _ = unpack(bytes(packed), flag, cap=1 << 20)
    assert len(data) <= 1 << 20


def test_a_zstd_window_of_gigabytes_is_refused():
    frame = bytes.fromhex("28b52ffd00a8") + bytes(20)  # window descriptor 0xA8 means 2 GiB
    data, note = unpack(frame, 0x201)
    assert data == b""
    assert "damaged" in note


def test_an_uncompressed_body_stays_unchanged():
    assert unpack(b"abc", 0x300) == (b"abc", None)
    assert kind_of(0x300) is None


def test_unknown_kinds_are_named():
    assert unpack(b"abc", 0x501) == (b"", "compression type 5 is unknown; known are 0 to 3")


@pytest.mark.parametrize(("flag", "module", "name"), [(0x101, "lz4.frame", "lz4"), (0x201, "zstandard", "zstandard")])
def test_a_missing_package_is_named(flag, module, name, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    data, note = unpack(PACK[flag](b"abc"), flag)
    assert data == b""
    assert name in note


@pytest.mark.golden
@pytest.mark.parametrize("name", ["broker-orders", "broker-orders-4.9.7"])
def test_bodies_of_real_clients_unpack_completely(golden, name):
    kinds = set()
    for path in sorted((golden(name) / "commitlog").iterdir()):
        for unit in walk(path.read_bytes(), int(path.name)):
            if isinstance(unit, message.Unit) and unit.sys_flag & 1:
                data, note = unpack(unit.body, unit.sys_flag)
                assert note is None
                assert len(data) >= 4096
                kinds.add(kind_of(unit.sys_flag))
    assert "zlib" in kinds


@pytest.mark.parametrize(("pack", "kind"), [(zlib.compress, "zlib")])
def test_a_body_that_was_packed_twice_is_detected(pack, kind):
    """A client compressed an already compressed body. Consumers got garbage, and no view explained why."""
    assert find_packed_stream(pack(b"one cup of tea, " * 100)) == kind
    for body in (b"", b"hello world", b"x\x9c not a stream", pack(b"tea" * 100)[:-6]):
        assert find_packed_stream(body) is None
