"""Stores after incidents, made from a store that a real broker closed."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

ENTRY = struct.Struct(">qiq")
LOG_FILE = 1 << 20


def copied(store: Path, target: Path) -> Path:
    """Return a copy that may be damaged."""
    shutil.copytree(store, target)
    return target


def queue_files(root: Path) -> Iterator[Path]:
    """Return every file of every queue."""
    yield from sorted(path for path in (root / "consumequeue").rglob("*") if path.is_file())


def entries(path: Path) -> list[tuple[int, int, int]]:
    """Return the entries of a queue's file."""
    data = path.read_bytes()
    return [ENTRY.unpack_from(data, position) for position in range(0, len(data) - len(data) % ENTRY.size, ENTRY.size)]


def forget_units(root: Path, start: int, stop: int = 1 << 62) -> int:
    """Zero the queues' entries of units in [start, stop) and after the first such entry; return the number of lost
    ones.
    """
    removed = 0
    for path in queue_files(root):
        rows = entries(path)
        first_row = next((n for n, row in enumerate(rows) if row[1] and start <= row[0] < stop), None)
        if first_row is None:
            continue
        removed += sum(1 for row in rows[first_row:] if row[1])
        data = bytearray(path.read_bytes())
        data[first_row * ENTRY.size :] = bytes(len(data) - first_row * ENTRY.size)
        path.write_bytes(data)
    return removed


def units(root: Path) -> list[int]:
    """Return the offsets of the units that are in queues, in order."""
    return sorted(row[0] for path in queue_files(root) for row in entries(path) if row[1])


def crashed(root: Path) -> None:
    """Leave ``abort`` like a killed broker."""
    (root / "abort").write_text("1234")


def shift(root: Path, queue: str, number: int) -> None:
    """Remove the entry ``number``, so that the entries after it are one place too early."""
    data = _of_queue(root, queue)
    del data[number * ENTRY.size : (number + 1) * ENTRY.size]
    _write_queue(root, queue, data + bytes(ENTRY.size))


def hole(root: Path, queue: str, number: int) -> None:
    """Zero the entry ``number``."""
    data = _of_queue(root, queue)
    data[number * ENTRY.size : (number + 1) * ENTRY.size] = bytes(ENTRY.size)
    _write_queue(root, queue, data)


def _of_queue(root: Path, queue: str) -> bytearray:
    return bytearray(b"".join(path.read_bytes() for path in sorted((root / "consumequeue" / queue).iterdir())))


def _write_queue(root: Path, queue: str, data: bytes | bytearray) -> None:
    for path in sorted((root / "consumequeue" / queue).iterdir()):
        start, size = int(path.name), path.stat().st_size
        path.write_bytes(data[start : start + size])


def zero_log(root: Path, start: int) -> None:
    """Zero the log from ``start`` on."""
    for path in sorted((root / "commitlog").iterdir()):
        file_offset = int(path.name)
        if file_offset + LOG_FILE > start:
            data = bytearray(path.read_bytes())
            position = max(start - file_offset, 0)
            data[position:] = bytes(len(data) - position)
            path.write_bytes(data)


def patch_log(root: Path, offset: int, data: bytes) -> None:
    """Write ``data`` over the log at ``offset``."""
    path = root / "commitlog" / f"{offset // LOG_FILE * LOG_FILE:020}"
    with path.open("r+b") as file:
        file.seek(offset % LOG_FILE)
        file.write(data)


def offsets(root: Path, **groups: dict[str, dict[int, int]]) -> None:
    """Write the consumer offsets: ``group=dict(Topic={queue: offset})``."""
    table = {
        f"{topic}@{group}": {str(queue): offset for queue, offset in rows.items()}
        for group, topics in groups.items()
        for topic, rows in topics.items()
    }
    (root / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}))
