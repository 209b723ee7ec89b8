"""A disk whose n-th call of a kind fails: tests try every open, list, look and read of a program."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from engine.mapped.reading import SystemDisk

CALLS = ("open", "entries", "status", "entry_status", "read", "read_into")
ERRORS = {"EACCES": errno.EACCES, "EIO": errno.EIO, "ESTALE": errno.ESTALE}


class FailingDisk(SystemDisk):
    """Counter of the calls below ``root``; the call number ``at`` (from 0) of the kind ``call`` fails in the way
    ``how``, and so does every later one for the same path: a rotten place stays rotten.

    ``how`` is a name of :data:`ERRORS`, ``vanish`` (a listed file is gone) or ``short`` (no bytes come). ``hit`` is the
    path that failed, "" until then.
    """

    def __init__(self, root: Path, call: str = "", at: int = -1, how: str = "EIO") -> None:
        self._root = str(root)
        self._call, self._at, self._how = call, at, how
        self.counts = dict.fromkeys(CALLS, 0)
        self.hit = ""

    def open(self, path: str) -> int:
        self._fail("open", path)
        return super().open(path)

    def entries(self, folder: str) -> list[os.DirEntry[str]]:
        self._fail("entries", folder)
        return super().entries(folder)

    def status(self, path: str, follow: bool) -> os.stat_result:
        self._fail("status", path)
        return super().status(path, follow)

    def entry_status(self, entry: os.DirEntry[str], follow: bool) -> os.stat_result:
        self._fail("entry_status", entry.path)
        return super().entry_status(entry, follow)

    def read(self, descriptor: int, size: int, position: int) -> bytes:
        data = super().read(descriptor, size, position)
        return b"" if data and self._short("read", descriptor) else data

    def read_into(self, descriptor: int, view: memoryview, position: int) -> int:
        count = super().read_into(descriptor, view, position)
        return 0 if count and self._short("read_into", descriptor) else count

    def _short(self, call: str, descriptor: int) -> bool:
        """Return True if nothing is read; raise if the read must be an error."""
        path = os.path.realpath(f"/proc/self/fd/{descriptor}")
        return self._fail(call, path)

    def _fail(self, call: str, path: str) -> bool:
        if not path.startswith(self._root):
            return False
        number = self.counts[call]
        self.counts[call] += 1
        if call == self._call and number == self._at and (self._how != "vanish" or os.path.lexists(path)):
            self.hit = path
        if not self.hit or call != self._call or path != self.hit:
            return False
        if self._how == "short":
            return call.startswith("read")
        if self._how == "vanish":
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        raise OSError(ERRORS[self._how], os.strerror(ERRORS[self._how]), path)
