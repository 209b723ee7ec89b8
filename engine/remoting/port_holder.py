"""The process of this machine that listens on a port, as far as Linux shows it."""

from __future__ import annotations

import errno
from pathlib import Path

from engine import system
from engine.sentences import sentence

LISTENS = "0A"


def busy_words(error: OSError, port: int) -> str:
    """Say why a port cannot be listened on: the system's words, and where it is taken who holds it."""
    reason = sentence(error.strerror or str(error))
    holder = port_holder(port) if error.errno == errno.EADDRINUSE else None
    if holder is None:
        return reason
    return sentence("{reason}, by {name} (process {pid})", reason=reason, name=holder[1], pid=holder[0])


def port_holder(port: int) -> tuple[int, str] | None:
    """Return number and name of a process that listens on TCP port ``port``; None if the system does not say it: on
    other systems, and of processes of other users.
    """
    sockets = {
        f"socket:[{inode}]" for name in ("tcp", "tcp6") for inode in _listening(system.PROC / "net" / name, port)
    }
    if not sockets:
        return None
    processes = [entry for entry in _entries(system.PROC) if entry.name.isdecimal()]
    for process in sorted(processes, key=lambda entry: int(entry.name)):
        if any(_link(descriptor) in sockets for descriptor in _entries(process / "fd")):
            return int(process.name), _name(process)
    return None


def _listening(table: Path, port: int) -> list[str]:
    """Inodes of the sockets of one table that listen on ``port``."""
    try:
        lines = table.read_text("ascii").splitlines()[1:]
    except OSError:
        return []
    rows = [line.split() for line in lines]
    return [row[9] for row in rows if len(row) > 9 and row[3] == LISTENS and int(row[1].rpartition(":")[2], 16) == port]


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:  # it has ended, or is another user's
        return []


def _link(file: Path) -> str:
    try:
        return str(file.readlink())
    except OSError:
        return ""


def _name(process: Path) -> str:
    """The name of a program; of an interpreter that of what it runs, where that is the first argument."""
    try:
        words = [word.decode("utf-8", "replace") for word in (process / "cmdline").read_bytes().split(b"\0") if word]
    except OSError:
        words = []
    names = [Path(word).name for word in words[:2] if not word.startswith("-")]
    interpreter = bool(names) and names[0].startswith(("python", "java", "node"))
    return " ".join(names) if interpreter else names[0] if names else "another program"
