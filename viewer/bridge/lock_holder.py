"""Who has a store open for writing: asked of the kernel, and of the marker that a broker leaves; nothing is taken."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from engine.mapped.read_only import open_read_only

_FLOCK = struct.Struct("hhqqi4x")  # type, whence, start, length, pid
_ASKED = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
LONGEST = 80


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds a store's lock: ``pid`` is None where the kernel does not tell it, ``name`` "" likewise."""

    pid: int | None
    name: str = ""


def holder_of(lock: Path) -> Holder | None:
    """Who holds the lock file ``lock``; None for nobody. Takes no lock and writes nothing."""
    try:
        descriptor = open_read_only(str(lock))
    except OSError:
        return None
    try:
        kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, _ASKED))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if kind == fcntl.F_UNLCK:
        return None
    found = pid if pid > 0 else _from_abort(lock)
    return Holder(found, _name_of(found) if found is not None else "")


def _from_abort(lock: Path) -> int | None:
    """The process number in the ``abort`` file beside the lock: whose lock is bound to a file is known by nothing
    else.
    """
    with contextlib.suppress(OSError):
        text = lock.with_name("abort").read_bytes()[:20].strip()
        if text.isdigit():
            return int(text)
    return None


def _name_of(pid: int) -> str:
    """The command of a process, as far as the system tells it."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return b" ".join(words[:3]).decode("utf-8", "replace").strip()[:LONGEST]
    return ""
