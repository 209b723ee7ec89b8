"""Bytes as every type they may be: integers, floats, times, addresses, text, checksums; and as source code. No Qt."""

from __future__ import annotations

import base64
import ipaddress
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from viewer.look.assets import tr, tr_plural
from viewer.look.formats import full_moment, plain

PLAUSIBLE_TIMES_MS = (946_684_800_000, 4_102_444_800_000)
"""Times from 2000 to 2100, in ms. Others are shown as a dash."""
INTEGERS = ((8, "int64"), (4, "int32"), (2, "int16"), (1, "int8"))
Order = Literal["big", "little"]
ORDERS: tuple[tuple[Order, str], ...] = (("big", "BE"), ("little", "LE"))
MAX_TEXT_BYTES = 48
MASK = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class Reading:
    """A way to read the bytes: its type, the value as text ("" when there are too few bytes) and a note."""

    name: str
    value: str
    note: str = ""


def readings(data: bytes, selected: bytes) -> list[Reading]:
    """Read bytes as every supported type. ``data`` begins at the cursor; ``selected`` are the selected bytes, for
    text and checksums.
    """
    values: list[Reading] = []
    for order, mark in ORDERS:
        values.append(_time(data, 8, f"{tr('time, ms')} {mark}", order, 1))
        values.append(_time(data, 4, f"{tr('time, s')} {mark}", order, 1000))
        for size, name in INTEGERS:
            if size > 1 or order == "big":
                label = name if size == 1 else f"{name} {mark}"
                values.append(_number(data, size, label, order, signed=True))
                values.append(_number(data, size, f"u{label}", order, signed=False))
        values.append(_float(data, 4, f"float {mark}", order))
        values.append(_float(data, 8, f"double {mark}", order))
    values.append(Reading("IPv4", str(ipaddress.IPv4Address(data[:4])) if len(data) >= 4 else ""))
    values.append(Reading("IPv6", str(ipaddress.IPv6Address(data[:16])) if len(data) >= 16 else ""))
    values.append(Reading("binary", f"{data[0]:08b}" if data else ""))
    for name, charset in (
        ("UTF-8", "utf-8"),
        ("UTF-16 BE", "utf-16-be"),
        ("UTF-16 LE", "utf-16-le"),
        ("GB18030", "gb18030"),
    ):
        values.append(Reading(name, _text(selected, charset)))
    crc = zlib.crc32(selected)
    note = tr_plural("of {n:,} selected byte", "of {n:,} selected bytes", n=len(selected))
    values.append(Reading("CRC-32", f"0x{crc:08X}", note))
    values.append(Reading("bodyCRC", f"{crc & MASK:,}", tr("as RocketMQ stores it")))
    values.append(Reading("hashCode", f"{_java_hash(selected):,}" if len(selected) <= 4096 else "", "String.hashCode"))
    return values


def _number(data: bytes, size: int, name: str, order: Order, *, signed: bool) -> Reading:
    if len(data) < size:
        return Reading(name, "")
    return Reading(name, f"{int.from_bytes(data[:size], order, signed=signed):,}")


def _float(data: bytes, size: int, name: str, order: Order) -> Reading:
    if len(data) < size:
        return Reading(name, "")
    value = struct.unpack_from(f"{'>' if order == 'big' else '<'}{'f' if size == 4 else 'd'}", data)[0]
    return Reading(name, f"{value:.9g}")


def _time(data: bytes, size: int, name: str, order: Order, scale: int) -> Reading:
    if len(data) < size:
        return Reading(name, "")
    ms = int.from_bytes(data[:size], order, signed=True) * scale
    return Reading(name, full_moment(ms) if PLAUSIBLE_TIMES_MS[0] <= ms <= PLAUSIBLE_TIMES_MS[1] else "–")


def _text(data: bytes, charset: str) -> str:
    text = data[: MAX_TEXT_BYTES * 4].decode(charset, "replace")
    return plain(text if len(text) <= MAX_TEXT_BYTES else text[:MAX_TEXT_BYTES] + "…")


def _java_hash(data: bytes) -> int:
    from engine.codec.java import jhash

    return jhash(data.decode("utf-8", "replace"))


def as_c(data: bytes) -> str:
    """Format ``data`` as a C array, twelve bytes on a line."""
    lines = [", ".join(f"0x{byte:02X}" for byte in data[n : n + 12]) for n in range(0, len(data), 12)]
    return f"const unsigned char data[{len(data)}] = {{\n    " + ",\n    ".join(lines) + "\n};\n"


def as_base64(data: bytes) -> str:
    """Encode ``data`` as Base64 on one line."""
    return base64.b64encode(data).decode()


def as_text(data: bytes) -> str:
    """Decode ``data`` as UTF-8; invalid bytes become �."""
    return data.decode("utf-8", "replace")


def python_literal(data: bytes) -> str:
    """Format ``data`` as Python source, 16 bytes on a line if one line is not enough."""
    if len(data) <= 16:
        return repr(data)
    lines = [f"    {data[i : i + 16]!r}" for i in range(0, len(data), 16)]
    return "(\n" + "\n".join(lines) + "\n)"


def hex_text(data: bytes) -> str:
    """Format ``data`` as pairs of hex digits, 16 bytes on a line."""
    return "\n".join(data[i : i + 16].hex(" ").upper() for i in range(0, len(data), 16))


COPIES: dict[str, Callable[[bytes], str]] = {
    "hex": hex_text,
    "text": as_text,
    "python": python_literal,
    "c": as_c,
    "base64": as_base64,
}
"""Forms in which bytes are copied."""
