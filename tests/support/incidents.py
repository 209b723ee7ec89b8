"""States of stores as incidents leave them, built from a store that a real broker closed."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

ENTRY = struct.Struct(">qiq")
LOG_FILE = 1 << 20


def copied(store: Path, target: Path) -> Path:
    """A copy that may be damaged."""
    shutil.copytree(store, target)
    return target


def queue_files(root: Path) -> Iterator[Path]:
    """Every file of every queue."""
    yield from sorted(path for path in (root / "consumequeue").rglob("*") if path.is_file())


def entries(path: Path) -> list[tuple[int, int, int]]:
    """The entries of a queue's file."""
    data = path.read_bytes()
    return [ENTRY.unpack_from(data, position) for position in range(0, len(data) - len(data) % ENTRY.size, ENTRY.size)]


def forget_units(root: Path, start: int, stop: int = 1 << 62) -> int:
    """Zero what the queues know of units in [start, stop) and behind the first such entry; gives how many went."""
    removed = 0
    for path in queue_files(root):
        rows = entries(path)
        first = next((n for n, row in enumerate(rows) if row[1] and start <= row[0] < stop), None)
        if first is None:
            continue
        removed += sum(1 for row in rows[first:] if row[1])
        data = bytearray(path.read_bytes())
        data[first * ENTRY.size :] = bytes(len(data) - first * ENTRY.size)
        path.write_bytes(data)
    return removed


def units(root: Path) -> list[int]:
    """Where the units that are in queues begin, in order."""
    return sorted(row[0] for path in queue_files(root) for row in entries(path) if row[1])


def crashed(root: Path) -> None:
    """As a broker that was killed leaves it."""
    (root / "abort").write_text("1234")


def shift(root: Path, queue: str, number: int) -> None:
    """The entry ``number`` was never written, and the entries after it are one place too early."""
    data = _of_queue(root, queue)
    del data[number * ENTRY.size : (number + 1) * ENTRY.size]
    _write_queue(root, queue, data + bytes(ENTRY.size))


def hole(root: Path, queue: str, number: int) -> None:
    """The entry ``number`` is all zero."""
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
    """The log holds nothing from ``start`` on."""
    for path in sorted((root / "commitlog").iterdir()):
        first = int(path.name)
        if first + LOG_FILE > start:
            data = bytearray(path.read_bytes())
            position = max(start - first, 0)
            data[position:] = bytes(len(data) - position)
            path.write_bytes(data)


def patch_log(root: Path, offset: int, data: bytes) -> None:
    """Write ``data`` over the log at ``offset``."""
    path = root / "commitlog" / f"{offset // LOG_FILE * LOG_FILE:020}"
    with path.open("r+b") as file:
        file.seek(offset % LOG_FILE)
        file.write(data)


def offsets(root: Path, **groups: dict[str, dict[int, int]]) -> None:
    """The consumer offsets: ``group=dict(Topic={queue: offset})``."""
    table = {
        f"{topic}@{group}": {str(queue): offset for queue, offset in rows.items()}
        for group, topics in groups.items()
        for topic, rows in topics.items()
    }
    (root / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}))
