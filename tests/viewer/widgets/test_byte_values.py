"""Bytes as every type, and as source code."""

from __future__ import annotations

import base64
import zlib

import pytest

from viewer.look.formats import full_moment
from viewer.widgets.byte_values import COPIES, as_c, readings

DATA = bytes.fromhex("000001A1FD281D2D0A000001C0A80001")


def read(data: bytes = DATA, selected: bytes = b"") -> dict[str, str]:
    return {reading.name: reading.value for reading in readings(data, selected)}


def test_integers_times_and_addresses() -> None:
    record = read()
    assert record["int64 BE"] == f"{0x1A1FD281D2D:,}"
    assert record["uint64 LE"] == f"{int.from_bytes(DATA[:8], 'little'):,}"
    assert record["int16 BE"] == "0"
    assert record["time, ms BE"] == full_moment(0x1A1FD281D2D)
    assert record["time, ms LE"] == "–", "no time of this century"
    assert read(DATA[8:])["IPv4"] == "10.0.0.1"
    assert read(DATA)["IPv6"].startswith("0:1a1:fd28")
    assert read(b"\xff")["int8"] == "-1"
    assert read(b"\xff")["uint8"] == "255"
    assert read(b"\x3f\x80\x00\x00")["float BE"] == "1"


def test_too_few_bytes_say_nothing() -> None:
    record = read(b"\x01")
    assert record["int16 BE"] == record["double LE"] == record["IPv4"] == record["time, s BE"] == ""
    assert all(value == "" or name in {"CRC-32", "bodyCRC", "hashCode"} for name, value in read(b"").items())


def test_checksums_and_text_are_of_the_selection() -> None:
    body = "数量 x".encode()
    record = read(b"\x00", body)
    assert record["CRC-32"] == f"0x{zlib.crc32(body):08X}"
    assert record["bodyCRC"] == f"{zlib.crc32(body) & 0x7FFFFFFF:,}"
    assert record["UTF-8"] == "数量 x"
    assert read(b"", b"TagA")["hashCode"] == f"{2598919:,}"


@pytest.mark.parametrize("data", [b"", b"\x00\xff" * 20])
def test_copies_give_the_bytes_back(data: bytes) -> None:
    assert bytes.fromhex(COPIES["hex"](data)) == data
    assert eval(COPIES["python"](data)) == data
    assert base64.b64decode(COPIES["base64"](data)) == data
    numbers = as_c(data).partition("{")[2].partition("}")[0].replace("\n", "")
    assert bytes(int(part, 16) for part in numbers.split(",") if part.strip()) == data
