"""A storage of the pipeline that fails at one call, and a small fleet to read through it."""

from __future__ import annotations

import errno
import os

from handmade_stores import healthy

from engine.errors import CannotRead
from engine.pipeline.storage import FolderEntry, LocalStorage


class FailingDisks:
    """Disks that fail at the ``at``-th call, and at every later one for the same path; they count calls."""

    def __init__(self, at=-1, below="", why=errno.EIO):
        self.at, self.below, self.why = at, below, why
        self.calls = 0
        self.hurt = None
        self.only = ""

    def strike(self, action, path):
        if self.hurt is None and self.below in path:
            if self.calls == self.at:
                self.hurt = path
            self.calls += 1
        within = self.hurt is not None and (path == self.hurt or path.startswith(f"{self.hurt}/"))
        if within and action.endswith(self.only):
            raise CannotRead(f"cannot be {action}: {os.strerror(self.why)}", file=path)

    def listing(self, folder):
        self.strike("listed", folder)
        results = []
        for item in LocalStorage().listing(folder):
            try:
                self.strike("looked at", item.path)
                results.append(item)
            except CannotRead as error:
                results.append(FolderEntry(item.name, item.path, 0, error.what))
        return results

    def is_folder(self, path):
        self.strike("looked at", path)
        return LocalStorage().is_folder(path)

    def open(self, path):
        self.strike("read", path)
        return FailingFile(self, LocalStorage().open(path))


class FailingFile:
    descriptor = -1

    def __init__(self, storage_, file):
        self._storage, self._file = storage_, file
        self.next_data, self.close = file.next_data, file.close

    def read(self, position, size):
        self._storage.strike("read", self._file.path)
        return self._file.read(position, size)

    def read_into(self, view, position):
        self._storage.strike("read", self._file.path)
        return self._file.read_into(view, position)


def make_fleet(folder):
    for name in ("a", "b"):
        (folder / name).mkdir()
        healthy(30).write(folder / name / "store")
    return folder
