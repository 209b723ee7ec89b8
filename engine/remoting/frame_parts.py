"""The places of a frame's parts in its bytes: lengths, form, each header field, the body (docs/protocol/frames.md).

This is for display. :class:`engine.remoting.frame.Command` has the values. For malformed bytes the parts are given as
far as they can be found.
"""

from __future__ import annotations

import json
import re
import struct

from engine.remoting.frame import BINARY, JSON

Part = tuple[str, int, int]
"""Name, position in the frame, bytes. Header fields of a client's own are called ``extFields.NAME``."""
EXTRA = "extFields."
_HEAD = (("code", 2), ("language", 1), ("version", 2), ("opaque", 4), ("flag", 4))
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BARE = re.compile(rb"[^,}\]\s]+")


def frame_parts(frame: bytes) -> list[Part]:
    """Return the parts in order; none overlaps another."""
    parts: list[Part] = [("totalLength", 0, min(4, len(frame)))]
    if len(frame) < 8:
        return parts
    length = int.from_bytes(frame[5:8], "big")
    parts += [("serializeType", 4, 1), ("headerLength", 5, 3)]
    end = min(8 + length, len(frame))
    if frame[4] == JSON:
        parts += _json(frame[8:end], 8)
    elif frame[4] == BINARY:
        parts += _binary(frame[8:end], 8)
    if end < len(frame):
        parts.append(("body", end, len(frame) - end))
    return [part for part in parts if part[1] + part[2] <= len(frame)]


def _json(header: bytes, base: int) -> list[Part]:
    """Find each pair of the object, and each of ``extFields``, from its key to the end of its value."""
    parts: list[Part] = []
    position, prefix = 0, ""
    while (key := _STRING.search(header, position)) is not None:
        brace = header.find(b"}", position, key.start())
        if prefix and brace >= 0:
            prefix = ""
        colon = header.find(b":", key.end())
        if colon < 0:
            break
        name = _text(key[0])
        position = colon + 1
        while position < len(header) and header[position : position + 1].isspace():
            position += 1
        if header[position : position + 1] == b"{":
            prefix, position = f"{name}.", position + 1
            continue
        value = _STRING.match(header, position) or _BARE.match(header, position)
        if value is None:
            break
        position = value.end()
        parts.append((prefix + name, base + key.start(), position - key.start()))
    return parts


def _text(quoted: bytes) -> str:
    try:
        return str(json.loads(quoted))
    except ValueError:
        return quoted[1:-1].decode("utf-8", "replace")


def _binary(header: bytes, base: int) -> list[Part]:
    parts: list[Part] = []
    position = 0
    for name, size in _HEAD:
        if position + size > len(header):
            return parts
        parts.append((name, base + position, size))
        position += size
    try:
        (size,) = struct.unpack_from(">i", header, position)
        if size < 0 or position + 4 + size > len(header):
            return parts
        parts.append(("remark", base + position, 4 + size))
        position += 4 + size
        parts.append(("extFieldsLength", base + position, 4))
        position += 4
        while position < len(header):
            pair_start = position
            (size,) = struct.unpack_from(">h", header, position)
            name = header[position + 2 : position + 2 + size].decode("utf-8", "replace")
            position += 2 + size
            (size,) = struct.unpack_from(">i", header, position)
            position += 4 + size
            if size < 0 or not pair_start < position <= len(header):
                break
            parts.append((EXTRA + name, base + pair_start, position - pair_start))
    except struct.error:
        pass
    return parts
