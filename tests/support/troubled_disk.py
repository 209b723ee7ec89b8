"""A disk that a test makes slow, full, or nearly full while a store in another process uses it.

``python troubled_disk.py FILE serve STORE …`` runs the command on such a disk; the test holds a :class:`DiskTrouble`
over the same FILE. Everything goes to the real disk, except for refused writes.
"""

from __future__ import annotations

import asyncio
import errno
import faulthandler
import mmap
import os
import signal
import struct
import sys
import time
from pathlib import Path

from engine import message_store
from engine.broker import queue_locks
from engine.mapped.disk import RealDisk
from engine.mapped.real_file import OpenFiles, RealFile
from engine.services import store_services

LOCKS_MS = 10_000
"""How long a queue's lock lives without a word of its client (RocketMQ: ``rocketmq.broker.rebalance.lockMaxLiveTime``,
a minute).
"""
_FORM = struct.Struct("<iid")


class DiskTrouble:
    """The current trouble of the disk: a few bytes that both processes have mapped."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(_FORM.pack(0, 0, 0.1))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _FORM.size)

    def be(self, *, full: bool = False, flush_ms: int = 0, used: float = 0.1) -> None:
        """Set the trouble: with ``full`` nothing new is taken, each flush takes so long, and ``used`` is the share
        in use.
        """
        _FORM.pack_into(self._map, 0, full, flush_ms, used)

    @property
    def used(self) -> float:
        """The share of the disk that is reported as used."""
        return float(_FORM.unpack_from(self._map)[2])

    def refuse(self, path: str) -> None:
        """Raise ``OSError`` (ENOSPC) while it is full."""
        if _FORM.unpack_from(self._map)[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def wait(self) -> None:
        """Take the time of a flush."""
        milliseconds = _FORM.unpack_from(self._map)[1]
        if milliseconds:
            time.sleep(milliseconds / 1000)


class TroubledFile(RealFile):
    """A file that takes no byte by a write while the disk is full, and no room for writes through its map."""

    __slots__ = ("_trouble",)

    def __init__(
        self, trouble: DiskTrouble, path: str, size: int, files: OpenFiles, new_folders: tuple[str, ...] = ()
    ) -> None:
        super().__init__(path, size, files, new_folders)
        self._trouble = trouble

    def write(self, position: int, data: bytes | memoryview) -> None:
        self._trouble.refuse(self.path)
        super().write(position, data)

    def overwrite(self, position: int, data: bytes | memoryview) -> None:
        self._trouble.refuse(self.path)
        super().overwrite(position, data)

    def reserve(self, start: int, stop: int, *, touch: bool = False) -> None:
        self._trouble.refuse(self.path)
        super().reserve(start, stop, touch=touch)

    def flush(self, start: int, stop: int) -> None:
        self._trouble.wait()
        super().flush(start, stop)


class TroubledDisk(RealDisk):
    """The real disk with a :class:`DiskTrouble`."""

    def __init__(self, trouble: DiskTrouble) -> None:
        super().__init__()
        self._trouble = trouble

    def _file(self, path: str, size: int, new_folders: tuple[str, ...] = ()) -> RealFile:
        return TroubledFile(self._trouble, path, size, self._files, new_folders)

    def _create(self, path: Path, size: int) -> tuple[str, ...]:
        self._trouble.refuse(str(path))
        return super()._create(path, size)

    def write_file(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        self._trouble.refuse(str(path))
        super().write_file(path, data, sync=sync)

    def usage(self, path: Path) -> float:
        return self._trouble.used


def _say_tasks() -> None:
    for task in asyncio.all_tasks():
        task.print_stack(file=sys.stderr)


def main(words: list[str]) -> int:
    """Run the command on a disk with the trouble of FILE; it checks the disk's use soon, and not after a minute, and
    forgets locks of queues sooner (:data:`LOCKS_MS`). On SIGUSR1 it prints the positions of its threads and tasks.
    """
    from engine.cli.main import main as command

    signal.signal(signal.SIGUSR1, lambda *_: _say_tasks())
    faulthandler.register(signal.SIGUSR1, all_threads=True, chain=True)
    trouble = DiskTrouble(Path(words[0]))
    message_store.RealDisk = lambda: TroubledDisk(trouble)  # type: ignore[assignment, misc]
    store_services.FIRST_PAUSE_MS = 50.0  # type: ignore[misc]
    queue_locks.LOCK_DURATION_MS = LOCKS_MS
    return command(words[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
