"""Whether a process holds a store's lock; asked of the kernel, never taken (spec 5)."""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path
from typing import Literal

from engine.errors import CannotRead
from engine.mapped.reading import Reading

LockState = Literal["free", "held", "absent", "unknown"]
"""``unknown``: the file is there and could not be opened or asked about."""


def lock_state(reading: Reading, path: Path) -> LockState:
    """The state of the lock file at ``path``."""
    try:
        descriptor = reading.open(path, listed=False)
    except CannotRead:
        return "unknown"
    if descriptor < 0:
        return "absent"
    try:
        asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, asked)
        return "free" if struct.unpack("hhqqi4x", answer)[0] == fcntl.F_UNLCK else "held"
    except OSError as error:
        reading.note(path, error, "ask")
        return "unknown"
    finally:
        os.close(descriptor)
