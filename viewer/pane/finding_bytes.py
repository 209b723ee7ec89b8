"""The bytes that show a finding, for the hex view. No Qt."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.codec.consume_queue import CQ_UNIT_SIZE
from engine.codec.message import list_fields
from engine.errors import CannotRead
from engine.mapped.reading import Reading
from engine.rules.findings import Finding
from viewer.pane.finding_facts import is_in_log
from viewer.widgets.hex_pages import HexField, hex_fields

BYTES_SHOWN = 256


@dataclass(frozen=True, slots=True)
class HexInput:
    """Input of the hex view: a reader, the start, painted fields, framed and damaged bytes.

    ``low`` and ``high`` bound what can be read. Without ``read`` there is nothing to show.
    """

    read: Callable[[int, int], bytes] | None
    start: int = 0
    size: int = 0
    fields: tuple[HexField, ...] = ()
    low: int = 0
    high: int = 0
    frames: tuple[tuple[int, int, str], ...] = ()
    damage: tuple[tuple[int, int], ...] = ()


def bytes_of(
    finding: Finding, log_read: Callable[[int, int], bytes], log_end: int, store_reading: Reading | None = None
) -> HexInput:
    """Return the bytes around a finding. Reads the disk, as ``store_reading`` does: the store may be shown patched."""
    file = Path(finding.file) if finding.file else None
    if file is None or finding.offset is None:
        return HexInput(None)
    if is_in_log(file):
        head = log_read(finding.offset, 1 << 16)
        fields = tuple(hex_fields(list_fields(head)))
        size = max((field.end for field in fields), default=0) or min(_span(finding), BYTES_SHOWN)
        marked = finding.evidence.get("bytePositions")
        frames = tuple((position, 1, "live") for position in marked[:64]) if isinstance(marked, list) else ()
        damage = () if fields else ((finding.offset, finding.offset + size),)
        return HexInput(log_read, finding.offset, size, fields, 0, log_end, frames, damage)
    reading = Reading() if store_reading is None else store_reading.with_own_records()
    try:
        info = reading.status(file)
    except CannotRead:
        info = None
    if info is None:
        return HexInput(None)
    length = info.st_size
    unit = CQ_UNIT_SIZE if "consumequeue" in file.parts or file.parent.name == "index" else 8
    fields = (
        HexField("physicalOffset", 0, 8, "id"),
        HexField("size", 8, 4, "frame"),
        HexField("tagsCode", 12, 8, "topic"),
    )
    shown = fields if "consumequeue" in file.parts else ()
    return HexInput(
        _file_reader(str(file), reading), finding.offset, min(unit, max(0, length - finding.offset)), shown, 0, length
    )


def _span(finding: Finding) -> int:
    for name in ("size", "bytes", "length"):
        value = finding.evidence.get(name)
        if isinstance(value, int) and value > 0:
            return value
    return 64


def _file_reader(path: str, reading: Reading) -> Callable[[int, int], bytes]:
    def read(offset: int, size: int) -> bytes:
        try:
            descriptor = reading.open(path)
        except CannotRead:
            return b""
        try:
            return reading.read(path, descriptor, size, max(0, offset), 0)
        except CannotRead:
            return b""
        finally:
            os.close(descriptor)

    return read
