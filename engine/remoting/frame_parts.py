"""Where the parts of a frame lie in its bytes: lengths, form, each header field, the body (docs/protocol/frames.md).

For showing, not for reading: what a frame says stands in :class:`engine.remoting.frame.Command`. Bytes that do not
hold what they promise give the parts as far as they go.
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
    """The parts in their order; none overlaps another."""
    found: list[Part] = [("totalLength", 0, min(4, len(frame)))]
    if len(frame) < 8:
        return found
    length = int.from_bytes(frame[5:8], "big")
    found += [("serializeType", 4, 1), ("headerLength", 5, 3)]
    end = min(8 + length, len(frame))
    if frame[4] == JSON:
        found += _json(frame[8:end], 8)
    elif frame[4] == BINARY:
        found += _binary(frame[8:end], 8)
    if end < len(frame):
        found.append(("body", end, len(frame) - end))
    return [part for part in found if part[1] + part[2] <= len(frame)]


def _json(header: bytes, base: int) -> list[Part]:
    """Each pair of the object, and each of ``extFields``, from its key to the end of its value."""
    found: list[Part] = []
    at, inside = 0, ""
    while (key := _STRING.search(header, at)) is not None:
        brace = header.find(b"}", at, key.start())
        if inside and brace >= 0:
            inside = ""
        colon = header.find(b":", key.end())
        if colon < 0:
            break
        name = _text(key[0])
        at = colon + 1
        while at < len(header) and header[at : at + 1].isspace():
            at += 1
        if header[at : at + 1] == b"{":
            inside, at = f"{name}.", at + 1
            continue
        value = _STRING.match(header, at) or _BARE.match(header, at)
        if value is None:
            break
        at = value.end()
        found.append((inside + name, base + key.start(), at - key.start()))
    return found


def _text(quoted: bytes) -> str:
    try:
        return str(json.loads(quoted))
    except ValueError:
        return quoted[1:-1].decode("utf-8", "replace")


def _binary(header: bytes, base: int) -> list[Part]:
    found: list[Part] = []
    at = 0
    for name, size in _HEAD:
        if at + size > len(header):
            return found
        found.append((name, base + at, size))
        at += size
    try:
        (size,) = struct.unpack_from(">i", header, at)
        if size < 0 or at + 4 + size > len(header):
            return found
        found.append(("remark", base + at, 4 + size))
        at += 4 + size
        found.append(("extFieldsLength", base + at, 4))
        at += 4
        while at < len(header):
            begun = at
            (size,) = struct.unpack_from(">h", header, at)
            name = header[at + 2 : at + 2 + size].decode("utf-8", "replace")
            at += 2 + size
            (size,) = struct.unpack_from(">i", header, at)
            at += 4 + size
            if size < 0 or not begun < at <= len(header):
                break
            found.append((EXTRA + name, base + begun, at - begun))
    except struct.error:
        pass
    return found
