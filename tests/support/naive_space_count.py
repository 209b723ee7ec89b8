"""A plain count of a store's bytes, without the engine: file lengths from the directory, units by their length words.

Slow and simple on purpose: the accounts of space must equal it.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from pathlib import Path

MAGICS = {0xDAA320A7: 1, 0xDAA320AB: 2}
BLANK = 0xCBD43194


def bytes_by_folder(root: Path) -> Counter[str]:
    """Return the apparent bytes of every file, by the first part of its path below ``root``."""
    counts: Counter[str] = Counter()
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder) / name
            counts[path.relative_to(root).parts[0]] += path.lstat().st_size
    return counts


def units_by_queue(folder: Path) -> tuple[Counter[tuple[str, int]], Counter[tuple[str, int]], int]:
    """Return bytes and messages by (topic, queue) of the log in ``folder``, and the bytes of its blanks."""
    sizes: Counter[tuple[str, int]] = Counter()
    messages: Counter[tuple[str, int]] = Counter()
    blanks = 0
    for path in sorted(folder.iterdir()):
        data, base, position = path.read_bytes(), int(path.name), 0
        while position + 8 <= len(data):
            size, magic = struct.unpack_from(">iI", data, position)
            if magic == BLANK and size == len(data) - position:
                blanks += size
                break
            topic = _topic(data, position, size, magic, base + position)
            if topic is None:
                position = _next(data, position + 1, base)
                if position < 0:
                    break
                continue
            key = (topic, struct.unpack_from(">i", data, position + 12)[0])
            sizes[key] += size
            messages[key] += 1
            position += size
    return sizes, messages, blanks


def _topic(data: bytes, start: int, size: int, magic: int, offset: int) -> str | None:
    if (
        magic not in MAGICS
        or not 0 < size <= len(data) - start
        or struct.unpack_from(">q", data, start + 28)[0] != offset
    ):
        return None
    flags = struct.unpack_from(">i", data, start + 36)[0]
    position = start + 48 + (20 if flags & 0x10 else 8) + 8 + (20 if flags & 0x20 else 8) + 12
    position += 4 + struct.unpack_from(">i", data, position)[0]
    width = MAGICS[magic]
    length = int.from_bytes(data[position : position + width], "big")
    return data[position + width : position + width + length].decode(errors="replace") or None


def _next(data: bytes, start_of_search: int, base: int) -> int:
    """Return the position of the next unit or blank, −1 for none."""
    starts = []
    for magic in (*MAGICS, BLANK):
        position = data.find(magic.to_bytes(4, "big"), start_of_search + 4)
        while position >= 0:
            start = position - 4
            size = struct.unpack_from(">i", data, start)[0]
            if (magic == BLANK and size == len(data) - start) or _topic(data, start, size, magic, base + start):
                starts.append(start)
                break
            position = data.find(magic.to_bytes(4, "big"), position + 1)
    return min(starts, default=-1)
