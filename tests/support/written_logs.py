"""Logs written unit by unit into files of any size, for pairs of stores."""

from __future__ import annotations

from pathlib import Path

from raw_units import raw_blank, raw_log

FILE_BYTES = 1 << 16
Message = dict[str, object]


def message(topic: str, queue_id: int, queue_offset: int, body: bytes = b"body", key: str | None = None) -> Message:
    key = key or f"{topic}-{queue_id}-{queue_offset}"
    properties = f"UNIQ_KEY\x01{key}\x02KEYS\x01k{queue_offset}\x02".encode()
    return {
        "topic": topic.encode(),
        "queue_id": queue_id,
        "queue_offset": queue_offset,
        "body": body,
        "properties": properties,
        "stored": 1_700_000_000_000 + queue_offset,
    }


def write_log(folder: Path, units: list[Message], file_bytes: int = FILE_BYTES) -> Path:
    """Write the units to log files of a size, each file ended by a blank."""
    (folder / "commitlog").mkdir(parents=True)
    start = position = 0
    data = bytearray()
    for unit in units:
        raw = raw_log(unit, base=start + position)
        if position + len(raw) + 8 > file_bytes:
            data += raw_blank(file_bytes - position)
            (folder / "commitlog" / f"{start:020}").write_bytes(data.ljust(file_bytes, b"\0"))
            start, position, data = start + file_bytes, 0, bytearray()
            raw = raw_log(unit, base=start)
        data += raw
        position += len(raw)
    (folder / "commitlog" / f"{start:020}").write_bytes(data + bytes(file_bytes - position))
    return folder
