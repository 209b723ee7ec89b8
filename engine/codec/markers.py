"""The small text files in a store's root: ``abort``, ``abort.bak`` and ``lock`` (spec 1, 5).

Pure. Only that ``abort`` exists decides about recovery; what is in it is for people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LOCK_TEXT = b"lock"
LARGEST_MARKER = 64
"""Bytes of a marker that are worth reading."""
_HIGHEST_PID = 1 << 31


@dataclass(frozen=True, slots=True)
class Marker:
    """What a marker holds: a process id (5.x ``abort``), nothing (4.9, ``abort.bak``), the word ``lock``, or else."""

    kind: Literal["pid", "empty", "lock", "other"]
    pid: int | None
    text: str

    @property
    def words(self) -> str:
        """One phrase for people."""
        match self.kind:
            case "pid":
                return f"process id {self.pid}"
            case "empty":
                return "empty"
            case "lock":
                return "the word lock"
            case "other":
                return f"unexpected text {self.text!r}"


def decode(buf: bytes | bytearray | memoryview) -> Marker:
    """What the bytes of a marker say; never raises."""
    text = bytes(buf[:LARGEST_MARKER]).decode("utf-8", "replace")
    bare = text.strip(" \t\r\n")
    if not bare:
        return Marker("empty", None, text)
    if bytes(buf) == LOCK_TEXT:
        return Marker("lock", None, text)
    if bare.isascii() and bare.isdigit() and len(buf) <= LARGEST_MARKER and 0 < int(bare) < _HIGHEST_PID:
        return Marker("pid", int(bare), text)
    return Marker("other", None, text)
