"""The epoch table of controller mode, ``epochFileCheckpoint`` (docs/formats/epochs.md): each master's term with the
offset at which it began to write.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from engine.sentences import sentence

_CRC_MASK = 0x7FFFFFFF
_ROW = re.compile(r"(\d{1,10})-(\d{1,19})")
_NUMBER = re.compile(r"-?\d{1,10}")


@dataclass(frozen=True, slots=True)
class Epoch:
    """A master's term and the offset of the log at which it began."""

    epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True)
class EpochFile:
    """The rows of the file. ``problem`` says why a broker does not load it, "" if it does; ``stops_start`` is True if
    the broker ends over it.
    """

    epochs: tuple[Epoch, ...]
    problem: str = ""
    stops_start: bool = False


def decode(data: bytes) -> EpochFile:
    """Return the content of the file; never raises."""
    lines = data.decode("utf-8", "replace").splitlines()
    epochs = tuple(Epoch(*map(int, match.groups())) for line in lines[2:] if (match := _ROW.fullmatch(line)))
    for number, line in enumerate([*lines, "", ""][:2], 1):
        if not _NUMBER.fullmatch(line):
            problem = sentence("line {n} is no number: {text}", n=number, text=repr(line[:40]))
            return EpochFile(epochs, problem, stops_start=True)
    count, stored_crc = int(lines[0]), int(lines[1])
    if count != len(epochs):
        return EpochFile(epochs, sentence("its first line says {n:,} rows, it has {m:,}", n=count, m=len(epochs)))
    computed_crc = zlib.crc32("".join(f"{line}\n" for line in lines[2:]).encode()) & _CRC_MASK
    if stored_crc not in (0, computed_crc):
        text = sentence("its CRC is {found}, expected {expected}", found=stored_crc, expected=computed_crc)
        return EpochFile(epochs, text)
    return EpochFile(epochs)


def encode(epochs: list[Epoch]) -> bytes:
    """Return the bytes of the file."""
    rows = "".join(f"{epoch.epoch}-{epoch.start_offset}\n" for epoch in epochs)
    return f"{len(epochs)}\n{zlib.crc32(rows.encode()) & _CRC_MASK}\n{rows}".encode()
